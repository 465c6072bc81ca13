//! The refinement of RS-LR, from the real search to the network and back,
//! against torch: poses and energies of whole trajectories.

use serde::Deserialize;

use super::views::Asked;
use super::*;
use crate::engine;
use crate::model::Options;
use crate::preprocess::Overrides;
use crate::score::{self, Bank};
use crate::search::{Ask, Brief, Seen};
use crate::tensor::Matrix;
use crate::warp::View;

/// Written by `tests/fixtures/make_trajectory.py`.
#[derive(Deserialize)]
struct Fixture {
    rate: f64,
    image: Vec<f32>,
    bank: Vec<Vec<f32>>,
    runs: Vec<Trajectory>,
}

#[derive(Deserialize)]
struct Trajectory {
    score: String,
    poses: Vec<Vec<f32>>,
    energies: Vec<f32>,
}

const ENERGY_TOLERANCE: f32 = 1e-3;
const POSE_TOLERANCE: f32 = 1e-3;

fn canonicalizer(engine: &str, fixture: &Fixture, run: &Trajectory) -> Canonicalizer {
    let bytes = include_bytes!("../../tests/fixtures/trajectory.onnx");
    let options = Options { engine: engine.into(), ..Options::default() };
    let model = Model::from_bytes("trajectory.onnx", bytes, &options).unwrap();
    let search = Part::new("random-refine")
        .number("points", 1.0)
        .number("runs", 1.0)
        .number("steps", (run.poses.len() - 1) as f64)
        .number("rate", fixture.rate);
    let config = Config { resample: Resample::default(), ..Config::default() }
        .with(Role::Proposer, Part::new("none"))
        .with(Role::Score, Part::new(&run.score))
        .with(Role::Search, search)
        .with(Role::Gate, Part::new("always"));
    let (rows, cols) = (fixture.bank.len(), fixture.bank[0].len());
    let features = Matrix::new(rows, cols, fixture.bank.concat()).unwrap();
    let outputs = Outputs::new(Matrix::zeros(rows, model.classes()), vec![features]).unwrap();
    let bank = Bank::of(&outputs, &[]);
    let score = score::fit(config.part(Role::Score), &bank).unwrap().state();
    let report = FitReport { bank: rows, ..FitReport::default() };
    let states = States::from([(Role::Score, score)]);
    Canonicalizer::restore(model, config, report, &states).unwrap()
}

/// What the search sees on its way from a chosen pose.
fn refined(c: &Canonicalizer, batch: &Batch, start: &[f32]) -> Vec<Seen> {
    let see = |ask: Ask| {
        let mut run = c.propose(batch.item(0).into());
        let asked = Asked { item: 0, asks: vec![ask], proposed: &[], run: run.as_mut() };
        let mut told = c.evaluate(batch, &mut [asked]).unwrap();
        told.remove(0).evaluations.remove(0).0
    };
    let raw = see(Ask::plain(c.space.identity()));
    let budget = 1000;
    let mut run = c.fitted.search.start(&Brief {
        space: &c.space,
        seed: 0,
        budget,
        raw: &raw,
        proposals: &[],
        sure: None,
    });
    // The search draws one pose; it is told that this was the chosen one.
    assert_eq!(run.ask(budget).len(), 1);
    run.tell(&[see(Ask::plain(start.to_vec()))]);
    let mut all = Vec::new();
    loop {
        let asks = run.ask(budget);
        let [ask] = asks.as_slice() else { break };
        let seen = see(ask.clone());
        run.tell(std::slice::from_ref(&seen));
        all.push(seen);
    }
    all
}

#[test]
fn the_refinement_follows_that_of_torch_step_by_step() {
    let text = include_str!("../../tests/fixtures/trajectory.json");
    let fixture: Fixture = serde_json::from_str(text).unwrap();
    assert_eq!(fixture.runs.len(), 4);
    for (name, want) in
        engine::tests::ready().into_iter().flat_map(|e| fixture.runs.iter().map(move |r| (e, r)))
    {
        let c = canonicalizer(name, &fixture, want);
        let batch = Batch::new(c.model.signal(), fixture.image.clone()).unwrap();
        let got = refined(&c, &batch, &want.poses[0]);
        assert_eq!(got.len(), want.poses.len());
        for (step, seen) in got.iter().enumerate() {
            let what = format!("{} on {name}, step {step}", want.score);
            assert_eq!(seen.gradient.is_some(), step + 1 < got.len(), "{what}");
            let (energy, pose) = (want.energies[step], &want.poses[step]);
            let off = (seen.energy - energy).abs();
            assert!(off <= ENERGY_TOLERANCE, "{what}: energy {} is not {energy}", seen.energy);
            let near = |(a, b): (&f32, &f32)| (a - b).abs() <= POSE_TOLERANCE;
            assert!(
                seen.pose.iter().zip(pose).all(near),
                "{what}: {:?} is not {pose:?}",
                seen.pose
            );
        }
    }
}

/// What is kept around a crop changes no answer where nothing is known of it, and the bare
/// model's not at all.
#[test]
fn images_of_the_networks_own_size_are_answered_with_nothing_around_them() {
    let text = include_str!("../../tests/fixtures/trajectory.json");
    let fixture: Fixture = serde_json::from_str(text).unwrap();
    let plain = canonicalizer("rten", &fixture, &fixture.runs[0]);
    let fed = plain.model.signal();
    let Signal::Image { height, .. } = fed else { panic!("no image") };
    let mut options = plain.model.options();
    options.exact = None;
    options.preprocess = Overrides::default();
    for (key, side) in [("resize", height + 8), ("crop", height)] {
        options.preprocess.set(key, &side.to_string()).unwrap();
    }
    options.preprocess.set("channels", "gray").unwrap();
    let bytes = include_bytes!("../../tests/fixtures/trajectory.onnx");
    let model = Model::from_bytes("trajectory.onnx", bytes, &options).unwrap();
    let larger = Signal::image(1, height + 8, height + 8);
    assert_eq!((model.signal(), model.fed()), (larger, fed));
    let report = FitReport::default();
    let c = Canonicalizer::restore(model, plain.config().clone(), report, &plain.states()).unwrap();
    let batch = Batch::new(fed, fixture.image.clone()).unwrap();
    let known = c.predict(&batch).unwrap();
    assert_eq!(known, c.predict(&c.model.whole(batch.clone()).unwrap()).unwrap());
    let bits = |p: &[Prediction]| p[0].energy_before.to_bits();
    assert_eq!(bits(&known), bits(&plain.predict(&batch).unwrap()));
    let views = [Map::IDENTITY, known[0].map].map(|map| View { item: 0, map });
    let shown = c.shown(&batch, &views).unwrap();
    assert_eq!((shown.signal(), shown.item(0)), (fed, batch.item(0)));
    assert!(c.predict(&Batch::zeros(Signal::image(1, height + 2, height + 2), 1)).is_err());
}
