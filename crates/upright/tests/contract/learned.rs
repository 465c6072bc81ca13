//! The contract of what learns from transformed copies: proposer `learned`,
//! score `judge` and search `follow`, on every kind of signal and space.

use std::collections::HashMap;
use std::sync::LazyLock;

use upright::internal::canonicalizer::transformed_copies;
use upright::{
    Artifact, Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Role, Samples,
    Silent, SpaceConfig, Watch, samples,
};

const SAMPLES: usize = 900;

fn model(bytes: &[u8]) -> Model {
    Model::from_bytes("embedded", bytes, &ModelOptions::default()).unwrap()
}

/// The usual parts, taught less than usual.
fn config(space: &str) -> Config {
    Config { space: SpaceConfig::parse(space).unwrap(), calibration: 160, ..Config::default() }
        .with(Role::Proposer, Part::new("learned").number("copies", 3000.0))
        .with(Role::Score, Part::new("judge").number("lessons", 400.0))
}

fn fitted(bytes: &[u8], data: &Samples, space: &str) -> Canonicalizer {
    config(space).fit(model(bytes), &FitData::new(data), &mut Silent).unwrap()
}

/// Digits under the affine family, fitted once.
static DIGITS: LazyLock<Canonicalizer> = LazyLock::new(|| {
    fitted(samples::glyph_model(), &samples::digits(SAMPLES, 1).unwrap(), "affine")
});

/// Copies of new samples under random poses of a canonicalizer's space, with their classes.
fn copies(c: &Canonicalizer, data: &Samples) -> (Batch<'static>, Vec<u32>) {
    let copies = transformed_copies(data.batch(), c.space(), &c.config().resample, 3).unwrap();
    (copies, data.labels().unwrap().to_vec())
}

/// Right answers of the bare model and always on, in percent, and views per input.
fn measured(c: &Canonicalizer, data: &Samples) -> (f64, f64, f64) {
    let (batch, labels) = copies(c, data);
    let c = c.with_part(Role::Gate, Part::new("always")).unwrap();
    let answers = c.predict(&batch).unwrap();
    let percent = |right: usize| 100.0 * right as f64 / labels.len() as f64;
    let before = answers.iter().zip(&labels).filter(|(a, l)| a.raw_label == **l).count();
    let after = answers.iter().zip(&labels).filter(|(a, l)| a.label == **l).count();
    let views: usize = answers.iter().map(|a| a.evaluations).sum();
    (percent(before), percent(after), views as f64 / labels.len() as f64)
}

#[test]
fn a_few_views_mend_most_of_what_transforms_break() {
    for (bytes, data, test, space) in [
        (samples::glyph_model(), samples::digits(SAMPLES, 1), samples::digits(150, 7), "rotate"),
        (samples::glyph_model(), samples::digits(SAMPLES, 1), samples::digits(150, 7), "quarters"),
        (samples::stroke_model(), samples::strokes(SAMPLES, 1), samples::strokes(150, 7), "affine"),
        (samples::solid_model(), samples::solids(SAMPLES, 1), samples::solids(150, 7), "so3"),
        (samples::solid_model(), samples::solids(SAMPLES, 1), samples::solids(150, 7), "vertical"),
        (samples::solid_model(), samples::solids(SAMPLES, 1), samples::solids(150, 7), "quarters"),
    ] {
        let c = fitted(bytes, &data.unwrap(), space);
        assert_eq!(c.config().part(Role::Proposer).name, "learned", "{:?}", c.report().notes);
        let (before, after, views) = measured(&c, &test.unwrap());
        let mended = (after - before) / (100.0 - before);
        assert!(mended > 0.6 && views < 6.0, "{space}: {before} -> {after} % at {views} views");
    }
    let (before, after, views) = measured(&DIGITS, &samples::digits(150, 7).unwrap());
    assert!(after > before + 35.0 && views < 6.0, "{before} -> {after} % at {views} views");
}

/// Digits in a frame of grey noise, so that nothing tells figure from background.
fn photographs(count: usize, seed: u64) -> Samples<'static> {
    let digits = samples::digits(count, seed).unwrap();
    let mut data = digits.batch().data().to_vec();
    for (i, v) in data.iter_mut().enumerate() {
        let (row, col) = (i / 40 % 40, i % 40);
        if row.min(col).min(39 - row).min(39 - col) < 2 {
            *v = 0.2 + 0.3 * ((i * 7919 % 1000) as f32 / 1000.0);
        }
    }
    let batch = Batch::new(digits.batch().signal(), data).unwrap();
    Samples::labelled(batch, digits.labels().unwrap().to_vec()).unwrap()
}

/// Without a plain background the exact quarter views vote: four views, and more where an angle
/// between them was voted for.
#[test]
fn quarter_views_of_photographs_vote() {
    for (space, most) in [("quarters", 4.0), ("rotate", 9.0)] {
        let c = fitted(samples::glyph_model(), &photographs(SAMPLES, 1), space);
        let notes = &c.report().notes;
        assert!(notes.iter().any(|n| n.contains("finds the pose")), "{notes:?}");
        let (before, after, views) = measured(&c, &photographs(150, 7));
        assert!(after > before + 25.0, "{space}: {before} -> {after} % at {views} views");
        assert!(views <= most, "{space}: {views} views");
        let copies = copies(&c, &photographs(3, 8)).0;
        let traces = c.trace(&copies).unwrap();
        let probes = |t: &upright::Trace| t.proposals.iter().filter(|p| p.proposal.probe).count();
        assert!(traces.iter().all(|t| probes(t) == 3), "three turns beside the input");
    }
}

/// What the head reads has a say in the votes, and its state goes through a file: answers are
/// others without it, and the same after a detour.
#[test]
fn what_the_head_reads_has_a_say_in_votes() {
    let data = photographs(SAMPLES, 1);
    let fit = |whole: bool| {
        let proposer = Part::new("learned").number("copies", 3000.0).flag("whole", whole);
        let config = config("rotate").with(Role::Proposer, proposer);
        config.fit(model(samples::glyph_model()), &FitData::new(&data), &mut Silent).unwrap()
    };
    let [with, without] = [true, false].map(fit);
    let batch = copies(&with, &photographs(100, 8)).0;
    let scores = |c: &Canonicalizer| -> Vec<f32> {
        let proposals = c.trace(&batch).unwrap().into_iter().flat_map(|t| t.proposals);
        proposals.map(|p| p.proposal.score).collect()
    };
    assert!(scores(&with) != scores(&without), "it has no say");
    let bytes = with.to_bytes().unwrap();
    let again = Artifact::from_bytes("a", &bytes).unwrap();
    let again = again.join(model(samples::glyph_model())).unwrap();
    assert!(scores(&again) == scores(&with), "a file changes what is proposed");
    let [more, less] = [&with, &without].map(|c| measured(c, &photographs(150, 7)).1);
    assert!(more > less - 3.0, "{less} % without, {more} % with");
}

/// Spaces without all rotations, whose poses are spread points: something is proposed, inside
/// the domain, and what it leads to is no worse than the bare model.
#[test]
fn every_space_has_proposals() {
    for space in
        ["scale", "rotate=-30..30", "rotate,scale=0.9..1.1", "shift-x,shift-y", "flip", "quarters"]
    {
        let c = fitted(samples::glyph_model(), &samples::digits(SAMPLES, 1).unwrap(), space);
        let test = samples::digits(60, 7).unwrap();
        let (batch, _) = copies(&c, &test);
        let traces = c.trace(&batch).unwrap();
        let named = traces.iter().filter(|t| !t.proposals.is_empty()).count();
        assert!(named > 50, "{space}: {named}");
        for trace in &traces {
            assert!(trace.proposals.iter().all(|p| c.space().contains(&p.proposal.pose)));
        }
        let (before, after, _) = measured(&c, &test);
        assert!(after >= before - 5.0, "{space}: {before} -> {after} %");
    }
}

#[test]
fn an_answer_does_not_depend_on_batch_threads_or_a_detour_through_a_file() {
    let c = &*DIGITS;
    let (batch, _) = copies(c, &samples::digits(30, 5).unwrap());
    let all = c.predict(&batch).unwrap();
    let alone: Vec<_> =
        (0..batch.len()).flat_map(|i| c.predict(&batch.select(&[i])).unwrap()).collect();
    assert_eq!(all, alone);
    let one = ModelOptions { threads: Some(1), ..ModelOptions::default() };
    let single = Model::from_bytes("embedded", samples::glyph_model(), &one).unwrap();
    let bytes = c.to_bytes().unwrap();
    let again = Artifact::from_bytes("a", &bytes).unwrap().join(single).unwrap();
    assert_eq!(again.predict(&batch).unwrap(), all);
    assert_eq!(again.to_bytes().unwrap(), bytes);
    assert!(all.iter().any(|a| a.label != a.raw_label), "nothing was mended");
}

#[test]
fn the_same_fit_gives_the_same_bytes() {
    let data = samples::strokes(600, 1).unwrap();
    let once = || fitted(samples::stroke_model(), &data, "affine").to_bytes().unwrap();
    assert_eq!(once(), once());
}

/// Proposals are ranked and numbered, the search follows them in their order, and stops when
/// the judge is sure.
#[test]
fn the_trace_tells_what_was_proposed_and_followed() {
    let c = &*DIGITS;
    let (batch, _) = copies(c, &samples::digits(40, 5).unwrap());
    let sure = c.score().sure().unwrap();
    let mut stopped = 0;
    for trace in c.trace(&batch).unwrap() {
        let scores: Vec<f32> = trace
            .proposals
            .iter()
            .filter(|p| p.proposal.class.is_some())
            .map(|p| p.proposal.score)
            .collect();
        assert!(scores.len() > 1 && scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        let followed: Vec<usize> = trace.seen.iter().filter_map(|s| s.follows).collect();
        assert!(followed.is_sorted(), "{followed:?}");
        let before_last = &trace.seen[..trace.seen.len() - 1];
        assert!(before_last.iter().all(|s| s.energy >= sure), "it went on though it was sure");
        stopped += usize::from(trace.seen.len() < c.config().budget);
    }
    assert!(stopped > 10, "{stopped} of 40 stopped early");
}

#[test]
fn where_poses_cannot_be_learnt_the_fit_says_so_and_searches() {
    let few = samples::digits(300, 1).unwrap();
    let c = config("affine").fit(model(samples::glyph_model()), &FitData::new(&few), &mut Silent);
    let c = c.unwrap();
    assert!(c.report().notes.iter().any(|n| n.contains("fewer than the 500")), "{:?}", c.report());
    assert_eq!(c.config().part(Role::Search).name, "rivals");
    let options = ModelOptions { taps: vec![], ..ModelOptions::default() };
    let bare = Model::from_bytes("embedded", samples::glyph_model(), &options).unwrap();
    let data = samples::digits(SAMPLES, 1).unwrap();
    let c = config("affine").fit(bare, &FitData::new(&data), &mut Silent).unwrap();
    assert_eq!(c.config().part(Role::Score).name, "energy");
    assert!(c.report().notes.iter().any(|n| n.contains("no features")), "{:?}", c.report());
    let few = config("affine").with(Role::Proposer, Part::new("learned").number("copies", 150.0));
    let c = few.fit(model(samples::glyph_model()), &FitData::new(&data), &mut Silent).unwrap();
    let notes = &c.report().notes;
    assert!(notes.iter().any(|n| n.contains("too few, 200 are needed; the preset")), "{notes:?}");
    assert_eq!(c.config().part(Role::Score).name, "knn");
}

/// A third of the data that came transformed teaches the judge; what calibrates and proves is
/// not among it.
#[test]
fn data_that_came_transformed_teach() {
    let data = samples::digits(SAMPLES, 1).unwrap();
    let (copies, labels) = copies(&DIGITS, &samples::digits(360, 21).unwrap());
    let given = Samples::labelled(copies, labels).unwrap();
    let held_out = samples::digits(400, 22).unwrap();
    let plain = FitData { held_out: Some(&held_out), ..FitData::new(&data) };
    let with = FitData { held_out: Some(&held_out), transformed: Some(&given), bank: &data };
    let config = Config { calibration: 400, ..config("affine") };
    let c = config.fit(model(samples::glyph_model()), &with, &mut Silent).unwrap();
    // Two fifths of two thirds of 360 prove.
    assert_eq!(c.report().transformed.before.of, 96);
    let plain = config.fit(model(samples::glyph_model()), &plain, &mut Silent).unwrap();
    let test = samples::digits(150, 7).unwrap();
    let (after, without) = (measured(&c, &test).1, measured(&plain, &test).1);
    assert!(after > without - 4.0, "{after} instead of {without} %");
    let energy = |c: &Canonicalizer| c.trace(test.batch()).unwrap()[0].raw_look().energy;
    assert_ne!(energy(&c).to_bits(), energy(&plain).to_bits(), "nothing was learnt from them");
}

/// Keeps what phases have found, and counts.
#[derive(Default)]
struct Keeper {
    kept: HashMap<String, Vec<u8>>,
    ran: Vec<String>,
    resumed: Vec<String>,
}

impl Watch for Keeper {
    fn phase(&mut self, name: &str, _: usize) {
        self.ran.push(name.into());
    }
    fn advance(&mut self, _: usize) {}
    fn keep(&mut self, phase: &str, bytes: &[u8]) {
        self.kept.insert(phase.into(), bytes.to_vec());
    }
    fn kept(&mut self, phase: &str) -> Option<Vec<u8>> {
        self.kept.get(phase).cloned()
    }
    fn resumed(&mut self, phase: &str) {
        self.resumed.push(phase.into());
    }
}

#[test]
fn an_interrupted_fit_resumes_after_its_last_phase() {
    let data = samples::digits(SAMPLES, 1).unwrap();
    let fit = |config: &Config, keeper: &mut Keeper| {
        let fitted = config.fit(model(samples::glyph_model()), &FitData::new(&data), keeper);
        fitted.unwrap().to_bytes().unwrap()
    };
    let config = config("rotate");
    let mut keeper = Keeper::default();
    let whole = fit(&config, &mut keeper);
    assert!(keeper.resumed.is_empty() && keeper.ran.iter().any(|p| p == "copies"));
    // Interrupted before the gate, after the lessons, and within the lessons.
    for left in [&["copies", "lessons", "again"][..], &["copies", "lessons"], &["copies"]] {
        let kept = left.iter().map(|p| (p.to_string(), keeper.kept[*p].clone())).collect();
        let mut again = Keeper { kept, ..Keeper::default() };
        assert_eq!(fit(&config, &mut again), whole, "{left:?}");
        assert_eq!(again.resumed, left);
        let ran = |phase: &str| again.ran.iter().filter(|p| *p == phase).count();
        let wanted = |phase: &str| usize::from(!left.contains(&phase));
        assert_eq!(ran("lessons"), wanted("lessons"), "{:?}", again.ran);
        assert_eq!(ran("copies"), wanted("again"), "{:?}", again.ran);
    }
    let mut other = Keeper { kept: keeper.kept.clone(), ..Keeper::default() };
    fit(&Config { seed: 9, ..config.clone() }, &mut other);
    assert!(other.resumed.is_empty(), "of another fit: {:?}", other.resumed);
    let judge = config.part(Role::Score).clone().flag("classes", false);
    let later = config.clone().with(Role::Score, judge);
    let (mut reuses, mut alone) =
        (Keeper { kept: keeper.kept.clone(), ..Keeper::default() }, Keeper::default());
    assert_eq!(fit(&later, &mut reuses), fit(&later, &mut alone));
    assert_eq!(reuses.resumed, ["copies", "again"], "only the score differs");
    let last = keeper.kept.get_mut("copies").unwrap().last_mut().unwrap();
    *last ^= 1;
    keeper.resumed.clear();
    fit(&config, &mut keeper);
    assert_eq!(keeper.resumed, ["lessons", "again"], "damaged");
}
