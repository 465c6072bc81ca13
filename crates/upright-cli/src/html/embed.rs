//! Bytes inside a page.

use std::io::Cursor;

use image::{ImageFormat, RgbImage};

/// Bytes as an address that holds them.
pub(super) fn uri(kind: &str, bytes: &[u8]) -> String {
    format!("data:{kind};base64,{}", base64(bytes))
}

/// A picture as an address that holds it.
pub fn picture(picture: &RgbImage) -> String {
    let mut bytes = Cursor::new(Vec::new());
    let grey = picture.pixels().all(|p| p.0[0] == p.0[1] && p.0[1] == p.0[2]);
    let dynamic = image::DynamicImage::ImageRgb8(picture.clone());
    let dynamic = if grey { dynamic.into_luma8().into() } else { dynamic };
    match dynamic.write_to(&mut bytes, ImageFormat::Png) {
        Ok(()) => uri("image/png", bytes.get_ref()),
        Err(_) => String::from("data:,"),
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let word =
            chunk.iter().fold(0u32, |w, &b| w << 8 | u32::from(b)) << (8 * (3 - chunk.len()));
        for i in 0..4 {
            let digit = DIGITS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i > chunk.len() { '=' } else { char::from(digit) });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_agrees_with_its_standard() {
        let cases = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, want) in cases {
            assert_eq!(base64(text.as_bytes()), want);
        }
    }
}
