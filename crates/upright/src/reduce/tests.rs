use super::*;

fn row(v: &[f32]) -> Matrix {
    Matrix::new(1, v.len(), v.to_vec()).unwrap()
}

#[test]
fn the_mean_runs_over_positions_or_over_tokens() {
    let maps = Reduce::Mean.fit(&[2, 2, 2]).unwrap();
    let y = maps.apply(&row(&[1.0, 2.0, 3.0, 6.0, 0.0, 0.0, 0.0, 4.0])).unwrap();
    assert_eq!(y.data(), &[3.0, 1.0]);
    let tokens = Reduce::Mean.fit(&[2, 3]).unwrap();
    let y = tokens.apply(&row(&[1.0, 2.0, 3.0, 5.0, 6.0, 7.0])).unwrap();
    assert_eq!(y.data(), &[3.0, 4.0, 5.0]);
    assert!(Reduce::Mean.fit(&[5]).unwrap().keeps());
}

#[test]
fn pooling_follows_the_overlapping_bins_of_torch() {
    // 4 rows: bins 0..2, 1..3, 2..4; values 0..15 row-major.
    let pool = Reduce::Pool { dim: 100, seed: 0 }.fit(&[1, 4, 4]).unwrap();
    let x: Vec<f32> = (0u8..16).map(f32::from).collect();
    let y = pool.apply(&row(&x)).unwrap();
    assert_eq!(y.data(), &[2.5, 3.5, 4.5, 6.5, 7.5, 8.5, 10.5, 11.5, 12.5]);
    // 2 rows: bins 0..1, 0..2, 1..2.
    let pool = Reduce::Pool { dim: 100, seed: 0 }.fit(&[1, 2, 2]).unwrap();
    let y = pool.apply(&row(&[0.0, 2.0, 4.0, 6.0])).unwrap();
    assert_eq!(y.data(), &[0.0, 1.0, 2.0, 2.0, 3.0, 4.0, 4.0, 5.0, 6.0]);
}

#[test]
fn a_projection_has_unit_rows_and_follows_from_its_seed() {
    let a = Reduce::Project { dim: 8, seed: 3 }.fit(&[50]).unwrap();
    let p = a.projection.clone().unwrap();
    for r in p.iter() {
        assert!((r.iter().map(|v| v * v).sum::<f32>() - 1.0).abs() < 1e-5);
    }
    let again = Reduce::Project { dim: 8, seed: 3 }.fit(&[50]).unwrap();
    assert_eq!(again.projection.unwrap(), p);
    let other = Reduce::Project { dim: 8, seed: 4 }.fit(&[50]).unwrap();
    assert_ne!(other.projection.unwrap(), p);
    let mean = p.data().iter().sum::<f32>() / 400.0;
    assert!(mean.abs() < 0.03, "{mean}");
}

#[test]
fn a_projection_equals_its_sums_written_out() {
    let r = Reduce::Project { dim: 3, seed: 1 }.fit(&[2, 4]).unwrap();
    let x = [1.0, -2.0, 0.5, 3.0, 0.0, 1.0, 2.0, -1.0];
    let y = r.apply(&row(&x)).unwrap();
    let p = r.projection.as_ref().unwrap();
    for (i, y) in y.row(0).iter().enumerate() {
        let want: f32 = p.row(i).iter().zip(&x).map(|(p, x)| p * x).sum();
        assert!((y - want).abs() < 1e-5);
    }
}

#[test]
fn small_tensors_are_not_projected() {
    let r = Reduce::Project { dim: 8, seed: 3 }.fit(&[8]).unwrap();
    assert!(r.keeps());
    assert_eq!(Reduce::Pool { dim: 9, seed: 3 }.fit(&[1, 7, 7]).unwrap().len(), 9);
    assert_eq!(Reduce::Pool { dim: 8, seed: 3 }.fit(&[1, 7, 7]).unwrap().len(), 8);
}

#[test]
fn a_row_is_reduced_alike_in_any_company() {
    let r = Reduce::Pool { dim: 20, seed: 5 }.fit(&[7, 5, 6]).unwrap();
    let data: Vec<f32> = (0u16..37 * 210).map(|i| libm::sinf(f32::from(i))).collect();
    let all = Matrix::new(37, 210, data).unwrap();
    let together = r.apply(&all).unwrap();
    for i in 0..37 {
        let alone = r.apply(&all.select(&[i])).unwrap();
        assert_eq!(alone.data(), together.row(i), "row {i}");
    }
}

#[test]
fn pullbacks_are_transposes() {
    // <d, R x> = <R' d, x> for every linear R.
    let seed = 9;
    for (reduce, shape) in [
        (Reduce::None, vec![6]),
        (Reduce::Mean, vec![3, 4, 5]),
        (Reduce::Mean, vec![4, 5]),
        (Reduce::Pool { dim: 99, seed }, vec![2, 4, 5]),
        (Reduce::Pool { dim: 7, seed }, vec![2, 7, 8]),
        (Reduce::Project { dim: 5, seed }, vec![3, 4, 5]),
    ] {
        let r = reduce.fit(&shape).unwrap();
        let wave = |n: usize, k: f32| (0..n).map(|i| libm::cosf(i as f32 * k)).collect::<Vec<_>>();
        let (x, d) = (wave(r.size(), 0.7), wave(r.len(), 1.3));
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let left = dot(&d, r.apply(&row(&x)).unwrap().data());
        let right = dot(r.pullback(&row(&d)).unwrap().data(), &x);
        assert!((left - right).abs() < 1e-4, "{reduce:?}: {left} {right}");
    }
}
