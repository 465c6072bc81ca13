//! Damage done to valid files, all of it drawn from one stream of numbers.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;

/// Numbers that readers stumble over, as text.
const AWKWARD: &[&str] = &[
    "0",
    "-1",
    "1",
    "3",
    "255",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
    "1e308",
    "-1e308",
    "1e39",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "0x10",
    "1.5",
    ".",
    "-",
    "+",
    "e",
    "1e",
    "null",
];

/// Longest input that damage makes, unless a seed is longer.
pub(super) const LONGEST: usize = 64 << 10;

/// Draws from a stream.
pub(super) struct Dice(pub(super) ChaCha8Rng);

impl Dice {
    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&mut self, end: usize) -> usize {
        ((u64::from(self.0.next_u32()) * end as u64) >> 32) as usize
    }

    fn byte(&mut self) -> u8 {
        self.0.next_u32() as u8
    }

    /// One of some.
    pub(super) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

/// A damaged copy of one of the seeds, or noise. `words` are what the format
/// itself is made of.
pub(super) fn damaged(dice: &mut Dice, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    if dice.below(64) == 0 {
        let length = dice.below(300);
        return (0..length).map(|_| dice.byte()).collect();
    }
    let mut bytes = dice.one(seeds).clone();
    let longest = bytes.len().max(LONGEST);
    for _ in 0..=dice.below(6) {
        damage(dice, &mut bytes, seeds, words);
        bytes.truncate(longest);
    }
    bytes
}

fn damage(dice: &mut Dice, bytes: &mut Vec<u8>, seeds: &[Vec<u8>], words: &[&str]) {
    let n = bytes.len();
    let at = dice.below(n + 1);
    let end = (at + 1 + dice.below(16)).min(n);
    match dice.below(12) {
        0 if at < n => bytes[at] ^= 1 << dice.below(8),
        1 if at < n => bytes[at] = *dice.one(&[0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'[', b'<']),
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at.min(end)..end)),
        4 => {
            let piece = bytes[at.min(end)..end].to_vec();
            let times = 1 + dice.below(40);
            bytes.splice(at..at, piece.repeat(times));
        }
        5 => {
            let other = dice.one(seeds);
            let from = dice.below(other.len());
            let to = (from + dice.below(200)).min(other.len());
            bytes.splice(at..at, other[from..to].iter().copied());
        }
        6 | 7 => number(dice, bytes),
        8 => {
            let word = if words.is_empty() { AWKWARD } else { words };
            let word = dice.one(word).as_bytes().to_vec();
            bytes.splice(at..at, word);
        }
        9 if !words.is_empty() => exchange(dice, bytes, words),
        10 => {
            let width = *dice.one(&[2, 4, 8]);
            let value =
                *dice.one(&[0u64, 1, 0xff, 0x7fff_ffff, 0xffff_fffe, u64::MAX, 1 << 40, 1 << 62]);
            let value = if dice.below(2) == 0 { value.to_le_bytes() } else { value.to_be_bytes() };
            for (b, v) in bytes.iter_mut().skip(at).take(width).zip(value) {
                *b = v;
            }
        }
        _ => {
            for _ in 0..=dice.below(8) {
                let at = dice.below(n);
                if at < n {
                    bytes[at] = dice.byte();
                }
            }
        }
    }
}

/// Puts an awkward number in the place of one.
fn number(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let from = dice.below(bytes.len());
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|p| from + p) else {
        return;
    };
    let length = bytes[start..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
    let word = dice.one(AWKWARD).as_bytes().to_vec();
    bytes.splice(start..start + length, word);
}

/// Puts one of the format's words in the place of another.
fn exchange(dice: &mut Dice, bytes: &mut Vec<u8>, words: &[&str]) {
    let word = dice.one(words).as_bytes();
    if let Some(at) = bytes.windows(word.len().max(1)).position(|w| w == word) {
        let other = dice.one(words).as_bytes().to_vec();
        bytes.splice(at..at + word.len(), other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_does_the_same_damage_and_other_seeds_other() {
        let seeds = vec![b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n".to_vec()];
        let run = |seed: u64| -> Vec<Vec<u8>> {
            let mut dice = Dice(upright::internal::seed::stream(seed));
            (0..200).map(|_| damaged(&mut dice, &seeds, &["OFF", "COFF"])).collect()
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
        let mut distinct = run(1);
        distinct.sort();
        distinct.dedup();
        assert!(distinct.len() > 150, "{}", distinct.len());
        assert!(distinct.iter().all(|d| d.len() <= LONGEST));
    }
}
