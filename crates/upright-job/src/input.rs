//! What a job reads, and a look at all ids before it starts.

use std::collections::BTreeMap;

use upright::Dataset;
use upright_data::{Rows, Source};

use crate::error::{Error, Result};
use crate::shard::Shard;

/// Items that a job reads, each with an id of its own.
pub trait Input: Sync {
    /// How many there are.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What an item is called; no two items alike.
    fn id(&self, row: usize) -> String;

    /// Reads some items. One that cannot be read is among the skipped.
    fn load(&self, rows: &[usize]) -> upright_data::Result<Rows>;

    /// Whatever else tells that the items have changed, such as the size of their files.
    fn stamp(&self) -> String;
}

impl Input for Source {
    fn len(&self) -> usize {
        Dataset::len(self)
    }

    fn id(&self, row: usize) -> String {
        self.name(row)
    }

    fn load(&self, rows: &[usize]) -> upright_data::Result<Rows> {
        self.load_each(rows)
    }

    fn stamp(&self) -> String {
        Source::stamp(self)
    }
}

/// What a look at all ids gives.
pub(crate) struct Listing {
    /// The rows of a shard, in order.
    pub(crate) rows: Vec<usize>,
    /// A hash of all ids in their order.
    pub(crate) hash: String,
}

/// Looks at every id: holds eight bytes for each while it does, and for each row of the shard
/// afterwards.
pub(crate) fn list(input: &dyn Input, shard: Shard) -> Result<Listing> {
    let mut hasher = blake3::Hasher::new();
    let mut hashes = Vec::with_capacity(input.len());
    let mut rows = Vec::new();
    for row in 0..input.len() {
        let id = input.id(row);
        hasher.update(&(id.len() as u64).to_le_bytes());
        hasher.update(id.as_bytes());
        let hash = hash(&id);
        hashes.push(hash);
        if shard.holds(hash) {
            rows.push(row);
        }
    }
    hashes.sort_unstable();
    let twice: Vec<u64> = hashes.windows(2).filter(|w| w[0] == w[1]).map(|w| w[0]).collect();
    drop(hashes);
    distinct(input, &twice)?;
    Ok(Listing { rows, hash: hasher.finalize().to_hex().to_string() })
}

/// Compares the ids whose hashes are alike.
fn distinct(input: &dyn Input, hashes: &[u64]) -> Result<()> {
    if hashes.is_empty() {
        return Ok(());
    }
    let mut seen = BTreeMap::new();
    for row in 0..input.len() {
        let id = input.id(row);
        if hashes.binary_search(&hash(&id)).is_ok()
            && let Some(first) = seen.insert(id.clone(), row)
        {
            return Err(Error::Duplicate { id, rows: [first, row] });
        }
    }
    Ok(())
}

/// The same for an id on every machine.
fn hash(id: &str) -> u64 {
    let bytes = blake3::hash(id.as_bytes());
    bytes.as_bytes().iter().take(8).rev().fold(0, |all, &b| all << 8 | u64::from(b))
}
