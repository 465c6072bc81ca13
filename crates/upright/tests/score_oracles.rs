//! Every score agrees with an independent implementation.
//!
//! `fixtures/make_scores.py` made the fixtures and says with which versions;
//! each case names its oracle and the conversion from it.

#![expect(clippy::unwrap_used, reason = "a broken fixture has to fail the test")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use safetensors::SafeTensors;
use serde::Deserialize;
use upright::score::{self, Bank};
use upright::{Head, Matrix, Outputs, Part, Value};

#[derive(Deserialize)]
struct Case {
    data: String,
    score: String,
    settings: BTreeMap<String, Value>,
    rtol: f64,
    atol: f64,
    oracle: String,
    note: String,
    /// `None` is undefined in the oracle (the predicted class is not in the bank): ours must
    /// be NaN or look no more familiar than the median row.
    expected: Vec<Option<f64>>,
}

impl Case {
    fn agrees(&self, got: f32, want: Option<f64>) -> bool {
        let got = f64::from(got);
        match want {
            None => got.is_nan() || got >= self.median(),
            Some(want) => (got - want).abs() <= self.atol + self.rtol * want.abs(),
        }
    }

    fn median(&self) -> f64 {
        let mut defined: Vec<f64> = self.expected.iter().flatten().copied().collect();
        defined.sort_by(f64::total_cmp);
        defined.get(defined.len() / 2).copied().unwrap_or(f64::NEG_INFINITY)
    }

    /// What differs, or nothing.
    fn failure(&self, data: &Data) -> Option<String> {
        let name = format!("{} {:?} on {}", self.score, self.settings, self.data);
        let part = Part { settings: self.settings.clone(), ..Part::new(&self.score) };
        let bank = Bank {
            outputs: &data.train,
            labels: &data.labels,
            head: Some(&data.head),
            // The rows to be judged stand for transformed ones where a score learns from such.
            transformed: Some(&data.test),
            transformed_labels: &[],
            lessons: None,
            seed: 7,
        };
        let got = match score::fit(&part, &bank) {
            Ok(fitted) => fitted.energy(&data.test),
            Err(e) => return Some(format!("{name}: {e}")),
        };
        if got.len() != self.expected.len() {
            return Some(format!("{name}: {} rows, not {}", got.len(), self.expected.len()));
        }
        let wrong: Vec<_> = (0..got.len())
            .filter(|&i| !self.agrees(got[i], self.expected[i]))
            .map(|i| {
                let want = self.expected[i].map_or("undefined".into(), |v| v.to_string());
                format!("    row {i}: got {}, expected {want}", got[i])
            })
            .collect();
        let of = format!("{} of {} rows", wrong.len(), got.len());
        (!wrong.is_empty())
            .then(|| format!("{name}: {of}; {} ({})\n{}", self.oracle, self.note, wrong.join("\n")))
    }
}

struct Data {
    train: Outputs,
    labels: Vec<u32>,
    head: Head,
    test: Outputs,
}

impl Data {
    fn read(name: &str) -> Self {
        let bytes = std::fs::read(folder().join(format!("{name}.safetensors"))).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let words = |name: &str| -> Vec<[u8; 4]> {
            file.tensor(name).unwrap().data().as_chunks().0.to_vec()
        };
        let floats =
            |name: &str| -> Vec<f32> { words(name).into_iter().map(f32::from_le_bytes).collect() };
        let matrix = |name: &str| {
            let shape = file.tensor(name).unwrap().shape().to_vec();
            Matrix::new(shape[0], shape[1], floats(name)).unwrap()
        };
        let outputs = |part: &str| {
            let features = vec![matrix(&format!("{part}_features"))];
            Outputs::new(matrix(&format!("{part}_logits")), features).unwrap()
        };
        Data {
            train: outputs("train"),
            labels: words("train_labels").into_iter().map(u32::from_le_bytes).collect(),
            head: Head::new(matrix("weight"), floats("bias")).unwrap(),
            test: outputs("test"),
        }
    }
}

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "fixtures", "scores"].iter().collect()
}

fn cases() -> Vec<Case> {
    serde_json::from_slice(&std::fs::read(folder().join("index.json")).unwrap()).unwrap()
}

#[test]
fn every_score_agrees_with_its_oracles() {
    let cases = cases();
    let mut sets = BTreeMap::new();
    for case in &cases {
        sets.entry(case.data.as_str()).or_insert_with(|| Data::read(&case.data));
    }
    let failures: Vec<_> =
        cases.iter().filter_map(|case| case.failure(&sets[case.data.as_str()])).collect();
    assert!(
        failures.is_empty(),
        "{} of {} cases fail\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

/// A score that learns from lessons is made of regressions, which are held against scikit-learn
/// where they are (`ridge`); one of an energy network is that network's own number,
/// and one that is trained in steps on copies is worked by hand beside its code.
#[test]
fn every_score_has_an_oracle() {
    let cases = cases();
    let bare: Vec<_> = score::TABLE
        .iter()
        .map(|row| row.name)
        .filter(|name| cases.iter().all(|case| case.score != *name))
        .filter(|name| {
            let needs = score::needs(&Part::new(*name)).unwrap();
            needs.lessons == 0 && !needs.external && needs.copies == 0
        })
        .collect();
    assert!(bare.is_empty(), "no oracle case for {}", bare.join(", "));
}

#[test]
fn every_case_has_finite_tolerances_and_a_defined_row() {
    for case in cases() {
        let name = format!("{} {:?} on {}", case.score, case.settings, case.data);
        assert!((0.0..1e-3).contains(&case.rtol) && (0.0..1.0).contains(&case.atol), "{name}");
        assert!(case.expected.iter().any(Option::is_some), "{name}");
    }
}
