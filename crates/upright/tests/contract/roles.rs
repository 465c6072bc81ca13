//! Every role and its parts: names, defaults, settings, states.

use std::collections::BTreeSet;
use std::sync::Mutex;

use upright::internal::onnx::Graph;
use upright::proposer::{self, Brief, Proposal, Proposer, Rating, Viewed};
use upright::score::{self, Needs, Score};
use upright::search::{self, Ask, Search, Seen};
use upright::{
    Canonicalizer, Config, FitData, Kind, Model, ModelOptions, Part, Reduce, Role, Silent, Space,
    State, Tap, samples,
};

fn model() -> Model {
    Model::from_bytes("glyphs", samples::glyph_model(), &ModelOptions::default()).unwrap()
}

#[test]
fn names_of_roles_rows_and_settings_are_unique_kebab_case_words() {
    let mut roles = BTreeSet::new();
    for role in Role::ALL {
        assert!(roles.insert(role.name()), "{role}");
        assert!(!role.about().is_empty() && !role.plural().is_empty());
        let mut names = BTreeSet::new();
        for row in role.rows() {
            let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(row.name.chars().all(plain), "{role} {}", row.name);
            assert!(names.insert(row.name), "{role} {}", row.name);
            assert!(!row.about.is_empty() && !row.about.ends_with('.'), "{role} {}", row.name);
            let settings: BTreeSet<_> = row.params.iter().map(|p| p.name).collect();
            assert_eq!(settings.len(), row.params.len(), "{role} {}", row.name);
            assert!(role.settings(&Part::new(row.name)).is_ok(), "{role} {}", row.name);
        }
    }
}

#[test]
fn every_role_refuses_unknown_names_and_settings() {
    for role in Role::ALL {
        let odd = Config::default().with(role, Part::new("no-such-row"));
        assert_eq!(odd.check().unwrap_err().code(), "config::name", "{role}");
        let odd = Config::default().with(role, Part::new(role.usual()).number("no-such", 1.0));
        assert_eq!(odd.check().unwrap_err().code(), "config::setting", "{role}");
    }
}

/// Parts of a fitted canonicalizer are replaced where that needs no fit, and refused with a
/// reason where it does.
#[test]
fn parts_that_need_no_fit_can_be_replaced_and_others_say_why_not() {
    let data = samples::digits(300, 1).unwrap();
    let config = Config {
        budget: 6,
        calibration: 60,
        ..crate::searching(upright::Signal::image(1, 40, 40))
    };
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let batch = a_dozen(&data);
    for role in Role::ALL {
        for row in role.rows() {
            match c.with_part(role, Part::new(row.name)) {
                Ok(other) => {
                    assert_eq!(other.config().part(role).name, row.name);
                    other.predict(&batch).unwrap();
                }
                Err(e) => {
                    let known = ["config::fit", "bank::small"].contains(&e.code());
                    assert!(known, "{role} {}: {e}", row.name);
                }
            }
        }
    }
    let closed = c.with_part(Role::Gate, Part::new("never")).unwrap();
    assert_eq!(c.config().part(Role::Gate).name, "conformal", "the first handle has changed");
    assert!(closed.predict(&batch).unwrap().iter().all(|p| !p.searched()));
}

fn a_dozen(data: &upright::Samples) -> upright::Batch<'static> {
    data.batch().select(&(0..12).collect::<Vec<_>>())
}

/// A part sees the taps it names, in its order, forward and back: with two taps in the model,
/// a score that reads the second alone searches as with a model that has no other.
#[test]
fn a_part_reads_the_taps_it_names() {
    let load = |taps: Vec<Tap>| {
        let options = ModelOptions { taps, ..ModelOptions::default() };
        Model::from_bytes("glyphs", samples::glyph_model(), &options).unwrap()
    };
    let graph = Graph::from_bytes("glyphs", samples::glyph_model()).unwrap();
    let output = graph.outputs()[0].name.clone();
    let map = graph.candidates(&output).into_iter().find(|c| !c.head).unwrap().name;
    let data = samples::digits(300, 1).unwrap();
    let fit = |taps: Vec<Tap>, score: Part| {
        Config {
            budget: 12,
            calibration: 60,
            ..crate::searching(upright::Signal::image(1, 40, 40))
        }
        .with(Role::Score, score)
        .with(Role::Search, Part::new("random-refine"))
        .with(Role::Gate, Part::new("always"))
        .fit(load(taps), &FitData::new(&data), &mut Silent)
        .unwrap()
    };
    let second = || Tap::new(map.as_str()).reduced(Reduce::Mean);
    let both = load(vec![Tap::auto(), second()]);
    let name = both.taps()[1].name.clone();
    let alone = fit(vec![second()], Part::new("knn"));
    let among = fit(vec![Tap::auto(), second()], Part::new("knn").reading([&name]));
    let batch = a_dozen(&data);
    let (alone, answers) = (alone.predict(&batch).unwrap(), among.predict(&batch).unwrap());
    for (a, b) in alone.iter().zip(&answers) {
        assert_eq!(
            (a.label, &a.pose, a.energy_after.to_bits()),
            (b.label, &b.pose, b.energy_after.to_bits())
        );
    }
    assert!(answers.iter().any(|p| p.energy_after < p.energy_before));
    let again = upright::Artifact::from_bytes("a", &among.to_bytes().unwrap()).unwrap();
    assert_eq!(again.join(both.clone()).unwrap().predict(&batch).unwrap(), answers);
    let odd = Config::default().with(Role::Score, Part::new("knn").reading(["no-such-tap"]));
    let e = odd.fit(both, &FitData::new(&data), &mut Silent).unwrap_err();
    assert_eq!(e.code(), "onnx::tap");
}

/// Proposes, after every view, the pose a little further along, with the view's own first
/// feature as its score.
#[derive(Debug)]
struct Further;

struct Along<'a> {
    space: &'a Space,
    told: usize,
}

static TOLD: Mutex<Vec<usize>> = Mutex::new(Vec::new());

impl Proposer for Further {
    fn start<'a>(&'a self, brief: Brief<'a>) -> Box<dyn proposer::Run + 'a> {
        Box::new(Along { space: brief.space, told: 0 })
    }

    fn state(&self) -> State {
        State::new()
    }
}

impl proposer::Run for Along<'_> {
    fn first(&mut self, count: usize) -> Vec<Proposal> {
        vec![Proposal::new(self.space.moved(&self.space.identity(), &[0.1; 5])); count.min(1)]
    }

    fn tell(&mut self, views: &[Viewed<'_>]) -> Vec<Proposal> {
        self.told += views.len();
        TOLD.lock().unwrap().extend(views.iter().map(|v| v.features.len()));
        let next = |v: &Viewed<'_>| Proposal {
            pose: self.space.moved(v.pose, &[0.05; 5]),
            class: Some(3),
            score: v.features[0][0],
            probe: false,
        };
        views.iter().map(next).collect()
    }

    fn rate(&self, _: &[f32], _: u32) -> Option<Rating> {
        Some(Rating { here: self.told as f32, ..Rating::default() })
    }
}

static FURTHER: Kind<proposer::Make> = Kind {
    name: "further",
    about: "a test",
    params: &[],
    make: proposer::Make {
        bank: false,
        copies: false,
        taps: &[],
        fit: |_, bank| {
            let (batch, labels) = bank.samples.read(&[0, 2])?;
            assert_eq!((batch.len(), labels.len()), (2, 2));
            let outputs = bank.samples.run(&batch)?;
            assert_eq!(outputs.logits.cols(), bank.samples.classes());
            assert!(!outputs.features.is_empty() && bank.samples.len() > 2);
            Ok(Box::new(Further))
        },
        load: |_, _, _| Ok(Box::new(Further)),
    },
};

/// Looks at the newest proposal only.
#[derive(Debug)]
struct Follow;

struct Following {
    next: Option<(usize, Vec<f32>)>,
    count: usize,
}

impl Search for Follow {
    fn first(&self, _: usize) -> usize {
        1
    }

    fn start<'a>(&'a self, brief: &search::Brief<'a, '_>) -> Box<dyn search::Run + 'a> {
        let mut run = Following { next: None, count: 0 };
        search::Run::suggest(&mut run, brief.proposals);
        Box::new(run)
    }
}

impl search::Run for Following {
    fn ask(&mut self, _: usize) -> Vec<Ask> {
        self.next.take().into_iter().map(|(n, pose)| Ask::following(pose, n)).collect()
    }

    fn tell(&mut self, _: &[Seen]) {}

    fn suggest(&mut self, proposals: &[Proposal]) {
        self.count += proposals.len();
        self.next = proposals.last().map(|p| (self.count - 1, p.pose.clone()));
    }
}

static FOLLOW: Kind<search::Make> = Kind {
    name: "follow-newest",
    about: "a test",
    params: &[],
    make: search::Make { gradient: false, build: |_| Ok(Box::new(Follow)) },
};

/// An energy that falls with the views the proposer has been told, so that the newest wins.
#[derive(Debug)]
struct Told;

impl Score for Told {
    fn energy(&self, outputs: &upright::Outputs) -> Vec<f32> {
        vec![0.0; outputs.len()]
    }

    fn pullback(&self, outputs: &upright::Outputs) -> upright::Cotangents {
        let features = vec![None; outputs.features.len()];
        upright::Cotangents { logits: None, features }
    }

    fn energy_of(&self, _: &upright::Outputs, views: &[score::Context<'_>]) -> Vec<f32> {
        views
            .iter()
            .map(|v| {
                assert_eq!(v.raw, v.proposal.is_none(), "{v:?}");
                -v.proposer.rate(v.pose, 0).unwrap().here
            })
            .collect()
    }

    fn state(&self) -> State {
        State::new()
    }
}

static TOLD_SCORE: Kind<score::Make> = Kind {
    name: "told",
    about: "a test",
    params: &[],
    make: score::Make {
        needs: |_| Needs::default(),
        fit: |_, _| Ok(Box::new(Told)),
        load: |_, _| Ok(Box::new(Told)),
    },
};

/// Own rows of three roles work together: the proposer is told the identity and every view
/// with all taps, the search follows what it suggests, the score sees how each view was
/// proposed, the trace records it all, and the artifact restores them by name.
#[test]
fn proposers_are_told_of_features_and_searches_of_proposals() {
    proposer::add(&FURTHER).unwrap();
    search::add(&FOLLOW).unwrap();
    score::add(&TOLD_SCORE).unwrap();
    assert!(proposer::add(&FURTHER).is_ok(), "the same row again");
    let data = samples::digits(60, 1).unwrap();
    let config = Config {
        budget: 4,
        calibration: 10,
        ..crate::searching(upright::Signal::image(1, 40, 40))
    }
    .with(Role::Proposer, Part::new("further"))
    .with(Role::Search, Part::new("follow-newest"))
    .with(Role::Score, Part::new("told"))
    .with(Role::Gate, Part::new("always"));
    let c = config.fit(model(), &FitData::new(&data), &mut Silent).unwrap();
    let batch = a_dozen(&data);
    let check = |c: &Canonicalizer| {
        for trace in c.trace(&batch).unwrap() {
            assert_eq!(trace.seen.len(), 4);
            let made: Vec<usize> = trace.proposals.iter().map(|p| p.after).collect();
            assert_eq!(made, [0, 0, 1, 2, 3, 4], "one first, one after the identity, one per view");
            let followed: Vec<_> = trace.seen.iter().map(|s| s.follows.unwrap()).collect();
            assert_eq!(followed, [1, 2, 3, 4]);
            let energies: Vec<f32> = trace.seen.iter().map(|s| s.energy).collect();
            assert_eq!(energies, [-2.0, -3.0, -4.0, -5.0], "told before the energy");
            for (seen, n) in trace.seen.iter().zip(followed) {
                assert_eq!(seen.pose, trace.proposals[n].proposal.pose);
                assert_eq!(trace.proposals[n].proposal.class, Some(3));
            }
            let scores: BTreeSet<u32> =
                trace.proposals[1..].iter().map(|p| p.proposal.score.to_bits()).collect();
            assert!(scores.len() > 1, "features differ from view to view");
        }
    };
    check(&c);
    assert!(TOLD.lock().unwrap().iter().all(|&taps| taps == model().taps().len()));
    let artifact = upright::Artifact::from_bytes("a", &c.to_bytes().unwrap()).unwrap();
    check(&artifact.join(model()).unwrap());
}
