//! Which rows to read: by patterns of their names, and some drawn with a seed.

use std::path::Path;

use crate::error::{Error, Result};
use crate::item::Items;
use crate::options::Options;
use crate::{glob, random};

/// The rows that the patterns leave.
pub(crate) fn kept(path: &Path, items: &dyn Items, options: &Options) -> Result<Vec<usize>> {
    let Options { include, exclude, .. } = options;
    let any = |patterns: &[String], name: &str| patterns.iter().any(|p| glob::fits(p, name));
    if include.is_empty() && exclude.is_empty() {
        return Ok((0..items.len()).collect());
    }
    let fits = |row: &usize| {
        let name = items.name(*row);
        (include.is_empty() || any(include, &name)) && !any(exclude, &name)
    };
    let kept: Vec<usize> = (0..items.len()).filter(fits).collect();
    if kept.is_empty() {
        let example = items.name(0);
        return Err(Error::NoMatch { path: path.into(), rows: items.len(), example });
    }
    Ok(kept)
}

/// The rows to read, in order: all, or `limit` of them drawn with the seed. A
/// smaller limit draws a part of what a larger one draws.
pub(crate) fn draw(rows: usize, limit: Option<usize>, seed: u64) -> Vec<usize> {
    let Some(limit) = limit.filter(|&l| l < rows) else { return (0..rows).collect() };
    let mut dice: Vec<(u64, usize)> =
        (0..rows).map(|r| (random::bits(seed, r as u64), r)).collect();
    dice.sort_unstable();
    dice.truncate(limit);
    let mut drawn: Vec<usize> = dice.into_iter().map(|(_, r)| r).collect();
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_draws_the_same_rows_for_the_same_seed() {
        let (a, b) = (draw(1000, Some(50), 1), draw(1000, Some(50), 2));
        assert_eq!(a, draw(1000, Some(50), 1));
        assert_ne!(a, b);
        assert_eq!(a.len(), 50);
        assert!(a.is_sorted_by(|x, y| x < y));
        assert!(draw(1000, Some(10), 1).iter().all(|r| a.contains(r)));
        assert_eq!(draw(3, Some(5), 1), [0, 1, 2]);
        let upper = draw(1000, Some(200), 7).iter().filter(|&&r| r >= 500).count();
        assert!((70..=130).contains(&upper), "{upper} of 200 from the upper half");
    }
}
