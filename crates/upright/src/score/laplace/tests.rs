use super::*;
use crate::config::Part;

fn blend(base: f64, mi: f64) -> Blend {
    Blend { partner: Base::Entropy, base, mi, offset: 0.0 }
}

fn small() -> (Outputs, Head) {
    let features = vec![1.0, 0.2, -0.5, 0.3, 2.0, 1.0, -1.0, 0.5, 0.7, 0.1, -0.4, 1.5];
    let features = Matrix::new(4, 3, features).unwrap();
    let head = Head::new(
        Matrix::new(2, 3, vec![0.5, -1.0, 0.3, -0.2, 0.8, 1.1]).unwrap(),
        vec![0.1, -0.3],
    )
    .unwrap();
    let z = logits(&features, &head.weight, &head.bias);
    (Outputs::new(z, vec![features]).unwrap(), head)
}

fn fitted(prior: f64) -> (Laplace, Outputs) {
    let (outputs, head) = small();
    let bank = Bank { head: Some(&head), seed: 3, ..Bank::of(&outputs, &[]) };
    let settings = Part::new("laplace-mi").number("prior", prior).resolve(mi::KIND.params).unwrap();
    let state = fit(&settings, &bank, "laplace-mi", blend(0.0, 1.0)).unwrap().state();
    let laplace = Laplace::new(
        prior,
        head.clone(),
        (state.read_matrix("inner").unwrap(), state.read_f64("inner_values").unwrap()),
        (state.read_matrix("outer").unwrap(), state.read_f64("outer_values").unwrap()),
        state.read_matrix("normals").unwrap(),
        blend(0.0, 1.0),
    );
    (laplace, outputs.clone())
}

/// Solves `m x = y` by Gaussian elimination.
fn solve(mut m: Vec<Vec<f64>>, mut y: Vec<f64>) -> Vec<f64> {
    let n = y.len();
    for i in 0..n {
        let pivot = (i..n).max_by(|&a, &b| m[a][i].abs().total_cmp(&m[b][i].abs())).unwrap();
        m.swap(i, pivot);
        y.swap(i, pivot);
        for r in i + 1..n {
            let factor = m[r][i] / m[i][i];
            let row = m[i].clone();
            m[r].iter_mut().zip(&row).for_each(|(a, b)| *a -= factor * b);
            y[r] -= factor * y[i];
        }
    }
    for i in (0..n).rev() {
        let known: f64 = (i + 1..n).map(|j| m[i][j] * y[j]).sum();
        y[i] = (y[i] - known) / m[i][i];
    }
    y
}

#[test]
fn the_closed_form_equals_the_dense_inverse_of_the_precision() {
    let prior = 0.7;
    let (laplace, outputs) = fitted(prior);
    let f = &outputs.features[0];
    let mut a = vec![vec![0.0; 3]; 3];
    let mut b = vec![vec![0.0; 2]; 2];
    for (f, z) in f.iter().zip(outputs.logits.iter()) {
        let p = softmax(z, 1.0);
        for i in 0..3 {
            for j in 0..3 {
                a[i][j] += f64::from(f[i]) * f64::from(f[j]) / 4.0;
            }
        }
        for i in 0..2 {
            for j in 0..2 {
                b[i][j] += if i == j { p[i] } else { 0.0 } - p[i] * p[j];
            }
        }
    }
    // Precision of the weights, class-major, and of the bias.
    let weights: Vec<Vec<f64>> = (0..6)
        .map(|r| {
            let entry =
                |c: usize| b[r / 3][c / 3] * a[r % 3][c % 3] + if r == c { prior } else { 0.0 };
            (0..6).map(entry).collect()
        })
        .collect();
    let bias: Vec<Vec<f64>> = (0..2)
        .map(|r| (0..2).map(|c| b[r][c] + if r == c { prior } else { 0.0 }).collect())
        .collect();
    let (_, _, deviations) = laplace.gaussians(f);
    for (n, x) in f.iter().enumerate() {
        for i in 0..2 {
            let mut jacobian = vec![0.0; 6];
            x.iter().enumerate().for_each(|(k, &v)| jacobian[3 * i + k] = f64::from(v));
            let column = solve(weights.clone(), jacobian);
            let mut unit = vec![0.0; 2];
            unit[i] = 1.0;
            let bias_column = solve(bias.clone(), unit);
            for j in 0..2 {
                let dense: f64 =
                    x.iter().enumerate().map(|(k, &v)| f64::from(v) * column[3 * j + k]).sum();
                let dense = dense + bias_column[j];
                let closed: f64 = (0..2)
                    .map(|k| {
                        let u = laplace.outer.row(k);
                        f64::from(u[i]) * f64::from(u[j]) * f64::from(deviations.row(n)[k]).powi(2)
                    })
                    .sum();
                assert!((dense - closed).abs() < 1e-5, "{dense} {closed}");
            }
        }
    }
}

#[test]
fn samples_spread_as_the_covariance_says() {
    let (laplace, outputs) = fitted(1.0);
    let (_, _, deviations) = laplace.gaussians(&outputs.features[0]);
    let many = Laplace { normals: normals(20_000, 2, 5), ..laplace };
    let offsets = many.offsets(deviations.row(0));
    let largest = deviations.row(0).iter().map(|&s| f64::from(s * s)).fold(0.0, f64::max);
    let spread = |i: usize, j: usize| {
        offsets.iter().map(|o| f64::from(o[i]) * f64::from(o[j])).sum::<f64>() / 20_000.0
    };
    for (i, j) in [(0, 0), (0, 1), (1, 1)] {
        let want: f64 = (0..2)
            .map(|k| {
                let u = many.outer.row(k);
                f64::from(u[i]) * f64::from(u[j]) * f64::from(deviations.row(0)[k]).powi(2)
            })
            .sum();
        assert!((spread(i, j) - want).abs() < 0.03 * largest);
    }
}

#[test]
fn two_opposite_samples_are_worked_by_hand() {
    // Logits 0 +- log 3 against 0: probabilities 3/4 and 1/4, mean 1/2.
    let offsets = Matrix::new(1, 2, vec![3f32.ln(), 0.0]).unwrap();
    let seen = sampled::Seen::new(&[0.0, 0.0], &offsets);
    let each = -(0.75 * 0.75f64.ln() + 0.25 * 0.25f64.ln());
    assert!((seen.entropy() - 2f64.ln()).abs() < 1e-6);
    assert!((seen.mutual_information() - (2f64.ln() - each) / 2f64.ln()).abs() < 1e-6);
}

#[test]
fn a_strong_prior_leaves_the_entropy_of_the_mean() {
    let (laplace, outputs) = fitted(1e6);
    let sure = Laplace { blend: blend(1.0, 0.0), ..laplace };
    for (e, z) in sure.energy(&outputs).iter().zip(outputs.logits.iter()) {
        assert!((f64::from(*e) - Base::Entropy.of(z)).abs() < 1e-3);
    }
}

#[test]
fn huge_features_and_one_class_stay_finite() {
    let (laplace, outputs) = fitted(1.0);
    let both = Laplace { blend: blend(0.5, 0.5), ..laplace };
    let huge = Matrix::new(2, 3, vec![1e4, -1e4, 1e4, -1e4, -1e4, 1e4]).unwrap();
    let huge = Outputs::new(outputs.logits.select(&[0, 1]), vec![huge]).unwrap();
    assert!(both.energy(&huge).iter().all(|e| e.is_finite()));
    let d = both.pullback(&huge).features[0].clone().unwrap();
    assert!(d.data().iter().all(|v| v.is_finite()));
    let seen = sampled::Seen::new(&[3.0], &Matrix::zeros(1, 1));
    assert!(seen.mutual_information().abs() < 1e-12);
}
