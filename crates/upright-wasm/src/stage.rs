//! [`Stage`]: what the page asks of the library.

use serde::Serialize;
use upright::gate::Look;
use upright::internal::samples::{
    CLOUD_POINTS, SIZE, STROKE_LENGTH, draw, render, sequence, solid,
};
use upright::search::Seen;
use upright::{
    Batch, Canonicalizer, Error, Map, Part, Prediction, Result, Role, SignalKind, Trace, Verdict,
    View, warp,
};

use crate::subject::Subject;
use crate::{ink, landscape};

/// A classifier that was fitted, ready to be shown inputs.
#[derive(Debug)]
pub struct Stage {
    subject: Subject,
    fitted: Canonicalizer,
}

/// What a viewer may choose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Chosen {
    /// What a search may cost; see [`upright::Config::budget`].
    pub budget: usize,
    /// The energy above which inputs are searched; `None` is the fitted gate.
    pub tau: Option<f32>,
}

/// What stays the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Facts {
    /// What the inputs are.
    pub signal: SignalKind,
    /// Numbers of one input, outermost dimension first.
    pub shape: Vec<usize>,
    /// Names of the classes, in the order of the logits.
    pub classes: Vec<String>,
    /// The threshold of the fitted gate.
    pub tau: f32,
    /// The energy below which a search stops.
    pub sure: Option<f32>,
    /// The budget that it was fitted with.
    pub budget: usize,
    /// The tool that fitted it.
    pub version: &'static str,
}

/// A view that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Viewed {
    /// How unfamiliar it looks.
    pub energy: f32,
    /// What the model says of it.
    pub label: u32,
    /// From view to input.
    pub map: Vec<f32>,
    /// Where it lies on the landscape through the answering view, from its left and its bottom,
    /// in 0..1.
    pub place: [f32; 2],
}

/// All that came of an input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Looked {
    /// The bare model's probabilities of the classes.
    pub model: Vec<f32>,
    /// Those of the answering view.
    pub answer: Vec<f32>,
    /// What the bare model says.
    pub model_label: u32,
    /// The answer.
    pub label: u32,
    /// The class of the best other view, if there was a search.
    pub rival: Option<u32>,
    /// What became of the input.
    pub verdict: Verdict,
    /// Its energy, and that of the view that answered.
    pub energy_before: f32,
    /// See there.
    pub energy_after: f32,
    /// Forward passes.
    pub evaluations: usize,
    /// The map of the view that answered.
    pub map: Vec<f32>,
    /// Its pose, through which the landscape goes.
    pub pose: Vec<f32>,
    /// The input as it is, then every view in the order of looking.
    pub views: Vec<Viewed>,
    /// The one that answered, among those.
    pub answered: usize,
}

impl Stage {
    /// Joins the embedded classifier of a subject with the artifact that was fitted for it.
    pub fn open(subject: Subject, artifact: &[u8]) -> Result<Self> {
        Ok(Stage { subject, fitted: subject.canonicalizer(artifact)? })
    }

    /// The fitted classifier.
    pub fn fitted(&self) -> &Canonicalizer {
        &self.fitted
    }

    /// What stays the same.
    pub fn facts(&self) -> Facts {
        let model = self.fitted.model();
        Facts {
            signal: model.signal().kind(),
            shape: model.signal().shape(),
            classes: self.subject.classes().iter().map(|&name| name.into()).collect(),
            tau: self.fitted.gate().tau(),
            sure: self.fitted.score().sure(),
            budget: self.fitted.config().budget,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// An upright sample of a class as it is drawn: ink as rows `(x, y, half width, start)`, or
    /// points as rows `(x, y, z)`.
    pub fn take(&self, class: u32, seed: u32) -> Vec<f32> {
        let (class, seed) = (class % self.subject.classes().len() as u32, u64::from(seed));
        match self.subject {
            Subject::Digits | Subject::Strokes => ink::rows(&draw(class, seed)),
            Subject::Solids => solid(class, seed, CLOUD_POINTS),
        }
    }

    /// What the model sees of what was drawn: pixels, a path, or the points themselves.
    pub fn input(&self, drawn: &[f32]) -> Vec<f32> {
        match self.subject {
            Subject::Digits => render(&ink::glyph(drawn), SIZE),
            Subject::Strokes => sequence(&ink::glyph(drawn), STROKE_LENGTH),
            Subject::Solids => drawn.to_vec(),
        }
    }

    fn batch<'a>(&self, input: &'a [f32]) -> Result<Batch<'a>> {
        let signal = self.fitted.model().signal();
        if input.len() != signal.size() {
            return Err(Error::shape("input", signal.size(), input.len()));
        }
        Batch::borrowed(signal, input)
    }

    fn chosen(&self, chosen: &Chosen) -> Result<Canonicalizer> {
        let c = self.fitted.with_budget(chosen.budget);
        match chosen.tau {
            Some(tau) => {
                c.with_part(Role::Gate, Part::new("threshold").number("tau", f64::from(tau)))
            }
            None => Ok(c),
        }
    }

    /// Looks at an input, searches it if the gate opens, and tells everything that was seen. The
    /// answer is that of [`Canonicalizer::predict`].
    pub fn look(&self, input: &[f32], chosen: &Chosen) -> Result<Looked> {
        let c = self.chosen(chosen)?;
        let batch = self.batch(input)?;
        let (outputs, energies) = c.raw(&batch)?;
        let look = Look { energy: energies[0], label: outputs.labels()[0] };
        let raw = Seen::new(c.space().identity(), look.energy, look.label);
        let mut trace = Trace::new(raw, outputs.logits.row(0).to_vec());
        if c.gate().search(look) {
            trace = c.trace(&batch)?.remove(0);
        }
        Ok(looked(&c, &trace, c.decide(&trace)))
    }

    /// An input under maps from view to input, one after the other.
    pub fn views(&self, input: &[f32], maps: &[f32]) -> Result<Vec<f32>> {
        let batch = self.batch(input)?;
        let maps: Vec<Map> = match self.subject {
            Subject::Digits | Subject::Strokes => {
                maps.as_chunks::<6>().0.iter().map(|m| Map::Plane(*m)).collect()
            }
            Subject::Solids => maps.as_chunks::<9>().0.iter().map(|m| Map::Space(*m)).collect(),
        };
        let views: Vec<View> = maps.into_iter().map(|map| View { item: 0, map }).collect();
        Ok(warp(&batch, &views, &self.fitted.config().resample)?.data().to_vec())
    }

    /// Energies along one row of the landscape of an input through a pose. Left to right are
    /// angles from -180 to 180 degrees: in the plane of the pose, in space of a turn about z.
    /// Bottom to top are sizes of the view from 0.57 to 1.74 times the pose's, or turns about y
    /// from -90 to 90 degrees.
    pub fn landscape(
        &self,
        input: &[f32],
        through: &[f32],
        size: [usize; 2],
        row: usize,
    ) -> Result<Vec<f32>> {
        let c = &self.fitted;
        let poses = landscape::row(c.space(), through, size, row);
        let views: Vec<View> =
            poses.iter().map(|pose| View { item: 0, map: c.space().map(pose) }).collect();
        Ok(c.raw(&warp(&self.batch(input)?, &views, &c.config().resample)?)?.1)
    }
}

fn looked(c: &Canonicalizer, trace: &Trace, prediction: Prediction) -> Looked {
    let space = c.space();
    let answered = match prediction.verdict {
        Verdict::Accepted => c.read(trace).map_or(0, |answer| answer.view + 1),
        _ => 0,
    };
    let seen = std::iter::once(&trace.raw).chain(&trace.seen);
    let viewed = |s: &Seen| Viewed {
        energy: s.energy,
        label: s.label,
        map: space.map(&s.pose).entries().to_vec(),
        place: landscape::place(space, &prediction.pose, &s.pose),
    };
    let views = seen.map(viewed).collect();
    Looked {
        model: probabilities(&trace.raw_logits),
        answer: probabilities(&prediction.logits),
        model_label: prediction.raw_label,
        label: prediction.label,
        rival: prediction.rival,
        verdict: prediction.verdict,
        energy_before: prediction.energy_before,
        energy_after: prediction.energy_after,
        evaluations: prediction.evaluations,
        map: prediction.map.entries().to_vec(),
        pose: prediction.pose,
        views,
        answered,
    }
}

fn probabilities(logits: &[f32]) -> Vec<f32> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f32> = logits.iter().map(|z| (z - most).exp()).collect();
    let sum: f32 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}
