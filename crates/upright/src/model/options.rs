//! How to load a model: what to tap, and what overrides its own word.

use crate::preprocess::{Overrides, Preprocess};
use crate::reduce::Reduce;
use crate::tensor::{Signal, SignalKind};

/// The name of the tap that is found by itself: what the last linear layer reads.
pub(crate) const AUTO: &str = "auto";

/// The name of the tap in the middle of the network: by the share of the multiplications.
pub(crate) const MIDDLE: &str = "65%";

/// The name of the tap near its end.
pub(crate) const LATE: &str = "90%";

/// A tensor to tap and what to make of it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tap {
    /// A tensor's name, `auto`, or a share of the network's multiplications such as `65%`, which
    /// stands for the nearest end of a block; where there is none, the tap is left out.
    pub name: String,
    /// How it becomes a vector.
    pub reduce: Reduce,
}

impl Tap {
    /// A tensor with all its numbers.
    pub fn new(name: impl Into<String>) -> Self {
        Tap { name: name.into(), reduce: Reduce::None }
    }

    /// What the last linear layer reads.
    pub fn auto() -> Self {
        Tap::new(AUTO)
    }

    /// The end of the block at about two thirds of the network, where features still know how
    /// the input is turned: what the proposer `learned` reads.
    #[doc(hidden)]
    pub fn middle() -> Self {
        Tap::new(MIDDLE).reduced(Reduce::Grid { dim: 3600, seed: 0 })
    }

    /// The end of the block at about nine tenths of the network, where features know what the
    /// input shows and still where.
    #[doc(hidden)]
    pub fn late() -> Self {
        Tap::new(LATE).reduced(Reduce::Grid { dim: 1800, seed: 0 })
    }

    /// The same tensor, reduced.
    #[must_use]
    pub fn reduced(mut self, reduce: Reduce) -> Self {
        self.reduce = reduce;
        self
    }
}

/// How to load a model.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Options {
    /// What to tap, in the order of [`Outputs::features`](crate::Outputs::features). By default
    /// `auto`, `65%` and `90%` of the network; with none there are logits only.
    pub taps: Vec<Tap>,
    /// Preprocessing that overrides what the model and the file beside it say.
    pub preprocess: Overrides,
    /// Preprocessing to use as it is, whatever anything else says; an artifact keeps it so.
    #[doc(hidden)]
    pub exact: Option<Preprocess>,
    /// The tensor of logits; by default the output of that name, or the first of rank 2.
    pub output: Option<String>,
    /// What one item is and how large; by default read off the input's shape, the model's
    /// metadata (`signal`: `image`, `strokes` or `cloud`) and the input's name.
    pub signal: Option<Signal>,
    /// What one item is, its size read off the input's shape.
    #[serde(skip)]
    pub kind: Option<SignalKind>,
    /// Rows of strokes or points of a cloud, where the model leaves them open.
    #[serde(skip)]
    pub rows: Option<usize>,
    /// Items per micro-batch, by default what the engine likes; a batch size fixed in the model
    /// goes first.
    pub micro_batch: Option<usize>,
    /// Threads of the engine; by default one per core. Does not change results.
    #[serde(skip)]
    pub threads: Option<usize>,
    /// Whether it is an energy network instead of a classifier: it has no taps and gives `[N]` or
    /// `[N,1]`, lower = more familiar, or `[N,2]`, the logits of "as it should be" and
    /// "transformed". A sigmoid or softmax at its end is left away.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub energy: bool,
    /// The engine's name, `rten` or `ort`, or `auto` for the fastest that is there.
    pub engine: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            taps: vec![Tap::auto(), Tap::middle(), Tap::late()],
            preprocess: Overrides::default(),
            exact: None,
            output: None,
            signal: None,
            kind: None,
            rows: None,
            micro_batch: None,
            threads: None,
            energy: false,
            engine: "rten".into(),
        }
    }
}
