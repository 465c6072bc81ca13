//! Transformed copies of inputs: made under known poses, so that parts can
//! learn what a pose does to what the model says.

use crate::error::Result;
use crate::map::Map;
use crate::seed;
use crate::space::Space;
use crate::tensor::{Batch, Signal};
use crate::warp::{Padding, Resample, View, warp};

/// How copies are made. A part that learns from one kind alone may learn how that kind was
/// resampled instead of what a pose does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By the pose alone: what lies outside the input is background.
    Plain,
    /// From inside the input, so that nothing of the background shows.
    Inner,
    /// Resampled once more before, by a tiny pose; edges are continued outward where nothing
    /// else was said.
    Twice,
}

/// How far inner copies are drawn in: then no turn shows a corner.
const INNER: f32 = std::f32::consts::FRAC_1_SQRT_2;

impl Kind {
    /// Those that are needed of photographs, or else of inputs with a plain background.
    pub(crate) fn of(photographs: bool) -> &'static [Kind] {
        if photographs { &[Kind::Plain, Kind::Inner, Kind::Twice] } else { &[Kind::Plain] }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Plain => "with corners",
            Kind::Inner => "without corners",
            Kind::Twice => "resampled twice",
        }
    }

    /// A copy of each input under its pose; images are clamped to 0..1.
    pub(crate) fn copies(
        self,
        batch: &Batch,
        poses: &[Vec<f32>],
        space: &Space,
        resample: &Resample,
        seed: u64,
    ) -> Result<Batch<'static>> {
        match self {
            Kind::Plain => under(batch, poses, space, resample),
            Kind::Inner => {
                let maps = poses.iter().map(|pose| inner(&space.map(pose)));
                copied(batch, maps, resample)
            }
            Kind::Twice => {
                let first = jittered(batch, space, resample, seed)?;
                copied(&first, poses.iter().map(|pose| space.map(pose)), resample)
            }
        }
    }
}

/// A map of the plane that shows the same turned as much, drawn in until nothing outside the
/// input is seen.
fn inner(map: &Map) -> Map {
    let Map::Plane([a, b, tx, c, d, ty]) = *map else { return *map };
    let reach = (a.abs() + b.abs() + tx.abs()).max(c.abs() + d.abs() + ty.abs());
    let by = INNER.min(1.0 / reach);
    Map::Plane([a, b, tx, c, d, ty].map(|v| v * by))
}

/// Copies that parts learn from unless told how many.
pub(crate) fn usual(signal: Signal) -> usize {
    if signal.large() { 12_000 } else { 80_000 }
}

/// Largest pose that upright inputs are jittered by, as a fraction of each axis' extent.
const JITTER: f32 = 0.01;

/// Copies of inputs under random poses of a space, one each; images are clamped to 0..1.
///
/// The pose of an input follows from the seed and its content, so a copy does not depend
/// on the batch it is made in.
pub fn transformed_copies(
    batch: &Batch,
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    under(batch, &random_poses(batch, space, seed), space, resample)
}

/// The poses of [`transformed_copies`].
pub(crate) fn random_poses(batch: &Batch, space: &Space, seed: u64) -> Vec<Vec<f32>> {
    let pose = |item: usize| {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x7472_616e, batch.item(item)));
        let unit: Vec<f32> = (0..space.cube()).map(|_| seed::unit(&mut rng)).collect();
        space.draw(&unit)
    };
    (0..batch.len()).map(pose).collect()
}

/// A copy of each input under its pose, of some kinds: which one is told by the number of the
/// input's row.
pub(crate) fn of_kinds(
    kinds: &[Kind],
    (batch, rows): (&Batch, &[usize]),
    poses: &[Vec<f32>],
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    let size = batch.signal().size();
    let mut made = vec![0.0; batch.data().len()];
    for (k, kind) in kinds.iter().enumerate() {
        let own: Vec<usize> = (0..rows.len()).filter(|&i| rows[i] % kinds.len() == k).collect();
        if own.is_empty() {
            continue;
        }
        let under: Vec<Vec<f32>> = own.iter().map(|&i| poses[i].clone()).collect();
        let copies = kind.copies(&batch.select(&own), &under, space, resample, seed)?;
        for (from, &to) in own.iter().enumerate() {
            made[to * size..(to + 1) * size].copy_from_slice(copies.item(from));
        }
    }
    Batch::new(batch.signal(), made)
}

/// Copies under tiny poses, resampled as transformed copies are.
pub(crate) fn jittered(
    batch: &Batch,
    space: &Space,
    resample: &Resample,
    seed: u64,
) -> Result<Batch<'static>> {
    let pose = |item: usize| {
        let mut rng = seed::stream(seed::of_content(seed ^ 0x6a69_7474, batch.item(item)));
        let steps: Vec<f32> =
            (0..space.size()).map(|_| JITTER * (2.0 * seed::unit(&mut rng) - 1.0)).collect();
        space.moved(&space.identity(), &steps)
    };
    copied(batch, (0..batch.len()).map(|item| space.map(&pose(item))), resample)
}

/// A copy of each input under its pose, resampled by [`of_copies`].
pub(crate) fn under(
    batch: &Batch,
    poses: &[Vec<f32>],
    space: &Space,
    resample: &Resample,
) -> Result<Batch<'static>> {
    copied(batch, poses.iter().map(|pose| space.map(pose)), &of_copies(resample))
}

/// How inputs that come transformed were resampled: clamped to 0..1, with black corners where
/// nothing else was said.
pub(crate) fn of_copies(views: &Resample) -> Resample {
    let padding = match &views.padding {
        Padding::Auto => Padding::Zeros,
        said => said.clone(),
    };
    Resample { padding, clamp: true, ..views.clone() }
}

fn copied(
    batch: &Batch,
    maps: impl Iterator<Item = Map>,
    resample: &Resample,
) -> Result<Batch<'static>> {
    let views: Vec<View> = maps.enumerate().map(|(item, map)| View { item, map }).collect();
    warp(batch, &views, &Resample { clamp: true, ..resample.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceConfig;

    /// White pictures of rows 5, 6 and 7: only the second is of the kind without corners.
    #[test]
    fn kinds_go_by_the_number_of_the_row() {
        let space = SpaceConfig::parse("rotate=44..46").unwrap().build().unwrap();
        let white = Batch::new(Signal::image(1, 32, 32), vec![1.0; 3 * 32 * 32]).unwrap();
        let kinds = [Kind::Inner, Kind::Plain, Kind::Plain];
        let resample = Resample::default();
        let poses = random_poses(&white, &space, 1);
        let made = of_kinds(&kinds, (&white, &[5, 6, 7]), &poses, &space, &resample, 1).unwrap();
        let dark = |i: usize| made.item(i).iter().filter(|v| **v < 0.9).count();
        assert!(dark(0) > 50 && dark(1) == 0 && dark(2) > 50);
        let plain = transformed_copies(&white, &space, &Resample::default(), 1).unwrap();
        assert_eq!(made.item(2), plain.item(2));
    }

    /// Where nothing was said, inputs come with black corners, or with edges continued.
    #[test]
    fn unsaid_corners_are_black_in_one_kind_and_none_in_another() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let white = Batch::new(Signal::image(1, 32, 32), vec![1.0; 32 * 32]).unwrap();
        let unsaid = Resample { padding: Padding::Auto, ..Resample::default() };
        let dark = |kind: Kind| {
            let made = kind.copies(&white, &[vec![0.785]], &space, &unsaid, 1).unwrap();
            made.data().iter().filter(|v| **v < 0.9).count()
        };
        assert!(dark(Kind::Plain) > 50);
        assert_eq!((dark(Kind::Twice), dark(Kind::Inner)), (0, 0));
    }

    #[test]
    fn inner_copies_show_nothing_outside() {
        let space = SpaceConfig::parse("rotate").unwrap().build().unwrap();
        let white = Batch::new(Signal::image(1, 32, 32), vec![1.0; 32 * 32]).unwrap();
        let dark = |kind: Kind, angle: f32| {
            let made =
                kind.copies(&white, &[vec![angle]], &space, &Resample::default(), 1).unwrap();
            made.data().iter().filter(|v| **v < 0.9).count()
        };
        for angle in [0.0, 0.3, 0.785, 2.0] {
            assert_eq!(dark(Kind::Inner, angle), 0, "{angle}");
        }
        assert!(dark(Kind::Plain, 0.785) > 50);
        assert!(dark(Kind::Twice, 0.785) > 50);
    }
}
