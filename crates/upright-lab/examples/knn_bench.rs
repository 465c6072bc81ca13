//! Times the `knn` family against a bank in memory and prints one line of JSON
//! a run. Without files the features are made here; with two files of raw
//! little-endian `f32` (bank, queries) the energies of the queries go to a third.
//!
//! `knn_bench ROWS COLS QUERIES K RUNS [SCORE] [BANK QUERIES ENERGIES]`
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs, reason = "a tool for measuring")]

use std::io::{BufRead, Write};
use std::time::Instant;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use upright::score::{Bank, fit};
use upright::{Matrix, Outputs, Part};

fn made(rows: usize, cols: usize, seed: u64) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut next = || (rng.next_u32() >> 8) as f32 / (1 << 24) as f32;
    (0..rows * cols).map(|_| (0..6).map(|_| next()).sum::<f32>() - 3.0).collect()
}

fn read(path: &str) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
}

fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|l| l.starts_with("VmRSS")).unwrap_or_default();
    let kb: f64 = line.split_whitespace().nth(1).and_then(|v| v.parse().ok()).unwrap_or(0.0);
    kb * 1024.0 / 1e6
}

fn outputs(data: Vec<f32>, cols: usize, classes: usize) -> Outputs {
    let rows = data.len() / cols;
    let mut logits = Matrix::zeros(rows, classes);
    for i in 0..rows {
        logits.row_mut(i)[i % classes] = 1.0;
    }
    Outputs::new(logits, vec![Matrix::new(rows, cols, data).unwrap()]).unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |i: usize, or: usize| args.get(i).map_or(or, |a| a.parse().unwrap());
    let (rows, cols, queries) = (number(0, 54_000), number(1, 1024), number(2, 128));
    let (k, runs) = (number(3, 3), number(4, 5));
    let name = args.get(5).map_or("knn", String::as_str);
    let (bank, query) = match (args.get(6), args.get(7)) {
        (Some(bank), Some(query)) => (read(bank), read(query)),
        _ => (made(rows, cols, 1), made(queries, cols, 2)),
    };
    let before = resident();
    let (classes, size) = (10, bank.len() as f64 * 4e-6);
    let bank = outputs(bank, cols, classes);
    let labels: Vec<u32> = (0..rows).map(|i| (i % classes) as u32).collect();
    let mut part = Part::new(name);
    if !name.contains("proto") {
        part = part.number("k", k as f64);
    }
    let start = Instant::now();
    let score = fit(&part, &Bank::of(&bank, &labels)).unwrap();
    let fitted = start.elapsed().as_secs_f64();
    drop(bank);
    let (after, query) = (resident(), outputs(query, cols, classes));
    println!(
        "{{\"score\":\"{name}\",\"fit_s\":{fitted:.3},\"resident_mb\":{:.1},\"f32_mb\":{size:.1}}}",
        after - before + size
    );
    if let Some(path) = args.get(8) {
        let bytes: Vec<u8> = score.energy(&query).iter().flat_map(|e| e.to_le_bytes()).collect();
        std::fs::write(path, bytes).unwrap();
    }
    // With 0 runs, one run for each line of standard input.
    let run = || {
        let start = Instant::now();
        let energy = score.energy(&query);
        let ms = start.elapsed().as_secs_f64() * 1e3;
        println!("{{\"ms\":{ms:.3},\"first\":{}}}", energy[0]);
        std::io::stdout().flush().unwrap();
    };
    if runs == 0 {
        std::io::stdin().lock().lines().for_each(|_| run());
    } else {
        (0..runs).for_each(|_| run());
    }
}
