//! Natural images under rotation: exact quarter turns; any angle before the centre
//! is cut out, so that corners are black, or what is zero to the classifier, where they
//! show; any angle cropped to where there are no corners.
//!
//! The paper's rows look at 17 equally spaced angles with a random offset (all
//! four exact turns where there are only those) and take the view of lowest
//! energy, or average 16 angles.

use upright::internal::seed;
use upright::score::Score;
use upright::{
    Batch, Dataset, Map, Model, Padding, Part, Resample, Role, Space, SpaceConfig, Tap, View, warp,
};

use super::fits::Filled;
use super::ledger::{Found, Line};
use super::measure::{Answers, always_and_gated, averaged, lowest};
use super::page::{Page, Table, accuracy, gain, number, with};
use super::parts::{Left, flag};
use super::rows::Rows;
use super::scale::Scale;
use super::sets::si_score;
use super::tasks::{KINDS, PHOTOGRAPHS, Task};
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "photographs",
    about: "natural images under rotation",
    sets: &[PHOTOGRAPHS],
    once: true,
    run,
    show,
};

/// How photographs are turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turned {
    Quarters,
    Corners,
    Grey,
    Inner,
    /// As they come: SI-Score's, where they are there.
    SiScore,
}

impl Turned {
    const ALL: [Turned; 5] =
        [Turned::Quarters, Turned::Corners, Turned::Grey, Turned::Inner, Turned::SiScore];

    fn name(self) -> &'static str {
        match self {
            Turned::Quarters => "quarters",
            Turned::Corners => "corners",
            Turned::Grey => "grey",
            Turned::Inner => "inner",
            Turned::SiScore => "si-score",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Turned::Quarters => "exact quarter turns, the upright one among them",
            Turned::Corners => "any angle before the centre is cut out, black corners",
            Turned::Grey => {
                "any angle before the centre is cut out, corners that are zero to the classifier"
            }
            Turned::Inner => "any angle, cropped to where there are no corners",
            Turned::SiScore => "SI-Score: rotated objects on upright backgrounds",
        }
    }

    fn space(self) -> &'static str {
        if self == Turned::Quarters { "quarters" } else { "rotate" }
    }
}

/// Poses of test photographs come from this seed.
const TEST: u64 = 44;
/// Photographs that are worked on at a time.
const TOGETHER: usize = 32;
/// The side of squares that are turned by any angle before their centre is cut out.
const LARGE: usize = 256;
const ANGLES: usize = 17;
const AVERAGED: usize = 16;

/// Counts for large inputs.
fn scale(lab: &Lab) -> Scale {
    let mut scale = lab.scale.clone();
    if scale.name == "quick" {
        scale.inputs = scale.inputs.min(30);
        scale.bank = Some(1000);
        scale.learns = Some((800, 150));
        scale.calibration = 100;
    }
    scale
}

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    let lab = &mut lab.scaled(scale(lab))?;
    for turned in Turned::ALL {
        let Some(test) = Test::new(lab, task, turned)? else { continue };
        let what = |method| [("turned", turned.name()), ("method", method)];
        if turned != Turned::SiScore {
            lab.measure(task, &what("undone"), |_| undone(task, &test))?;
        }
        lab.measure(task, &what("views"), |lab| by_views(lab, task, &test))?;
        // One run tells what a part is worth.
        let count = if lab.first() { LEFT.len() } else { 1 };
        for left in &LEFT[..count] {
            lab.measure(task, &what(left.name), |lab| ours(lab, task, &test, left))?;
        }
    }
    Ok(())
}

/// Photographs to judge by, a few at a time: all of them would not fit into memory.
struct Test {
    turned: Turned,
    rows: Rows,
    /// What lies outside a photograph.
    resample: Resample,
    space: Space,
}

/// Some photographs.
struct Few {
    /// By the number of their kind: upright, turned.
    kinds: Kinds,
    /// What undoes the turn of each, where it is known.
    back: Vec<Map>,
    labels: Vec<u32>,
}

type Kinds = Vec<(usize, Batch<'static>)>;

impl Test {
    /// `None` if there are no such photographs.
    fn new(lab: &Lab, task: &Task, turned: Turned) -> Result<Option<Self>, String> {
        let count = lab.scale.inputs;
        let rows = match turned {
            Turned::Corners | Turned::Grey | Turned::Inner => {
                Some(task.judged_at(LARGE, lab.folders(), count)?)
            }
            Turned::SiScore => si_score(task, lab.folders(), count)?,
            Turned::Quarters => Some(task.judged(count)),
        };
        let Some(rows) = rows else { return Ok(None) };
        let space = SpaceConfig::parse(turned.space()).and_then(|s| s.build());
        let mut resample = Resample { clamp: true, ..Resample::default() };
        if turned == Turned::Grey {
            let model = task.model(&[]).map_err(|e| e.to_string())?;
            let mean = model.preprocess().mean.iter().map(|m| *m as f32);
            resample.padding = Padding::Fill(mean.collect());
        }
        Ok(Some(Test { turned, rows, resample, space: space.map_err(|e| e.to_string())? }))
    }

    fn each(
        &self,
        side: usize,
        mut tell: impl FnMut(Few) -> upright::Result<()>,
    ) -> upright::Result<()> {
        let all: Vec<usize> = (0..self.rows.len()).collect();
        for rows in all.chunks(TOGETHER) {
            let loaded = self.rows.read(rows)?;
            let labels = loaded.rows.iter().filter_map(|&r| self.rows.label(r)).collect();
            let back = (0..loaded.batch.len())
                .filter(|_| self.turned != Turned::SiScore)
                .filter_map(|item| self.turn(&loaded.batch, item).inverse());
            tell(Few { back: back.collect(), kinds: self.made(loaded.batch, side)?, labels })?;
        }
        Ok(())
    }

    /// How a photograph is turned.
    fn turn(&self, batch: &Batch, item: usize) -> Map {
        let mut rng = seed::stream(seed::of_content(TEST, batch.item(item)));
        let unit: Vec<f32> = (0..self.space.cube()).map(|_| seed::unit(&mut rng)).collect();
        self.space.map(&self.space.draw(&unit))
    }

    /// The photographs as the classifier takes them, upright and turned.
    fn made(&self, batch: Batch<'static>, side: usize) -> upright::Result<Kinds> {
        if self.turned == Turned::SiScore {
            return Ok(vec![(1, batch)]);
        }
        let turn = |item: usize| self.turn(&batch, item);
        let under = |map: &dyn Fn(usize) -> Map| {
            let views: Vec<View> =
                (0..batch.len()).map(|item| View { item, map: map(item) }).collect();
            warp(&batch, &views, &self.resample)
        };
        if self.turned == Turned::Quarters {
            let turned = under(&turn)?;
            return Ok(vec![(0, batch), (1, turned)]);
        }
        // Without corners, the view's own square, turned by any angle, must lie within the
        // picture.
        let inner = LARGE as f32 / (side as f32 * std::f32::consts::SQRT_2);
        let by = if self.turned == Turned::Inner { inner } else { 1.0 };
        let drawn = |map: Map| match map {
            Map::Plane(m) => Map::Plane(m.map(|v| v * by)),
            solid @ Map::Space(_) => solid,
        };
        let both = [under(&|_| drawn(Map::IDENTITY))?, under(&|item| drawn(turn(item)))?];
        let [upright, turned] = both.map(|batch| centre(&batch, side));
        Ok(vec![(0, upright?), (1, turned?)])
    }
}

/// The centre of pictures.
fn centre(batch: &Batch, side: usize) -> upright::Result<Batch<'static>> {
    let margin = (LARGE - side) / 2;
    let mut out = Vec::with_capacity(batch.len() * 3 * side * side);
    for item in 0..batch.len() {
        for row in batch.item(item).chunks(LARGE).enumerate().filter(|(i, _)| {
            let y = i % LARGE;
            (margin..margin + side).contains(&y)
        }) {
            out.extend_from_slice(&row.1[margin..margin + side]);
        }
    }
    Batch::new(upright::Signal::image(3, side, side), out)
}

/// The side of a classifier's pictures.
fn side(model: &Model) -> usize {
    model.signal().shape().get(1).copied().unwrap_or(0)
}

/// Answers of several methods, counted as they come.
struct Tally {
    names: Vec<&'static str>,
    answers: Vec<[Answers; 2]>,
    alone: [Vec<u32>; 2],
    labels: Vec<u32>,
}

impl Tally {
    fn new(names: &[&'static str]) -> Self {
        let none = || [Answers::default(), Answers::default()];
        Tally {
            names: names.to_vec(),
            answers: names.iter().map(|_| none()).collect(),
            alone: [Vec::new(), Vec::new()],
            labels: Vec::new(),
        }
    }

    fn add(&mut self, kind: usize, at: usize, more: Answers) {
        let own = &mut self.answers[at][kind];
        own.labels.extend(more.labels);
        own.evaluations += more.evaluations;
    }

    fn into(self, found: &mut Found) {
        let right = |labels: &[u32]| -> Vec<bool> {
            labels.iter().zip(&self.labels).map(|(a, b)| a == b).collect()
        };
        for (kind, word) in KINDS.iter().enumerate().filter(|(k, _)| !self.alone[*k].is_empty()) {
            let alone = right(&self.alone[kind]);
            found.right(&format!("vanilla {word}"), &alone, &alone);
            for (name, answers) in self.names.iter().zip(&self.answers) {
                let own = &answers[kind];
                if own.labels.is_empty() {
                    continue;
                }
                found.right(&format!("{name} {word}"), &right(&own.labels), &alone);
                found.number(&format!("{name} {word} evaluations"), own.mean());
            }
        }
    }
}

/// What the classifier says where the turn is known: undone, and but for less than an eighth.
fn undone(task: &Task, test: &Test) -> upright::Result<Found> {
    let model = task.model(&[])?;
    let mut found = Found::of(&test.turned.space());
    let mut tally = Tally::new(&["undone", "quarter"]);
    test.each(side(&model), |few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            tally.alone[*kind].extend(model.run(batch)?.labels());
            for at in (0..2).filter(|_| *kind == 1) {
                let told = few.back.iter().map(|map| if at == 1 { quarter(map) } else { *map });
                let views = told.enumerate().map(|(item, map)| View { item, map });
                let views: Vec<View> = views.collect();
                let labels = model.run(&warp(batch, &views, &test.resample)?)?.labels();
                tally.add(1, at, Answers { evaluations: labels.len(), labels });
            }
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

fn by_views(lab: &Lab, task: &Task, test: &Test) -> upright::Result<Found> {
    let model = task.model(&[Tap::auto()])?;
    let filled = Filled::of(task, &model, lab.scale.bank)?;
    let parts = [
        Part::new("energy"),
        Part::new("pc-knn-mix").flag("correct_only", true),
        Part::new("knn-mix").flag("correct_only", true),
    ];
    let scores: Vec<Box<dyn Score>> =
        parts.iter().map(|p| filled.score(p, &model, lab.seed)).collect::<Result<_, _>>()?;
    let scores: Vec<&dyn Score> = scores.iter().map(AsRef::as_ref).collect();
    let mut found = Found::of(&(&parts, test.turned.space(), ANGLES, AVERAGED));
    let mut tally = Tally::new(&["energy", "pc-knn-mix", "knn-mix", "tta"]);
    test.each(side(&model), |few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            let kind = *kind;
            tally.alone[kind].extend(model.run(batch)?.labels());
            let around = |item: usize| {
                let offset = seed::of_content(lab.seed, batch.item(item)) as f32 / u64::MAX as f32;
                angles(&test.space, ANGLES, offset)
            };
            let answers = lowest(&model, &scores, &test.space, batch, around)?;
            for (at, answers) in answers.into_iter().enumerate() {
                tally.add(kind, at, answers);
            }
            let even = |_: usize| angles(&test.space, AVERAGED, 0.0);
            tally.add(kind, 3, averaged(&model, &test.space, batch, even)?);
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

/// The quarter turn that is nearest to a rotation.
fn quarter(map: &Map) -> Map {
    let Map::Plane([a, _, _, c, ..]) = *map else { return *map };
    let (a, c) = if a.abs() >= c.abs() { (a.signum(), 0.0) } else { (0.0, c.signum()) };
    Map::Plane([a, -c, 0.0, c, a, 0.0])
}

/// Equally spaced poses; of quarter turns all.
fn angles(space: &Space, count: usize, offset: f32) -> Vec<Vec<f32>> {
    space.axes().first().map_or(vec![], |axis| axis.lattice(count, offset))
}

/// Ours, whole and without what only photographs have.
const LEFT: [Left; 3] = [
    Left { name: "ours", about: "ours", change: |c| c },
    Left {
        name: "kinds",
        about: "without several kinds of copies",
        change: |c| flag(c, Role::Proposer, "kinds", false),
    },
    Left {
        name: "votes",
        about: "without votes of quarter turns",
        change: |c| flag(c, Role::Proposer, "votes", false),
    },
];

fn ours(lab: &Lab, task: &Task, test: &Test, left: &Left) -> upright::Result<Found> {
    let mut config = (left.change)(lab.config(task));
    config.space = SpaceConfig::parse(test.turned.space())?;
    let fit = lab.fitted(task, task.usual()?, &config)?;
    let c = &fit.c;
    let mut found = Found::of(c.config());
    found.number("fit seconds", fit.cost.seconds);
    found.number("artifact megabytes", fit.cost.bytes as f64 / 1e6);
    let mut tally = Tally::new(&["always", "gated"]);
    test.each(side(c.model()), |few| {
        tally.labels.extend(&few.labels);
        for (kind, batch) in &few.kinds {
            let kind = *kind;
            tally.alone[kind].extend(c.raw(batch)?.0.labels());
            for (at, answers) in always_and_gated(c, batch)?.into_iter().enumerate() {
                tally.add(kind, at, answers);
            }
        }
        Ok(())
    })?;
    tally.into(&mut found);
    Ok(found)
}

const METHODS: [(&str, &str, &str); 9] = [
    ("undone", "vanilla", "Vanilla"),
    ("undone", "undone", "the true turn undone"),
    ("undone", "quarter", "undone but for less than an eighth of a turn"),
    ("views", "tta", "TTA, 16 angles (4 quarters)"),
    ("views", "energy", "Energy, 17 angles (4 quarters)"),
    ("views", "knn-mix", "kNN Mix, 17 angles (4 quarters)"),
    ("views", "pc-knn-mix", "PC-kNN Mix, 17 angles (4 quarters)"),
    ("ours", "always", "**ours**, always on"),
    ("ours", "gated", "**ours**, gated"),
];

/// What only photographs have, left out once.
fn without(own: &[&Line]) -> Table {
    let titles = ["", "gated: upright", "turned", "always on: upright", "turned"];
    let mut table = Table::new(&titles);
    for left in &LEFT {
        let own = with(own, "method", left.name);
        let cell = |method: &str, kind: &str| accuracy(&own, &format!("{method} {kind}"));
        let pairs = ["gated", "always"].into_iter().flat_map(|m| KINDS.map(|k| cell(m, k)));
        if !own.is_empty() {
            table.row([left.about.to_string()].into_iter().chain(pairs).collect());
        }
    }
    table
}

fn show(lines: &[Line], page: &mut Page) {
    page.text(
        "EfficientNet-Lite0 on a sample of ImageNet's validation set; of each class three \
         photographs fill the bank, one calibrates and one judges. Gains are paired: points \
         gained over the bare classifier on the same turned photographs, with their 95 % interval.",
    );
    let lines: Vec<&Line> = lines.iter().collect();
    for turned in Turned::ALL {
        let own = with(&lines, "turned", turned.name());
        let mut table =
            Table::new(&["", "upright", "turned", "gained over the bare classifier", "views"]);
        for (line, method, name) in METHODS {
            let own = with(&own, "method", line);
            let [up, tr] = KINDS.map(|kind| format!("{method} {kind}"));
            if own.iter().any(|l| l.count(&tr).is_some()) {
                let views =
                    KINDS.map(|kind| number(&own, &format!("{method} {kind} evaluations"), 1));
                table.row(vec![
                    name.into(),
                    accuracy(&own, &up),
                    accuracy(&own, &tr),
                    gain(&own, &tr),
                    if method == "vanilla" { "1".into() } else { views.join(" / ") },
                ]);
            }
        }
        if !table.is_empty() {
            page.heading(turned.about());
            page.table(&table);
            page.table(&without(&own));
            page.provenance(&own);
        }
    }
    page.text(
        "The paper's numbers on SI-Score (rotated objects on photographs, ViT-B/16 | ResNet-50) \
         are of other data and classifiers: vanilla 38.8 | 48.0, TTA-16 49.5 | 54.9, energy \
         51.4 | 48.3, PC-kNN 57.9 | 60.7.",
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 80 degrees are nearest to 90, -170 to 180.
    #[test]
    fn a_rotation_has_its_nearest_quarter() {
        let turn = |degrees: f32| {
            let (s, c) = (libm::sinf(degrees.to_radians()), libm::cosf(degrees.to_radians()));
            Map::Plane([c, -s, 0.0, s, c, 0.0])
        };
        for (from, to) in [(80.0, [0.0, -1.0, 1.0, 0.0]), (-170.0, [-1.0, 0.0, 0.0, -1.0])] {
            let Map::Plane([a, b, _, c, d, _]) = quarter(&turn(from)) else { unreachable!() };
            assert_eq!([a, b, c, d], to);
        }
    }
}
