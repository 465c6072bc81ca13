//! A loss limit is a promise: gates that keep one keep it on new inputs as
//! often as they say.

use upright::gate::{self, Calibration, Case};
use upright::{
    Config, FitData, Model, ModelOptions, Part, Role, Samples, Silent, TuneConfig, TuneWatch,
    samples,
};

/// Everything that is searched of a pool of generated digits: what gates are fitted on.
struct Pool {
    upright: Vec<Case>,
    transformed: Vec<Case>,
}

const POOL: usize = 500;

impl Pool {
    /// Searched by a canonicalizer that was fitted on other digits.
    fn of(config: &Config) -> Self {
        let model = Model::from_bytes("embedded", samples::glyph_model(), &ModelOptions::default())
            .unwrap();
        let bank = samples::digits(900, 1).unwrap();
        let c = config.fit(model, &FitData::new(&bank), &mut Silent).unwrap();
        let pool: Samples = samples::digits(POOL, 77).unwrap();
        let labels = pool.labels().unwrap();
        let copies = upright::internal::canonicalizer::transformed_copies(
            pool.batch(),
            c.space(),
            &c.config().resample,
            5,
        )
        .unwrap();
        let cases = |batch: &upright::Batch| -> Vec<Case> {
            let traces = c.trace(batch).unwrap();
            let case = |(trace, truth): (&upright::Trace, &u32)| Case {
                raw: trace.raw_look(),
                best: c.read(trace).map(|a| a.look),
                truth: Some(*truth),
            };
            traces.iter().zip(labels).map(case).collect()
        };
        Pool { upright: cases(pool.batch()), transformed: cases(&copies) }
    }

    /// As many inputs as asked for, each drawn from the whole pool: new ones of its kind.
    fn draw(&self, count: usize, seed: u64) -> (Vec<Case>, Vec<Case>) {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 33) as usize % POOL
        };
        let rows: Vec<usize> = (0..count).map(|_| next()).collect();
        let of = |cases: &[Case]| rows.iter().map(|&r| cases[r]).collect();
        (of(&self.upright), of(&self.transformed))
    }

    /// Points of upright accuracy that a gate loses on the whole pool, and transformed inputs
    /// that it answers rightly, in percent.
    fn judge(&self, gate: &dyn gate::Gate) -> (f64, f64) {
        let right = |case: &Case| {
            let best = case.best.filter(|&b| gate.search(case.raw) && gate.accept(case.raw, b));
            case.truth == Some(best.unwrap_or(case.raw).label)
        };
        let before = |case: &Case| case.truth == Some(case.raw.label);
        let percent = |cases: &[Case], right: &dyn Fn(&Case) -> bool| {
            100.0 * cases.iter().filter(|c| right(c)).count() as f64 / POOL as f64
        };
        let lost = percent(&self.upright, &before) - percent(&self.upright, &right);
        (lost, percent(&self.transformed, &right))
    }
}

/// Splits of 100 in which more than the limit was lost, and the mean accuracy on transformed
/// inputs; printed, so that `--nocapture` shows the figures.
fn repeated(pool: &Pool, of: &str, part: &Part, drop: f64, count: usize) -> (usize, f64) {
    let mut broken = 0;
    let mut reached = 0.0;
    let mut worst = f64::NEG_INFINITY;
    for split in 0..100 {
        let (upright, transformed) = pool.draw(count, split);
        let calibration = Calibration { upright: &upright, transformed: &transformed };
        let part = part.clone().number("drop", drop);
        let (lost, right) = pool.judge(&*gate::fit(&part, &calibration).unwrap());
        broken += usize::from(lost > drop + 1e-9);
        worst = worst.max(lost);
        reached += right / 100.0;
    }
    eprintln!(
        "{:8} {of:9} limit {drop:.1} points, n = {count:4}, confidence 0.9: {broken:2} of 100 splits \
         break it, the worst loses {worst:.1}; transformed {reached:.1} %",
        part.name
    );
    (broken, reached)
}

/// What 100 splits may break of a promise with confidence 0.9: 10 on average; 17 or more happen
/// by chance once in fifty times.
const BROKEN: usize = 16;

/// Limits in points, and the inputs that gates are calibrated on.
const SPLITS: [(f64, usize); 3] = [(1.0, 300), (1.0, 1200), (3.0, 300)];

/// A score that mends much and spoils some: its limits have to be chosen well.
fn config() -> Config {
    Config { budget: 12, calibration: 100, ..Config::default() }
        .with(Role::Score, Part::new("knn"))
        .with(Role::Proposer, Part::new("moments"))
        .with(Role::Search, Part::new("rivals"))
        .with(Role::Gate, Part::new("always"))
}

#[test]
fn limits_hold_as_often_as_they_say() {
    let pool = Pool::of(&config());
    let all = Calibration { upright: &pool.upright, transformed: &pool.transformed };
    let [never, always] =
        ["never", "always"].map(|name| pool.judge(&*gate::fit(&Part::new(name), &all).unwrap()));
    assert!(always.0 > 1.0, "a search that spoils nothing tests nothing: {always:?}");
    for name in ["max-drop", "best-mix"] {
        for (drop, count) in SPLITS {
            let (broken, reached) = repeated(&pool, "untuned", &Part::new(name), drop, count);
            assert!(broken <= BROKEN, "{name}, {drop} points, {count} inputs: {broken} of 100");
            if count > 300 || drop > 1.0 {
                assert!(reached > never.1 + 2.0, "{name} closes the gate: {reached}");
            }
        }
    }
}

/// Samples that parts were tuned on do not calibrate the gate.
#[test]
fn tuned_parts_keep_limits_too() {
    let bank = samples::digits(400, 1).unwrap();
    let load = |taps: &[upright::Tap]| {
        let options = ModelOptions { taps: taps.to_vec(), ..ModelOptions::default() };
        Model::from_bytes("embedded", samples::glyph_model(), &options)
    };
    let tune = TuneConfig {
        samples: 60,
        bank: 200,
        views: 8,
        first: 4,
        second: 4,
        others: 4,
        ..TuneConfig::default()
    };
    let mut watch = TuneWatch { watch: &mut Silent, trial: &mut |_| {}, stop: &mut || false };
    let untuned = config();
    let tuned = untuned.tune(&tune, &load, &FitData::new(&bank), None, &mut watch).unwrap();
    let calibrated = |config: &Config| {
        let c = config
            .fit(load(&[upright::Tap::auto()]).unwrap(), &FitData::new(&bank), &mut Silent)
            .unwrap();
        c.report().calibrated_on
    };
    let tuned_on = tuned.config.tuned_on;
    assert!((1..=60).contains(&tuned_on), "{tuned_on}");
    assert_ne!(tuned.config.part(Role::Score), untuned.part(Role::Score), "nothing was tuned");
    assert_eq!(calibrated(&untuned), calibrated(&Config { tuned_on, ..untuned }) + tuned_on);
    let pool = Pool::of(&Config { tuned_on: 0, ..tuned.config });
    for name in ["max-drop", "best-mix"] {
        for (drop, count) in SPLITS {
            let (broken, _) = repeated(&pool, "tuned", &Part::new(name), drop, count);
            assert!(broken <= BROKEN, "{name}, {drop} points, {count} inputs: {broken} of 100");
        }
    }
}
