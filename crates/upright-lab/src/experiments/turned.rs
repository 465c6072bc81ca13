//! Photographs turned in several ways, to judge by.

use upright::internal::seed;
use upright::{Batch, Dataset, Map, Padding, Resample, Signal, Space, SpaceConfig, View, warp};

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
    Within,
    /// As they come: SI-Score's, where they are there.
    SiScore,
}

impl Turned {
    pub(super) const ALL: [Turned; 6] = [
        Turned::Quarters,
        Turned::Corners,
        Turned::Grey,
        Turned::Inner,
        Turned::Within,
        Turned::SiScore,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Turned::Quarters => "quarters",
            Turned::Corners => "corners",
            Turned::Grey => "grey",
            Turned::Inner => "inner",
            Turned::Within => "within",
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
            Turned::Inner => "any angle, drawn in until the classifier sees no corners",
            Turned::Within => "any angle, drawn in until there are no corners at all",
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
/// How far a square is drawn in for any turn of it to lie within it.
const WITHIN: f32 = std::f32::consts::FRAC_1_SQRT_2;

/// Photographs to judge by, a few at a time: all of them would not fit into memory.
pub(super) struct Test {
    pub(super) turned: Turned,
    rows: Rows,
    /// What lies outside a photograph.
    pub(super) resample: Resample,
    pub(super) space: Space,
    /// What a photograph is drawn in by.
    drawn: f32,
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
            Turned::SiScore => si_score(task, lab.folders(), count)?,
            _ => Some(task.judged(count)),
        };
        let Some(rows) = rows else { return Ok(None) };
        let space = SpaceConfig::parse(turned.space()).and_then(|s| s.build());
        let mut resample = Resample { clamp: true, ..Resample::default() };
        let model = task.model(&[]).map_err(|e| e.to_string())?;
        let side = |signal: Signal| signal.shape().last().map_or(1.0, |n| *n as f32);
        let drawn = match turned {
            Turned::Inner => WITHIN * side(model.signal()) / side(model.fed()),
            Turned::Within => WITHIN,
            _ => 1.0,
        };
        if turned == Turned::Grey {
            let own = model.preprocess();
            let zero = own.mean.iter().map(|m| (m / (255.0 * own.scale)) as f32);
            resample.padding = Padding::Fill(zero.collect());
        }
        let space = space.map_err(|e| e.to_string())?;
        Ok(Some(Test { turned, rows, resample, space, drawn }))
    }

    pub(super) fn each(
        &self,
        mut tell: impl FnMut(Few) -> upright::Result<()>,
    ) -> upright::Result<()> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        for rows in all.chunks(TOGETHER) {
            let loaded = self.rows.read(rows)?;
            let labels = loaded.rows.iter().filter_map(|&r| self.rows.label(r)).collect();
            let back = (0..loaded.batch.len())
                .filter(|_| self.turned != Turned::SiScore)
                .filter_map(|item| self.turn(&loaded.batch, item).inverse());
            tell(Few { back: back.collect(), kinds: self.made(loaded.batch)?, labels })?;
        }
        Ok(())
    }

    /// How a photograph is turned.
    fn turn(&self, batch: &Batch, item: usize) -> Map {
        let mut rng = seed::stream(seed::of_content(TEST, batch.item(item)));
        let unit: Vec<f32> = (0..self.space.cube()).map(|_| seed::unit(&mut rng)).collect();
        self.space.map(&self.space.draw(&unit))
    }

    /// The photographs as they come, upright and turned: squares of which the classifier sees
    /// the centre.
    fn made(&self, batch: Batch<'static>) -> upright::Result<Kinds> {
        if self.turned == Turned::SiScore {
            return Ok(vec![(1, batch)]);
        }
        let drawn = |map: Map| match map {
            Map::Plane(m) => Map::Plane(m.map(|v| v * self.drawn)),
            solid @ Map::Space(_) => solid,
        };
        let under = |map: &dyn Fn(usize) -> Map| {
            let views: Vec<View> =
                (0..batch.len()).map(|item| View { item, map: drawn(map(item)) }).collect();
            warp(&batch, &views, &self.resample)
        };
        Ok(vec![(0, under(&|_| Map::IDENTITY)?), (1, under(&|item| self.turn(&batch, item))?)])
    }
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
