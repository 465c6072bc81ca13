use crate::hint::Hint;
use prost::Message;

use super::*;
use crate::onnx::build::{model, node, shape, value, weight};
use crate::onnx::products;
use crate::onnx::proto::{ModelProto, NodeProto, TensorProto};
use crate::outputs::Cotangents;
use crate::reduce::Reduce;
use crate::tensor::SignalKind;

/// 1 x 2 x 2 pictures: halves, sums of rows, and a head of two classes on top.
fn net() -> ModelProto {
    let nodes = vec![
        node("Relu", &["x"], "relu"),
        node("Flatten", &["relu"], "flat"),
        node("Gemm", &["flat", "w", "b"], "y").with_int("transB", 1),
    ];
    let w = weight("w", &[2, 4], &[1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, -1.0]);
    model(&[0, 1, 2, 2], nodes, vec![w, weight("b", &[2], &[0.5, 0.25])])
}

fn load(m: &ModelProto, options: &Options) -> Result<Model> {
    Model::from_bytes("net.onnx", &m.encode_to_vec(), options)
}

/// Nothing tapped.
fn bare() -> Options {
    Options { taps: vec![], ..Options::default() }
}

fn refusal(input: &[i64], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> String {
    load(&model(input, nodes, weights), &bare()).unwrap_err().to_string()
}

#[test]
fn a_forward_pass_gives_hand_worked_logits_and_features() {
    let m = load(&net(), &Options::default()).unwrap();
    let batch = Batch::new(m.signal(), vec![0.1, 0.2, 0.3, 0.4, 1.0, -1.0, 0.0, 0.0]).unwrap();
    let out = m.run(&batch).unwrap();
    for (a, b) in out.logits.data().iter().zip([3.5, -0.15, 1.5, 0.25]) {
        assert!((a - b).abs() < 1e-6, "{out:?}");
    }
    assert_eq!(out.features[0].row(1), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(m.head().unwrap().bias, [0.5, 0.25]);
    assert_eq!(
        (m.classes(), m.taps()[0].features, m.taps()[0].tensors[0].as_str()),
        (2, 4, "flat")
    );
    assert!(m.run(&Batch::zeros(m.signal(), 0)).unwrap().is_empty());
}

/// A network of 2 x 2 pixels, pictures resized to 4 and cropped to 2, of which 3 are kept.
#[test]
fn what_a_crop_cuts_off_is_kept_around_an_item_and_not_fed() {
    let mut options = Options::default();
    options.preprocess.set("resize", "4").unwrap();
    options.preprocess.set("crop", "2").unwrap();
    let m = load(&net(), &options).unwrap();
    assert_eq!((m.signal(), m.fed()), (Signal::image(1, 3, 3), Signal::image(1, 2, 2)));
    let again = load(&net(), &m.options()).unwrap();
    assert_eq!((again.signal(), again.fed()), (m.signal(), m.fed()));
    let whole = Batch::new(m.signal(), (1..10u8).map(|i| f32::from(i) / 16.0).collect()).unwrap();
    let centre = Batch::new(m.fed(), [1.0, 2.0, 4.0, 5.0].map(|v| v / 16.0).to_vec()).unwrap();
    let seen = m.run(&whole).unwrap();
    assert_eq!(seen, m.run(&centre).unwrap());
    let framed = m.whole(centre.clone()).unwrap();
    assert_eq!(framed.signal(), m.signal());
    assert_eq!(m.centre(framed).unwrap().data(), centre.data());
    let features = seen.features.iter().cloned().map(Some).collect();
    let d = Cotangents { logits: None, features };
    let (far, near) = (m.pullback(&whole, &d).unwrap(), m.pullback(&centre, &d).unwrap());
    assert_eq!(far.signal(), m.signal());
    assert_eq!(m.centre(far.clone()).unwrap().data(), near.data());
    assert_eq!(far.data().iter().filter(|v| **v != 0.0).count(), 4);
}

#[test]
fn preprocessing_is_applied_before_the_network() {
    let mut options = Options::default();
    options.preprocess.set("mean", "1").unwrap();
    options.preprocess.set("std", "0.5").unwrap();
    let m = load(&net(), &options).unwrap();
    let batch = Batch::new(m.signal(), vec![1.5, 2.0, 1.0, 0.0]).unwrap();
    assert_eq!(m.run(&batch).unwrap().features[0].data(), [1.0, 2.0, 0.0, 0.0]);
}

#[test]
fn a_head_needs_its_features_unreduced_and_first() {
    let with = |taps| load(&net(), &Options { taps, ..Options::default() }).unwrap();
    assert!(with(vec![Tap::auto(), Tap::new("relu")]).head().is_some());
    assert!(with(vec![Tap::new("flat")]).head().is_some());
    assert!(with(vec![Tap::new("relu"), Tap::auto()]).head().is_none());
    let project = Reduce::Project { dim: 2, seed: 1 };
    assert!(with(vec![Tap::auto().reduced(project)]).head().is_none());
    let mean = with(vec![Tap::new("relu").reduced(Reduce::Mean)]);
    assert_eq!((mean.taps()[0].shape.as_slice(), mean.taps()[0].features), (&[1, 2, 2][..], 1));
}

#[test]
fn an_unknown_tap_lists_the_candidates() {
    let options = Options { taps: vec![Tap::new("ghost")], ..Options::default() };
    let e = load(&net(), &options).unwrap_err().to_string();
    assert_eq!(e, "no tap `ghost` in the model; candidates: relu, flat");
}

#[test]
fn outputs_that_are_no_classes_are_refused() {
    let e = refusal(&[0, 1, 2, 2], vec![node("Relu", &["x"], "y")], vec![]);
    assert!(
        e.contains("`y` is [8, 1, 2, 2] for a batch of 8; a classifier gives [N,classes]"),
        "{e}"
    );
    let to = |dims: &[i64]| (vec![node("Reshape", &["x", "s"], "y")], vec![shape("s", dims)]);
    let (nodes, weights) = to(&[-1, 2, 1, 1]);
    let e = refusal(&[0, 1, 2, 2], nodes, weights);
    assert!(e.contains("[16, 2, 1, 1] for a batch of 8"), "{e}");
    let (nodes, weights) = to(&[-1, 4, 1, 1]);
    let m = load(&model(&[0, 1, 2, 2], nodes, weights), &bare()).unwrap();
    assert_eq!(m.classes(), 4);
}

#[test]
fn inputs_that_cannot_be_fed_are_refused() {
    let mut two = net();
    two.graph.as_mut().unwrap().input.push(value("z", &[0, 3]));
    let e = load(&two, &Options::default()).unwrap_err().to_string();
    assert!(e.contains("must have one input, it has: [x float [n,1,2,2]; z float [n,3]]"), "{e}");
    let relu = || vec![node("Relu", &["x"], "y")];
    assert!(refusal(&[0, 4], relu(), vec![]).contains("must be [N,C,H,W]"));
    let open = load(&model(&[0, 3, 0, 0], relu(), vec![]), &Options::default()).unwrap_err();
    assert_eq!(open.hint(), Some(Hint::SaySize));
    let m = load(&net(), &Options::default()).unwrap();
    let e = m.run(&Batch::zeros(Signal::image(3, 2, 2), 1)).unwrap_err().to_string();
    assert_eq!(e, "input `x`: expected [1, 2, 2], got [3, 2, 2]");
}

/// Three columns may be strokes or a cloud: the option decides, then the metadata, then the
/// input's name, and nothing is guessed.
#[test]
fn what_a_model_of_three_columns_takes_is_said_by_option_metadata_or_name() {
    let net = |name: &str, rows: i64| {
        let nodes = vec![
            node("Flatten", &[name], "flat"),
            node("Gemm", &["flat", "w", "b"], "y").with_int("transB", 1),
        ];
        let weights = vec![weight("w", &[2, 12], &[0.1; 24]), weight("b", &[2], &[0.0; 2])];
        let mut m = model(&[0, rows, 3], nodes, weights);
        m.graph.as_mut().unwrap().input[0].name = Some(name.into());
        m
    };
    let signal = |m: &ModelProto, kind, rows| {
        load(m, &Options { kind, rows, ..Options::default() })
            .map(|m| m.signal())
            .map_err(|e| format!("{e}: {:?}", e.hint()))
    };
    let (strokes, cloud) = (Signal::Strokes { length: 4 }, Signal::Cloud { points: 4 });
    for (name, want) in [("strokes", strokes), ("point_cloud", cloud), ("xyz", cloud)] {
        assert_eq!(signal(&net(name, 4), None, None), Ok(want), "{name}");
    }
    let mut quiet = net("input", 4);
    let refused = signal(&quiet, None, None).unwrap_err();
    assert!(refused.contains("SaySignal"), "{refused}");
    assert_eq!(signal(&quiet, Some(SignalKind::Cloud), None), Ok(cloud));
    let refused = signal(&quiet, Some(SignalKind::Image), None).unwrap_err();
    assert!(refused.contains("it is said to take images"), "{refused}");
    crate::onnx::build::remark(&mut quiet, "signal", "strokes");
    assert_eq!(signal(&quiet, None, None), Ok(strokes));
    assert_eq!(signal(&quiet, Some(SignalKind::Cloud), None), Ok(cloud));
    assert!(signal(&net("points", 0), None, None).unwrap_err().contains("SayPoints"));
    assert_eq!(signal(&net("points", 0), None, Some(4)), Ok(cloud));
    let m = load(&net("points", 4), &Options::default()).unwrap();
    let again = load(&net("points", 4), &m.options()).unwrap();
    assert_eq!((again.signal(), again.preprocess()), (cloud, m.preprocess()));
    let first = refusal(&[0, 3, 8], vec![node("Relu", &["x"], "y")], vec![]);
    assert!(first.contains("coordinates come first"), "{first}");
}

#[test]
fn a_linear_layer_that_does_not_make_the_logits_is_no_head() {
    // The kernel of size 1 runs over four positions, of which the model keeps two.
    let nodes = vec![node("Conv", &["x", "w"], "c"), node("Reshape", &["c", "s"], "y")];
    let weights = vec![weight("w", &[2, 1, 1, 1], &[1.0, 2.0]), shape("s", &[-1, 8])];
    let m = load(&model(&[0, 1, 2, 2], nodes, weights), &Options::default()).unwrap();
    assert_eq!((m.classes(), m.head()), (8, None));
}

#[test]
fn a_clone_shares_all_but_names_that_are_given_later() {
    let m = load(&net(), &Options::default()).unwrap();
    let named = m.clone().with_class_names(vec!["a".into(), "b".into()]);
    assert_eq!((m.class_name(1), named.class_name(1)), ("1".into(), "b".into()));
    assert!(Arc::ptr_eq(&m.network, &named.network));
    named.differentiable().unwrap();
    assert!(m.gradient.is_made());
}

#[test]
fn what_a_gradient_failed_with_is_remembered() {
    let mut m = net();
    m.graph.as_mut().unwrap().node[0] = node("Trilu", &["x"], "relu");
    let m = load(&m, &Options::default()).unwrap();
    assert!(!m.gradient.is_made());
    let failed = || m.clone().differentiable().unwrap_err().to_string();
    let first = failed();
    assert!(m.gradient.is_made());
    assert_eq!(
        (failed(), first.contains("no gradient rule for: Trilu")),
        (first.clone(), true),
        "{first}"
    );
    assert!(
        m.pullback(&Batch::zeros(m.signal(), 1), &Cotangents { logits: None, features: vec![] })
            .is_err()
    );
}

/// Two layers with large kernels of 3 x 3, from 5 x 5 to 3 x 3 positions and on those.
#[test]
fn products_change_nothing_but_the_last_digits() {
    let wave = |count: i64, salt: i64| -> Vec<f32> {
        (0..count * 9).map(|i| ((i * 37 + salt) % 97) as f32 * 1e-3 - 0.048).collect()
    };
    let conv = |inputs: &[&str], output: &str, stride: i64| {
        node("Conv", inputs, output).with_ints("strides", &[stride; 2]).with_ints("pads", &[1; 4])
    };
    let nodes = vec![
        conv(&["x", "v"], "a", 2),
        node("Tanh", &["a"], "b"),
        conv(&["b", "w"], "c", 1),
        node("Tanh", &["c"], "d"),
        node("GlobalAveragePool", &["d"], "e"),
        node("Flatten", &["e"], "f"),
        node("Gemm", &["f", "h"], "y"),
    ];
    let weights = vec![
        weight("v", &[160, 200, 3, 3], &wave(160 * 200, 1)),
        weight("w", &[200, 160, 3, 3], &wave(200 * 160, 5)),
        weight("h", &[200, 2], &wave(200, 3)[..400]),
    ];
    let m = model(&[0, 200, 5, 5], nodes, weights);
    for engine in crate::engine::tests::ready() {
        let loaded = |micro_batch| {
            load(&m, &Options { engine: engine.into(), micro_batch, ..Options::default() }).unwrap()
        };
        let (plain, fast) = (loaded(Some(1)), loaded(None));
        let written =
            |m: &Model| products::rewritten(m.graph().unwrap(), &m.network.sizes).unwrap();
        assert!(written(&plain).is_none(), "{engine}");
        let left = written(&fast).unwrap().operators();
        assert!(left.iter().all(|o| o.name != "Conv"), "{engine}: {left:?}");
        assert_eq!(fast.micro_batch(), 8, "{engine}");
        let batch = describe::specimen(fast.signal(), 11).unwrap();
        let both = |m: &Model| {
            let d = |_, seen: &Outputs| {
                let features = vec![Some(seen.features[0].clone())];
                Ok(Cotangents { logits: Some(seen.logits.clone()), features })
            };
            let (outputs, gradient) = m.run_with_pullback(&batch, d).unwrap();
            let forward = m.run(&batch).unwrap().logits;
            [forward, outputs.logits]
                .map(|z| z.data().to_vec())
                .into_iter()
                .chain([gradient.data().to_vec()])
                .collect::<Vec<_>>()
        };
        for (plain, fast) in both(&plain).iter().zip(&both(&fast)) {
            let top = plain.iter().fold(0.0f32, |a, v| a.max(v.abs()));
            assert!(top > 0.0, "{engine}");
            for (a, b) in plain.iter().zip(fast) {
                assert!((a - b).abs() <= 1e-4 * top, "{engine}: {b} is not {a}");
            }
        }
        assert!(fast.has_large_way_back(), "{engine}: other bits in large micro-batches");
    }
}

#[test]
fn a_model_told_to_stop_runs_nothing_more() {
    let stop = Arc::new(AtomicBool::new(false));
    let m = load(&net(), &Options::default()).unwrap();
    let told = m.clone().stopped_by(&stop);
    let batch = Batch::new(m.signal(), vec![0.5; 80]).unwrap();
    assert_eq!(told.run(&batch).unwrap(), m.run(&batch).unwrap());
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(told.run(&batch).is_err() && m.run(&batch).is_ok());
}
