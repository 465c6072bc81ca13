//! The reader: from the features of a view to a score for every target. It is
//! learnt in two rounds: the first copies find by a linear regression in which
//! directions features tell something; some of the next become landmarks, and
//! how near to them a view lies is what the scores are read off. Copies that are
//! few, also beside the features of each, are read linearly.

use super::held::Held;
use crate::copies::Kind;
use crate::error::Result;
use crate::outputs::Outputs;
use crate::ridge::{Landmarks, Normal, Ridge};
use crate::state::State;
use crate::tensor::Matrix;

/// The share of copies that find the directions.
const FIRST: f64 = 0.3;
/// Most landmarks, and the copies of the second round that each takes at least.
const MOST: usize = 4096;
const PER_LANDMARK: usize = 10;
/// Fewer landmarks than this tell less than the features themselves.
const FEWEST: usize = 256;
/// The penalty, per copy, of the regression that finds directions: they are best where it is
/// somewhat too large for readings.
const DIRECTIONS: f64 = 0.3;
/// Penalties that are tried, per copy, of readings of features and of nearness. Without copies
/// to choose by, the first one is taken.
const LINEAR: [f64; 4] = [0.03, 0.1, 0.3, 1.0];
const NEAR: [f64; 3] = [1e-3, 1e-4, 1e-2];

/// A fitted reader.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reader {
    /// What views are compared with, unless their features are read as they are.
    pub(super) landmarks: Option<Landmarks>,
    pub(super) ridge: Ridge,
}

impl Reader {
    /// Features that it reads.
    pub(super) fn width(&self) -> usize {
        self.landmarks.as_ref().map_or(self.ridge.width(), Landmarks::width)
    }

    /// The first taps whose features, with so many numbers of a view's own, are what it reads.
    pub(super) fn taps<'a>(&self, outputs: &'a Outputs, own: usize) -> Option<&'a [Matrix]> {
        let taps = &outputs.features;
        let width = |count: &usize| taps[..*count].iter().map(Matrix::cols).sum::<usize>() + own;
        let count = (0..=taps.len()).find(|count| width(count) == self.width())?;
        Some(&taps[..count])
    }

    /// Scores that it gives.
    pub(super) fn targets(&self) -> usize {
        self.ridge.targets()
    }

    /// One row of scores per row of features. A row does not depend on the others.
    pub(super) fn apply(&self, rows: &Matrix) -> Matrix {
        match &self.landmarks {
            Some(landmarks) => self.ridge.apply(&landmarks.nearness(rows)),
            None => self.ridge.apply(rows),
        }
    }

    pub(super) fn state(&self) -> State {
        let state = State::new().with_part("ridge.", &self.ridge.state());
        match &self.landmarks {
            Some(landmarks) => state.with_part("landmarks.", &landmarks.state()),
            None => state,
        }
    }

    pub(super) fn load(state: &State, near: bool) -> Result<Self> {
        let landmarks = near.then(|| Landmarks::load(&state.part("landmarks."))).transpose()?;
        let ridge = Ridge::load(&state.part("ridge."))?;
        if landmarks.as_ref().is_some_and(|l| l.len() != ridge.width()) {
            return Err(crate::state::damaged("the readings do not fit the landmarks".into()));
        }
        Ok(Reader { landmarks, ridge })
    }
}

/// Targets of a copy, with their weights; the others are 0.
pub(super) type Aims = Vec<(u32, f32)>;

/// A reader that is being learnt.
pub(super) struct Learning {
    targets: usize,
    /// Copies that find directions, and landmarks after them.
    first: usize,
    landmarks: usize,
    /// Whether nobody said how many landmarks: then there are none where directions would be
    /// found by fewer copies than there are features.
    free: bool,
    /// The penalty, if it is given.
    penalty: Option<f64>,
    stage: Stage,
    pub(super) held: Held,
}

enum Stage {
    /// Features are summed up.
    Linear(Option<Normal>),
    /// Copies are gathered that become landmarks; features were summed up so far.
    Gathering { normal: Normal, rows: Vec<f32>, aims: Vec<Aims> },
    /// Nearness is summed up.
    Near(Landmarks, Normal),
}

impl Learning {
    /// For so many targets, from so many copies; with at most so many landmarks, if it is said.
    pub(super) fn new(
        targets: usize,
        copies: usize,
        landmarks: Option<usize>,
        penalty: Option<f64>,
        held: Held,
    ) -> Self {
        let first = (FIRST * copies as f64) as usize;
        let (most, free) = ((copies - first) / PER_LANDMARK, landmarks.is_none());
        let landmarks = match landmarks.unwrap_or(MOST).min(most) {
            few if few < FEWEST => 0,
            enough => enough,
        };
        let first = if landmarks == 0 { usize::MAX } else { first };
        let stage = Stage::Linear(None);
        Learning { targets, first, landmarks, free, penalty, stage, held }
    }

    /// Takes copies of a kind: their features, their targets, and whether each is held apart.
    pub(super) fn add(
        &mut self,
        copies: impl Iterator<Item = (Vec<f32>, Aims, bool)>,
        kind: Kind,
    ) -> std::result::Result<(), String> {
        let (mut rows, mut aims, mut width) = (Vec::new(), Vec::new(), 0);
        for (row, own, held) in copies {
            width = row.len();
            if !Normal::fits(width.max(self.landmarks), self.targets) {
                return Err("there are too many features or landmarks; reduce them".into());
            }
            if held {
                self.held.add(row, own, kind);
            } else if row.iter().all(|v| v.is_finite()) {
                rows.extend(row);
                aims.push(own);
            }
        }
        if !aims.is_empty() {
            self.take(rows, aims, width);
        }
        Ok(())
    }

    fn take(&mut self, rows: Vec<f32>, aims: Vec<Aims>, width: usize) {
        match &mut self.stage {
            Stage::Linear(normal) => {
                let normal = normal.get_or_insert_with(|| Normal::new(width, self.targets));
                for (row, aims) in rows.chunks_exact(width).zip(aims) {
                    normal.add(row, aims);
                }
            }
            Stage::Gathering { rows: all, aims: their, .. } => {
                all.extend(rows);
                their.extend(aims);
            }
            Stage::Near(landmarks, normal) => {
                let Ok(rows) = Matrix::new(aims.len(), width, rows) else { return };
                for (row, aims) in landmarks.nearness(&rows).iter().zip(aims) {
                    normal.add(row, aims);
                }
            }
        }
        self.proceed(width);
    }

    /// Goes on to the next stage once the present one has enough.
    fn proceed(&mut self, width: usize) {
        match std::mem::replace(&mut self.stage, Stage::Linear(None)) {
            Stage::Linear(Some(normal)) if self.free && self.first < width => {
                self.first = usize::MAX;
                self.stage = Stage::Linear(Some(normal));
            }
            Stage::Linear(Some(normal)) if normal.len() >= self.first => {
                self.stage = Stage::Gathering { normal, rows: Vec::new(), aims: Vec::new() };
            }
            Stage::Gathering { mut normal, rows, aims } if aims.len() >= self.landmarks => {
                let marks = rows[..self.landmarks * width].to_vec();
                let marks = Matrix::new(self.landmarks, width, marks).ok();
                let found = marks.and_then(|m| Landmarks::of(&normal.solve(DIRECTIONS)?, &m));
                if let Some(found) = found {
                    self.stage = Stage::Near(found, Normal::new(self.landmarks, self.targets));
                } else {
                    self.first = usize::MAX;
                    self.stage = Stage::Linear(Some(normal));
                }
                self.take(rows, aims, width);
            }
            same => self.stage = same,
        }
    }

    /// Copies that were learnt from.
    pub(super) fn len(&self) -> usize {
        match &self.stage {
            Stage::Linear(normal) => normal.as_ref().map_or(0, Normal::len),
            Stage::Gathering { normal, aims, .. } => normal.len() + aims.len(),
            Stage::Near(_, normal) => self.first + normal.len(),
        }
    }

    /// The reader, and what it makes of the copies that were held apart; `None` if the
    /// regression cannot be solved.
    pub(super) fn end(self) -> Option<(Reader, Matrix, Held)> {
        let Learning { stage, held, penalty, .. } = self;
        let given = penalty.map(|p| vec![p]);
        let tried = |usual: &[f64]| given.clone().unwrap_or_else(|| usual.to_vec());
        let (landmarks, mut normal, penalties) = match stage {
            Stage::Linear(normal) => (None, normal?, tried(&LINEAR)),
            Stage::Gathering { mut normal, rows, aims } => {
                let width = rows.len() / aims.len().max(1);
                for (row, aims) in rows.chunks_exact(width.max(1)).zip(aims) {
                    normal.add(row, aims);
                }
                (None, normal, tried(&LINEAR))
            }
            Stage::Near(landmarks, normal) => (Some(landmarks), normal, tried(&NEAR)),
        };
        let (ridge, read) = held.best(&mut normal, &held.rows(landmarks.as_ref()), &penalties)?;
        Some((Reader { landmarks, ridge }, read, held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points of the plane, whose target is whether x and y have the same sign: linear readings
    /// know nothing of it. A tenth is held apart.
    fn learnt(copies: usize, landmarks: Option<usize>) -> (Reader, f64) {
        let point = |i: usize| {
            let of = |purpose| (crate::seed::of_index(3, purpose, i) >> 40) as f32;
            [of("x"), of("y")].map(|v| v / (1u32 << 23) as f32 - 1.0)
        };
        let aim = |[x, y]: [f32; 2]| u32::from((x > 0.0) == (y > 0.0));
        let held = Held::new(copies, copies);
        let mut learning = Learning::new(4, copies, landmarks, None, held);
        for first in (0..copies).step_by(100) {
            let some = (first..first + 100).map(|i| {
                let p = point(i);
                // Beside it, both coordinates: what a linear regression finds telling.
                let aims = vec![(aim(p), 1.0), (2, p[0]), (3, p[1])];
                (p.to_vec(), aims, i % 10 == 0)
            });
            learning.add(some, Kind::of(false)[0]).unwrap();
        }
        assert!(learning.len() <= copies && learning.len() > copies / 2);
        let (reader, ..) = learning.end().unwrap();
        let fresh: Vec<[f32; 2]> = (copies..copies + 400).map(point).collect();
        let rows = Matrix::new(400, 2, fresh.concat()).unwrap();
        let read = reader.apply(&rows);
        let right = |(r, p): (&[f32], &[f32; 2])| u32::from(r[1] > r[0]) == aim(*p);
        let share = read.iter().zip(&fresh).filter(|pair| right(*pair)).count() as f64 / 400.0;
        (reader, share)
    }

    #[test]
    fn many_copies_are_read_by_landmarks_and_few_linearly() {
        let (reader, share) = learnt(6000, None);
        assert!(reader.landmarks.is_some() && share > 0.9, "{share}");
        assert_eq!((reader.width(), reader.targets()), (2, 4));
        let (reader, share) = learnt(6000, Some(0));
        assert!(reader.landmarks.is_none() && share < 0.7, "{share}");
        assert!(learnt(2000, None).0.landmarks.is_none());
    }

    /// 6,000 copies would find directions by 1,800, fewer than 2,000 features; unless landmarks
    /// are asked for.
    #[test]
    fn where_features_are_more_than_copies_that_find_directions_they_are_read_linearly() {
        for (asked, near) in [(None, false), (Some(300), true)] {
            let mut learning = Learning::new(2, 6000, asked, None, Held::new(0, 6000));
            for first in (0..6000).step_by(100) {
                let some = (first..first + 100).map(|i| {
                    let mut row = vec![0.0; 2000];
                    row[0] = (i % 7) as f32;
                    (row, vec![((i % 7 > 3).into(), 1.0)], false)
                });
                learning.add(some, Kind::of(false)[0]).unwrap();
            }
            assert_eq!(learning.len(), 6000);
            assert_eq!(learning.end().unwrap().0.landmarks.is_some(), near);
        }
    }

    /// Features that never vary give no directions: they are read linearly, all of them.
    #[test]
    fn without_directions_copies_are_read_linearly() {
        let mut learning = Learning::new(2, 6000, None, None, Held::new(0, 6000));
        for _ in 0..60 {
            let some = (0..100).map(|i| (vec![1.0, 2.0], vec![(i % 2, 1.0)], false));
            learning.add(some, Kind::of(false)[0]).unwrap();
        }
        assert_eq!(learning.len(), 6000);
        let (reader, read, _) = learning.end().unwrap();
        assert!(reader.landmarks.is_none() && read.rows() == 0);
    }
}
