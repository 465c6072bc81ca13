//! What every axis must do.

use upright::axes::{self, Axis, TABLE};
use upright::map::Map;

fn draws(axis: &dyn Axis) -> Vec<Vec<f32>> {
    [0.0, 0.1, 0.37, 0.5, 0.73, 0.999_999]
        .iter()
        .map(|&u| {
            let mut pose = vec![f32::NAN; axis.size()];
            axis.draw(&vec![u; axis.cube()], &mut pose);
            pose
        })
        .collect()
}

#[test]
fn every_axis_has_a_name_a_sentence_and_a_domain_within_its_limits() {
    for row in TABLE {
        assert!(row.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", row.name);
        assert!(!row.about.is_empty());
        let ((low, high), (least, most)) = (row.make.domain, row.make.limits);
        assert!(least <= low && low < high && high <= most, "{}", row.name);
        assert_eq!(TABLE.iter().filter(|r| r.name == row.name).count(), 1, "{}", row.name);
    }
}

#[test]
fn every_axis_identity_maps_to_the_identity() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        assert!(axis.map(&axis.identity()).is_identity(), "{}", row.name);
        assert!(axis.contains(&axis.identity()), "{}", row.name);
    }
}

#[test]
fn every_draw_lies_in_the_domain_and_settling_leaves_it_alone() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        for pose in draws(axis.as_ref()) {
            assert!(axis.contains(&pose), "{} {pose:?}", row.name);
            let mut settled = pose.clone();
            axis.settle(&mut settled);
            assert!(axis.distance(&pose, &settled) < 1e-5, "{} {pose:?}", row.name);
        }
    }
}

#[test]
fn every_axis_settles_any_number_into_its_domain() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        for wild in [-1e9, -7.3, -1.0, 0.0, 0.4, 1.0, 2.9, 1e9, f32::INFINITY, f32::NEG_INFINITY] {
            let mut pose = vec![wild; axis.size()];
            axis.settle(&mut pose);
            assert!(axis.contains(&pose), "{} {wild} -> {pose:?}", row.name);
        }
    }
}

#[test]
fn every_axis_with_a_narrow_domain_stays_in_it() {
    for (name, low, high) in [
        ("rotate", -0.3, 0.4),
        ("shear-x", 0.1, 0.2),
        ("scale", 0.9, 1.2),
        ("shift-y", -0.05, 0.0),
        ("flip", 1.0, 1.0),
        ("scale-x", 1.0, 1.0),
    ] {
        let axis = axes::make(name, Some((low, high))).unwrap();
        for pose in draws(axis.as_ref()) {
            assert!(pose[0] >= low - 1e-5 && pose[0] <= high + 1e-5, "{name} {pose:?}");
        }
        let mut pose = vec![3.7];
        axis.settle(&mut pose);
        assert!(pose[0] >= low - 1e-5 && pose[0] <= high + 1e-5, "{name} {pose:?}");
    }
}

#[test]
fn every_axis_derivative_agrees_with_finite_differences() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        if axis.extent() <= 0.0 {
            continue;
        }
        for pose in draws(axis.as_ref()) {
            for k in 0..axis.size() {
                let h = 1e-3;
                let (mut up, mut down) = (pose.clone(), pose.clone());
                up[k] += h;
                down[k] -= h;
                let d = axis.derivative(&pose, k);
                let (up, down) = (axis.map(&up), axis.map(&down));
                for ((d, u), l) in d.entries().iter().zip(up.entries()).zip(down.entries()) {
                    assert!((d - (u - l) / (2.0 * h)).abs() < 1e-3, "{} {pose:?}", row.name);
                }
            }
        }
    }
}

#[test]
fn every_lattice_is_distinct_and_in_the_domain() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        let lattice = axis.lattice(5, 0.25);
        for (i, a) in lattice.iter().enumerate() {
            assert!(axis.contains(a), "{} {a:?}", row.name);
            for b in &lattice[..i] {
                assert!(axis.distance(a, b) > 1e-3, "{} {a:?} {b:?}", row.name);
            }
        }
    }
}

#[test]
fn a_full_circle_wraps_and_an_arc_reflects() {
    let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
    let circle = axes::make("rotate", None).unwrap();
    let mut pose = [3.5];
    circle.settle(&mut pose);
    assert!(near(pose[0], 3.5 - std::f32::consts::TAU), "{pose:?}");
    assert!(circle.distance(&[3.1], &[-3.1]) < 0.02);

    let arc = axes::make("rotate", Some((-1.0, 1.0))).unwrap();
    let mut pose = [1.25];
    arc.settle(&mut pose);
    assert!(near(pose[0], 0.75), "{pose:?}");
}

/// Log-uniform: the middle of 1/1.8..1.8 is 1, a quarter of the way 1.8^-0.5 = 0.745356.
/// Reflection in logarithms: 1.8 * 1.1 comes back as 1.8 / 1.1.
#[test]
fn scales_are_log_uniform_and_reflect_on_the_log_scale() {
    let axis = axes::make("scale-x", None).unwrap();
    let mut pose = [0.0];
    axis.draw(&[0.5], &mut pose);
    assert!((pose[0] - 1.0).abs() < 1e-6);
    axis.draw(&[0.25], &mut pose);
    assert!((pose[0] - 0.745_356).abs() < 1e-5);
    let mut pose = [1.8 * 1.1];
    axis.settle(&mut pose);
    assert!((pose[0] - 1.8 / 1.1).abs() < 1e-5);
    assert_eq!(axis.map(&[2.0]), Map::Plane([2.0, 0.0, 0.0, 0.0, 1.0, 0.0]));
}
