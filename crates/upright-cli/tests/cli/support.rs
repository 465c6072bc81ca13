//! Running the real binary, and arrays for it to read.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use upright::{Artifact, Batch, Canonicalizer, Model, ModelOptions, Signal, samples};

/// What the binary did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary in a folder.
pub(crate) fn upright(folder: &Path, args: &[&str]) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the binary starts");
    Ran {
        code: ran.status.code().expect("it exits"),
        out: String::from_utf8(ran.stdout).expect("text"),
        err: String::from_utf8(ran.stderr).expect("text"),
    }
}

/// A float32 array of two dimensions, or of one if `cols` is 0.
pub(crate) struct Floats<'a>(
    pub(crate) &'a str,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) &'a [f32],
);

/// Writes float32 arrays and int64 labels as `numpy.savez` would.
pub(crate) fn npz(path: &Path, arrays: &[Floats], labels: Option<&[i64]>) {
    let mut out = zip::ZipWriter::new(File::create(path).expect("a new file"));
    let mut member = |name: &str, bytes: Vec<u8>| {
        let options = zip::write::SimpleFileOptions::default();
        out.start_file(format!("{name}.npy"), options).expect("an array");
        out.write_all(&bytes).expect("its numbers");
    };
    for Floats(name, rows, cols, values) in arrays {
        let shape = if *cols == 0 { format!("({rows},)") } else { format!("({rows}, {cols})") };
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        member(name, npy("<f4", &shape, &bytes));
    }
    if let Some(labels) = labels {
        let bytes: Vec<u8> = labels.iter().flat_map(|v| v.to_le_bytes()).collect();
        member("labels", npy("<i8", &format!("({},)", labels.len()), &bytes));
    }
    out.finish().expect("its end");
}

/// The bytes of a `.npy` file.
fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n");
    let length = (head.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00".as_slice(), &length, head.as_bytes(), data].concat()
}

/// The numbers of a one-row float32 `.npy` file.
pub(crate) fn read_npy(bytes: &[u8]) -> Vec<f32> {
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert!(bytes.starts_with(b"\x93NUMPY\x01\x00") && start.is_multiple_of(64));
    bytes[start..].as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

/// Writes the embedded classifier as `model.onnx` into a folder.
pub(crate) fn model(folder: &Path) {
    std::fs::write(folder.join("model.onnx"), samples::glyph_model()).expect("a file");
}

/// Writes the embedded classifier with a last bias that lets it see this class in everything.
pub(crate) fn fixed_model(path: &Path, class: usize) {
    let bytes = samples::glyph_model();
    let model = Model::from_bytes("glyphs", bytes, &ModelOptions::default()).expect("a model");
    let mut bias = model.head().expect("a last layer").bias.clone();
    let as_bytes = |v: &[f32]| v.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>();
    let old = as_bytes(&bias);
    let at = bytes.windows(old.len()).position(|w| w == old).expect("its bias in the file");
    bias[class] += 1e4;
    let mut other = bytes.to_vec();
    other[at..at + old.len()].copy_from_slice(&as_bytes(&bias));
    std::fs::write(path, other).expect("a file");
}

/// Writes drawn digits as `NAME/<class>/<row>.png`.
pub(crate) fn digits(folder: &Path, name: &str, count: usize, seed: u64) {
    let samples = samples::digits(count, seed).expect("digits");
    let labels = samples.labels().expect("labels");
    for (i, label) in labels.iter().enumerate() {
        let class = folder.join(name).join(label.to_string());
        std::fs::create_dir_all(&class).expect("a folder");
        png(&class.join(format!("{i:04}.png")), samples.batch().item(i), 40);
    }
}

/// Writes a square grey picture.
pub(crate) fn png(path: &Path, pixels: &[f32], side: u32) {
    let bytes = pixels.iter().map(|v| (v * 255.0).round() as u8).collect();
    image::GrayImage::from_raw(side, side, bytes).expect("pixels").save(path).expect("a file");
}

/// A stored fit of the embedded classifier.
pub(crate) fn artifact(folder: &Path, name: &str) -> Canonicalizer {
    let artifact = Artifact::read(folder.join(name)).expect("it can");
    let model =
        Model::from_bytes("m", samples::glyph_model(), &artifact.manifest.options).expect("it can");
    artifact.join(model).expect("it can")
}

/// A picture as the classifier takes it.
pub(crate) fn picture(path: &Path) -> Batch<'static> {
    let pixels = image::open(path).expect("it can").into_luma8().into_raw();
    let pixels: Vec<f32> = pixels.iter().map(|&v| f32::from(v) / 255.0).collect();
    Batch::new(Signal::image(1, 40, 40), pixels).expect("it can")
}

/// The only item of a batch as a picture.
pub(crate) fn pixels(batch: &Batch) -> image::GrayImage {
    let bytes = batch.item(0).iter().map(|v| (v * 255.0).round().clamp(0.0, 255.0) as u8);
    image::GrayImage::from_raw(40, 40, bytes.collect()).expect("it can")
}

/// Arguments of a small fit of `model.onnx` on `train`, which writes `model.upright`.
pub(crate) const FIT: &[&str] =
    &["fit", "model.onnx", "train", "--budget", "12", "--calibration", "120", "--score", "proto"];
