//! What every engine of this build must do. Engines agree within [`TOLERANCE`].

use std::sync::Once;

use super::*;
use crate::onnx::build::{graph, model, node, value, weight};
use crate::onnx::proto::AttributeProto;

/// Largest difference between what two engines compute, relative to numbers above 1.
const TOLERANCE: f32 = 1e-5;

/// The engines that can run here; says once which ones cannot.
pub(crate) fn ready() -> Vec<&'static str> {
    static SAY: Once = Once::new();
    let (able, unable): (Vec<_>, Vec<_>) = TABLE.iter().partition(|row| (row.make.ready)().is_ok());
    SAY.call_once(|| {
        for row in unable {
            eprintln!("SKIPPED: engine {}", row.name);
        }
    });
    able.iter().map(|row| row.name).collect()
}

fn assert_close(engine: &str, got: &[f32], want: &[f32]) {
    assert_eq!(got.len(), want.len(), "{engine}");
    for (a, b) in got.iter().zip(want) {
        assert!((a - b).abs() <= TOLERANCE * b.abs().max(1.0), "{engine}: {got:?} is not {want:?}");
    }
}

#[test]
fn fused_tensors_can_still_be_read() {
    let nodes = vec![
        node("Sigmoid", &["x"], "gate"),
        node("Mul", &["x", "gate"], "silu"),
        node("Dropout", &["silu"], "same"),
        node("Add", &["same", "b"], "y"),
    ];
    let g = graph(&model(&[0, 2], nodes, vec![weight("b", &[2], &[10.0, 20.0])]));
    let names = ["gate", "silu", "y"].map(String::from);
    for name in ready() {
        let engine = load(name, &g, &names, Some(1)).unwrap();
        assert_eq!(engine.name(), name);
        let input = Input { name: "x", shape: &[1, 2], data: &[0.0, 2.0] };
        let values = engine.run(&[input], &[2, 0, 1, 0]).unwrap();
        assert_eq!(values[0].shape, [1, 2]);
        let want = [[10.0, 21.761_594], [0.5, 0.880_797], [0.0, 1.761_594], [0.5, 0.880_797]];
        for (got, want) in values.iter().zip(want) {
            assert_close(name, &got.data, &want);
        }
    }
}

#[test]
fn inputs_and_weights_can_be_read_back() {
    let g = graph(&model(
        &[0, 2],
        vec![node("Add", &["x", "b"], "y")],
        vec![weight("b", &[2], &[10.0, 20.0])],
    ));
    for name in ready() {
        let engine = load(name, &g, &["y", "x", "y"].map(String::from), Some(1)).unwrap();
        let input = Input { name: "x", shape: &[1, 2], data: &[1.0, 2.0] };
        let values = engine.run(&[input], &[0, 1, 2]).unwrap();
        let got: Vec<&[f32]> = values.iter().map(|v| &*v.data).collect();
        assert_eq!(got, [[11.0, 22.0], [1.0, 2.0], [11.0, 22.0]], "{name}");
    }
}

#[test]
fn what_the_standard_lets_a_file_leave_out_is_filled_in() {
    let mut pool = node("MaxPool", &["c"], "p");
    let (kind, size) = (Some(7), vec![2, 1]);
    let name = Some("kernel_shape".into());
    pool.attribute.push(AttributeProto { name, r#type: kind, ints: size, ..Default::default() });
    let nodes = vec![node("Conv", &["x", "w"], "c"), pool, node("Flatten", &["p"], "y")];
    let w = weight("w", &[1, 1, 1, 2], &[1.0, 10.0]);
    let g = graph(&model(&[0, 1, 3, 2], nodes, vec![w]));
    for name in ready() {
        let engine = load(name, &g, &["y".into()], None).unwrap();
        let input =
            Input { name: "x", shape: &[1, 1, 3, 2], data: &[1.0, 2.0, 5.0, 6.0, 3.0, 4.0] };
        // Rows become 21, 65 and 43; then the larger of each two neighbours.
        assert_eq!(*engine.run(&[input], &[0]).unwrap()[0].data, [65.0, 65.0], "{name}");
    }
}

#[test]
fn wrong_inputs_are_errors() {
    let g = graph(&model(&[0, 2], vec![node("Relu", &["x"], "y")], vec![]));
    for name in ready() {
        let engine = load(name, &g, &["y".into()], None).unwrap();
        let run =
            |name, shape: &[usize], data: &[f32]| engine.run(&[Input { name, shape, data }], &[0]);
        assert!(run("x", &[1, 2], &[0.0; 2]).is_ok());
        assert!(run("z", &[1, 2], &[0.0; 2]).is_err());
        assert!(run("x", &[1, 2], &[0.0; 3]).is_err());
        assert!(run("x", &[1, 3], &[0.0; 3]).is_err());
        assert!(engine.run(&[], &[0]).is_err());
        assert!(engine.run(&[], &[5]).is_err());
        assert!(load(name, &g, &["ghost".into()], None).is_err());
    }
}

#[test]
fn only_real_numbers_can_be_asked_for() {
    let g = graph(&model(&[0, 2], vec![node("Shape", &["x"], "y")], vec![]));
    for name in ready() {
        let e = load(name, &g, &["y".into()], None).and_then(|engine| {
            engine.run(&[Input { name: "x", shape: &[1, 2], data: &[0.0; 2] }], &[0])
        });
        assert!(e.is_err(), "{name}");
    }
}

#[test]
fn an_engine_can_be_used_from_several_threads() {
    let g = graph(&model(&[0, 2], vec![node("Relu", &["x"], "y")], vec![]));
    for name in ready() {
        let engine = load(name, &g, &["y".into()], Some(2)).unwrap();
        std::thread::scope(|scope| {
            for i in 0..4u8 {
                let engine = &engine;
                scope.spawn(move || {
                    let data = [f32::from(i), -1.0];
                    let input = Input { name: "x", shape: &[1, 2], data: &data };
                    for turn in 0..50 {
                        let lane = if turn % 3 == 0 { Lane::Whole } else { Lane::One(turn % 3) };
                        let values = engine.run_on(lane, &[input], &[0]).unwrap();
                        assert_eq!(*values[0].data, [f32::from(i), 0.0]);
                    }
                });
            }
        });
    }
}

#[test]
fn the_automatic_engine_is_one_that_is_ready() {
    assert_eq!(row(AUTO).unwrap().name, *ready().last().unwrap());
    let e = row("tensorflow").unwrap_err();
    assert!(e.to_string().starts_with("unknown engine `tensorflow`"), "{e}");
}

#[cfg(not(feature = "ort"))]
#[test]
fn an_engine_left_out_of_the_build_says_how_to_get_it() {
    let e = row("ort").unwrap_err();
    assert_eq!(e.to_string(), "the ort engine is not available: this build was made without it");
    assert_eq!(e.hint(), Some(crate::hint::Hint::BuildEngine { engine: "ort", other: "rten" }));
    assert_eq!(e.code(), "engine::missing");
}

#[cfg(feature = "ort")]
#[test]
fn a_library_that_is_named_takes_part_in_every_test() {
    if std::env::var_os("ORT_DYLIB_PATH").is_some() {
        super::ort::ready().unwrap();
    }
}

#[test]
fn weights_that_are_listed_as_inputs_are_only_weights() {
    let nodes = vec![node("Flatten", &["x"], "f"), node("MatMul", &["f", "w"], "y")];
    let mut m = model(&[0, 2], nodes, vec![weight("w", &[2, 2], &[1.0, 0.0, 2.0, 3.0])]);
    m.ir_version = Some(3);
    m.graph.as_mut().unwrap().input.push(value("w", &[2, 2]));
    let graph = graph(&m);
    let proto = super::with_outputs(&graph, &["y".into()]);
    assert_eq!(proto.ir_version, Some(4));
    assert_eq!(proto.graph.unwrap().input, [value("x", &[0, 2])]);
    for engine in ready() {
        let loaded = super::load(engine, &graph, &["y".into()], None).unwrap();
        let x = Input { name: "x", shape: &[1, 2], data: &[1.0, 10.0] };
        assert_close(engine, &loaded.run(&[x], &[0]).unwrap()[0].data, &[21.0, 30.0]);
    }
}
