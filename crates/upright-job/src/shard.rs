//! Which rows of a job are one machine's.

use std::fmt;
use std::str::FromStr;

/// The items of a job that one machine answers, told by their ids: an item is in the same shard
/// whatever lies beside it, and all shards together are the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    number: u32,
    of: u32,
}

impl Shard {
    /// Everything.
    pub const WHOLE: Shard = Shard { number: 1, of: 1 };

    /// Number `number` of `of`, counted from 1; `None` if there is no such.
    pub fn new(number: u32, of: u32) -> Option<Self> {
        (1..=of).contains(&number).then_some(Shard { number, of })
    }

    /// How many there are.
    pub fn of(self) -> u32 {
        self.of
    }

    /// Whether an item belongs to it, by the hash of its id.
    pub(crate) fn holds(self, hash: u64) -> bool {
        hash % u64::from(self.of) == u64::from(self.number - 1)
    }

    /// The folder of its own, inside that of the job; none if it is everything.
    pub(crate) fn folder(self) -> Option<String> {
        (self.of > 1).then(|| format!("shard-{}-of-{}", self.number, self.of))
    }

    /// The shard that a folder is named after.
    pub(crate) fn of_folder(name: &str) -> Option<Self> {
        let (number, of) = name.strip_prefix("shard-")?.split_once("-of-")?;
        Shard::new(number.parse().ok()?, of.parse().ok()?)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(number, of)| {
            Shard::new(number.trim().parse().ok()?, of.trim().parse().ok()?)
        });
        parsed.ok_or_else(|| format!("`{text}` is not a shard such as 3/64, counted from 1"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_counted_from_one() {
        assert_eq!("3/64".parse::<Shard>().unwrap().to_string(), "3/64");
        assert_eq!("1/1".parse(), Ok(Shard::WHOLE));
        for bad in ["0/5", "6/5", "3", "a/b", "1/0", "-1/5", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }

    #[test]
    fn every_hash_belongs_to_exactly_one_shard() {
        for of in [1, 5, 64] {
            let shards: Vec<_> = (1..=of).map(|n| Shard::new(n, of).unwrap()).collect();
            for hash in [0, 1, 63, 64, u64::MAX] {
                assert_eq!(shards.iter().filter(|s| s.holds(hash)).count(), 1);
            }
        }
    }

    #[test]
    fn a_folder_tells_its_shard() {
        let shard = Shard::new(3, 64).unwrap();
        assert_eq!(Shard::of_folder(&shard.folder().unwrap()), Some(shard));
        assert_eq!(Shard::WHOLE.folder(), None);
        assert_eq!(Shard::of_folder("shard-7-of-5"), None);
    }
}
