//! Against scikit-learn and `scipy`; `tests/fixtures/make_ridge.py` made the cases.

use serde_json::Value;

use super::*;

fn oracle(name: &str) -> Value {
    let text = include_str!("../../tests/fixtures/ridge.json");
    serde_json::from_str::<Value>(text).unwrap()[name].clone()
}

fn numbers(v: &Value) -> Vec<f64> {
    v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn rows(v: &Value) -> Vec<Vec<f64>> {
    v.as_array().unwrap().iter().map(numbers).collect()
}

fn single(row: &[f64]) -> Vec<f32> {
    row.iter().map(|v| *v as f32).collect()
}

fn near(got: &[f64], want: &[f64], slack: f64) {
    for (g, w) in got.iter().zip(want) {
        assert!((g - w).abs() <= slack * (1.0 + w.abs()), "{got:?} is not {want:?}");
    }
    assert_eq!(got.len(), want.len());
}

/// Weights are rounded to half precision, hence the slack.
#[test]
fn a_streamed_ridge_is_that_of_scikit_learn() {
    let case = oracle("ridge");
    let (x, y) = (rows(&case["rows"]), rows(&case["targets"]));
    let mut normal = Normal::new(x[0].len(), y[0].len());
    for (x, y) in x.iter().zip(&y) {
        let targets = y.iter().enumerate().map(|(t, v)| (t as u32, *v as f32)).collect();
        normal.add(&single(x), targets);
    }
    normal.add(&[f32::NAN; 7], vec![(0, 1.0)]);
    assert_eq!(normal.len(), x.len(), "a row that is not finite is left out");
    let ridge = normal.solve(case["lambda"].as_f64().unwrap()).unwrap();
    for (test, want) in rows(&case["test"]).iter().zip(rows(&case["predicted"])) {
        let row = Matrix::new(1, test.len(), single(test)).unwrap();
        let got: Vec<f64> = ridge.apply(&row).row(0).iter().map(|v| f64::from(*v)).collect();
        near(&got, &want, 1e-3);
    }
    assert_eq!(Ridge::load(&ridge.state()).unwrap(), ridge);
}

#[test]
fn wide_rows_fill_the_whole_matrix_of_products() {
    // y = x_300: a penalty of nearly nothing finds it among 601 columns that vary alone.
    let width = 601;
    let mut normal = Normal::new(width, 1);
    for i in 0..1300usize {
        let mut row = vec![0.0; width];
        row[i % width] = if i >= width { 1.0 } else { -1.0 };
        let y = row[300];
        normal.add(&row, vec![(0, y)]);
    }
    let ridge = normal.solve(1e-6).unwrap();
    let mut probe = Matrix::zeros(1, width);
    probe.row_mut(0)[300] = 1.0;
    let got = ridge.apply(&probe).row(0)[0];
    assert!((got - 1.0).abs() < 0.01, "{got}");
}

#[test]
fn the_logistic_regression_is_that_of_scikit_learn() {
    let case = oracle("logistic");
    let labels: Vec<bool> =
        case["labels"].as_array().unwrap().iter().map(|l| l.as_bool().unwrap()).collect();
    let got = logistic(&rows(&case["rows"]), &labels, case["lambda"].as_f64().unwrap());
    near(&got, &numbers(&case["weights"]), 1e-5);
}

#[test]
fn the_conditional_logit_minimises_its_loss() {
    let case = oracle("conditional");
    let candidate = |c: &Value| (numbers(&c[0]), c[1].as_bool().unwrap());
    let group = |g: &Value| g.as_array().unwrap().iter().map(candidate).collect();
    let groups: Vec<Vec<(Vec<f64>, bool)>> =
        case["groups"].as_array().unwrap().iter().map(group).collect();
    let got = conditional(&groups, case["lambda"].as_f64().unwrap());
    near(&got, &numbers(&case["weights"]), 1e-4);
}
