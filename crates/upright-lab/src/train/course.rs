//! The course of a training on real data: batches made on the fly from a seed and
//! the number of the step, so that a run that was interrupted goes on at its last
//! checkpoint and ends with the same weights.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use burn::module::Module;
use burn::optim::{AdamWConfig, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};
use upright::internal::artifact::write_whole;

use super::RealSettings;
use super::examples::{Examples, HALF};
use super::schedule::rate;

/// Time between checkpoints.
const KEEP: Duration = Duration::from_mins(4);
/// Time between words about progress.
const SAY: Duration = Duration::from_secs(20);
/// Steps that are timed before a plan is made.
const TIMED: usize = 3;

/// A network that can be trained and written.
pub(super) trait Network: Module + Clone {
    /// Its outputs `[n, outputs]` of items `[n, numbers]`.
    fn outputs(&self, items: Tensor<2>) -> Tensor<2>;

    /// It as an ONNX file with these properties.
    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String>;
}

/// What is learnt from examples.
pub(super) trait Lesson<N> {
    /// The mean loss over the examples of a step.
    fn loss(&self, net: &N, step: u64) -> Result<Tensor<1>, String>;

    /// What was reached on examples that are not trained on, in words.
    fn reached(&self, net: &N) -> Result<String, String>;
}

/// What a training was begun with; one that differs is not gone on with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) name: String,
    pub(super) data: String,
    pub(super) widths: Vec<usize>,
    pub(super) seed: u64,
    pub(super) steps: usize,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    plan: Plan,
    step: usize,
    seconds: f64,
}

/// Where a training keeps what it has reached.
struct Partial(PathBuf);

impl Partial {
    fn beside(out: &Path) -> Self {
        let mut name = out.file_name().unwrap_or_default().to_os_string();
        name.push(".partial");
        Partial(out.with_file_name(name))
    }

    fn file(&self, what: &str, step: usize) -> PathBuf {
        self.0.join(format!("{what}-{step}.bpk"))
    }

    /// How far a training of the same plan, its length aside, came.
    fn reached(&self, plan: &Plan) -> Option<Kept> {
        let text = fs::read(self.0.join("step.json")).ok()?;
        let kept: Kept = serde_json::from_slice(&text).ok()?;
        let same = Plan { steps: kept.plan.steps, ..plan.clone() };
        (kept.plan == same).then_some(kept)
    }

    /// The weights come first and the note that names them last: at any time what is noted is
    /// there whole.
    fn keep<N: Network>(
        &self,
        net: &N,
        optimizer: &ModuleOptimizer,
        kept: &Kept,
    ) -> Result<(), String> {
        let bad = |why: &dyn std::fmt::Display| format!("{}: {why}", self.0.display());
        fs::create_dir_all(&self.0).map_err(|e| bad(&e))?;
        net.clone().save_file(self.file("net", kept.step)).map_err(|e| bad(&e))?;
        optimizer.save(self.file("adam", kept.step)).map_err(|e| bad(&e))?;
        let text = serde_json::to_vec(kept).map_err(|e| bad(&e))?;
        write_whole(&self.0.join("step.json"), &text).map_err(|e| bad(&e))?;
        let current = [self.file("net", kept.step), self.file("adam", kept.step)];
        for entry in fs::read_dir(&self.0).map_err(|e| bad(&e))?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|e| e == "bpk") && !current.contains(&path) {
                let _ = fs::remove_file(path);
            }
        }
        Ok(())
    }
}

/// Trains and writes the model.
pub(super) fn run<N: Network>(
    settings: &RealSettings,
    name: &str,
    widths: &[usize],
    examples: &Examples,
    make: impl Fn(&Device) -> N,
    lesson: &impl Lesson<N>,
    properties: &[(&str, &str)],
) -> Result<(), String> {
    let device = Device::flex().autodiff();
    device.seed(settings.seed);
    let mut net = make(&device);
    let mut optimizer = AdamWConfig::new().with_weight_decay(1e-2).init();
    let wanted = settings.epochs * examples.len() / HALF;
    let mut plan = Plan {
        name: name.into(),
        data: settings.data.clone(),
        widths: widths.to_vec(),
        seed: settings.seed,
        steps: wanted,
    };
    let out = settings.out(name);
    let partial = Partial::beside(&out);
    let (mut step, mut before) = (0, 0.0);
    if let Some(kept) = partial.reached(&plan) {
        let at = kept.step;
        net = net.try_load_file(partial.file("net", at)).map_err(|e| e.to_string())?;
        optimizer = optimizer.load(partial.file("adam", at)).map_err(|e| e.to_string())?;
        (plan, step, before) = (kept.plan, at, kept.seconds);
        println!("goes on at step {step} of {}", plan.steps);
    } else {
        let seconds = timed(&net, &optimizer, lesson)?;
        plan.steps = settings.cut(wanted, seconds);
        println!(
            "{}: {} steps of {} images, {:.1} s per 1,000 images, about {:.0} min",
            out.display(),
            plan.steps,
            2 * HALF,
            1000.0 * seconds / (2 * HALF) as f64,
            plan.steps as f64 * seconds / 60.0
        );
        if plan.steps < wanted {
            println!(
                "cut to {:.2} of {} passes over {} samples to keep within {} minutes",
                (plan.steps * HALF) as f64 / examples.len() as f64,
                settings.epochs,
                examples.len(),
                settings.minutes
            );
        }
    }
    let begun = Instant::now();
    let (mut said, mut saved, first) = (begun, begun, step);
    let (mut sum, mut count) = (0.0, 0);
    while step < plan.steps {
        let loss = lesson.loss(&net, step as u64)?;
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        sum += loss.into_scalar::<f64>();
        count += 1;
        net = optimizer.step(rate(step, plan.steps), net, grads);
        step += 1;
        if said.elapsed() > SAY || step == plan.steps {
            let each = begun.elapsed().as_secs_f64() / (step - first) as f64;
            println!(
                "step {step} of {}  loss {:.4}  {:.1} min left",
                plan.steps,
                sum / f64::from(count),
                each * (plan.steps - step) as f64 / 60.0
            );
            (said, sum, count) = (Instant::now(), 0.0, 0);
        }
        if saved.elapsed() > KEEP && step < plan.steps {
            let seconds = before + begun.elapsed().as_secs_f64();
            partial.keep(&net, &optimizer, &Kept { plan: plan.clone(), step, seconds })?;
            saved = Instant::now();
        }
    }
    let seconds = before + begun.elapsed().as_secs_f64();
    let net = net.valid();
    let reached = lesson.reached(&net)?;
    let small = if settings.small { " --small" } else { "" };
    let made_by = format!(
        "upright-lab train {}{small} --data {} --seed {}: {} steps of {} images in {:.0} min",
        name.trim_end_matches("-small"),
        plan.data,
        plan.seed,
        plan.steps,
        2 * HALF,
        seconds / 60.0
    );
    let told = [("made_by", made_by.as_str()), ("reached", reached.as_str())];
    let bytes = net.onnx(&[properties, &told].concat())?;
    write_whole(&out, &bytes).map_err(|e| e.to_string())?;
    let _ = fs::remove_dir_all(&partial.0);
    println!("{}: {reached}; {} bytes, {:.1} min", out.display(), bytes.len(), seconds / 60.0);
    Ok(())
}

/// Seconds of a step; what is learnt meanwhile is thrown away.
fn timed<N: Network>(
    net: &N,
    optimizer: &ModuleOptimizer,
    lesson: &impl Lesson<N>,
) -> Result<f64, String> {
    let (mut net, mut optimizer) = (net.clone(), optimizer.clone());
    let mut begun = Instant::now();
    for step in 0..=TIMED {
        if step == 1 {
            begun = Instant::now();
        }
        let loss = lesson.loss(&net, step as u64)?;
        let grads = GradientsParams::from_grads(loss.backward(), &net);
        net = optimizer.step(0.0, net, grads);
    }
    Ok(begun.elapsed().as_secs_f64() / TIMED as f64)
}
