//! The energy of a network of one's own: `E = g(view)`, or of a network with two
//! outputs the log-odds `E = z_1 - z_0` of "transformed" against "as it should be".
//!
//! The network runs beside the classifier on the views themselves
//! (`Model::with_external`), and what it says is the only tap that is read here. A
//! network trained on familiar inputs and transformed copies of them is the paper's
//! learned energy.

use crate::config::Settings;
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "external",
    about: "what a second network says of the view itself; needs that network",
    params: &[],
    make: Make {
        needs: |_| Needs { features: true, external: true, ..Needs::default() },
        fit,
        load,
    },
};

#[derive(Debug)]
struct External;

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let lacks = |what: &str| {
        Err(Error::ScoreNeeds {
            score: KIND.name.into(),
            lacks: what.into(),
            hint: Some(Hint::GiveExternal),
        })
    };
    match bank.outputs.features.as_slice() {
        [said] if !(1..=2).contains(&said.cols()) => lacks("features of one or two columns"),
        [said] if said.data().iter().any(|v| !v.is_finite()) => {
            lacks("an energy network whose outputs on the bank are finite")
        }
        [_] => load(settings, &State::new()),
        _ => lacks("the features of an energy network alone"),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the table's signature")]
fn load(_: &Settings, _: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(External))
}

impl Score for External {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        let one = |row: &[f32]| match row {
            [energy] => *energy,
            [original, transformed] => transformed - original,
            _ => f32::NAN,
        };
        match outputs.features.first() {
            Some(said) => said.iter().map(one).collect(),
            None => vec![f32::NAN; outputs.len()],
        }
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let slope = |said: &Matrix| {
            let mut d = Matrix::zeros(said.rows(), said.cols());
            for i in 0..d.rows() {
                match d.row_mut(i) {
                    [energy] => *energy = 1.0,
                    [original, transformed] => (*original, *transformed) = (-1.0, 1.0),
                    _ => {}
                }
            }
            d
        };
        let features = outputs.features.iter().enumerate();
        let features = features.map(|(tap, said)| (tap == 0).then(|| slope(said))).collect();
        Cotangents { logits: None, features }
    }

    fn state(&self) -> State {
        State::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(cols: usize, data: &[f32]) -> Outputs {
        let rows = data.len() / cols;
        let said = Matrix::new(rows, cols, data.to_vec()).unwrap();
        Outputs::new(Matrix::zeros(rows, 3), vec![said]).unwrap()
    }

    #[test]
    fn one_number_is_the_energy_and_two_are_log_odds() {
        assert_eq!(External.energy(&said(1, &[0.5, -2.0])), [0.5, -2.0]);
        assert_eq!(External.energy(&said(2, &[3.0, -1.0, 0.0, 2.0])), [-4.0, 2.0]);
        let d = External.pullback(&said(2, &[3.0, -1.0]));
        assert_eq!(d.features[0].as_ref().unwrap().data(), [-1.0, 1.0]);
        assert!(d.logits.is_none());
    }

    #[test]
    fn anything_else_is_refused() {
        let refusal = |outputs: &Outputs| {
            let settings = crate::config::Part::new("external").resolve(KIND.params).unwrap();
            fit(&settings, &Bank::of(outputs, &[])).unwrap_err().to_string()
        };
        assert!(refusal(&said(3, &[1.0; 3])).contains("one or two columns"));
        assert!(refusal(&said(1, &[f32::NAN])).contains("finite"));
        let mut two = said(1, &[1.0]);
        two.features.push(Matrix::zeros(1, 4));
        assert!(refusal(&two).contains("alone"));
    }
}
