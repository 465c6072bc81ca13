//! The embedded classifiers on fresh samples.

use rten_tensor::NdTensor;
use rten_tensor::prelude::*;

use super::*;
use crate::dataset::{Dataset, Samples};
use crate::tensor::{Batch, argmax};

/// Logits of every item, ten each.
fn logits(model: &[u8], batch: &Batch) -> Vec<f32> {
    let model = rten::Model::load(model.to_vec()).unwrap();
    let logits = model.node_id("logits").unwrap();
    let mut shape = vec![batch.len()];
    shape.extend(batch.signal().shape());
    let input = rten_tensor::Tensor::from_data(&shape, batch.data().to_vec());
    let outputs = model.run(vec![(model.input_ids()[0], input.into())], &[logits], None).unwrap();
    let logits: NdTensor<f32, 2> = outputs.into_iter().next().unwrap().try_into().unwrap();
    logits.to_vec()
}

fn right(model: &[u8], samples: &Samples) -> usize {
    let logits = logits(model, samples.batch());
    let answer = |i: usize| argmax(&logits[i * 10..i * 10 + 10]) as u32;
    (0..samples.len()).filter(|&i| samples.label(i) == Some(answer(i))).count()
}

#[test]
fn the_built_in_models_know_samples_they_have_not_seen() {
    assert!(right(glyph_model(), &digits(200, 77).unwrap()) >= 194);
    assert!(right(stroke_model(), &strokes(400, 77).unwrap()) >= 395);
    assert!(right(solid_model(), &solids(400, 77).unwrap()) >= 396);
}

#[test]
fn the_built_in_models_stay_small_and_name_their_features() {
    for (model, most) in
        [(glyph_model(), 600_000), (stroke_model(), 200_000), (solid_model(), 200_000)]
    {
        assert!(model.len() < most);
        let model = rten::Model::load(model.to_vec()).unwrap();
        assert!(model.find_node("features").is_some());
    }
}

#[test]
fn what_padding_holds_does_not_change_the_logits_of_strokes() {
    let samples = strokes(20, 3).unwrap();
    let mut other = samples.batch().clone();
    for (i, row) in other.data_mut().chunks_exact_mut(3).enumerate() {
        if row[2] < 0.0 {
            row[0] = if i % 2 == 0 { 1e6 } else { f32::NAN };
            row[1] = -3.0 * i as f32;
        }
    }
    assert_eq!(logits(stroke_model(), samples.batch()), logits(stroke_model(), &other));
}

#[test]
fn place_and_size_do_not_change_the_answer_but_a_turn_does() {
    let near = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-2);
    let (strokes, solids) = (strokes(100, 4).unwrap(), solids(100, 4).unwrap());
    for (model, samples, moves) in [(stroke_model(), &strokes, 2), (solid_model(), &solids, 3)] {
        let plain = logits(model, samples.batch());
        let change = |f: &dyn Fn(&mut [f32])| {
            let mut batch = samples.batch().clone();
            batch.data_mut().chunks_exact_mut(3).for_each(f);
            batch
        };
        let moved = change(&|row| row[..moves].iter_mut().for_each(|v| *v = 3.0 * *v + 5.0));
        assert!(near(&plain, &logits(model, &moved)));
        // A quarter turn that brings the last moved coordinate to the first.
        let turned = change(&|row| {
            row.swap(0, moves - 1);
            row[0] = -row[0];
        });
        let labels = samples.labels().unwrap().to_vec();
        let turned = Samples::labelled(turned, labels).unwrap();
        assert!(right(model, &turned) < 60, "{}", right(model, &turned));
    }
}

#[test]
fn the_order_of_points_does_not_change_the_answer_for_a_cloud() {
    let samples = solids(10, 5).unwrap();
    let mut other = Batch::with_capacity(samples.batch().signal(), 10);
    for i in 0..10 {
        let rows: Vec<&[f32]> = samples.batch().item(i).chunks_exact(3).rev().collect();
        other.push(&rows.concat()).unwrap();
    }
    let (a, b) = (logits(solid_model(), samples.batch()), logits(solid_model(), &other));
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-3));
}
