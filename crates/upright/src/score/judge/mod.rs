//! Judge: is the model right on this view? Learnt from views that a proposer
//! led to, of samples whose class is known ([`super::Lessons`]).
//!
//! The energy is minus the log-odds that the model is right. The trust in a
//! view's features (one regression per predicted class, [`trust`]) joins with
//! what the model says of the view and what the proposer says of its pose
//! ([`stack`]); the input as it is has a trust and weights of its own.

use super::inputs::{finite, lack};
use super::{Bank, Context, Lessons, Make, Needs, Origin, Score};
use crate::config::{Param, Settings};
use crate::error::Result;
use crate::hint::Hint;
use crate::outputs::{Cotangents, Outputs};
use crate::registry::Kind;
use crate::state::{State, damaged};
use crate::tensor::{Matrix, argmax};

mod stack;
mod trust;

use stack::{Candidate, Numbers, Stack};
use trust::{Trust, Whitening};

/// Parts of the lessons, by sample: trust is weighed on the part that it was not fitted on.
const FOLDS: usize = 3;
/// With fewer samples of a class than this in the lessons, no class has a trust of its own: on
/// the samples that it is weighed on, it would be that of the mistakes of others.
const PER_CLASS: usize = 8;

/// The row in the table.
pub(super) const KIND: Kind<Make> = Kind {
    name: "judge",
    about: "log-odds that the model is wrong on a view, learnt from views of known class",
    params: &[
        Param::auto(
            "lessons",
            100.0,
            1e6,
            "transformed inputs whose views it learns from; auto is 16000, and 3000 large ones",
        ),
        Param::flag(
            "classes",
            true,
            "trust in features is every predicted class' own, if there are eight samples of each",
        )
        .untuned(),
        Param::flag("rating", true, "weigh what the proposer says of a view").untuned(),
    ],
    make: Make {
        needs: |settings| Needs {
            features: true,
            lessons: settings.auto("lessons").map_or(Lessons::AUTO, |count| count as usize),
            taps: &["90%"],
            ..Needs::default()
        },
        fit,
        load,
    },
};

#[derive(Debug)]
struct Judge {
    /// Of every tap.
    whitening: Vec<Whitening>,
    /// That the model is right on views, on the input as it is, and that the input is upright.
    trust: [Trust; 3],
    stack: Stack,
    classes: usize,
    /// Whether what the proposer says counts.
    rating: bool,
}

fn fit(settings: &Settings, bank: &Bank) -> Result<Box<dyn Score>> {
    let name = KIND.name;
    let lessons = bank
        .lessons
        .ok_or_else(|| lack(name, "views that a proposer led to", Hint::NeedsProposer))?;
    let outputs = &lessons.outputs;
    if outputs.features.is_empty() {
        return Err(lack(name, "features", Hint::TapModel));
    }
    let whitening = outputs
        .features
        .iter()
        .map(|features| {
            finite(features, name, "features")?;
            Whitening::of(features).ok_or_else(|| lack(name, "features that vary", Hint::OtherTap))
        })
        .collect::<Result<Vec<_>>>()?;
    let components = components(&whitening, outputs);
    let predicted = outputs.labels();
    let right: Vec<bool> = lessons.views.iter().map(|v| v.right).collect();
    let classes = outputs.logits.cols();
    let mut samples: Vec<usize> = lessons.views.iter().map(|v| v.sample).collect();
    samples.sort_unstable();
    samples.dedup();
    let told_apart = settings.flag("classes") && samples.len() >= PER_CLASS * classes;
    let own = told_apart.then_some(classes);
    let rating = settings.flag("rating");
    let upright: Vec<bool> = lessons.views.iter().map(|v| v.upright).collect();
    let trust_of = |keep: &dyn Fn(usize) -> bool| -> [Trust; 3] {
        [(false, &right), (true, &right), (true, &upright)].map(|(raw, goal)| {
            let rows: Vec<usize> = (0..lessons.views.len())
                .filter(|&i| lessons.views[i].origin.raw == raw && keep(lessons.views[i].sample))
                .collect();
            Trust::fit(&components, &rows, &predicted, goal, own)
        })
    };
    let mut order: Vec<usize> = (0..lessons.views.len()).collect();
    order.sort_by_key(|&i| lessons.views[i].input);
    let mut numbers: Vec<Option<Numbers>> = vec![None; lessons.views.len()];
    for fold in 0..FOLDS {
        let trust = trust_of(&|sample| sample % FOLDS != fold);
        for &i in order.iter().filter(|&&i| lessons.views[i].sample % FOLDS == fold) {
            let origin = &weighed(lessons.views[i].origin, rating);
            let (row, logits) = (components.row(i), outputs.logits.row(i));
            numbers[i] = Some(weigh(&trust, row, logits, origin));
        }
    }
    let candidates: Vec<Candidate> = order
        .iter()
        .filter_map(|&i| {
            let input = lessons.views[i].input;
            let numbers = numbers[i].filter(Numbers::finite)?;
            Some(Candidate { input, numbers, right: right[i] })
        })
        .collect();
    let stack = Stack::fit(&candidates);
    Ok(Box::new(Judge { whitening, trust: trust_of(&|_| true), stack, classes, rating }))
}

fn load(settings: &Settings, state: &State) -> Result<Box<dyn Score>> {
    let whitening = (0..)
        .map(|tap| state.part(&format!("tap{tap}.")))
        .take_while(|part| !part.tensors().is_empty())
        .map(|part| Whitening::load(&part))
        .collect::<Result<Vec<_>>>()?;
    let components = whitening.iter().map(Whitening::components).sum();
    let part = |name: &str| Trust::load(&state.part(name));
    let trust = [part("view.")?, part("raw.")?, part("upright.")?];
    let stack = Stack::load(&state.read_f64("stack")?)
        .ok_or_else(|| damaged("the judge's weights are not all there".into()))?;
    let classes = state.read_u32("classes")?.first().map_or(0, |c| *c as usize);
    if trust.iter().any(|t| !t.fits(classes, components)) {
        return Err(damaged("the judge's trust does not fit its components".into()));
    }
    let rating = settings.flag("rating");
    Ok(Box::new(Judge { whitening, trust, stack, classes, rating }))
}

/// The components of all taps side by side.
fn components(whitening: &[Whitening], outputs: &Outputs) -> Matrix {
    let width = whitening.iter().map(Whitening::components).sum();
    let mut all = Matrix::zeros(outputs.len(), width);
    let mut at = 0;
    for (features, whitening) in outputs.features.iter().zip(whitening) {
        let own = whitening.apply(features);
        for (i, row) in own.iter().enumerate() {
            all.row_mut(i)[at..at + row.len()].copy_from_slice(row);
        }
        at += whitening.components();
    }
    all
}

/// The numbers of a view.
fn weigh(trust: &[Trust; 3], components: &[f32], logits: &[f32], origin: &Origin) -> Numbers {
    let label = argmax(logits);
    let own = trust[usize::from(origin.raw)].of(components, label);
    let upright = if origin.raw { trust[2].of(components, label) } else { 0.0 };
    Numbers::new(own, upright, logits, origin)
}

/// What counts of how a view came about.
fn weighed(origin: Origin, rating: bool) -> Origin {
    if rating { origin } else { Origin { raw: origin.raw, ..UNKNOWN } }
}

/// A view of which nothing is known but what the model makes of it.
const UNKNOWN: Origin = Origin { raw: false, proposal: None, rating: None };

impl Judge {
    /// Whether outputs are of the model that it was fitted for.
    fn fits(&self, outputs: &Outputs) -> bool {
        outputs.logits.cols() == self.classes
            && outputs.features.len() == self.whitening.len()
            && outputs.features.iter().zip(&self.whitening).all(|(f, w)| f.cols() == w.width())
    }

    fn energies(&self, outputs: &Outputs, origin: &dyn Fn(usize, u32) -> Origin) -> Vec<f32> {
        if !self.fits(outputs) {
            return vec![f32::NAN; outputs.len()];
        }
        let components = components(&self.whitening, outputs);
        (0..outputs.len())
            .map(|i| {
                let logits = outputs.logits.row(i);
                if logits.iter().any(|z| z.is_nan()) {
                    return f32::NAN;
                }
                let label = argmax(logits);
                let origin = weighed(origin(i, label as u32), self.rating);
                let numbers = weigh(&self.trust, components.row(i), logits, &origin);
                -self.stack.odds(&numbers) as f32
            })
            .collect()
    }

    fn slopes(&self, outputs: &Outputs, raw: &dyn Fn(usize) -> bool) -> Cotangents {
        if !self.fits(outputs) {
            return Cotangents { logits: None, features: vec![None; outputs.features.len()] };
        }
        let mut logits = Matrix::zeros(outputs.len(), outputs.logits.cols());
        let mut features: Vec<Matrix> =
            outputs.features.iter().map(|f| Matrix::zeros(f.rows(), f.cols())).collect();
        for i in 0..outputs.len() {
            let own = outputs.logits.row(i);
            let [trust, certainty, margin] = self.stack.slopes(raw(i)).map(|s| -s);
            let slope = stack::certainty_slope(own, certainty, margin);
            logits.row_mut(i).copy_from_slice(&slope);
            let label = argmax(own);
            let mut by_component: Vec<f32> = self.trust[usize::from(raw(i))]
                .slope(label)
                .iter()
                .map(|w| *w * trust as f32)
                .collect();
            if raw(i) {
                let upright = -self.stack.upright_slope() as f32;
                for (d, w) in by_component.iter_mut().zip(self.trust[2].slope(label)) {
                    *d += upright * w;
                }
            }
            let mut at = 0;
            for (f, whitening) in features.iter_mut().zip(&self.whitening) {
                let own = &by_component[at..at + whitening.components()];
                f.row_mut(i).copy_from_slice(&whitening.pullback(own));
                at += whitening.components();
            }
        }
        Cotangents { logits: Some(logits), features: features.into_iter().map(Some).collect() }
    }
}

impl Score for Judge {
    fn energy(&self, outputs: &Outputs) -> Vec<f32> {
        self.energies(outputs, &|_, _| UNKNOWN)
    }

    fn pullback(&self, outputs: &Outputs) -> Cotangents {
        self.slopes(outputs, &|_| false)
    }

    fn energy_of(&self, outputs: &Outputs, views: &[Context<'_>]) -> Vec<f32> {
        self.energies(outputs, &|i, label| Origin::of(&views[i], label))
    }

    fn energy_of_and_pullback(
        &self,
        outputs: &Outputs,
        views: &[Context<'_>],
    ) -> (Vec<f32>, Cotangents) {
        (self.energy_of(outputs, views), self.slopes(outputs, &|i| views[i].raw))
    }

    fn sure(&self) -> Option<f32> {
        Some(-self.stack.sure as f32).filter(|s| s.is_finite())
    }

    fn state(&self) -> State {
        let mut state = State::new()
            .f64("stack", &self.stack.numbers())
            .u32("classes", &[self.classes as u32])
            .with_part("view.", &self.trust[0].state())
            .with_part("raw.", &self.trust[1].state())
            .with_part("upright.", &self.trust[2].state());
        for (tap, whitening) in self.whitening.iter().enumerate() {
            state = state.with_part(&format!("tap{tap}."), &whitening.state());
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Part;
    use crate::score::Lesson;

    const CLASSES: usize = 40;

    fn noise(purpose: &str, i: usize) -> f32 {
        (crate::seed::of_index(5, purpose, i) >> 40) as f32 / (1u32 << 23) as f32 - 1.0
    }

    /// Six views of each of `per_class` samples of a class, half of them right. One feature
    /// tells, if vaguely, which.
    fn lessons(per_class: usize) -> Lessons {
        let views = 6 * per_class * CLASSES;
        let (mut features, mut logits) = (Vec::new(), Matrix::zeros(views, CLASSES));
        let mut lessons = Lessons { inputs: per_class * CLASSES, ..Lessons::default() };
        for i in 0..views {
            let (input, right) = (i / 6, noise("right", i) > 0.0);
            let class = if right { input % CLASSES } else { (input + 1 + i % 7) % CLASSES };
            logits.row_mut(i)[class] = 4.0;
            features.push(if right { 0.3 } else { -0.3 } + noise("feature", i));
            features.push(noise("other", i));
            let origin = Origin { raw: i % 6 == 0, ..UNKNOWN };
            lessons.views.push(Lesson { input, sample: input, upright: false, right, origin });
        }
        let features = Matrix::new(views, 2, features).unwrap();
        lessons.outputs = Outputs::new(logits, vec![features]).unwrap();
        lessons
    }

    /// Where a class has one sample, every other view that is called by its name is wrong: a
    /// trust of its own would be worst where it should be best.
    #[test]
    fn few_samples_of_a_class_teach_what_holds_for_all() {
        let settings = Part::new("judge").resolve(KIND.params).unwrap();
        for (per_class, rows) in [(1, 1), (PER_CLASS, CLASSES)] {
            let lessons = lessons(per_class);
            let bank = Bank { lessons: Some(&lessons), ..Bank::of(&lessons.outputs, &[]) };
            let judge = fit(&settings, &bank).unwrap();
            let weights = judge.state().part("view.").read_matrix("weights").unwrap();
            assert_eq!(weights.rows(), rows);
            let mut logits = Matrix::zeros(2, CLASSES);
            logits.row_mut(0)[3] = 4.0;
            logits.row_mut(1)[3] = 4.0;
            let features = Matrix::new(2, 2, vec![1.0, 0.0, -1.0, 0.0]).unwrap();
            let energies = judge.energy(&Outputs::new(logits, vec![features]).unwrap());
            assert!(energies[0] + 0.2 < energies[1], "{per_class}: {energies:?}");
            let again = load(&settings, &judge.state()).unwrap();
            assert_eq!(again.state(), judge.state());
        }
    }
}
