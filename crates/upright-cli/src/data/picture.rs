//! Image files as pictures, with everything checked that the header announces
//! before any pixel is decoded.
//!
//! Grey stays one channel, everything else becomes red, green, blue. Alpha is
//! dropped, as Pillow's `convert("RGB")` does, since that is how the models at
//! hand were trained. 8 and 16 bit are scaled to 0..1; floating-point files are
//! taken as they are.

use std::any::Any;
use std::fs::File;
use std::io::BufReader;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};

/// Most pixels a picture may have.
pub const PIXEL_CAP: u64 = 64_000_000;
/// Most bytes a decoded picture may take.
pub const BYTE_CAP: u64 = 256 << 20;
/// Endings of the file names that are taken for pictures.
pub const ENDINGS: &[&str] =
    &["png", "jpg", "jpeg", "bmp", "tif", "tiff", "webp", "gif", "pnm", "pbm", "pgm", "ppm", "pam"];

/// A decoded picture: rows from the top, pixels from the left, the channels of
/// a pixel next to each other; values in 0..1.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// Columns.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// 1 grey, 3 red-green-blue.
    pub channels: usize,
    /// `height * width * channels` numbers.
    pub data: Vec<f32>,
}

impl Picture {
    /// The same picture with rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Picture {
        let Picture { width, height, channels, .. } = *self;
        let mut data = Vec::with_capacity(self.data.len());
        for x in 0..width {
            for y in 0..height {
                let at = (y * width + x) * channels;
                data.extend_from_slice(&self.data[at..at + channels]);
            }
        }
        Picture { width: height, height: width, channels, data }
    }
}

/// A picture, and whether its file asked for it to be turned.
#[derive(Debug, Clone, PartialEq)]
pub struct Photo {
    /// The picture, turned as asked unless that was to be ignored.
    pub picture: Picture,
    /// Whether the file carries an EXIF orientation other than upright.
    pub turned: bool,
}

/// Whether a file's name ends like a picture's.
pub fn looks_like_one(path: &Path) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| ENDINGS.contains(&e.to_ascii_lowercase().as_str()))
}

/// Decodes an image file; the format is read from its content. The error is a
/// reason to put behind the file's name.
pub fn decode(path: &Path, ignore_exif: bool) -> Result<Photo, String> {
    catch_unwind(AssertUnwindSafe(|| decode_unguarded(path, ignore_exif)))
        .unwrap_or_else(|panic| Err(format!("the decoder gave up: {}", words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

fn decode_unguarded(path: &Path, ignore_exif: bool) -> Result<Photo, String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    if length == 0 {
        return Err("empty file".into());
    }
    let explain = |e: ImageError| reason(&e, length);
    let mut reader =
        ImageReader::new(BufReader::new(file)).with_guessed_format().map_err(|e| e.to_string())?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(2 * BYTE_CAP);
    reader.limits(limits.clone());
    let mut decoder = reader.into_decoder().map_err(explain)?;
    let (width, height) = decoder.dimensions();
    let (pixels, bytes) = (u64::from(width) * u64::from(height), decoder.total_bytes());
    if pixels == 0 {
        return Err(format!("{width} x {height} pixels"));
    }
    if pixels > PIXEL_CAP {
        return Err(format!("{width} x {height} pixels, the limit is {PIXEL_CAP}"));
    }
    if bytes > BYTE_CAP {
        return Err(format!("{bytes} bytes decoded, the limit is {BYTE_CAP}"));
    }
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let turned = orientation != Orientation::NoTransforms;
    decoder.set_limits(limits).map_err(explain)?;
    let mut image = DynamicImage::from_decoder(decoder).map_err(explain)?;
    if turned && !ignore_exif {
        image.apply_orientation(orientation);
    }
    Ok(Photo { picture: picture(&image)?, turned })
}

fn picture(image: &DynamicImage) -> Result<Picture, String> {
    let (width, height) = (image.width() as usize, image.height() as usize);
    let eight = |v: &u8| f32::from(*v) / 255.0;
    let sixteen = |v: &u16| f32::from(*v) / 65_535.0;
    let data = match image {
        DynamicImage::ImageLuma8(i) => i.as_raw().iter().map(eight).collect(),
        DynamicImage::ImageLumaA8(i) => i.pixels().map(|p| eight(&p.0[0])).collect(),
        DynamicImage::ImageRgb8(i) => i.as_raw().iter().map(eight).collect(),
        DynamicImage::ImageRgba8(i) => {
            i.pixels().flat_map(|p| [p.0[0], p.0[1], p.0[2]]).map(|v| eight(&v)).collect()
        }
        DynamicImage::ImageLuma16(i) => i.as_raw().iter().map(sixteen).collect(),
        DynamicImage::ImageLumaA16(i) => i.pixels().map(|p| sixteen(&p.0[0])).collect(),
        DynamicImage::ImageRgb16(i) => i.as_raw().iter().map(sixteen).collect(),
        DynamicImage::ImageRgba16(i) => {
            i.pixels().flat_map(|p| [p.0[0], p.0[1], p.0[2]]).map(|v| sixteen(&v)).collect()
        }
        DynamicImage::ImageRgb32F(i) => i.as_raw().clone(),
        DynamicImage::ImageRgba32F(i) => {
            i.pixels().flat_map(|p| [p.0[0], p.0[1], p.0[2]]).collect::<Vec<f32>>()
        }
        other => return Err(format!("pixels of type {:?} are not supported", other.color())),
    };
    if let Some(bad) = data.iter().find(|v: &&f32| !v.is_finite()) {
        return Err(format!("holds {bad}"));
    }
    let grey =
        matches!(image.color(), ColorType::L8 | ColorType::La8 | ColorType::L16 | ColorType::La16);
    Ok(Picture { width, height, channels: if grey { 1 } else { 3 }, data })
}

/// What a decoder's error means, for a file of the given length.
fn reason(error: &ImageError, length: u64) -> String {
    let ended = |e: &std::io::Error| e.kind() == std::io::ErrorKind::UnexpectedEof;
    let direct = matches!(error, ImageError::IoError(e) if ended(e));
    let below = std::iter::successors(std::error::Error::source(error), |e| e.source())
        .any(|e| e.downcast_ref().is_some_and(ended));
    if direct || below {
        return format!("truncated at byte {length}");
    }
    match error {
        ImageError::Unsupported(_) => "not an image of a known format".into(),
        other => other.to_string().lines().collect::<Vec<_>>().join("; "),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
    use std::path::PathBuf;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// A JPEG of the given size, white on its left half, with an EXIF orientation.
    pub(crate) fn jpeg(path: &Path, width: u32, height: u32, orientation: u8) {
        let image = RgbImage::from_fn(width, height, |x, _| {
            if x < width / 2 { Rgb([255; 3]) } else { Rgb([0; 3]) }
        });
        image.save(path).unwrap();
        let plain = std::fs::read(path).unwrap();
        let mut tiff = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        tiff.extend([orientation, 0, 0, 0, 0, 0, 0]);
        let mut turned = plain[..2].to_vec();
        turned.extend([0xff, 0xe1]);
        turned.extend((tiff.len() as u16 + 2).to_be_bytes());
        turned.extend(tiff);
        turned.extend(&plain[2..]);
        std::fs::write(path, turned).unwrap();
    }

    /// The start of a PNG that announces the given size: signature and IHDR.
    fn png_header(width: u32, height: u32) -> Vec<u8> {
        let mut chunk = b"IHDR".to_vec();
        chunk.extend(width.to_be_bytes());
        chunk.extend(height.to_be_bytes());
        chunk.extend([8, 2, 0, 0, 0]);
        let crc = chunk.iter().fold(!0u32, |mut crc, &b| {
            crc ^= u32::from(b);
            (0..8).for_each(|_| crc = crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 });
            crc
        });
        let mut out = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
        out.extend(chunk);
        out.extend((!crc).to_be_bytes());
        out.extend(b"\0\0\0\x04IDAT\0\0\0\0\0\0\0\0");
        out
    }

    #[test]
    fn grey_stays_grey_and_alpha_is_dropped() {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        GrayImage::from_raw(2, 1, vec![0, 255]).unwrap().save(at("l8.png")).unwrap();
        RgbaImage::from_pixel(1, 1, Rgba([255, 51, 0, 0])).save(at("rgba8.png")).unwrap();
        let l16: ImageBuffer<Luma<u16>, Vec<u16>> =
            ImageBuffer::from_raw(1, 1, vec![13_107]).unwrap();
        l16.save(at("l16.png")).unwrap();
        let read = |name: &str| decode(&at(name), false).unwrap().picture;
        assert_eq!(
            read("l8.png"),
            Picture { width: 2, height: 1, channels: 1, data: vec![0.0, 1.0] }
        );
        assert_eq!(
            read("rgba8.png"),
            Picture { width: 1, height: 1, channels: 3, data: vec![1.0, 0.2, 0.0] }
        );
        assert_eq!(read("l16.png").data, [0.2]);
    }

    #[test]
    fn an_exif_rotation_is_applied_and_reported_unless_ignored() {
        let folder = folder();
        let path = folder.path().join("a.jpg");
        // Orientation 6: the picture must be turned a quarter clockwise to be
        // upright, so its white left half becomes the upper half.
        jpeg(&path, 32, 16, 6);
        let turned = decode(&path, false).unwrap();
        assert!(turned.turned);
        assert_eq!((turned.picture.width, turned.picture.height), (16, 32));
        assert!(turned.picture.data[0] > 0.9);
        assert!(turned.picture.data[15 * 3] > 0.9);
        assert!(turned.picture.data[31 * 16 * 3] < 0.1);
        let raw = decode(&path, true).unwrap();
        assert!(raw.turned);
        assert_eq!((raw.picture.width, raw.picture.height), (32, 16));
        jpeg(&path, 32, 16, 1);
        assert!(!decode(&path, false).unwrap().turned);
    }

    #[test]
    fn a_truncated_png_says_where_it_ends() {
        let folder = folder();
        let path = folder.path().join("a.png");
        let noise =
            RgbImage::from_fn(64, 64, |x, y| Rgb([(x * 37 + y * 101) as u8, (x * y) as u8, 7]));
        noise.save(&path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        assert_eq!(
            decode(&path, false).unwrap_err(),
            format!("truncated at byte {}", bytes.len() / 2)
        );
    }

    #[test]
    fn no_damaged_file_makes_it_panic_or_grow() {
        let folder = folder();
        let image = RgbImage::from_fn(9, 7, |x, y| Rgb([(x * 28) as u8, (y * 36) as u8, 7]));
        for ending in ["png", "jpg", "bmp", "tif", "webp", "gif", "ppm"] {
            let path = folder.path().join(format!("a.{ending}"));
            image.save(&path).unwrap();
            assert_eq!(decode(&path, false).unwrap().picture.data.len(), 9 * 7 * 3, "{ending}");
            let whole = std::fs::read(&path).unwrap();
            for at in (0..whole.len()).filter(|at| *at < 48 || at % 8 == 0) {
                let mut damaged = whole.clone();
                damaged[at] ^= 0xff;
                std::fs::write(&path, &damaged).unwrap();
                if let Err(e) = decode(&path, false) {
                    assert!(!e.contains("gave up"), "{ending}, byte {at}: {e}");
                }
            }
        }
    }

    #[test]
    fn a_header_that_announces_too_much_is_refused_before_decoding() {
        let folder = folder();
        let path: PathBuf = folder.path().join("a.png");
        for (width, height) in
            [(65_535, 65_535), (64_000_001, 1), (i32::MAX as u32, i32::MAX as u32)]
        {
            std::fs::write(&path, png_header(width, height)).unwrap();
            let e = decode(&path, false).unwrap_err();
            assert!(e.contains("limit"), "{width} x {height}: {e}");
        }
    }

    #[test]
    fn what_is_not_a_picture_says_so() {
        let folder = folder();
        let path = folder.path().join("a.png");
        std::fs::write(&path, b"hello, this is text").unwrap();
        assert_eq!(decode(&path, false).unwrap_err(), "not an image of a known format");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(decode(&path, false).unwrap_err(), "empty file");
    }

    #[test]
    fn transposing_exchanges_rows_and_columns() {
        let p = Picture { width: 3, height: 2, channels: 1, data: vec![1., 2., 3., 4., 5., 6.] };
        let t = p.transposed();
        assert_eq!((t.width, t.height, t.data.clone()), (2, 3, vec![1., 4., 2., 5., 3., 6.]));
        assert_eq!(t.transposed(), p);
    }
}
