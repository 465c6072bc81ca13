//! Photographs turned in several ways, to judge by.

use upright::internal::seed;
use upright::{Batch, Dataset, Map, Padding, Resample, Space, SpaceConfig, View, warp};

use super::Lab;
use super::rows::Rows;
use super::sets::si_score;
use super::tasks::Task;

/// How photographs are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turned {
    Quarters,
    Corners,
    Grey,
    Inner,
    /// As they come: SI-Score's, where they are there.
    SiScore,
}

impl Turned {
    pub(super) const ALL: [Turned; 5] =
        [Turned::Quarters, Turned::Corners, Turned::Grey, Turned::Inner, Turned::SiScore];

    pub(super) fn name(self) -> &'static str {
        match self {
            Turned::Quarters => "quarters",
            Turned::Corners => "corners",
            Turned::Grey => "grey",
            Turned::Inner => "inner",
            Turned::SiScore => "si-score",
        }
    }

    pub(super) fn about(self) -> &'static str {
        match self {
            Turned::Quarters => "exact quarter turns, the upright one among them",
            Turned::Corners => "any angle before the centre is cut out, black corners",
            Turned::Grey => {
                "any angle before the centre is cut out, corners that are zero to the classifier"
            }
            Turned::Inner => "any angle, cropped to where there are no corners",
            Turned::SiScore => "SI-Score: rotated objects on upright backgrounds",
        }
    }

    pub(super) fn space(self) -> &'static str {
        if self == Turned::Quarters { "quarters" } else { "rotate" }
    }
}

/// Poses of test photographs come from this seed.
const TEST: u64 = 44;
/// Photographs that are worked on at a time.
const TOGETHER: usize = 32;
/// The side of squares that are turned by any angle before their centre is cut out.
const LARGE: usize = 256;

/// Photographs to judge by, a few at a time: all of them would not fit into memory.
pub(super) struct Test {
    pub(super) turned: Turned,
    rows: Rows,
    /// What lies outside a photograph.
    pub(super) resample: Resample,
    pub(super) space: Space,
}

/// Some photographs.
pub(super) struct Few {
    /// By the number of their kind: upright, turned.
    pub(super) kinds: Kinds,
    /// What undoes the turn of each, where it is known.
    pub(super) back: Vec<Map>,
    pub(super) labels: Vec<u32>,
}

type Kinds = Vec<(usize, Batch<'static>)>;

impl Test {
    /// `None` if there are no such photographs.
    pub(super) fn new(lab: &Lab, task: &Task, turned: Turned) -> Result<Option<Self>, String> {
        let count = lab.scale.inputs;
        let rows = match turned {
            Turned::Corners | Turned::Grey | Turned::Inner => {
                Some(task.judged_at(LARGE, lab.folders(), count)?)
            }
            Turned::SiScore => si_score(task, lab.folders(), count)?,
            Turned::Quarters => Some(task.judged(count)),
        };
        let Some(rows) = rows else { return Ok(None) };
        let space = SpaceConfig::parse(turned.space()).and_then(|s| s.build());
        let mut resample = Resample { clamp: true, ..Resample::default() };
        if turned == Turned::Grey {
            let model = task.model(&[]).map_err(|e| e.to_string())?;
            let mean = model.preprocess().mean.iter().map(|m| *m as f32);
            resample.padding = Padding::Fill(mean.collect());
        }
        Ok(Some(Test { turned, rows, resample, space: space.map_err(|e| e.to_string())? }))
    }

    pub(super) fn each(
        &self,
        side: usize,
        mut tell: impl FnMut(Few) -> upright::Result<()>,
    ) -> upright::Result<()> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        for rows in all.chunks(TOGETHER) {
            let loaded = self.rows.read(rows)?;
            let labels = loaded.rows.iter().filter_map(|&r| self.rows.label(r)).collect();
            let back = (0..loaded.batch.len())
                .filter(|_| self.turned != Turned::SiScore)
                .filter_map(|item| self.turn(&loaded.batch, item).inverse());
            tell(Few { back: back.collect(), kinds: self.made(loaded.batch, side)?, labels })?;
        }
        Ok(())
    }

    /// How a photograph is turned.
    fn turn(&self, batch: &Batch, item: usize) -> Map {
        let mut rng = seed::stream(seed::of_content(TEST, batch.item(item)));
        let unit: Vec<f32> = (0..self.space.cube()).map(|_| seed::unit(&mut rng)).collect();
        self.space.map(&self.space.draw(&unit))
    }

    /// The photographs as the classifier takes them, upright and turned.
    fn made(&self, batch: Batch<'static>, side: usize) -> upright::Result<Kinds> {
        if self.turned == Turned::SiScore {
            return Ok(vec![(1, batch)]);
        }
        let turn = |item: usize| self.turn(&batch, item);
        let under = |map: &dyn Fn(usize) -> Map| {
            let views: Vec<View> =
                (0..batch.len()).map(|item| View { item, map: map(item) }).collect();
            warp(&batch, &views, &self.resample)
        };
        if self.turned == Turned::Quarters {
            let turned = under(&turn)?;
            return Ok(vec![(0, batch), (1, turned)]);
        }
        // Without corners, the view's own square, turned by any angle, must lie within the
        // picture.
        let inner = LARGE as f32 / (side as f32 * std::f32::consts::SQRT_2);
        let by = if self.turned == Turned::Inner { inner } else { 1.0 };
        let drawn = |map: Map| match map {
            Map::Plane(m) => Map::Plane(m.map(|v| v * by)),
            solid @ Map::Space(_) => solid,
        };
        let both = [under(&|_| drawn(Map::IDENTITY))?, under(&|item| drawn(turn(item)))?];
        let [upright, turned] = both.map(|batch| centre(&batch, side));
        Ok(vec![(0, upright?), (1, turned?)])
    }
}

/// The centre of pictures.
fn centre(batch: &Batch, side: usize) -> upright::Result<Batch<'static>> {
    let margin = (LARGE - side) / 2;
    let mut out = Vec::with_capacity(batch.len() * 3 * side * side);
    for item in 0..batch.len() {
        for row in batch.item(item).chunks(LARGE).enumerate().filter(|(i, _)| {
            let y = i % LARGE;
            (margin..margin + side).contains(&y)
        }) {
            out.extend_from_slice(&row.1[margin..margin + side]);
        }
    }
    Batch::new(upright::Signal::image(3, side, side), out)
}

/// The quarter turn that is nearest to a rotation.
pub(super) fn quarter(map: &Map) -> Map {
    let Map::Plane([a, _, _, c, ..]) = *map else { return *map };
    let (a, c) = if a.abs() >= c.abs() { (a.signum(), 0.0) } else { (0.0, c.signum()) };
    Map::Plane([a, -c, 0.0, c, a, 0.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 80 degrees are nearest to 90, -170 to 180.
    #[test]
    fn a_rotation_has_its_nearest_quarter() {
        let turn = |degrees: f32| {
            let (s, c) = (libm::sinf(degrees.to_radians()), libm::cosf(degrees.to_radians()));
            Map::Plane([c, -s, 0.0, s, c, 0.0])
        };
        for (from, to) in [(80.0, (0.0, 1.0)), (-170.0, (-1.0, 0.0))] {
            let (cos, sin) = to;
            let wanted = Map::Plane([cos, -sin, 0.0, sin, cos, 0.0]);
            assert_eq!(quarter(&turn(from)), wanted, "{from}");
        }
    }
}
