//! From items as they are stored to items as the model takes them.

use upright::{Error, Model, Signal, SignalKind};

use crate::formats;
use crate::item::{Change, Item};
use crate::skip::Unusable;

/// The numbers of one item, and what had to be done to get them; or why the item
/// cannot be used.
pub type Prepared = Result<(Vec<f32>, Change), Unusable>;

/// Makes the numbers of one item. An error means that no item would do and stops the reading.
pub type Apply = Box<dyn Fn(Item) -> upright::Result<Prepared> + Send + Sync>;

/// How a decoded item becomes one of a batch.
pub struct Prepare {
    /// What an item becomes.
    pub signal: Signal,
    /// Makes the item.
    pub apply: Apply,
}

impl Prepare {
    /// Makes items as a model wants them; the seed draws points of clouds.
    pub fn for_model(model: &Model, seed: u64) -> Self {
        let (signal, preprocess) = (model.signal(), model.preprocess().clone());
        if signal.kind() != SignalKind::Image {
            return Prepare::for_points(signal, seed);
        }
        let apply = move |item| {
            let Item::Image(picture) = item else { return Err(mismatch(signal, &item)) };
            Ok(Ok((preprocess.prepare(&picture, signal)?, Change::None)))
        };
        Prepare { signal, apply: Box::new(apply) }
    }

    /// The same, but a picture of a size that the model cannot take is one row that cannot be
    /// used, not the end of the reading.
    #[must_use]
    pub fn leniently(self) -> Self {
        let apply = self.apply;
        let lenient = move |item| match apply(item) {
            Err(e @ Error::Picture { .. }) => Ok(Err(Unusable::from(e))),
            other => other,
        };
        Prepare { signal: self.signal, apply: Box::new(lenient) }
    }

    /// Makes sketches or clouds of exactly the points that a signal has.
    pub fn for_points(signal: Signal, seed: u64) -> Self {
        let apply = move |item| match (item, signal) {
            (Item::Strokes(strokes), Signal::Strokes { length }) => {
                let (rows, dropped) = strokes.rows(length);
                Ok(Ok((rows, if dropped > 0 { Change::Thinned } else { Change::None })))
            }
            (Item::Cloud(cloud), Signal::Cloud { points }) => {
                let change = |repeated| if repeated { Change::Repeated } else { Change::None };
                Ok(cloud.rows(points, seed).map(|(rows, repeated)| (rows, change(repeated))))
            }
            (item, _) => Err(mismatch(signal, &item)),
        };
        Prepare { signal, apply: Box::new(apply) }
    }
}

fn mismatch(signal: Signal, item: &Item) -> Error {
    Error::Picture {
        wants: format!("{:?}", signal.shape()),
        gives: item.kind().plural().into(),
        hint: Some(format!("give {}", formats::supported(signal.kind())).into()),
    }
}
