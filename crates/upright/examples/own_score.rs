//! A score of one's own, with a setting: how much probability the first few classes leave over.
//!
//! `cargo run --example own_score`
#![allow(clippy::print_stdout, reason = "a program")]

use upright::score::{self, Make, Needs, Score};
use upright::{
    Config, Cotangents, FitData, Kind, Matrix, Model, ModelOptions, Outputs, Param, Part, Result,
    Role, Settings, Silent, State, samples,
};

/// One minus the summed probabilities of the `top` most likely classes.
#[derive(Debug)]
struct Rest {
    top: usize,
}

impl Rest {
    /// A row's probabilities, and whether each is among the first.
    fn split(&self, logits: &[f32]) -> Vec<(f32, bool)> {
        let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = logits.iter().map(|l| (l - most).exp()).sum();
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        let first = &order[..self.top.min(order.len())];
        let p = |(i, l): (usize, &f32)| ((l - most).exp() / sum, first.contains(&i));
        logits.iter().enumerate().map(p).collect()
    }

    fn rest(split: &[(f32, bool)]) -> f32 {
        split.iter().filter(|(_, first)| !first).map(|(p, _)| p).sum()
    }
}

impl Score for Rest {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        outputs.logits.iter().map(|row| Rest::rest(&self.split(row))).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let mut d = Matrix::zeros(outputs.len(), outputs.logits.cols());
        for (i, row) in outputs.logits.iter().enumerate() {
            let split = self.split(row);
            let rest = Rest::rest(&split);
            for (d, (p, first)) in d.row_mut(i).iter_mut().zip(split) {
                *d = p * (if first { 0.0 } else { 1.0 } - rest);
            }
        }
        Cotangents { logits: Some(d), features: vec![None; outputs.features.len()] }
    }

    fn state(&self) -> State {
        State::new()
    }
}

fn make(settings: &Settings) -> Box<dyn Score> {
    Box::new(Rest { top: settings.whole("top") })
}

static REST: Kind<Make> = Kind {
    name: "rest",
    about: "probability that the first classes leave over",
    params: &[Param::whole("top", 1, 1, 10, "classes that count as first")],
    make: Make { needs: |_| Needs::default(), fit: |s, _| Ok(make(s)), load: |s, _| Ok(make(s)) },
};

fn main() -> Result<()> {
    score::add(&REST)?;
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
    for part in [Part::new("energy"), Part::new("rest"), Part::new("rest").number("top", 2.0)] {
        let config = Config { budget: 30, calibration: 100, ..Config::default() }
            .with(Role::Score, part.clone());
        let data = samples::digits(300, 1)?;
        let fitted = config.fit(model.clone(), &FitData::new(&data), &mut Silent)?;
        let transformed = fitted.report().transformed;
        println!(
            "{:6} {:?}: transformed digits {:.0} % right, without {:.0} %",
            part.name,
            part.settings,
            transformed.after.percent(),
            transformed.before.percent()
        );
    }
    Ok(())
}
