//! [`Space`]: an ordered product of axes. A pose is the axes' numbers one
//! after the other; its map is the product in which each further axis
//! multiplies **from the left**.
//!
//! The default, `affine`, is the paper's family: angle, shear x, shear y,
//! scale x, scale y, hence `M = S_y S_x H_y H_x R(t)`, used as the map from
//! view to input for making data and for searching alike.

use serde::{Deserialize, Serialize};

use crate::axes::{self, Axis};
use crate::config::Param;
use crate::error::{Error, Result};
use crate::hint::Hint;
use crate::map::{Map, plane_product, space_product};
use crate::registry::Kind;
use crate::tensor::{Signal, SignalKind};

/// An axis by name with its domain, as written in a config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AxisConfig {
    /// Its name in the table of axes.
    pub axis: String,
    /// Lower and upper bound in the axis' unit; `None` is the axis' default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<(f32, f32)>,
}

impl AxisConfig {
    /// Reads `NAME` or `NAME=LOW..HIGH`; a rotation's bounds are in degrees.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let Some((name, range)) = text.split_once('=') else {
            return Ok(AxisConfig { axis: text.trim().into(), domain: None });
        };
        let bad = || Error::BadSetting {
            part: "space".into(),
            name: name.into(),
            value: range.into(),
            range: "LOW..HIGH, e.g. rotate=-30..30 or scale=0.8..1.25".into(),
        };
        let (low, high) = range.split_once("..").ok_or_else(bad)?;
        let read = |t: &str| t.trim().parse::<f32>().map_err(|_| bad());
        let (mut low, mut high) = (read(low)?, read(high)?);
        if axes::row(name.trim()).is_ok_and(|row| row.make.unit == "radians") {
            (low, high) = (low.to_radians(), high.to_radians());
        }
        Ok(AxisConfig { axis: name.trim().into(), domain: Some((low, high)) })
    }
}

/// A space by its axes, as written in a config and stored in an artifact.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpaceConfig {
    /// The axes in order; each further one multiplies from the left.
    pub axes: Vec<AxisConfig>,
}

/// Names of spaces that are used often.
pub const PRESETS: &[Kind<&[&str]>] = &[
    Kind {
        name: "affine",
        about: "rotation, both shears, both scalings: the paper's five-dimensional family",
        params: NONE,
        make: &["rotate", "shear-x", "shear-y", "scale-x", "scale-y"],
    },
    Kind { name: "rotate", about: "rotation alone", params: NONE, make: &["rotate"] },
    Kind {
        name: "quarters",
        about: "quarter turns alone, exact: scans and photographs that lie on a side; for clouds \
                the 24 rotations of a cube",
        params: NONE,
        make: &["quarter"],
    },
    Kind {
        name: "so3",
        about: "any rotation of a cloud, uniform over SO(3)",
        params: NONE,
        make: &["rotate3"],
    },
    Kind {
        name: "vertical",
        about: "rotation of a cloud about z, which is up",
        params: NONE,
        make: &["rotate-z"],
    },
];

const NONE: &[Param] = &[];

impl SpaceConfig {
    /// Reads a comma-separated list of presets and axes:
    /// `affine`, `rotate`, `rotate=-30..30,scale`.
    pub fn parse(text: &str) -> Result<Self> {
        let mut axes = Vec::new();
        for word in text.split(',').map(str::trim) {
            match PRESETS.iter().find(|p| p.name == word) {
                Some(preset) => axes.extend(
                    preset.make.iter().map(|a| AxisConfig { axis: (*a).into(), domain: None }),
                ),
                None => axes.push(AxisConfig::parse(word)?),
            }
        }
        let config = SpaceConfig { axes };
        config.build()?;
        Ok(config)
    }

    /// The space searched for such a signal unless another is asked for: `so3` for clouds,
    /// `affine` for images and strokes.
    pub fn of_signal(signal: Signal) -> Self {
        let row = PRESETS.iter().find(|p| p.name == "so3" && signal.kind() == SignalKind::Cloud);
        let axes = row.unwrap_or(&PRESETS[0]).make.iter();
        SpaceConfig { axes: axes.map(|a| AxisConfig { axis: (*a).into(), domain: None }).collect() }
    }

    /// The same for a signal: `quarter` turns a cloud about any of its axes.
    #[doc(hidden)]
    #[must_use]
    pub fn suited(mut self, signal: Signal) -> Self {
        if signal.kind() == SignalKind::Cloud {
            for axis in self.axes.iter_mut().filter(|a| a.axis == "quarter" && a.domain.is_none()) {
                axis.axis = "cube".into();
            }
        }
        self
    }

    /// Makes the space.
    pub fn build(&self) -> Result<Space> {
        let axes: Vec<_> =
            self.axes.iter().map(|a| axes::make(&a.axis, a.domain)).collect::<Result<_>>()?;
        Space::new(axes)
    }
}

impl Default for SpaceConfig {
    fn default() -> Self {
        SpaceConfig::of_signal(Signal::image(1, 1, 1))
    }
}

/// An ordered product of axes.
#[derive(Debug)]
pub struct Space {
    axes: Vec<Box<dyn Axis>>,
    starts: Vec<usize>,
    size: usize,
    cube: usize,
}

impl Space {
    /// The product of at least one axis; all act in the plane or all in space.
    pub(crate) fn new(axes: Vec<Box<dyn Axis>>) -> Result<Self> {
        let solid = |a: &dyn Axis| matches!(a.map(&a.identity()), Map::Space(_));
        let Some(first) = axes.first() else {
            return Err(Error::shape("space", "at least one axis", 0));
        };
        let kind = solid(first.as_ref());
        if axes.iter().any(|a| solid(a.as_ref()) != kind) {
            return Err(Error::shape("space", "axes of one dimension", "2-D and 3-D axes"));
        }
        let mut starts = Vec::with_capacity(axes.len());
        let (mut size, mut cube) = (0, 0);
        for a in &axes {
            starts.push(size);
            size += a.size();
            cube += a.cube();
        }
        Ok(Space { axes, starts, size, cube })
    }

    /// Numbers in a pose.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Numbers in 0..1 needed to draw a pose.
    pub fn cube(&self) -> usize {
        self.cube
    }

    /// The axes in order.
    #[doc(hidden)]
    pub fn axes(&self) -> &[Box<dyn Axis>] {
        &self.axes
    }

    /// Where the numbers of axis `i` start in a pose, and how many there are.
    #[doc(hidden)]
    pub fn part(&self, i: usize) -> std::ops::Range<usize> {
        self.starts[i]..self.starts[i] + self.axes[i].size()
    }

    /// The pose that changes nothing.
    pub fn identity(&self) -> Vec<f32> {
        self.axes.iter().flat_map(|a| a.identity()).collect()
    }

    /// Draws a pose from [`Space::cube`] numbers in 0..1.
    pub fn draw(&self, unit: &[f32]) -> Vec<f32> {
        let mut pose = vec![0.0; self.size];
        let mut at = 0;
        for (i, a) in self.axes.iter().enumerate() {
            a.draw(&unit[at..at + a.cube()], &mut pose[self.part(i)]);
            at += a.cube();
        }
        pose
    }

    /// Brings a pose back into the domain, axis by axis.
    pub fn confine(&self, pose: &mut [f32]) {
        for (i, a) in self.axes.iter().enumerate() {
            a.confine(&mut pose[self.part(i)]);
        }
    }

    /// A pose moved by `step`, in fractions of each axis' extent, and confined to the domain.
    pub fn moved(&self, pose: &[f32], step: &[f32]) -> Vec<f32> {
        let mut pose = pose.to_vec();
        for (i, axis) in self.axes.iter().enumerate() {
            axis.step(&mut pose[self.part(i)], &step[self.part(i)]);
        }
        pose
    }

    /// Whether a pose lies in the domain, up to rounding.
    pub fn contains(&self, pose: &[f32]) -> bool {
        self.axes.iter().enumerate().all(|(i, a)| a.contains(&pose[self.part(i)]))
    }

    /// The map of a pose. The identity pose gives the identity map exactly.
    pub fn map(&self, pose: &[f32]) -> Map {
        self.product(pose, None)
    }

    /// Derivative of the map's entries with respect to each number of the pose.
    pub(crate) fn derivative(&self, pose: &[f32]) -> Vec<Map> {
        (0..self.axes.len())
            .flat_map(|i| (0..self.axes[i].size()).map(move |k| (i, k)))
            .map(|at| self.product(pose, Some(at)))
            .collect()
    }

    /// The product of the axes' maps, or of the derivative of one of them with the others.
    fn product(&self, pose: &[f32], along: Option<(usize, usize)>) -> Map {
        let mut product: Option<Map> = None;
        for (i, a) in self.axes.iter().enumerate() {
            let part = &pose[self.part(i)];
            let factor = match along {
                Some((axis, k)) if axis == i => a.derivative(part, k),
                _ => a.map(part),
            };
            product = Some(match (product, factor) {
                (Some(Map::Plane(m)), Map::Plane(f)) => Map::Plane(left(&f, &m, along, i)),
                (Some(Map::Space(m)), Map::Space(f)) => Map::Space(space_product(&f, &m)),
                (_, f) => f,
            });
        }
        product.unwrap_or(Map::IDENTITY)
    }

    /// The pose that has this map, if there is one and the space can tell: the first that one
    /// axis gives by itself.
    pub fn pose(&self, map: &Map) -> Option<Vec<f32>> {
        let alone = |i: usize| {
            let mut pose = self.identity();
            pose[self.part(i)].copy_from_slice(&self.axes[i].pose(map)?);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-5;
            self.map(&pose).entries().iter().zip(map.entries()).all(near).then_some(pose)
        };
        match self.axes.as_slice() {
            [one] => one.pose(map),
            axes => (0..axes.len()).find_map(alone),
        }
    }

    /// The lines that searches sweep one after the other: the axis and its line, in order.
    pub(crate) fn lines(&self) -> Vec<(usize, usize)> {
        let counts = self.axes.iter().map(|a| a.lines()).enumerate();
        counts.flat_map(|(i, count)| (0..count).map(move |line| (i, line))).collect()
    }

    /// Whether its maps can be applied to such a signal; if not, says what to do.
    #[doc(hidden)]
    pub fn check(&self, signal: Signal) -> Result<()> {
        let kind = signal.kind();
        let solid = matches!(self.map(&self.identity()), Map::Space(_));
        if solid == (kind == SignalKind::Cloud) {
            return Ok(());
        }
        let (acts, fits) = if solid {
            ("space", &["affine", "rotate"])
        } else {
            ("the plane", &["so3", "vertical"])
        };
        Err(Error::WrongSpace {
            why: format!("its axes act in {acts}, but the model takes {kind}"),
            hint: Some(Hint::ChooseSpace { signals: kind.to_string(), fits }),
        })
    }

    /// Distance of two poses: Euclidean over the axes, each as a fraction of its extent.
    pub fn distance(&self, a: &[f32], b: &[f32]) -> f32 {
        let sum: f32 = self
            .axes
            .iter()
            .enumerate()
            .map(|(i, axis)| axis.distance(&a[self.part(i)], &b[self.part(i)]).powi(2))
            .sum();
        sum.sqrt()
    }
}

/// `factor * product` for affine maps of which one may be a derivative: the
/// implied last row is `0 0 1` for a map and `0 0 0` for a derivative.
fn left(
    factor: &[f32; 6],
    product: &[f32; 6],
    along: Option<(usize, usize)>,
    axis: usize,
) -> [f32; 6] {
    let mut out = plane_product(factor, product);
    if along.is_some_and(|(at, _)| at < axis) {
        out[2] -= factor[2];
        out[5] -= factor[5];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affine() -> Space {
        SpaceConfig::default().build().unwrap()
    }

    /// `M = S_y S_x H_y H_x R` worked by hand for t = 90 degrees, shears 0.5 and 0.25,
    /// scales 2 and 3 (outside the default domain, which `map` does not mind):
    /// `R = [0 -1; 1 0]`, `H_x R = [.5 -1; 1 0]`, `H_y H_x R = [.5 -1; 1.125 -.25]`,
    /// with `S_x` `[1 -2; 1.125 -.25]`, with `S_y` `[1 -2; 3.375 -.75]`.
    #[test]
    fn the_affine_family_composes_in_the_papers_order() {
        let m = affine().map(&[std::f32::consts::FRAC_PI_2, 0.5, 0.25, 2.0, 3.0]);
        for (got, want) in m.entries().iter().zip([1.0, -2.0, 0.0, 3.375, -0.75, 0.0]) {
            assert!((got - want).abs() < 1e-5, "{m:?}");
        }
    }

    #[test]
    fn the_identity_pose_gives_the_identity_map_exactly() {
        for text in ["affine", "rotate", "rotate,scale,shift-x,shift-y,flip"] {
            let space = SpaceConfig::parse(text).unwrap().build().unwrap();
            assert!(space.map(&space.identity()).is_identity(), "{text}");
        }
    }

    #[test]
    fn derivatives_of_the_map_agree_with_finite_differences() {
        let space = SpaceConfig::parse("shift-x,affine,scale,shift-y").unwrap().build().unwrap();
        let pose = [0.1, 0.7, 0.2, -0.3, 1.2, 0.8, 1.1, -0.2];
        for (k, d) in space.derivative(&pose).iter().enumerate() {
            let h = 1e-3;
            let (mut up, mut down) = (pose, pose);
            up[k] += h;
            down[k] -= h;
            let (up, down) = (space.map(&up), space.map(&down));
            for ((d, u), l) in d.entries().iter().zip(up.entries()).zip(down.entries()) {
                assert!((d - (u - l) / (2.0 * h)).abs() < 2e-3, "number {k}");
            }
        }
    }

    #[test]
    fn a_rotation_domain_is_given_in_degrees() {
        let config = SpaceConfig::parse("rotate=-90..90").unwrap();
        let (low, high) = config.axes[0].domain.unwrap();
        assert!((low + std::f32::consts::FRAC_PI_2).abs() < 1e-6 && (high + low).abs() < 1e-6);
    }

    #[test]
    fn clouds_are_searched_over_all_rotations_unless_said_otherwise() {
        let cloud = SpaceConfig::of_signal(Signal::Cloud { points: 9 });
        assert_eq!(cloud, SpaceConfig::parse("so3").unwrap());
        assert_eq!(SpaceConfig::of_signal(Signal::Strokes { length: 9 }), SpaceConfig::default());
        let space = cloud.build().unwrap();
        assert_eq!((space.size(), space.cube(), space.lines().len()), (6, 3, 3));
        let vertical = SpaceConfig::parse("vertical").unwrap().build().unwrap();
        assert_eq!(vertical.pose(&vertical.map(&[0.5])).unwrap().len(), 1);
        let rotation = Map::Plane([0.0, -1.0, 0.0, 1.0, 0.0, 0.0]);
        let pose = affine().pose(&rotation).unwrap();
        let near = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
        assert!(affine().map(&pose).entries().iter().zip(rotation.entries()).all(near));
        let sheared = Map::Plane([0.5, 0.3, 0.0, 0.0, 0.9, 0.0]);
        assert_eq!(affine().pose(&sheared), None, "no axis has it by itself");
    }

    #[test]
    fn plane_and_space_do_not_mix() {
        assert!(SpaceConfig::parse("rotate,rotate3").is_err());
        let solid = SpaceConfig::parse("so3").unwrap().build().unwrap();
        let e = solid.check(Signal::image(1, 2, 2)).unwrap_err();
        assert_eq!(e.to_string(), "space: its axes act in space, but the model takes images");
        assert!(solid.check(Signal::Cloud { points: 2 }).is_ok());
        assert!(affine().check(Signal::Cloud { points: 2 }).is_err());
    }

    #[test]
    fn an_unknown_axis_lists_the_known_ones() {
        let e = SpaceConfig::parse("twist").unwrap_err();
        assert!(e.to_string().starts_with("unknown axis `twist`; there are: rotate, shear-x"));
        assert!(SpaceConfig::parse("rotate=3").is_err());
    }
}
