//! What every axis must do.

use upright::axes::{self, Axis, Make, TABLE};
use upright::{
    Artifact, Config, FitData, Kind, Map, Model, ModelOptions, Part, Role, Silent, SpaceConfig,
    samples,
};

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
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(row.name.chars().all(plain), "{}", row.name);
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
            let mut confined = pose.clone();
            axis.confine(&mut confined);
            assert!(axis.distance(&pose, &confined) < 1e-5, "{} {pose:?}", row.name);
        }
    }
}

#[test]
fn every_axis_settles_any_number_into_its_domain() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        for wild in [-1e9, -7.3, -1.0, 0.0, 0.4, 1.0, 2.9, 1e9, f32::INFINITY, f32::NEG_INFINITY] {
            let mut pose = vec![wild; axis.size()];
            axis.confine(&mut pose);
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
        axis.confine(&mut pose);
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

/// Poses drawn from well-spread numbers.
fn spread(axis: &dyn Axis, count: u32) -> Vec<Vec<f32>> {
    (0..count)
        .map(|i| {
            let mut pose = vec![0.0; axis.size()];
            axis.draw(&upright::internal::seed::sobol(i, axis.cube(), 3), &mut pose);
            pose
        })
        .collect()
}

#[test]
fn every_line_stays_in_the_domain_and_moves_its_axis() {
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        for line in 0..axis.lines() {
            for start in spread(axis.as_ref(), 8) {
                let mut seen: Vec<Vec<f32>> = Vec::new();
                for unit in [0.0, 0.3, 0.7, 0.999_999] {
                    let mut pose = start.clone();
                    axis.along(line, unit, &mut pose);
                    assert!(axis.contains(&pose), "{} {pose:?}", row.name);
                    seen.push(pose);
                }
                assert!(axis.distance(&seen[1], &seen[2]) > 0.1, "{} {seen:?}", row.name);
            }
        }
    }
}

/// Where an axis can tell the pose of a map, it is the pose the map was made of.
#[test]
fn the_pose_of_a_map_makes_that_map_again() {
    let mut telling = 0;
    for row in TABLE {
        let axis = axes::make(row.name, None).unwrap();
        for pose in spread(axis.as_ref(), 32) {
            if let Some(found) = axis.pose(&axis.map(&pose)) {
                assert!(axis.distance(&found, &pose) < 1e-4, "{} {pose:?} {found:?}", row.name);
                telling += 1;
            }
        }
        let mirror = match axis.map(&axis.identity()) {
            Map::Plane(_) => Map::Plane([-1.0, 0.0, 0.0, 0.0, 1.0, 0.0]),
            Map::Space(_) => Map::Space([-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]),
        };
        if axis.extent() > 0.0 {
            assert_eq!(axis.pose(&mirror), None, "{}", row.name);
        }
    }
    assert_eq!(telling, 32 * 10, "the rotations, by any angle and by quarters");
    let narrow = axes::make("rotate", Some((-0.5, 0.5))).unwrap();
    let wide = axes::make("rotate", None).unwrap();
    assert_eq!(narrow.pose(&wide.map(&[1.0])), None);
}

fn matrix(map: Map) -> [f32; 9] {
    let Map::Space(m) = map else { panic!("{map:?}") };
    m
}

/// Under the Haar measure every entry of the matrix has mean 0 and mean square 1/3, products
/// of different entries have mean 0 (but for the minors, whose third factor completes a
/// determinant), the trace has mean square 1, and the angle mean pi / 2 + 2 / pi = 2.2074.
#[test]
fn rotate3_is_uniform_over_all_rotations() {
    let axis = axes::make("rotate3", None).unwrap();
    let count = 1 << 13;
    let all: Vec<[f32; 9]> =
        spread(axis.as_ref(), count).iter().map(|p| matrix(axis.map(p))).collect();
    let mean = |f: &dyn Fn(&[f32; 9]) -> f32| {
        all.iter().map(|m| f64::from(f(m))).sum::<f64>() / f64::from(count)
    };
    for i in 0..9 {
        assert!(mean(&|m| m[i]).abs() < 0.01, "entry {i}");
        assert!((mean(&|m| m[i] * m[i]) - 1.0 / 3.0).abs() < 0.01, "entry {i} squared");
        assert!((mean(&|m| m[i].powi(4)) - 0.2).abs() < 0.01, "entry {i} to the fourth");
        for j in 0..i {
            assert!(mean(&|m| m[i] * m[j]).abs() < 0.01, "entries {i} and {j}");
        }
    }
    let trace = |m: &[f32; 9]| m[0] + m[4] + m[8];
    assert!((mean(&|m| trace(m).powi(2)) - 1.0).abs() < 0.02);
    let angle = |m: &[f32; 9]| ((trace(m) - 1.0) / 2.0).clamp(-1.0, 1.0).acos();
    assert!((mean(&angle) - 2.2074).abs() < 0.01, "{}", mean(&angle));
}

/// The volume of the ball of angle t is (t - sin t) / pi; of the angles within 60 degrees,
/// the part within 30 is (0.5236 - 0.5) / (1.0472 - 0.8660) = 0.1303.
#[test]
fn a_narrow_rotate3_is_uniform_over_its_angles_and_stays_in_them() {
    let whole = axes::make("rotate3", None).unwrap();
    let axis = axes::make("rotate3", Some((0.0, 60_f32.to_radians()))).unwrap();
    let poses = spread(axis.as_ref(), 1 << 12);
    let degrees = |p: &[f32]| 180.0 * whole.distance(p, &whole.identity());
    assert!(poses.iter().all(|p| axis.contains(p) && degrees(p) < 60.01));
    let near = poses.iter().filter(|p| degrees(p) < 30.0).count() as f32 / 4096.0;
    assert!((near - 0.1303).abs() < 0.005, "{near}");
    let mean = |k: usize| poses.iter().map(|p| p[k]).sum::<f32>() / 4096.0;
    assert!(mean(1).abs() < 0.01 && mean(2).abs() < 0.01 && mean(5).abs() < 0.01);
    // 70 degrees about z reflects to 50.
    let (sin, cos) = 70_f32.to_radians().sin_cos();
    let mut pose = vec![cos, sin, 0.0, -sin, cos, 0.0];
    assert!(!axis.contains(&pose));
    axis.confine(&mut pose);
    assert!((degrees(&pose) - 50.0).abs() < 0.01, "{}", degrees(&pose));
    assert!(pose[1] > 0.7, "{pose:?}");
}

/// The lattice of 60 covers the group better than 60 Sobol points: its largest hole, the
/// angle from a rotation to the nearest of them, is smaller.
#[test]
fn the_lattice_of_rotate3_has_small_holes() {
    let axis = axes::make("rotate3", None).unwrap();
    let probes = spread(axis.as_ref(), 2000);
    let hole = |points: &[Vec<f32>]| {
        let nearest = |p: &Vec<f32>| points.iter().map(|q| axis.distance(p, q)).fold(1.0, f32::min);
        180.0 * probes.iter().map(nearest).fold(0.0, f32::max)
    };
    let sobol: Vec<Vec<f32>> = (0..60)
        .map(|i| {
            let mut pose = vec![0.0; 6];
            axis.draw(&upright::internal::seed::sobol(i, 3, 11), &mut pose);
            pose
        })
        .collect();
    let (lattice, sobol) = (hole(&axis.lattice(60, 0.5)), hole(&sobol));
    assert!(lattice < 62.0 && lattice < sobol, "{lattice} {sobol}");
}

/// Every pose of six numbers makes a rotation: orthonormal columns, determinant 1.
#[test]
fn rotate3_makes_a_rotation_of_any_six_numbers() {
    let axis = axes::make("rotate3", None).unwrap();
    let inf = f32::INFINITY;
    for pose in [
        [2.0, 0.0, 0.0, 5.0, 3.0, 0.0],
        [0.0; 6],
        [1.0; 6],
        [inf, 0.0, 0.0, f32::NAN, 1.0, 2.0],
        [1e-20, 0.0, 0.0, 0.0, 1e30, 0.0],
        [0.3, -0.4, 0.9, -0.2, 0.8, 0.1],
    ] {
        let m = matrix(axis.map(&pose)).map(f64::from);
        for i in 0..3 {
            for j in 0..3 {
                let dot: f64 = (0..3).map(|k| m[3 * k + i] * m[3 * k + j]).sum();
                assert!((dot - f64::from(u8::from(i == j))).abs() < 1e-6, "{pose:?}");
            }
        }
        let det = m[0] * (m[4] * m[8] - m[5] * m[7]) - m[1] * (m[3] * m[8] - m[5] * m[6])
            + m[2] * (m[3] * m[7] - m[4] * m[6]);
        assert!((det - 1.0).abs() < 1e-6, "{pose:?}");
    }
    let skew = axis.map(&[2.0, 0.0, 0.0, 5.0, 3.0, 0.0]);
    assert!(skew.is_identity(), "{skew:?}");
}

/// Derivatives away from orthonormal vectors, where both lengths and the angle matter.
#[test]
fn the_derivative_of_rotate3_goes_through_gram_schmidt() {
    let axis = axes::make("rotate3", None).unwrap();
    let pose = [0.9, -0.4, 0.8, -0.2, 1.7, 0.5];
    for k in 0..6 {
        let (mut up, mut down) = (pose, pose);
        up[k] += 1e-3;
        down[k] -= 1e-3;
        let d = matrix(axis.derivative(&pose, k));
        let (up, down) = (matrix(axis.map(&up)), matrix(axis.map(&down)));
        for i in 0..9 {
            assert!((d[i] - (up[i] - down[i]) / 2e-3).abs() < 1e-3, "number {k} entry {i}");
        }
    }
}

/// The lines of rotate3 are turns about z, y and x: a quarter of the circle, 0.75 - 0.5, in
/// each gives the map Rx Ry Rz, as the axes rotate-z, rotate-y and rotate-x do.
#[test]
fn the_lines_of_rotate3_are_the_axis_rotations_z_y_x() {
    let axis = axes::make("rotate3", None).unwrap();
    let mut pose = axis.identity();
    let mut product = Map::IDENTITY_3;
    for (line, name, unit) in [(0, "rotate-z", 0.75), (1, "rotate-y", 0.6), (2, "rotate-x", 0.1)] {
        axis.along(line, unit, &mut pose);
        let turn = axes::make(name, None).unwrap();
        let angle = std::f32::consts::TAU * (unit - 0.5);
        product = product.then(&turn.map(&[angle])).unwrap();
    }
    let got = matrix(axis.map(&pose));
    for (g, w) in got.iter().zip(matrix(product)) {
        assert!((g - w).abs() < 1e-5, "{got:?} {product:?}");
    }
}

#[test]
fn a_full_circle_wraps_and_an_arc_reflects() {
    let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
    let circle = axes::make("rotate", None).unwrap();
    let mut pose = [3.5];
    circle.confine(&mut pose);
    assert!(near(pose[0], 3.5 - std::f32::consts::TAU), "{pose:?}");
    assert!(circle.distance(&[3.1], &[-3.1]) < 0.02);

    let arc = axes::make("rotate", Some((-1.0, 1.0))).unwrap();
    let mut pose = [1.25];
    arc.confine(&mut pose);
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
    axis.confine(&mut pose);
    assert!((pose[0] - 1.8 / 1.1).abs() < 1e-5);
    assert_eq!(axis.map(&[2.0]), Map::Plane([2.0, 0.0, 0.0, 0.0, 1.0, 0.0]));
}

/// Stretches x by a factor and y by its inverse; a pose is the factor's logarithm.
#[derive(Debug)]
struct Squeeze {
    low: f32,
    high: f32,
}

impl Axis for Squeeze {
    fn identity(&self) -> Vec<f32> {
        vec![0.0]
    }

    fn draw(&self, unit: &[f32], pose: &mut [f32]) {
        pose[0] = self.low + (self.high - self.low) * unit[0];
    }

    fn confine(&self, pose: &mut [f32]) {
        pose[0] = pose[0].clamp(self.low, self.high);
    }

    fn contains(&self, pose: &[f32]) -> bool {
        (self.low..=self.high).contains(&pose[0])
    }

    fn map(&self, pose: &[f32]) -> Map {
        Map::Plane([pose[0].exp(), 0.0, 0.0, 0.0, (-pose[0]).exp(), 0.0])
    }

    fn derivative(&self, pose: &[f32], _: usize) -> Map {
        Map::Plane([pose[0].exp(), 0.0, 0.0, 0.0, -(-pose[0]).exp(), 0.0])
    }

    fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        (a[0] - b[0]).abs() / self.extent()
    }

    fn extent(&self) -> f32 {
        self.high - self.low
    }

    fn step(&self, pose: &mut [f32], step: &[f32]) {
        pose[0] += step[0] * self.extent();
        self.confine(pose);
    }
}

const fn squeeze(domain: (f32, f32)) -> Kind<Make> {
    Kind {
        name: "squeeze",
        about: "a test",
        params: &[],
        make: Make {
            unit: "log factor",
            domain,
            limits: (-1.0, 1.0),
            build: |low, high| Box::new(Squeeze { low, high }),
        },
    }
}

#[test]
fn an_axis_of_ones_own_is_searched_and_stored_like_the_others() {
    static ROW: Kind<Make> = squeeze((-0.5, 0.5));
    static OTHER: Kind<Make> = squeeze((-0.1, 0.1));
    assert!(SpaceConfig::parse("squeeze").is_err());
    axes::add(&ROW).unwrap();
    axes::add(&ROW).unwrap();
    assert_eq!(axes::add(&OTHER).unwrap_err().code(), "config::name");
    assert!(axes::rows().iter().any(|row| row.name == "squeeze"));

    let space = SpaceConfig::parse("rotate=-90..90,squeeze=-0.25..0.25").unwrap();
    let built = space.build().unwrap();
    assert_eq!(
        (built.size(), built.contains(&[0.0, 0.2]), built.contains(&[0.0, 0.4])),
        (2, true, false)
    );
    let map = built.map(&[0.0, 0.2]);
    assert!((map.entries()[0] * map.entries()[4] - 1.0).abs() < 1e-6, "{map:?}");
    assert!(SpaceConfig::parse("squeeze=-2..2").unwrap_err().to_string().contains("log factor"));

    let config = Config { space, budget: 6, calibration: 40, ..Config::default() }
        .with(Role::Score, Part::new("energy"))
        .with(Role::Gate, Part::new("always"));
    let model =
        || Model::from_bytes("m", samples::glyph_model(), &ModelOptions::default()).unwrap();
    let data = samples::digits(100, 1).unwrap();
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let test = samples::digits(5, 7).unwrap();
    let answers = c.predict(test.batch()).unwrap();
    assert!(answers.iter().any(|a| a.pose.len() == 2 && a.pose[1] != 0.0), "{answers:?}");
    let artifact = Artifact::from_bytes("a", &c.to_bytes().unwrap()).unwrap();
    assert_eq!(artifact.join(model()).unwrap().predict(test.batch()).unwrap(), answers);
}
