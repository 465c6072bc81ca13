//! A bank in fewer vectors: k-means centres of each class.
//!
//! Lloyd's iterations from distinct samples drawn with the fit's seed, at most
//! [`ROUNDS`] of them; a centre that loses all its samples is dropped.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::error::Result;
use crate::tensor::Matrix;

use super::index::{Index, Storage};
use super::metric::{Metric, Sums};
use super::{Chosen, mean};

const ROUNDS: usize = 8;

/// At most `count` centres of each class, and where each class starts among them.
pub(super) fn centres(chosen: &Chosen, count: usize, seed: u64) -> Result<(Matrix, Vec<u32>)> {
    let cols = chosen.features.cols();
    let mut data = Vec::new();
    let mut offsets = vec![0];
    for (c, class) in chosen.offsets.windows(2).enumerate() {
        let members = &chosen.order[class[0] as usize..class[1] as usize];
        let mut rng =
            ChaCha8Rng::seed_from_u64(seed ^ (c as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        data.extend(lloyd(chosen.features, members, count, &mut rng)?);
        offsets.push((data.len() / cols) as u32);
    }
    Ok((Matrix::new(data.len() / cols, cols, data)?, offsets))
}

/// How far the samples are from their class's nearest centre, in root mean
/// square, beside how far they are from the mean of all centres: what
/// compressing has lost.
pub(super) fn effect(chosen: &Chosen, index: &Index) -> String {
    let euclid = Metric { euclid: 1.0, cosine: 0.0, squared: true };
    let (mut lost, mut spread) = (0.0, 0.0);
    for (c, class) in chosen.offsets.windows(2).enumerate() {
        let members = &chosen.order[class[0] as usize..class[1] as usize];
        let queries: Vec<&[f32]> = members.iter().map(|&i| chosen.features.row(i)).collect();
        let nearest = index.nearest(&euclid, &queries, index.class(c), 1);
        lost += nearest.iter().flatten().map(|f| f.distance).sum::<f64>();
        spread += queries.iter().map(|q| Sums::new(q, index.mean()).square).sum::<f64>();
    }
    let n = chosen.order.len() as f64;
    format!(
        "the bank holds {} centres instead of {n} samples, which lie {:.4} (rms) from their \
         nearest centre and {:.4} from the mean",
        index.len(),
        (lost / n).sqrt(),
        (spread / n).sqrt()
    )
}

fn lloyd(
    features: &Matrix,
    members: &[usize],
    count: usize,
    rng: &mut ChaCha8Rng,
) -> Result<Vec<f32>> {
    let cols = features.cols();
    let mut start = members.to_vec();
    if members.len() > count {
        for i in 0..count {
            let j = i + (rng.next_u64() % (start.len() - i) as u64) as usize;
            start.swap(i, j);
        }
        start.truncate(count);
    }
    let mut centres = features.select(&start);
    if members.len() <= count {
        return Ok(centres.into_data());
    }
    let queries: Vec<&[f32]> = members.iter().map(|&i| features.row(i)).collect();
    let euclid = Metric { euclid: 1.0, cosine: 0.0, squared: false };
    let mut before: Vec<u32> = Vec::new();
    for _ in 0..ROUNDS {
        let order: Vec<usize> = (0..centres.rows()).collect();
        let ends = vec![0, centres.rows() as u32];
        let index = Index::build(&centres, &order, ends, Storage::Full);
        let nearest = index.nearest(&euclid, &queries, 0..centres.rows(), 1);
        let owner: Vec<u32> = nearest.iter().map(|f| f.first().map_or(0, |f| f.row)).collect();
        if owner == before {
            break;
        }
        let mut groups = vec![Vec::new(); centres.rows()];
        for (&i, &o) in members.iter().zip(&owner) {
            groups[o as usize].push(i);
        }
        let data: Vec<f32> =
            groups.iter().filter(|g| !g.is_empty()).flat_map(|g| mean(features, g)).collect();
        before = if data.len() == centres.data().len() { owner } else { Vec::new() };
        centres = Matrix::new(data.len() / cols, cols, data)?;
    }
    Ok(centres.into_data())
}
