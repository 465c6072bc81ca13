//! One item of the data, and sets of them.

use upright::{Picture, SignalKind};

use crate::cloud::Cloud;
use crate::labels::Labels;
use crate::note::Note;
use crate::skip::Unusable;
use crate::strokes::Strokes;

/// One item as it was stored.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Pixels.
    Image(Picture),
    /// Pen strokes in the plane.
    Strokes(Strokes),
    /// Points or a mesh in space.
    Cloud(Cloud),
}

impl Item {
    /// What it is.
    pub fn kind(&self) -> SignalKind {
        match self {
            Item::Image(_) => SignalKind::Image,
            Item::Strokes(_) => SignalKind::Strokes,
            Item::Cloud(_) => SignalKind::Cloud,
        }
    }
}

/// What is worth recording about an item on its way to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Its file asks for it to be turned.
    Turned,
    /// Some of its strokes are left out, as the model takes fewer points.
    Thinned,
    /// Some of its points are repeated, as the model takes more.
    Repeated,
}

/// An item, and what is worth recording about how it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The item.
    pub item: Item,
    /// Nothing, or turned.
    pub change: Change,
}

impl From<Item> for Decoded {
    fn from(item: Item) -> Self {
        Decoded { item, change: Change::None }
    }
}

/// Items that can be decoded one by one, from several threads.
pub(crate) trait Items: Send + Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// What to call one in messages and results.
    fn name(&self, row: usize) -> String;

    /// Decodes one, or says why it must be skipped.
    fn item(&self, row: usize) -> Result<Decoded, Unusable>;

    /// Rows that are wanted together, each still to be decoded. Where they lie one after the
    /// other in a file, their bytes are read in one go.
    fn fetch<'a>(&'a self, rows: &[usize]) -> Vec<Fetched<'a>> {
        rows.iter().map(|&row| Box::new(move || self.item(row)) as Fetched<'a>).collect()
    }

    /// Bytes of the files that hold one item each.
    fn bytes(&self) -> u64 {
        0
    }
}

/// An item that has been fetched and is to be decoded.
pub(crate) type Fetched<'a> = Box<dyn FnOnce() -> Result<Decoded, Unusable> + Send + 'a>;

/// What a format's reader found in a file of many items.
pub struct Set {
    pub(crate) items: Box<dyn Items>,
    pub(crate) labels: Labels,
    pub(crate) notes: Vec<Note>,
    /// Bytes of the files that hold many items each.
    pub(crate) bytes: u64,
}

impl Set {
    pub(crate) fn new(items: impl Items + 'static, labels: Labels) -> Self {
        Set { items: Box::new(items), labels, notes: Vec::new(), bytes: 0 }
    }
}
