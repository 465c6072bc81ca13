//! Wrong: is the model wrong on a view, by its logits or features alone? Learnt
//! from bank samples as they are and from transformed copies, each with whether
//! the model is right on it. The energy is the log-odds that it is wrong.
//!
//! The paper's learned energies on later layers ("Logits", "Embeddings"). Unlike
//! `judge` it knows nothing of how a view came about and needs no proposer.

use super::inputs::{finite, lack};
use super::{Bank, Make, Needs, Score};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::hint::Hint;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::state::State;
use crate::tensor::Matrix;

mod net;

use net::Net;

/// Most samples of either kind that it learns from.
const ROWS: usize = 12_000;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "wrong",
    about: "log-odds that the model is wrong on a view, learnt from copies of the bank",
    params: &[
        Param::word("reads", &["both", "features", "logits"], "what it learns from"),
        Param::whole("hidden", 64, 0, 1024, "hidden units; 0 is a linear model").tuned(0.0, 128.0),
    ],
    make: Make {
        needs: |settings| Needs {
            features: settings.word("reads") != "logits",
            labels: true,
            transformed: true,
            copies: ROWS,
            ..Needs::default()
        },
        fit,
        load,
    },
};

/// What is read of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reads {
    features: bool,
    logits: bool,
}

impl Reads {
    fn of(settings: &Settings) -> Self {
        let word = settings.word("reads");
        Reads { features: word != "logits", logits: word != "features" }
    }

    /// The numbers of all that is read, side by side.
    fn parts(self, outputs: &Outputs) -> Vec<&Matrix> {
        let features = outputs.features.iter().filter(|_| self.features);
        features.chain(self.logits.then_some(&outputs.logits)).collect()
    }

    fn width(self, outputs: &Outputs) -> usize {
        self.parts(outputs).iter().map(|m| m.cols()).sum()
    }

    fn row(self, outputs: &Outputs, i: usize) -> Vec<f32> {
        self.parts(outputs).iter().flat_map(|m| m.row(i)).copied().collect()
    }
}

#[derive(Debug)]
struct Wrong {
    reads: Reads,
    net: Net,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let name = KIND.name;
    let reads = Reads::of(settings);
    let copies = bank
        .transformed
        .filter(|c| c.len() == bank.transformed_labels.len())
        .ok_or_else(|| lack(name, "transformed samples with their labels", Hint::MoreHeldOut))?;
    let mut data = Vec::new();
    let mut labels = Vec::new();
    for (outputs, truth) in [(bank.outputs, bank.labels), (copies, bank.transformed_labels)] {
        for part in reads.parts(outputs) {
            finite(part, name, "features")?;
        }
        let said = outputs.labels();
        let step = outputs.len().div_ceil(ROWS).max(1);
        for i in (0..outputs.len()).step_by(step) {
            data.extend(reads.row(outputs, i));
            labels.push(said[i] != truth[i]);
        }
    }
    if labels.iter().all(|wrong| *wrong == labels[0]) {
        let what = "samples on which the model is right and others on which it is wrong";
        return Err(lack(name, what, "give more data, or choose another score"));
    }
    let rows = Matrix::new(labels.len(), reads.width(bank.outputs), data)?;
    let net = Net::fit(&rows, &labels, settings.whole("hidden"), bank.seed);
    Ok(Box::new(Wrong { reads, net }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    Ok(Box::new(Wrong { reads: Reads::of(settings), net: Net::load(state)? }))
}

impl Score for Wrong {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        if self.reads.width(outputs) != self.net.width() {
            return vec![f32::NAN; outputs.len()];
        }
        (0..outputs.len()).map(|i| self.net.odds(&self.reads.row(outputs, i))).collect()
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        let like = |m: &Matrix| Matrix::zeros(m.rows(), m.cols());
        let Reads { features, logits } = self.reads;
        let mut d = Cotangents {
            logits: logits.then(|| like(&outputs.logits)),
            features: outputs.features.iter().map(|f| features.then(|| like(f))).collect(),
        };
        if self.reads.width(outputs) != self.net.width() {
            return d;
        }
        for i in 0..outputs.len() {
            let slope = self.net.slope(&self.reads.row(outputs, i));
            let mut rest = slope.as_slice();
            for own in d.features.iter_mut().flatten().chain(&mut d.logits) {
                let (mine, others) = rest.split_at(own.cols());
                own.row_mut(i).copy_from_slice(mine);
                rest = others;
            }
        }
        d
    }

    fn state(&self) -> State {
        self.net.state()
    }
}
