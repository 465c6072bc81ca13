//! Sparse head: of the contributions `m_j * W_cj` (`m` the bank's mean
//! feature) only the weights strictly above the `sparsity`-quantile of all
//! `C * D` contributions stay; the others are zero. Then `energy` or
//! `entropy` of the new logits, bias included.
//!
//! Sun and Li 2022, "DICE: Leveraging Sparsification for Out-of-Distribution
//! Detection". Quantile with linear interpolation.

use crate::config::{Param, Settings};
use crate::error::Result;
use crate::linalg::mean;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::score::inputs::{head, nothing, on_features, tap, undefined};
use crate::score::rectify::{BASE, Base, Behind, quantile};
use crate::score::{Bank, Make, Needs, Score};
use crate::state::State;
use crate::tensor::Matrix;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "dice",
    about: "energy of the logits through the head's most contributing weights only",
    params: &[Param::real("sparsity", 0.9, 0.0, 1.0, "share of the head's weights removed"), BASE],
    make: Make { needs: |_| Needs { features: true, head: true, ..Needs::default() }, fit, load },
};

#[derive(Debug)]
struct Dice {
    behind: Behind,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let (features, head) = head(bank, KIND.name)?;
    let mean = mean(features.iter(), features.cols());
    let contributions: Vec<f32> = head
        .weight
        .iter()
        .flat_map(|w| w.iter().zip(&mean).map(|(&w, m)| (f64::from(w) * m) as f32))
        .collect();
    let least = quantile(&mut contributions.clone(), settings.real("sparsity"));
    let kept = |(&w, &c): (&f32, &f32)| if f64::from(c) > least { w } else { 0.0 };
    let masked = head.weight.data().iter().zip(&contributions).map(kept).collect();
    let weight = Matrix::new(head.weight.rows(), head.weight.cols(), masked)?;
    let base = Base::named(settings.word("base"));
    Ok(Box::new(Dice { behind: Behind::new(weight, head.bias.clone(), base) }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Dice { behind: Behind::load(settings, state)? }))
}

impl Score for Dice {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        match tap(outputs, 0, self.behind.width()) {
            Some(features) => self.behind.energy(features),
            None => undefined(outputs),
        }
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        match tap(outputs, 0, self.behind.width()) {
            Some(features) => on_features(outputs, self.behind.pullback(features)),
            None => nothing(outputs),
        }
    }

    fn state(&self) -> State {
        self.behind.store(State::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::outputs::Head;

    #[test]
    fn only_contributions_above_the_quantile_stay() {
        let features = Matrix::new(2, 2, vec![1.0, 0.0, 3.0, 2.0]).unwrap();
        // Mean feature (2, 1); contributions 2, 5 | 8, -1; median 3.5.
        let head =
            Head::new(Matrix::new(2, 2, vec![1.0, 5.0, 4.0, -1.0]).unwrap(), vec![0.0; 2]).unwrap();
        let outputs = Outputs::new(Matrix::zeros(2, 2), vec![features]).unwrap();
        let bank = Bank { head: Some(&head), ..Bank::of(&outputs, &[]) };
        let settings = Part::new("dice").number("sparsity", 0.5).resolve(KIND.params).unwrap();
        let e = fit(&settings, &bank).unwrap().energy(&outputs);
        let want = |a: f64, b: f64| -(a.exp() + b.exp()).ln();
        assert!((f64::from(e[0]) - want(0.0, 4.0)).abs() < 1e-6);
        assert!((f64::from(e[1]) - want(10.0, 12.0)).abs() < 1e-6);
    }
}
