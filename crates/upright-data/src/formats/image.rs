//! Image files, with everything checked that the header announces
//! before any pixel is decoded.
//!
//! Grey stays one channel, everything else becomes red, green, blue. Alpha is
//! dropped, as Pillow's `convert("RGB")` does, since that is how the models at
//! hand were trained. 8 and 16 bit are scaled to 0..1; floating-point files are
//! taken as they are.

use std::any::Any;
use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use image::metadata::Orientation;
use image::{ColorType, DynamicImage, ImageDecoder, ImageError, ImageReader, Limits};
use upright::{Picture, SignalKind};

use super::{Format, Read};
use crate::bytes::Content;
use crate::item::{Change, Decoded, Item};
use crate::options::Options;
use crate::skip::Unusable;

/// Most pixels an image may have.
const PIXEL_CAP: u64 = 64_000_000;
/// Most bytes a decoded image may take.
const BYTE_CAP: u64 = 256 << 20;
pub(super) const FORMAT: Format = Format {
    name: "image",
    about: "PNG, JPEG, BMP, TIFF, WebP, GIF and PNM images.",
    endings: &[
        ".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".gif", ".pnm", ".pbm", ".pgm",
        ".ppm", ".pam",
    ],
    called: "png jpg bmp tif webp gif pnm",
    kinds: &[SignalKind::Image],
    gz: false,
    any_name: true,
    read: Read::One(read),
    examples,
    ..Format::BASE
};

fn read(from: Content<'_>, options: &Options) -> Result<Decoded, Unusable> {
    Ok(decoded(match from {
        Content::File(path) => guarded(path, options.ignore_exif)?,
        Content::Bytes(bytes) => guarded_bytes(bytes, options.ignore_exif)?,
    }))
}

/// Decodes an image file, whose format is told by its content, and turns it as its EXIF
/// orientation asks unless that is to be ignored.
pub fn decode(path: &Path, ignore_exif: bool) -> Result<Picture, Unusable> {
    Ok(guarded(path, ignore_exif)?.0)
}

/// The same of the bytes of an image file.
pub fn decode_bytes(bytes: &[u8], ignore_exif: bool) -> Result<Picture, Unusable> {
    Ok(guarded_bytes(bytes, ignore_exif)?.0)
}

/// Decodes the bytes of an image file.
pub(super) fn from_bytes(bytes: &[u8], ignore_exif: bool) -> Result<Decoded, Unusable> {
    Ok(decoded(guarded_bytes(bytes, ignore_exif)?))
}

fn decoded((picture, turned): (Picture, bool)) -> Decoded {
    let change = if turned { Change::Turned } else { Change::None };
    Decoded { item: Item::Image(picture), change }
}

/// The picture, and whether its file carries an EXIF orientation other than upright.
fn guarded(path: &Path, ignore_exif: bool) -> Result<(Picture, bool), String> {
    let file = File::open(path).map_err(|e| e.to_string())?;
    let length = file.metadata().map_err(|e| e.to_string())?.len();
    contain(|| unguarded(BufReader::new(file), length, ignore_exif))
}

/// As [`guarded`], of the bytes of a file.
fn guarded_bytes(bytes: &[u8], ignore_exif: bool) -> Result<(Picture, bool), String> {
    contain(|| unguarded(Cursor::new(bytes), bytes.len() as u64, ignore_exif))
}

/// Does what a decoder does; if it panics, that is why it failed.
pub(super) fn contain<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|panic| Err(format!("the decoder gave up: {}", words(&*panic))))
}

fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

fn unguarded(
    from: impl BufRead + Seek,
    length: u64,
    ignore_exif: bool,
) -> Result<(Picture, bool), String> {
    if length == 0 {
        return Err("empty file".into());
    }
    let explain = |e: ImageError| reason(&e, length);
    let mut reader = ImageReader::new(from).with_guessed_format().map_err(|e| e.to_string())?;
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
    Ok((picture(&image)?, turned))
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
    Picture::new(width, height, if grey { 1 } else { 3 }, data).map_err(|e| e.to_string())
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

/// An image in colour and a grey one, in every format that can be written.
fn examples() -> Vec<Vec<u8>> {
    use image::ImageFormat as F;
    let colour =
        image::RgbImage::from_fn(7, 5, |x, y| image::Rgb([(x * 30) as u8, (y * 50) as u8, 9]));
    let grey = image::GrayImage::from_fn(5, 4, |x, y| image::Luma([(x * y * 9) as u8]));
    let images = [DynamicImage::from(colour), DynamicImage::from(grey)];
    let mut out = Vec::new();
    for format in [F::Png, F::Jpeg, F::Bmp, F::Tiff, F::WebP, F::Gif, F::Pnm] {
        for image in &images {
            let mut bytes = std::io::Cursor::new(Vec::new());
            if image.write_to(&mut bytes, format).is_ok() {
                out.push(bytes.into_inner());
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{GrayImage, ImageBuffer, Luma, Rgb, RgbImage, Rgba, RgbaImage};
    use std::path::PathBuf;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    /// A JPEG of the given size, white on its left half, with an EXIF orientation.
    fn jpeg(path: &Path, width: u32, height: u32, orientation: u8) {
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
        let read = |name: &str| decode(&at(name), false).unwrap();
        assert_eq!(read("l8.png"), Picture::new(2, 1, 1, vec![0.0, 1.0]).unwrap());
        assert_eq!(read("rgba8.png"), Picture::new(1, 1, 3, vec![1.0, 0.2, 0.0]).unwrap());
        assert_eq!(read("l16.png").data(), [0.2]);
    }

    #[test]
    fn an_exif_rotation_is_applied_and_reported_unless_ignored() {
        let folder = folder();
        let path = folder.path().join("a.jpg");
        // Orientation 6: the image must be turned a quarter clockwise to be
        // upright, so its white left half becomes the upper half.
        jpeg(&path, 32, 16, 6);
        let (picture, turned) = guarded(&path, false).unwrap();
        assert!(turned);
        assert_eq!((picture.width(), picture.height()), (16, 32));
        assert!(picture.data()[0] > 0.9);
        assert!(picture.data()[15 * 3] > 0.9);
        assert!(picture.data()[31 * 16 * 3] < 0.1);
        let (raw, turned) = guarded(&path, true).unwrap();
        assert!(turned);
        assert_eq!((raw.width(), raw.height()), (32, 16));
        jpeg(&path, 32, 16, 1);
        assert!(!guarded(&path, false).unwrap().1);
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
            guarded(&path, false).unwrap_err(),
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
            assert_eq!(decode(&path, false).unwrap().data().len(), 9 * 7 * 3, "{ending}");
            let whole = std::fs::read(&path).unwrap();
            for at in (0..whole.len()).filter(|at| *at < 48 || at % 8 == 0) {
                let mut damaged = whole.clone();
                damaged[at] ^= 0xff;
                std::fs::write(&path, &damaged).unwrap();
                if let Err(e) = guarded(&path, false) {
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
            let e = guarded(&path, false).unwrap_err();
            assert!(e.contains("limit"), "{width} x {height}: {e}");
        }
    }

    #[test]
    fn what_is_not_an_image_says_so() {
        let folder = folder();
        let path = folder.path().join("a.png");
        std::fs::write(&path, b"hello, this is text").unwrap();
        assert_eq!(guarded(&path, false).unwrap_err(), "not an image of a known format");
        std::fs::write(&path, b"").unwrap();
        assert_eq!(guarded(&path, false).unwrap_err(), "empty file");
    }
}
