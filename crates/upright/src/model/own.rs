//! Models that are no ONNX graph: an engine of one's own, and what it says
//! about itself.

use std::sync::Arc;

use super::batching::Size;
use super::description::Description;
use super::network::Network;
use super::taps::{self, Asked};
use super::{Model, Options, Tap, describe, load};
use crate::engine::{Engine, Lanes};
use crate::error::{Error, Result};
use crate::onnx::Ending;
use crate::onnx::facts::Facts;
use crate::outputs::Head;
use crate::preprocess::Overrides;
use crate::tensor::Signal;

/// Items per micro-batch, unless told.
const MICRO_BATCH: usize = 8;

/// The names of what is fed and of the first thing computed.
const INPUT: &str = "input";
const LOGITS: &str = "logits";

/// What an engine of one's own runs; see [`Model::from_engine`].
#[derive(Debug, Clone)]
pub struct ModelInfo {
    /// Stands for it in messages.
    pub name: String,
    /// Tells models apart: what was fitted on one is refused by others. By default it follows
    /// from the name and the signal; better is a hash of the weights.
    pub fingerprint: String,
    /// What the engine is fed with; items keep what a crop in `preprocess` would cut off.
    pub signal: Signal,
    /// How pictures are prepared and images normalised; by default not at all.
    pub preprocess: Overrides,
    /// What the engine computes besides the logits, in the order in which it gives it. Taps of
    /// one name are one tensor.
    pub taps: Vec<Tap>,
    /// The linear layer between the first tap's features and the logits, if it is known.
    pub head: Option<Head>,
    /// Names of the classes, in the order of the logits.
    pub class_names: Option<Vec<String>>,
    /// Items per micro-batch; by default at most 8.
    pub micro_batch: Option<usize>,
}

impl ModelInfo {
    /// A model of logits alone.
    pub fn new(name: impl Into<String>, signal: Signal) -> Self {
        let name = name.into();
        let fingerprint = blake3::hash(format!("{name} {signal:?}").as_bytes()).to_string();
        ModelInfo {
            name,
            fingerprint,
            signal,
            preprocess: Overrides::default(),
            taps: vec![],
            head: None,
            class_names: None,
            micro_batch: None,
        }
    }
}

impl Model {
    /// A model that runs on an engine of one's own. It is fed one tensor `[N, ..]` of prepared
    /// items and gives logits `[N, classes]`, then one tensor `[N, ..]` per name in
    /// [`ModelInfo::taps`]. It is tried on made-up items at once, to learn its sizes and what
    /// may run together.
    pub fn from_engine(engine: Arc<dyn Engine>, info: ModelInfo) -> Result<Self> {
        let asked = info.taps.iter().cloned();
        let asked = asked.map(|tap| Asked { tensors: vec![tap.name.clone()], tap });
        let asked: Vec<Asked> = asked.collect();
        if asked.iter().any(|asked| asked.tap.name == LOGITS) {
            return Err(Error::NoTap { name: LOGITS.into(), candidates: "any other name".into() });
        }
        let tensors = taps::tensors(LOGITS, &asked);
        let given = info.head.is_some();
        let preprocess = describe::preprocess(info.signal, info.preprocess)?;
        let description = Description {
            options: Options {
                taps: info.taps,
                micro_batch: info.micro_batch,
                engine: engine.name().into(),
                ..Options::default()
            },
            name: info.name,
            fingerprint: info.fingerprint,
            signal: describe::kept(info.signal, &preprocess),
            fed: info.signal,
            preprocess,
            output: LOGITS.into(),
            ending: Ending {
                logits: LOGITS.into(),
                activation: None,
                features: tensors.get(1).cloned().into_iter().collect(),
                head: info.head,
                rounding: 0.0,
            },
            class_names: info.class_names,
        };
        let size = Size {
            items: info.micro_batch.unwrap_or(MICRO_BATCH).max(1),
            fixed: false,
            asked: info.micro_batch.is_some(),
            small: false,
        };
        let lanes = Arc::new(Lanes::new(engine.lanes()));
        let network = Network {
            graph: None,
            sizes: Facts::default(),
            engine,
            input: INPUT.into(),
            tensors,
            taps: vec![],
            classes: 0,
            head: None,
        };
        let model = load::several(load::ready(network, description, asked, size, lanes)?)?;
        if given && model.head().is_none() {
            return Err(Error::Engine {
                engine: model.engine(),
                why: "its head does not make its logits of the first tap's numbers".into(),
                source: None,
            });
        }
        match model.class_names() {
            Some(names) if names.len() != model.classes() => {
                Err(Error::shape("class names", model.classes(), names.len()))
            }
            _ => Ok(model),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::engine::{Input, Lane, Value};
    use crate::outputs::Cotangents;
    use crate::reduce::Reduce;
    use crate::tensor::{Batch, Matrix};

    /// Of items of four numbers: twice each as 1 x 2 x 2, and their sum and first as logits.
    #[derive(Debug, Default)]
    struct Double {
        lanes: usize,
        pullback: bool,
        faulty: bool,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    #[derive(Debug, thiserror::Error, PartialEq)]
    #[error("out of luck")]
    struct Luck(u32);

    fn value(shape: &[usize], data: Vec<f32>) -> Value {
        Value { shape: shape.to_vec(), data: data.into() }
    }

    impl Engine for Double {
        fn name(&self) -> &'static str {
            "double"
        }

        fn lanes(&self) -> usize {
            self.lanes.max(1)
        }

        fn run_on(&self, _: Lane, inputs: &[Input<'_>], wanted: &[usize]) -> Result<Vec<Value>> {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            thread::sleep(Duration::from_micros(200));
            self.now.fetch_sub(1, Ordering::SeqCst);
            let x = inputs[0];
            if self.faulty || x.data.contains(&f32::MAX) {
                return Err(Error::engine("double", Luck(7)));
            }
            let twice: Vec<f32> = x.data.iter().map(|v| 2.0 * v).collect();
            let items = x.data.chunks(4).map(|x| [x.iter().sum(), x[0]]);
            let logits = value(&[x.shape[0], 2], items.flatten().collect());
            let all = [logits, value(&[x.shape[0], 1, 2, 2], twice)];
            Ok(wanted.iter().map(|&i| all[i].clone()).collect())
        }

        fn has_pullback(&self) -> bool {
            self.pullback
        }

        fn pullback_on(&self, _: Lane, input: Input<'_>, d: &[Option<Value>]) -> Result<Vec<f32>> {
            let mut out = vec![0.0; input.data.len()];
            if let Some(z) = &d[0] {
                assert_eq!(z.shape, [input.shape[0], 2]);
                for (out, z) in out.chunks_mut(4).zip(z.data.chunks(2)) {
                    for o in out.iter_mut() {
                        *o += z[0];
                    }
                    out[0] += z[1];
                }
            }
            if let Some(map) = &d[1] {
                assert_eq!(map.shape, [input.shape[0], 1, 2, 2]);
                out.iter_mut().zip(map.data.iter()).for_each(|(o, d)| *o += 2.0 * d);
            }
            Ok(out)
        }
    }

    fn info() -> ModelInfo {
        let taps = vec![Tap::new("map"), Tap::new("map").reduced(Reduce::Mean)];
        ModelInfo { taps, ..ModelInfo::new("twice", Signal::image(1, 2, 2)) }
    }

    fn model(engine: Double, info: ModelInfo) -> Result<Model> {
        Model::from_engine(Arc::new(engine), info)
    }

    #[test]
    fn an_engine_of_ones_own_is_a_model() {
        let m = model(Double::default(), info()).unwrap();
        assert_eq!((m.classes(), m.engine(), m.micro_batch()), (2, "double", 8));
        assert_eq!((m.tap_index("map@none").unwrap(), m.tap_index("map@mean").unwrap()), (0, 1));
        assert!(m.graph().is_none() && m.head().is_none());
        let data = [1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 8.0];
        let out = m.run(&Batch::borrowed(m.signal(), &data).unwrap()).unwrap();
        assert_eq!(out.logits.data(), [10.0, 1.0, 8.0, 0.0]);
        assert_eq!(out.features[0].row(1), [0.0, 0.0, 0.0, 16.0]);
        assert_eq!(out.features[1].data(), [5.0, 4.0]);
        let e = m.differentiable().unwrap_err();
        let want = "twice: no gradient rule for: the double engine, which brings none";
        assert_eq!((e.to_string().as_str(), e.code()), (want, "onnx::gradient"));
        let named = ModelInfo { class_names: Some(vec!["sum".into(), "first".into()]), ..info() };
        assert_eq!(model(Double::default(), named).unwrap().class_name(1), "first");
        let one = ModelInfo { class_names: Some(vec!["sum".into()]), ..info() };
        assert!(model(Double::default(), one).is_err());
    }

    #[test]
    fn its_gradient_is_the_models() {
        let m = model(Double { pullback: true, lanes: 2, ..Double::default() }, info()).unwrap();
        m.differentiable().unwrap();
        let batch = Batch::new(m.signal(), vec![1.0; 12]).unwrap();
        let row = |rows: &[f32]| Some(Matrix::new(3, rows.len() / 3, rows.to_vec()).unwrap());
        let logits = row(&[1.0, 10.0, 2.0, 20.0, 3.0, 30.0]);
        let features = vec![None, row(&[4.0, 8.0, 12.0])];
        let d = m.pullback(&batch, &Cotangents { logits, features }).unwrap();
        // Twice a quarter of the mean's 4, 8 and 12, and those of the logits.
        let want = [13.0, 3.0, 3.0, 3.0, 26.0, 6.0, 6.0, 6.0, 39.0, 9.0, 9.0, 9.0];
        assert_eq!(d.data(), want);
    }

    #[test]
    fn its_errors_reach_the_caller_as_they_were() {
        let luck = |e: &Error| {
            assert_eq!(e.to_string(), "the double engine failed: out of luck");
            let source = std::error::Error::source(e).unwrap();
            assert_eq!(source.downcast_ref::<Luck>(), Some(&Luck(7)));
        };
        luck(&model(Double { faulty: true, ..Double::default() }, info()).unwrap_err());
        let m = model(Double { lanes: 2, ..Double::default() }, info()).unwrap();
        luck(&m.run(&Batch::new(m.signal(), vec![f32::MAX; 400]).unwrap()).unwrap_err());
    }

    #[test]
    fn a_head_that_does_not_make_the_logits_is_refused() {
        let head = |sum: f32| {
            let weight = vec![sum, sum, sum, sum, 0.5, 0.0, 0.0, 0.0];
            Some(Head::new(Matrix::new(2, 4, weight).unwrap(), vec![0.0; 2]).unwrap())
        };
        let with = |sum| model(Double::default(), ModelInfo { head: head(sum), ..info() });
        assert_eq!(with(0.5).unwrap().head(), head(0.5).as_ref());
        let e = with(0.6).unwrap_err().to_string();
        assert!(e.contains("its head does not make its logits"), "{e}");
    }

    #[test]
    fn callers_share_its_lanes_and_get_what_they_would_alone() {
        let engine = Arc::new(Double { lanes: 2, ..Double::default() });
        let m = Model::from_engine(engine.clone(), info()).unwrap();
        let data = (0..400u16).map(|i| f32::from(i).sin()).collect();
        let batch = Batch::new(m.signal(), data).unwrap();
        let alone = m.run(&batch).unwrap();
        engine.most.store(0, Ordering::SeqCst);
        thread::scope(|scope| {
            for _ in 0..3 {
                let m = m.clone();
                let (batch, alone) = (&batch, &alone);
                scope.spawn(move || (0..5).for_each(|_| assert_eq!(m.run(batch).unwrap(), *alone)));
            }
        });
        assert_eq!(engine.most.load(Ordering::SeqCst), 2);
    }
}
