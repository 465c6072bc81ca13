//! One ONNX file and a folder of class folders: fits, saves, and tells what the fit found.
//!
//! `cargo run -p upright-data --example folder -- MODEL.onnx FOLDER`; without arguments it
//! writes a model and images of digits into a temporary folder first.
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::path::{Path, PathBuf};

use upright::{Config, Dataset, FitData, Model, ModelOptions, Silent, samples};
use upright_data::{Options, Prepare, Want, open};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A model file and 30 images of each digit, one folder per class.
fn write_digits(folder: &Path) -> Result<(PathBuf, PathBuf)> {
    let (model, images) = (folder.join("digits.onnx"), folder.join("images"));
    std::fs::write(&model, samples::glyph_model())?;
    let (digits, size) = (samples::digits(300, 1)?, 40);
    for (i, label) in digits.labels().unwrap_or_default().iter().enumerate() {
        let class = images.join(label.to_string());
        std::fs::create_dir_all(&class)?;
        let pixels = digits.batch().item(i).iter().map(|p| (p * 255.0) as u8).collect();
        let image = image::GrayImage::from_raw(size, size, pixels).ok_or("wrong size")?;
        image.save(class.join(format!("{i}.png")))?;
    }
    Ok((model, images))
}

fn main() -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let mut args = std::env::args().skip(1).map(PathBuf::from);
    let (path, folder) = match (args.next(), args.next()) {
        (Some(model), Some(folder)) => (model, folder),
        _ => write_digits(scratch.path())?,
    };
    let model = Model::load(&path, &ModelOptions::default())?;
    let options =
        Options { outputs: Some(model.classes()), ..Options::new(Want::Labelled, model.signal()) };
    let data = open(&[folder], &options, Prepare::for_model(&model, 0))?;
    println!("{} rows of {} classes", data.len(), data.classes().len());

    let config = Config { budget: 30, calibration: 100, ..Config::of_signal(model.signal()) };
    let fitted = config.fit(model, &FitData::new(&data), &mut Silent)?;
    for skipped in data.skipped() {
        println!("skipped {}: {}", data.name(skipped.row), skipped.why);
    }
    println!("{}", fitted.report().advice().1);
    let artifact = scratch.path().join("digits.upright");
    fitted.save(&artifact)?;
    println!("{} bytes of artifact", std::fs::metadata(&artifact)?.len());

    let read = data.load(&[0, 1, 2])?;
    for (row, answer) in read.rows.iter().zip(fitted.predict(&read.batch)?) {
        println!("{}: {} ({:?})", data.name(*row), answer.label, answer.verdict);
    }
    Ok(())
}
