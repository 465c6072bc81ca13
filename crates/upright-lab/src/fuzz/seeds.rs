//! Small valid files of every format, made here.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Packed with gzip.
pub(super) fn gz(bytes: &[u8]) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), Compression::default());
    let done = out.write_all(bytes).and_then(|()| out.finish());
    done.unwrap_or_default()
}

fn npy(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let length = (text.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, text.as_bytes(), data].concat()
}

fn floats(n: usize) -> Vec<u8> {
    (0..n).flat_map(|i| ((i * 7 % 11) as f32).to_le_bytes()).collect()
}

fn archive(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut out = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in members {
        let options = zip::write::SimpleFileOptions::default();
        let done = out.start_file(format!("{name}.npy"), options).map(|()| out.write_all(bytes));
        debug_assert!(done.is_ok());
    }
    out.finish().map(std::io::Cursor::into_inner).unwrap_or_default()
}

/// `.npy` of clouds.
pub(super) fn arrays() -> Vec<Vec<u8>> {
    let doubles: Vec<u8> = (0..12).flat_map(|i| f64::from(i).to_be_bytes()).collect();
    vec![
        npy("<f4", "False", "(2, 4, 3)", &floats(24)),
        npy("<i2", "False", "(2, 4, 3)", &floats(12)),
        npy(">f8", "True", "(1, 4, 3)", &doubles),
        npy("<f4", "False", "(4, 3)", &floats(12)),
    ]
}

/// `.npy.gz` of clouds.
pub(super) fn packed_arrays() -> Vec<Vec<u8>> {
    arrays().iter().map(|a| gz(a)).collect()
}

/// `.npz` of clouds and sketches.
pub(super) fn archives() -> Vec<Vec<u8>> {
    let pens: Vec<u8> =
        [1., 2., 1., 3., 4., 0., 0., 0., -1.].iter().flat_map(|v: &f32| v.to_le_bytes()).collect();
    vec![
        archive(&[
            ("x", npy("<f4", "False", "(2, 4, 3)", &floats(24))),
            ("y", npy("|u1", "False", "(2,)", &[0, 1])),
        ]),
        archive(&[("strokes", npy("<f4", "False", "(1, 3, 3)", &pens))]),
        archive(&[("data", npy("<f4", "False", "(1, 6, 2)", &floats(12)))]),
    ]
}

/// `.npz` of pictures.
pub(super) fn picture_archives() -> Vec<Vec<u8>> {
    vec![
        archive(&[
            ("x", npy("|u1", "False", "(2, 3, 3)", &[5; 18])),
            ("y", npy("<i8", "False", "(2,)", &[0; 16])),
        ]),
        archive(&[("images", npy("<f4", "False", "(1, 3, 2, 2)", &floats(12)))]),
    ]
}

/// idx pictures, plain and packed.
pub(super) fn idx() -> Vec<Vec<u8>> {
    let mut plain = vec![0, 0, 8, 3];
    for dim in [2u32, 3, 2] {
        plain.extend(dim.to_be_bytes());
    }
    plain.extend([9; 12]);
    vec![gz(&plain), plain]
}

/// Pictures of every format.
pub(super) fn pictures() -> Vec<Vec<u8>> {
    use image::ImageFormat as F;
    let image =
        image::RgbImage::from_fn(7, 5, |x, y| image::Rgb([(x * 30) as u8, (y * 50) as u8, 9]));
    let grey = image::GrayImage::from_fn(5, 4, |x, y| image::Luma([(x * y * 9) as u8]));
    let mut out = Vec::new();
    for format in [F::Png, F::Jpeg, F::Bmp, F::Tiff, F::WebP, F::Gif, F::Pnm] {
        for picture in [image::DynamicImage::from(image.clone()), grey.clone().into()] {
            let mut bytes = std::io::Cursor::new(Vec::new());
            if picture.write_to(&mut bytes, format).is_ok() {
                out.push(bytes.into_inner());
            }
        }
    }
    out
}

/// OFF meshes.
pub(super) fn off() -> Vec<Vec<u8>> {
    [
        "OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0.5\n3 0 1 2\n4 0 1 2 3\n",
        "OFF4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 1 3\n",
        "# c\nCOFF\n3 1 0\n0 0 0 255 0 0 255\n1 0 0 0 0 0 0\n0 1 0 1 1 1 1\n3 0 1 2 9 9 9\n",
    ]
    .map(|t| t.as_bytes().to_vec())
    .into()
}

/// PLY, text and both byte orders.
pub(super) fn ply() -> Vec<Vec<u8>> {
    let head = |form: &str| {
        format!(
            "ply\nformat {form} 1.0\ncomment c\nelement vertex 3\nproperty float x\nproperty float y\n\
             property float z\nproperty uchar red\nelement face 1\nproperty list uchar int vertex_indices\nend_header\n"
        )
        .into_bytes()
    };
    let mut text = head("ascii");
    text.extend(b"0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n");
    let binary = |big: bool| {
        let mut out = head(if big { "binary_big_endian" } else { "binary_little_endian" });
        let four = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        for v in [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] {
            out.extend(v.into_iter().flat_map(|v| four(v.to_bits())));
            out.push(9);
        }
        out.push(3);
        out.extend((0..3).flat_map(four));
        out
    };
    vec![text, binary(false), binary(true)]
}

/// PCD: text, binary, packed.
pub(super) fn pcd() -> Vec<Vec<u8>> {
    let head = |form: &str| {
        format!(
            "VERSION .7\nFIELDS x y z i\nSIZE 4 4 4 1\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH 3\nHEIGHT 1\n\
             VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 3\nDATA {form}\n"
        )
        .into_bytes()
    };
    let mut text = head("ascii");
    text.extend(b"0 0 0 1\n1 2 3 1\nnan 0 0 2\n");
    let mut binary = head("binary");
    binary.extend(0..39);
    let mut packed = head("binary_compressed");
    let body = [&[2u8, 1, 2, 3][..], &[7 << 5, 27, 2]].concat();
    packed.extend((body.len() as u32).to_le_bytes());
    packed.extend(39u32.to_le_bytes());
    packed.extend(body);
    vec![text, binary, packed]
}

/// Lines of points.
pub(super) fn xyz() -> Vec<Vec<u8>> {
    ["0 0 0\n1 2 3\n4 5 6\n", "x,y,z\n0,0,1\n2,3,4\n", "3\n0 0 0 1 1 1\n1 1 1 0 0 0\n2 2 2 9 9 9\n"]
        .map(|t| t.as_bytes().to_vec())
        .into()
}

/// Lines of `QuickDraw`.
pub(super) fn ndjson() -> Vec<Vec<u8>> {
    vec![
        b"{\"word\":\"cat\",\"key_id\":\"0-1\",\"drawing\":[[[0,10,20],[0,5,0]],[[3,4],[5,6]]]}\n\
          {\"word\":\"dog\",\"key_id\":7,\"drawing\":[[[0.5,1.5],[2,3],[0,16]]]}\n"
            .to_vec(),
    ]
}

/// The same, packed.
pub(super) fn packed_ndjson() -> Vec<Vec<u8>> {
    ndjson().iter().map(|a| gz(a)).collect()
}

/// SVG drawings.
pub(super) fn svg() -> Vec<Vec<u8>> {
    [
        "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"><g transform=\"translate(1,2) scale(2 3) rotate(30)\">\
         <path d=\"M1 1L2 2H3V4C1 2 3 4 5 6S1 2 3 4Q1 2 3 4T5 6A1 2 30 0 1 7 8Z\"/><path d=\"m0 0l1 1h1v1c1 1 2 2 3 3s1 1 2 2q1 1 2 2t1 1a3 4 0 1 0 5 5z\"/></g></svg>",
        "<svg><line x1='1' x2='2' y1='3' y2='4'/><polyline points='0,0 1,1 2,0'/><polygon points='0 0 1 1 2 0'/>\
         <rect x='1' y='1' width='2' height='3'/><circle cx='1' cy='2' r='3'/><ellipse rx='2' ry='3'/><defs><path d='M0 0'/></defs></svg>",
    ]
    .map(|t| t.as_bytes().to_vec())
    .into()
}

/// Lists of files.
pub(super) fn lists() -> Vec<Vec<u8>> {
    [
        "path,label\na.png,3\n\"b, c.png\",cat\n",
        "path,row,label,split\na.npz,0,1,train\nb.idx3,2,0,test\n",
    ]
    .map(|t| t.as_bytes().to_vec())
    .into()
}

/// Lists of files as JSON lines.
pub(super) fn json_lists() -> Vec<Vec<u8>> {
    vec![
        b"{\"path\":\"a.png\",\"label\":3}\n{\"path\":\"b.npz\",\"row\":2,\"split\":\"train\"}\n"
            .to_vec(),
    ]
}

/// Labels.
pub(super) fn labels() -> Vec<Vec<u8>> {
    ["name,label\na,3\nb,0\n", "label\ncat\ndog\n"].map(|t| t.as_bytes().to_vec()).into()
}
