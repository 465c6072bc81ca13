//! Inputs come from a channel; several threads answer, each with a clone of one canonicalizer.
//!
//! `cargo run --example stream`
#![allow(clippy::print_stdout, reason = "a program")]

use std::error::Error;
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

use upright::{Batch, Config, FitData, Model, ModelOptions, Prediction, Result, Silent, samples};

const WORKERS: usize = 3;

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
    let config = Config { budget: 30, calibration: 60, ..Config::default() };
    let canonicalizer = config.fit(model, &FitData::new(&samples::digits(300, 1)?), &mut Silent)?;
    let signal = canonicalizer.model().signal();
    let digits = samples::digits(24, 2)?;

    let (give, inputs) = mpsc::sync_channel::<(usize, Vec<f32>)>(8);
    let (answer, answers) = mpsc::channel::<(usize, usize, Result<Prediction>)>();
    let inputs = Mutex::new(inputs);
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (canonicalizer, inputs, answer) = (canonicalizer.clone(), &inputs, answer.clone());
            scope.spawn(move || {
                loop {
                    let next = inputs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((id, pixels)) = next else { break };
                    let result = Batch::new(signal, pixels)
                        .and_then(|batch| canonicalizer.predict(&batch))
                        .map(|mut one| one.remove(0));
                    if answer.send((worker, id, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(answer);
        scope.spawn(|| {
            let give = give;
            for id in 0..digits.batch().len() {
                if give.send((id, digits.batch().item(id).to_vec())).is_err() {
                    break;
                }
            }
        });
        for (worker, id, result) in answers {
            let p = result?;
            println!("input {id:2} by worker {worker}: {} ({:?})", p.label, p.verdict);
        }
        Ok(())
    })
}
