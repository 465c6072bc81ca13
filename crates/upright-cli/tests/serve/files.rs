//! Plain files at `/v1/predict`.

use crate::client::{ask, post};
use crate::server::{Server, agrees, digits, known, png};

/// A form with these files.
fn form(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, bytes) in files {
        let head = format!(
            "--limit\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\n"
        );
        body.extend(head.as_bytes());
        body.extend(*bytes);
        body.extend(b"\r\n");
    }
    body.extend(b"--limit--\r\n");
    body
}

const FORM: [(&str, &str); 1] = [("content-type", "multipart/form-data; boundary=limit")];

#[test]
fn one_file_or_a_form_of_many_get_the_bytes_of_the_command_line() {
    let server = Server::start(digits(), &[]);
    let known = known();
    for (file, row) in &known[14..18] {
        let reply = post(server.address, "/v1/predict", file);
        assert_eq!(reply.status, 200);
        let predictions = reply.json()["predictions"].clone();
        assert_eq!(predictions.as_array().unwrap().len(), 1);
        agrees(&predictions[0], row);
    }
    let files: Vec<(&str, &[u8])> =
        vec![("a.png", &known[0].0), ("bad.png", b"text"), ("b.png", &known[20].0)];
    let reply = ask(server.address, "POST", "/v1/predict", &FORM, &form(&files));
    assert_eq!(reply.status, 200, "{}", reply.text());
    let predictions = reply.json()["predictions"].clone();
    agrees(&predictions[0], &known[0].1);
    agrees(&predictions[2], &known[20].1);
    let names: Vec<&str> =
        predictions.as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["a.png", "bad.png", "b.png"]);
    assert_eq!(predictions[1]["error"]["code"], "input::unreadable");
    assert_eq!(predictions[1]["error"]["message"], "not an image of a known format");
    assert!(predictions[1]["error"]["hint"].as_str().unwrap().contains("png jpg"));
}

/// The first bytes of a PNG file that announces a size.
fn announced(width: u32, height: u32) -> Vec<u8> {
    let mut chunk = b"IHDR".to_vec();
    chunk.extend(width.to_be_bytes());
    chunk.extend(height.to_be_bytes());
    chunk.extend([8, 0, 0, 0, 0]);
    let sum = crc(&chunk);
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0d".to_vec();
    file.extend(chunk);
    file.extend(sum.to_be_bytes());
    file.extend(b"\0\0\0\0IDAT\x35\xaf\x06\x1e");
    file
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |c, _| (c >> 1) ^ (0xedb8_8320 & (c & 1).wrapping_neg()))
    })
}

#[test]
fn pictures_that_cannot_be_used_are_refused_with_a_reason() {
    let server = Server::start(digits(), &["--max-pixels", "1000000"]);
    let mut one = std::io::Cursor::new(Vec::new());
    let pixel = image::GrayImage::from_raw(1, 1, vec![9]).unwrap();
    pixel.write_to(&mut one, image::ImageFormat::Png).unwrap();
    let whole = png(&[0.5; 1600]);
    for (bytes, code, words) in [
        (announced(65_535, 65_535), "input::size", "65535 x 65535 pixels, the limit is 1000000"),
        (announced(1_000_001, 1), "input::size", "1000001 x 1 pixels"),
        (announced(0, 40), "input::unreadable", ""),
        (
            one.into_inner(),
            "input::shape",
            "the model wants [N,1,40,40] but the picture gives [1,1,1,1]",
        ),
        (whole[..whole.len() / 2].to_vec(), "input::unreadable", ""),
        (b"<svg/>".to_vec(), "input::unreadable", "not an image of a known format"),
        (vec![0; 100_000], "input::unreadable", ""),
    ] {
        let reply = post(server.address, "/v1/predict", &bytes);
        assert_eq!(reply.status, 422, "{}", reply.text());
        let error = &reply.json()["predictions"][0]["error"];
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
    }
    assert!(server.memory().is_none_or(|mib| mib < 300.0), "{:?}", server.memory());
    for (headers, body, code) in [
        (&FORM[..], &b"--limit--\r\n"[..], "request::form"),
        (&FORM, b"no form", "request::form"),
        (&[("content-type", "multipart/form-data")], b"x", "request::form"),
        (&[], b"", "request::body"),
        (&[("content-encoding", "gzip")], b"x", "request::encoding"),
        (&[("timeout-ms", "soon")], b"x", "request::timeout"),
    ] {
        let reply = ask(server.address, "POST", "/v1/predict", headers, body);
        assert_eq!(reply.code(), code, "{}", reply.text());
    }
    server.lives();
}
