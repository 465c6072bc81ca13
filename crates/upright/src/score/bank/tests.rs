//! The search against brute force, and the scores' shared promises.

use proptest::prelude::*;

use super::index::{Index, Storage};
use super::metric::{Metric, Sums};
use super::scan::Found;
use crate::config::{Part, Value};
use crate::outputs::Outputs;
use crate::score::{Bank, Score, fit, load};
use crate::tensor::Matrix;

const METRICS: [Metric; 6] = [
    Metric { euclid: 1.0, cosine: 0.0, squared: false },
    Metric { euclid: 1.0, cosine: 0.0, squared: true },
    Metric { euclid: 0.0, cosine: 1.0, squared: false },
    Metric { euclid: 0.1, cosine: 0.5, squared: false },
    Metric { euclid: 0.1, cosine: 0.5, squared: true },
    Metric { euclid: 1e-30, cosine: 0.5, squared: false },
];

fn noise(seed: u64, n: usize) -> Vec<f32> {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 40) as f32 / (1u64 << 24) as f32
    };
    (0..n).map(|_| next() + next() + next() - 1.5).collect()
}

fn brute(
    index: &Index,
    metric: &Metric,
    q: &[f32],
    range: std::ops::Range<usize>,
    k: usize,
) -> Vec<Found> {
    let mut row = vec![0.0; index.cols()];
    let mut all: Vec<Found> = range
        .map(|i| {
            index.read(i, &mut row);
            Found { distance: metric.distance(&Sums::new(q, &row)), row: i as u32 }
        })
        .collect();
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance).then(a.row.cmp(&b.row)));
    all.truncate(k);
    all
}

fn check(bank: &Matrix, queries: &Matrix, k: usize) {
    let order: Vec<usize> = (0..bank.rows()).collect();
    let ends = vec![0, (bank.rows() / 3) as u32, bank.rows() as u32];
    for storage in [Storage::Full, Storage::Half] {
        let index = Index::build(bank, &order, ends.clone(), storage);
        let queries: Vec<&[f32]> = queries.iter().collect();
        for metric in &METRICS {
            for range in [0..index.len(), index.class(0), index.class(1)] {
                let found = index.nearest(metric, &queries, range.clone(), k);
                for (q, found) in queries.iter().zip(found) {
                    assert_eq!(found, brute(&index, metric, q, range.clone(), k), "{metric:?}");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_nearest_are_those_of_brute_force(
        seed in any::<u64>(), n in 1usize..700, cols in 1usize..40, k in 1usize..8,
        spread in -20i32..20, shift in -3.0f32..3.0,
    ) {
        let size = libm::exp2f(spread as f32);
        let data = |seed, n: usize| noise(seed, n * cols).iter().map(|v| (v + shift) * size).collect();
        let mut bank = Matrix::new(n, cols, data(seed, n)).unwrap();
        let mut queries = Matrix::new(5, cols, data(seed ^ 0x4d, 5)).unwrap();
        // A duplicate, a zero vector on both sides, a copy of a bank row, a far query.
        let first = bank.row(0).to_vec();
        bank.row_mut(n / 2).copy_from_slice(&first);
        bank.row_mut(n - 1).fill(0.0);
        queries.row_mut(0).copy_from_slice(&first);
        queries.row_mut(1).fill(0.0);
        queries.row_mut(2).iter_mut().for_each(|v| *v *= 1e6);
        check(&bank, &queries, k);
    }
}

#[test]
fn extreme_features_are_searched_exactly() {
    let cols = 5;
    for size in [1e-44f32, 1e-38, 1e-20, 1e18, 1e37] {
        let scale = |v: Vec<f32>| v.iter().map(|v| v * size).collect::<Vec<_>>();
        let mut bank = Matrix::new(40, cols, scale(noise(1, 40 * cols))).unwrap();
        bank.row_mut(3).iter_mut().for_each(|v| *v *= 1e-18);
        let mut queries = Matrix::new(4, cols, scale(noise(2, 4 * cols))).unwrap();
        queries.row_mut(0).iter_mut().for_each(|v| *v *= 1e-20);
        queries.row_mut(1).fill(f32::MAX);
        check(&bank, &queries, 3);
    }
}

#[test]
fn a_row_of_many_blocks_finds_neighbours_in_each() {
    let (n, cols) = (3000, 16);
    let bank = Matrix::new(n, cols, noise(5, n * cols)).unwrap();
    let queries = Matrix::new(300, cols, noise(6, 300 * cols)).unwrap();
    let order: Vec<usize> = (0..n).collect();
    let index = Index::build(&bank, &order, vec![0, n as u32], Storage::Half);
    let rows: Vec<&[f32]> = queries.iter().collect();
    let found = index.nearest(&METRICS[0], &rows, 0..n, 10);
    for (q, found) in rows.iter().zip(&found) {
        assert_eq!(*found, brute(&index, &METRICS[0], q, 0..n, 10));
    }
    let blocks: std::collections::BTreeSet<u32> =
        found.iter().flatten().map(|f| f.row / 512).collect();
    assert_eq!(blocks.len(), 6);
}

#[test]
fn few_vectors_are_measured() {
    let (n, cols) = (4000, 64);
    let bank = Matrix::new(n, cols, noise(5, n * cols)).unwrap();
    let queries = Matrix::new(20, cols, noise(6, 20 * cols)).unwrap();
    let order: Vec<usize> = (0..n).collect();
    let index = Index::build(&bank, &order, vec![0, n as u32], Storage::Half);
    let rows: Vec<&[f32]> = queries.iter().collect();
    for metric in [METRICS[0], METRICS[2], METRICS[3]] {
        let lists = index.shortlist(&metric, &rows, 0..n, 3);
        let most = lists.iter().map(Vec::len).max().unwrap();
        assert!(most < n / 20, "{metric:?}: {most} of {n}");
    }
}

#[test]
fn sixteen_bits_change_distances_by_less_than_a_ten_thousandth() {
    let (n, cols) = (500, 256);
    let bank =
        Matrix::new(n, cols, noise(9, n * cols).iter().map(|v| v.max(0.0)).collect()).unwrap();
    let queries = Matrix::new(50, cols, noise(8, 50 * cols)).unwrap();
    let order: Vec<usize> = (0..n).collect();
    let [full, half] =
        [Storage::Full, Storage::Half].map(|s| Index::build(&bank, &order, vec![0, n as u32], s));
    let rows: Vec<&[f32]> = queries.iter().collect();
    for metric in &METRICS[..5] {
        let a = full.nearest(metric, &rows, 0..n, 3);
        let b = half.nearest(metric, &rows, 0..n, 3);
        for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
            assert!((a.distance - b.distance).abs() < 1e-4 * a.distance, "{metric:?} {a:?} {b:?}");
        }
    }
}

#[test]
fn a_large_bank_takes_little_more_than_two_bytes_a_number() {
    let (n, cols) = (200, 1024);
    let bank = Matrix::new(n, cols, noise(9, n * cols)).unwrap();
    let order: Vec<usize> = (0..n).collect();
    let index = Index::build(&bank, &order, vec![0, n as u32], Storage::Half);
    let a_row = (index.bytes_resident() - cols * 4) as f64 / n as f64;
    assert!(a_row * 54_000.0 < 113e6, "{a_row}");
    assert_eq!(Storage::chosen("auto", 54_000 * 1024), Storage::Half);
    assert_eq!(Storage::chosen("auto", 2000 * 1024), Storage::Full);
}

fn outputs(seed: u64, n: usize, classes: usize, cols: usize) -> Outputs {
    let logits = Matrix::new(n, classes, noise(seed, n * classes)).unwrap();
    let features = Matrix::new(n, cols, noise(seed ^ 5, n * cols)).unwrap();
    Outputs::new(logits, vec![features]).unwrap()
}

fn every() -> Vec<Part> {
    let mut parts = Vec::new();
    for name in ["knn", "pc-knn", "proto", "pc-proto"] {
        for metric in ["euclidean", "cosine", "mix"] {
            parts.push(Part::new(name).word("metric", metric));
        }
        parts.push(Part::new(name).with("squared", Value::Flag(true)));
    }
    for name in ["knn", "pc-knn"] {
        parts.push(Part::new(name).word("storage", "i16"));
        parts.push(Part::new(name).number("compress", 4.0));
        parts.push(Part::new(name).with("correct_only", Value::Flag(true)));
    }
    for metric in ["euclidean", "cosine", "mix"] {
        parts.push(Part::new("trust-score").word("metric", metric));
    }
    parts.push(Part::new("trust-score").number("alpha", 0.2).number("k", 1.0));
    parts.extend([Part::new("knn-mix"), Part::new("pc-knn-mix").number("w_cos", 0.9)]);
    parts
}

fn fitted(part: &Part) -> Box<dyn Score> {
    let bank = outputs(3, 120, 4, 9);
    let labels: Vec<u32> = (0..120).map(|i| if i % 5 == 0 { 0 } else { i % 3 }).collect();
    fit(part, &Bank { seed: 1, ..Bank::of(&bank, &labels) }).unwrap()
}

fn bits(v: &[f32]) -> Vec<u32> {
    v.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn a_restored_score_gives_the_same_bits() {
    let test = outputs(4, 33, 4, 9);
    for part in every() {
        let score = fitted(&part);
        let again = load(&part, &score.state()).unwrap();
        assert_eq!(bits(&score.energy(&test)), bits(&again.energy(&test)), "{part:?}");
        assert_eq!(score.state(), again.state(), "{part:?}");
    }
}

#[test]
fn an_energy_does_not_depend_on_the_other_rows() {
    let test = outputs(4, 33, 4, 9);
    for part in every() {
        let score = fitted(&part);
        let all = score.energy(&test);
        assert!(all.iter().all(|e| e.is_finite()), "{part:?}");
        for (i, e) in all.iter().enumerate() {
            let one = score.energy(&test.select(&[i]));
            assert_eq!(one[0].to_bits(), e.to_bits(), "{part:?}");
        }
    }
}

#[test]
fn an_energy_does_not_depend_on_the_threads() {
    let test = outputs(4, 40, 4, 9);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    for part in every() {
        let one = pool.install(|| fitted(&part).energy(&test));
        assert_eq!(bits(&one), bits(&fitted(&part).energy(&test)), "{part:?}");
    }
}

#[test]
fn a_class_without_samples_is_less_familiar_than_any_other() {
    let mut test = outputs(4, 12, 4, 9);
    for part in every().iter().filter(|p| p.name.starts_with("pc-")) {
        let score = fitted(part);
        let mut energy = |class: usize| {
            for i in 0..test.len() {
                test.logits.row_mut(i).fill(0.0);
                test.logits.row_mut(i)[class] = 1.0;
            }
            score.energy(&test)
        };
        let unseen = energy(3);
        for class in 0..3 {
            for (u, e) in unseen.iter().zip(energy(class)) {
                assert!(u.is_finite() && *u > e, "{part:?}: {u} {e}");
            }
        }
    }
}

#[test]
fn features_that_are_not_numbers_have_no_energy() {
    let mut test = outputs(4, 3, 4, 9);
    test.features[0].row_mut(1)[2] = f32::NAN;
    for part in every() {
        let e = fitted(&part).energy(&test);
        assert!(e[0].is_finite() && e[1].is_nan() && e[2].is_finite(), "{part:?}");
    }
    let score = fitted(&Part::new("knn"));
    test.features.clear();
    assert!(score.energy(&test).iter().all(|e| e.is_nan()));
    assert!(score.energy(&outputs(1, 2, 4, 8)).iter().all(|e| e.is_nan()));
}

#[test]
fn a_bank_with_a_nan_is_refused_by_name() {
    let mut bank = outputs(3, 5, 2, 3);
    bank.features[0].row_mut(4)[0] = f32::NAN;
    let bank = Bank::of(&bank, &[0; 5]);
    let e = fit(&Part::new("pc-proto"), &bank).unwrap_err();
    assert_eq!(e.to_string(), "score `pc-proto` needs finite features; sample 4 has others");
}

#[test]
fn a_damaged_bank_is_refused() {
    for word in ["f32", "i16"] {
        let part = Part::new("knn").word("storage", word);
        let good = fitted(&part).state();
        for name in ["bank", "mean", "offsets"] {
            let mut bad = good.clone();
            let mut tensor = good.tensors()[name].clone();
            match &mut tensor.data {
                crate::state::Data::F32(v) => v.truncate(3),
                crate::state::Data::U32(v) => v.reverse(),
                _ => unreachable!(),
            }
            bad.put(name, tensor);
            let refused = load(&part, &bad);
            assert!(name == "bank" && word == "i16" || refused.is_err(), "{word} {name}");
        }
    }
}

#[test]
fn a_compressed_bank_says_what_it_lost() {
    let note = |count| fitted(&Part::new("knn").number("compress", count)).note().unwrap();
    let some = note(4.0);
    assert!(some.starts_with("the bank holds 12 centres instead of 120 samples"), "{some}");
    let all = note(120.0);
    assert!(all.contains("which lie 0.0000 (rms) from their nearest centre"), "{all}");
    assert_eq!(fitted(&Part::new("knn")).note(), None);
}

#[test]
fn slopes_equal_finite_differences_of_the_energy() {
    let test = outputs(11, 6, 4, 9);
    for part in every() {
        let score = fitted(&part);
        let d = score.pullback(&test).features[0].clone().unwrap();
        for i in 0..test.len() {
            for c in [0, 4, 8] {
                let at = |h: f32| {
                    let mut moved = test.clone();
                    moved.features[0].row_mut(i)[c] += h;
                    f64::from(score.energy(&moved)[i])
                };
                // A kink between the points spoils one side only.
                let h = 2f32.powi(-9);
                let (back, here, on) = (at(-h), at(0.0), at(h));
                let got = f64::from(d.row(i)[c]);
                let miss = [(on - here, 1.0), (here - back, 1.0), (on - back, 2.0)]
                    .map(|(rise, steps)| (got - rise / (steps * f64::from(h))).abs());
                let least = miss.into_iter().fold(f64::INFINITY, f64::min);
                assert!(least < 3e-3 * (1.0 + got.abs()), "{part:?} {got} {miss:?}");
            }
        }
    }
}
