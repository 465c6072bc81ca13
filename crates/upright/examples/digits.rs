//! Fits on digits drawn upright, then classifies turned ones with and without the search.
//!
//! `cargo run --example digits`
#![allow(clippy::print_stdout, reason = "a program")]

use upright::{
    Config, FitData, Map, Model, ModelOptions, Resample, Result, Silent, View, samples, warp,
};

fn main() -> Result<()> {
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
    let config = Config { budget: 40, calibration: 100, ..Config::default() };
    let data = samples::digits(400, 1)?;
    let canonicalizer = config.fit(model, &FitData::new(&data), &mut Silent)?;
    println!("{}", canonicalizer.report().advice().1);

    let digits = samples::digits(60, 2)?;
    let labels = digits.labels().unwrap_or_default();
    println!("angle  bare model  upright  views per digit");
    for degrees in [0.0_f32, 30.0, 60.0] {
        let (sin, cos) = degrees.to_radians().sin_cos();
        let map = Map::Plane([cos, -sin, 0.0, sin, cos, 0.0]);
        let views: Vec<View> = (0..labels.len()).map(|item| View { item, map }).collect();
        let turned = warp(digits.batch(), &views, &Resample::default())?;
        let answers = canonicalizer.predict(&turned)?;
        let right = |class: fn(&upright::Prediction) -> u32| {
            let right = answers.iter().zip(labels).filter(|(a, l)| class(a) == **l).count();
            100.0 * right as f32 / labels.len() as f32
        };
        let views: usize = answers.iter().map(|a| a.evaluations).sum();
        println!(
            "{degrees:5}  {:8.0} %  {:5.0} %  {:15.1}",
            right(|a| a.raw_label),
            right(|a| a.label),
            views as f32 / labels.len() as f32
        );
    }
    Ok(())
}
