//! What is stored of the proposer, and what is refused when it is read again.

use super::cells::Cells;
use super::frame::{Frames, Upright};
use super::reader::Reader;
use super::votes::Quarters;
use super::whole::Whole;
use super::{Learned, Targets};
use crate::config::Settings;
use crate::error::{Error, Result};
use crate::proposer::Proposer;
use crate::proposer::shapes::{Covariance, Inverter};
use crate::ridge::Ridge;
use crate::space::Space;
use crate::state::State;

impl Learned {
    pub(super) fn stored(&self) -> State {
        let kind = match self.frames {
            Frames::Bare => 0,
            Frames::Plane { .. } => 1,
            Frames::Solid => 2,
        };
        let numbers = [
            self.classes as u32,
            self.targets as u32,
            kind,
            match &self.reader {
                None => 0,
                Some(Reader { landmarks: None, .. }) => 1,
                Some(_) => 2,
            },
            u32::from(self.step.is_some()),
            u32::from(self.photographs),
        ];
        let mut state = State::new()
            .u32("sizes", &numbers)
            .f32("heat", &[self.heat])
            .with_part("cells.", &self.cells.state());
        if let Some(reader) = &self.reader {
            state = state.with_part("reader.", &reader.state());
        }
        if let Some(whole) = &self.whole {
            state = state.with_part("whole.", &whole.state());
        }
        if let Some(step) = &self.step {
            state = state.with_part("step.", &step.state());
        }
        match &self.frames {
            Frames::Plane { upright, .. } => {
                let numbers: Vec<f64> = upright
                    .iter()
                    .flat_map(|u| std::iter::once(&u.all).chain(&u.classes))
                    .flat_map(|c| [c.xx, c.xy, c.yy])
                    .collect();
                state.f64("upright", &numbers)
            }
            Frames::Solid | Frames::Bare => state,
        }
    }
}

pub(super) fn load(settings: &Settings, state: &State, space: &Space) -> Result<Box<dyn Proposer>> {
    let damaged = |why: &str| Error::Artifact { path: "state".into(), why: why.into() };
    let sizes = state.read_u32("sizes")?;
    let &[classes, targets, kind, reader, step, photographs] = sizes.as_slice() else {
        return Err(damaged("the proposer's sizes are not six numbers"));
    };
    let (frames, cells) = match kind {
        0 => (Frames::Bare, Cells::of_space(space)),
        1 => {
            let numbers = state.read_f64("upright")?;
            let (all, rest) = numbers.as_chunks::<3>();
            if !rest.is_empty() || !(all.is_empty() || all.len() == classes as usize + 1) {
                return Err(damaged("the covariances are not one per class"));
            }
            let all: Vec<Covariance> =
                all.iter().map(|&[xx, xy, yy]| Covariance { xx, xy, yy }).collect();
            let upright =
                all.split_first().map(|(all, c)| Upright { all: *all, classes: c.to_vec() });
            let inverter =
                Inverter::new(space).ok_or_else(|| damaged("the space is not of the plane"))?;
            (Frames::Plane { inverter, upright }, Cells::Angles)
        }
        _ => {
            let turns = state.part("cells.").read_f64("turns")?;
            let (turns, rest) = turns.as_chunks::<9>();
            if !rest.is_empty() || turns.is_empty() {
                return Err(damaged("the rotations are not of nine numbers"));
            }
            (Frames::Solid, Cells::Turns(turns.to_vec()))
        }
    };
    let reader = match reader {
        0 => None,
        stored => Some(Reader::load(&state.part("reader."), stored > 1)?),
    };
    let second = state.part("whole.");
    let whole = if second.tensors().is_empty() { None } else { Some(Whole::load(&second)?) };
    let step = match step {
        0 => None,
        _ => Some(Ridge::load(&state.part("step."))?),
    };
    if step.as_ref().is_some_and(|s| s.targets() != 4) {
        return Err(damaged("the proposer's steps are not of four numbers"));
    }
    let quarters = match photographs {
        1 if settings.flag("votes") => Quarters::of(space, &frames, &cells),
        _ => None,
    };
    let heat = state.read_f32("heat")?;
    let &[heat] = heat.as_slice() else {
        return Err(damaged("the proposer's heat is not one number"));
    };
    let learned = Learned {
        frames,
        cells,
        reader,
        whole,
        step,
        classes: classes as usize,
        targets: match targets {
            0 => Targets::Joint,
            1 => Targets::Apart,
            _ => Targets::Poses,
        },
        photographs: photographs == 1,
        kinds: settings.flag("kinds"),
        quarters,
        heat,
        pooled: settings.real("pooled") as f32,
        note: None,
    };
    let targets = learned.outputs();
    let cells = learned.cells.len();
    if learned.reader.as_ref().is_some_and(|r| r.targets() != targets)
        || learned.whole.as_ref().is_some_and(|w| w.targets() != cells)
    {
        return Err(damaged("the proposer's weights do not fit its cells"));
    }
    Ok(Box::new(learned))
}

#[cfg(test)]
mod tests {
    use super::super::KIND;
    use super::*;
    use crate::config::Part;
    use crate::ridge::{Landmarks, Normal};
    use crate::space::SpaceConfig;
    use crate::tensor::Matrix;

    fn regression(targets: usize) -> Ridge {
        let mut normal = Normal::new(2, targets);
        for i in 0..9u8 {
            normal.add(&[f32::from(i), f32::from(i % 3)], vec![(0, f32::from(i))]);
        }
        normal.solve(0.1).unwrap()
    }

    /// Of points that three landmarks are compared with.
    fn reader(targets: usize) -> Reader {
        let rows = Matrix::new(3, 2, vec![0.0, 1.0, 4.0, 2.0, 8.0, 0.0]).unwrap();
        let landmarks = Landmarks::of(&regression(2), &rows).unwrap();
        let mut normal = Normal::new(landmarks.len(), targets);
        for row in landmarks.nearness(&rows).iter() {
            normal.add(row, vec![(0, row[0])]);
        }
        Reader { landmarks: Some(landmarks), ridge: normal.solve(0.1).unwrap() }
    }

    #[test]
    fn a_state_that_lacks_anything_is_refused() {
        let space = SpaceConfig::default().build().unwrap();
        let settings = Part::new("learned").resolve(KIND.params).unwrap();
        let one = Covariance { xx: 0.2, xy: 0.0, yy: 0.1 };
        let learned = Learned {
            frames: Frames::Plane {
                inverter: Inverter::new(&space).unwrap(),
                upright: Some(Upright { all: one, classes: vec![one; 2] }),
            },
            cells: Cells::Angles,
            reader: Some(reader(2 * Cells::Angles.len())),
            whole: Some(Whole::new(regression(Cells::Angles.len()), 2.0)),
            step: Some(regression(4)),
            classes: 2,
            targets: Targets::Joint,
            quarters: None,
            heat: 2.0,
            photographs: false,
            kinds: true,
            pooled: 0.25,
            note: None,
        };
        let state = learned.state();
        let again = load(&settings, &state, &space).unwrap();
        assert_eq!(again.state(), state);
        for missing in state.tensors().keys() {
            let mut less = State::new();
            for (name, tensor) in state.tensors().iter().filter(|(n, _)| *n != missing) {
                less.put(name, tensor.clone());
            }
            assert!(load(&settings, &less, &space).is_err(), "without {missing}");
        }
        let narrow = Whole::new(regression(3), 2.0).state();
        let narrow = state.clone().with_part("whole.", &narrow);
        assert!(load(&settings, &narrow, &space).is_err(), "a second reader of other cells");
        let few = state.clone().f64("upright", &[0.2, 0.0, 0.1]);
        assert!(load(&settings, &few, &space).is_err(), "covariances of no class");
    }
}
