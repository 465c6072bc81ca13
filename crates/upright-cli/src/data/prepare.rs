//! From items as they are stored to items as the model takes them.

use upright::Error;
use upright::model::Model;
use upright::tensor::Signal;

use super::ledger::Seen;
use super::media::{Item, Media};

/// Makes the numbers of one item, and says what had to be done for that.
/// [`Error::Data`] means that this item is unusable; any other error stops reading.
pub type Apply = Box<dyn Fn(Item) -> upright::Result<(Vec<f32>, Seen)> + Send + Sync>;

/// How a decoded item becomes one of a batch.
pub struct Prepare {
    /// What an item is.
    pub signal: Signal,
    /// Makes the item.
    pub apply: Apply,
}

impl Prepare {
    /// Makes items as a model wants them; the seed draws points of clouds.
    pub fn for_model(model: &Model, seed: u64) -> Self {
        let (signal, preprocess) = (model.signal(), model.preprocess().clone());
        if Media::of(signal) != Media::Pictures {
            return Prepare::for_points(signal, seed);
        }
        let apply = move |item| {
            let Item::Picture(p) = item else { return Err(mismatch(signal, &item)) };
            let picture = upright::preprocess::Picture::new(p.width, p.height, p.channels, p.data)?;
            Ok((preprocess.prepare(&picture, signal)?, Seen::Plain))
        };
        Prepare { signal, apply: Box::new(apply) }
    }

    /// Makes sketches or clouds of exactly the points that a signal has.
    pub fn for_points(signal: Signal, seed: u64) -> Self {
        let apply = move |item| match (item, signal) {
            (Item::Drawing(drawing), Signal::Strokes { length }) => {
                let (rows, dropped) = drawing.rows(length);
                Ok((rows, if dropped > 0 { Seen::Thinned } else { Seen::Plain }))
            }
            (Item::Shape(shape), Signal::Cloud { points }) => {
                let unusable = |why| Error::Data { what: String::new(), why, help: String::new() };
                let (rows, repeated) = shape.rows(points, seed).map_err(unusable)?;
                Ok((rows, if repeated { Seen::Repeated } else { Seen::Plain }))
            }
            (item, _) => Err(mismatch(signal, &item)),
        };
        Prepare { signal, apply: Box::new(apply) }
    }
}

fn mismatch(signal: Signal, item: &Item) -> Error {
    Error::Picture {
        wants: format!("{:?}", signal.shape()),
        gives: item.media().plural().into(),
        help: format!("give {}", Media::of(signal).supported()),
    }
}
