//! Orbit consistency: how often transformed copies of one input get the same
//! class. A perfect canonicalizer gives all copies one class, right or wrong;
//! no labels are needed to measure it.

use serde::{Deserialize, Serialize};

use super::{Canonicalizer, Prediction};
use crate::copies::of_copies;
use crate::dataset::CHUNK;
use crate::error::Result;
use crate::seed;
use crate::stats::Share;
use crate::tensor::Batch;
use crate::warp::{View, warp};

/// How the transformed copies of one input were classified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Orbit {
    /// The class that most copies get; the smallest of equals.
    pub label: u32,
    /// The copies that get it.
    pub canonical: Share,
    /// The copies that get the bare model's most frequent class from the bare model.
    pub raw: Share,
}

/// How the copies of several inputs were classified, all together: hits are the copies that
/// get the most frequent class of their input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Consistency {
    /// Behind the gate.
    pub canonical: Share,
    /// From the bare model.
    pub raw: Share,
}

impl Consistency {
    /// Adds up orbits.
    pub fn of(orbits: &[Orbit]) -> Self {
        let mut total = Consistency::default();
        for orbit in orbits {
            for (sum, part) in
                [(&mut total.canonical, orbit.canonical), (&mut total.raw, orbit.raw)]
            {
                sum.hits += part.hits;
                sum.of += part.of;
            }
        }
        total
    }
}

impl Canonicalizer {
    /// Classifies `copies` copies of each input under random poses of the space; 16 is usual.
    ///
    /// The poses follow from the seed and the input's content. Images are clamped to 0..1, as
    /// transformed data are.
    pub fn orbits(&self, batch: &Batch, copies: usize, seed: u64) -> Result<Vec<Orbit>> {
        let copies = copies.max(1);
        let resample = of_copies(&self.config.resample);
        let mut orbits = Vec::with_capacity(batch.len());
        let items: Vec<usize> = (0..batch.len()).collect();
        for items in items.chunks((CHUNK / copies).max(1)) {
            let views: Vec<View> =
                items.iter().flat_map(|&i| self.orbit(batch, i, copies, seed)).collect();
            let predictions = self.predict(&warp(batch, &views, &resample)?)?;
            orbits.extend(predictions.chunks_exact(copies).map(measured));
        }
        Ok(orbits)
    }

    fn orbit(&self, batch: &Batch, item: usize, copies: usize, seed: u64) -> Vec<View> {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x6f72_6269, batch.item(item)));
        (0..copies)
            .map(|_| {
                let unit: Vec<f32> = (0..self.space.cube()).map(|_| seed::unit(&mut rng)).collect();
                View { item, map: self.space.map(&self.space.draw(&unit)) }
            })
            .collect()
    }
}

fn measured(copies: &[Prediction]) -> Orbit {
    let labels: Vec<u32> = copies.iter().map(|p| p.label).collect();
    let raw: Vec<u32> = copies.iter().map(|p| p.raw_label).collect();
    let (label, hits) = most_frequent(&labels);
    let share = |hits: usize| Share { hits, of: copies.len() };
    Orbit { label, canonical: share(hits), raw: share(most_frequent(&raw).1) }
}

/// The most frequent label, the smallest of equals, and how often it occurs.
fn most_frequent(labels: &[u32]) -> (u32, usize) {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    let mut best = (0, 0);
    for run in sorted.chunk_by(|a, b| a == b) {
        if run.len() > best.1 {
            best = (run[0], run.len());
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_label_is_the_smallest_of_equals() {
        assert_eq!(most_frequent(&[3, 1, 3, 1, 2]), (1, 2));
        assert_eq!(most_frequent(&[7]), (7, 1));
        assert_eq!(most_frequent(&[]), (0, 0));
    }

    #[test]
    fn orbits_add_up() {
        let share = |hits, of| Share { hits, of };
        let orbit = |hits| Orbit { label: 0, canonical: share(hits, 4), raw: share(1, 4) };
        let total = Consistency::of(&[orbit(4), orbit(2)]);
        assert_eq!((total.canonical, total.raw), (share(6, 8), share(2, 8)));
    }
}
