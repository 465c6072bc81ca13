//! What `/metrics` shows, in Prometheus' text format.
//!
//! The histogram of energies is a drift monitor: inputs that look less and less
//! familiar to the model move it to the right long before anybody complains.

use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Recorder, Unit};
use metrics_exporter_prometheus::{
    BuildError, Matcher, PrometheusBuilder, PrometheusHandle, PrometheusRecorder,
};
use upright::{Canonicalizer, Prediction, Verdict};
use upright_job::word;

use crate::options::Options;

/// Upper bounds of times, in seconds.
const SECONDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// Upper bounds of energies, in spreads from the gate's threshold.
const ENERGIES: [f64; 17] = [
    -8.0, -4.0, -2.0, -1.0, -0.5, -0.25, -0.1, -0.05, 0.0, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0,
];

const VERDICTS: [Verdict; 5] =
    [Verdict::Kept, Verdict::Accepted, Verdict::Rejected, Verdict::Switched, Verdict::Abstained];

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Answered.
    Ok,
    /// The client's fault.
    Refused,
    /// Without a valid token.
    Unauthorized,
    /// Turned away for lack of room.
    Shed,
    /// The server's fault.
    Failed,
    /// The client left before the answer.
    Cancelled,
}

impl Outcome {
    const ALL: [Outcome; 6] = [
        Outcome::Ok,
        Outcome::Refused,
        Outcome::Unauthorized,
        Outcome::Shed,
        Outcome::Failed,
        Outcome::Cancelled,
    ];

    /// Its name in metrics and logs.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Ok => "ok",
            Outcome::Refused => "refused",
            Outcome::Unauthorized => "unauthorized",
            Outcome::Shed => "shed",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
        }
    }
}

/// Which requests are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// Files.
    Predict,
    /// The Open Inference Protocol.
    Infer,
    /// Whatever runs no model.
    Other,
}

impl Endpoint {
    const ALL: [Endpoint; 3] = [Endpoint::Predict, Endpoint::Infer, Endpoint::Other];

    /// Its name in metrics.
    pub fn word(self) -> &'static str {
        match self {
            Endpoint::Predict => "predict",
            Endpoint::Infer => "infer",
            Endpoint::Other => "other",
        }
    }
}

/// Every metric, ready to be counted.
pub struct Metrics {
    handle: PrometheusHandle,
    requests: Vec<Counter>,
    request_seconds: Vec<Histogram>,
    verdicts: Vec<Counter>,
    shadow: Vec<Counter>,
    /// Searches of shadow mode that were left out for lack of room.
    pub shadow_dropped: Counter,
    /// Energies of inputs as they are.
    pub energy: Histogram,
    /// Seconds from a request's arrival to the first look at an input of it.
    pub queue_seconds: Histogram,
    /// Seconds that searches take.
    pub search_seconds: Histogram,
    /// Forward passes.
    pub evaluations: Counter,
    /// Answers that were cut short by a deadline.
    pub truncated: Counter,
    /// Requests under way.
    pub inflight: Gauge,
    /// Searches under way.
    pub searching: Gauge,
    /// Forward passes that wait or are under way.
    pub queue: Gauge,
    /// Open connections.
    pub connections: Gauge,
    shed: Counter,
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Metrics of a server.
    pub fn new(c: &Canonicalizer, options: &Options) -> Result<Self, BuildError> {
        let is = |name: &str| Matcher::Full(name.into());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(is("upright_energy"), &energies(c))?
            .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), &SECONDS)?
            .build_recorder();
        let r = Registry { recorder: &recorder };
        let requests = r.table(
            "upright_requests_total",
            "Requests by endpoint and outcome",
            Endpoint::ALL.iter().flat_map(|e| {
                Outcome::ALL.map(|o| vec![("endpoint", e.word()), ("outcome", o.word())])
            }),
        );
        let verdicts = VERDICTS.iter().map(|v| vec![("decision", word(*v))]);
        let shadow = VERDICTS.iter().flat_map(|v| {
            ["same", "changed"].map(|label| vec![("decision", word(*v)), ("label", label)])
        });
        let build = r.gauge(
            "upright_build_info",
            "What is running, always 1",
            &[
                ("version", env!("CARGO_PKG_VERSION")),
                ("model", &options.name),
                ("engine", c.model().engine()),
                ("shadow", if options.shadow { "true" } else { "false" }),
            ],
        );
        build.set(1.0);
        let limit = "upright_queue_limit_passes";
        r.gauge(limit, "Forward passes that may wait", &[]).set(options.queue as f64);
        Ok(Metrics {
            requests,
            request_seconds: Endpoint::ALL
                .iter()
                .map(|e| {
                    let about = "Seconds from the head of a request to its answer";
                    r.histogram("upright_request_seconds", about, &[("endpoint", e.word())])
                })
                .collect(),
            verdicts: r.table("upright_gate_total", "Answers by what the gate decided", verdicts),
            shadow: r.table(
                "upright_shadow_total",
                "What upright would have decided, and whether its label is the bare model's",
                shadow,
            ),
            shadow_dropped: r.counter(
                "upright_shadow_dropped_total",
                "Searches of shadow mode that were left out for lack of room",
            ),
            energy: r.histogram(
                "upright_energy",
                "Energy of inputs as they are, lower = more familiar: watch it for drift",
                &[],
            ),
            queue_seconds: r.histogram(
                "upright_queue_seconds",
                "Seconds that an input waits for its first look",
                &[],
            ),
            search_seconds: r.histogram("upright_search_seconds", "Seconds of a search", &[]),
            evaluations: r.counter("upright_evaluations_total", "Forward passes spent on answers"),
            truncated: r.counter("upright_truncated_total", "Answers cut short by a deadline"),
            inflight: r.gauge("upright_inflight", "Requests under way", &[]),
            searching: r.gauge("upright_searching", "Searches under way", &[]),
            queue: r.gauge(
                "upright_queue_passes",
                "Forward passes that wait or are under way",
                &[],
            ),
            connections: r.gauge("upright_connections", "Open connections", &[]),
            shed: r.counter("upright_shed_total", "Requests turned away for lack of room"),
            handle: recorder.handle(),
        })
    }

    /// Counts a request that is over.
    pub fn request(&self, endpoint: Endpoint, outcome: Outcome, took: Duration) {
        self.requests[endpoint as usize * Outcome::ALL.len() + outcome as usize].increment(1);
        if outcome == Outcome::Shed {
            self.shed.increment(1);
        }
        if outcome != Outcome::Cancelled {
            self.request_seconds[endpoint as usize].record(took.as_secs_f64());
        }
    }

    /// Counts an answer.
    pub fn answered(&self, prediction: &Prediction, truncated: bool) {
        self.verdicts[verdict(prediction)].increment(1);
        self.evaluations.increment(prediction.evaluations as u64);
        self.truncated.increment(u64::from(truncated));
    }

    /// Counts what upright would have answered.
    pub fn shadowed(&self, prediction: &Prediction) {
        let changed = usize::from(prediction.label != prediction.raw_label);
        self.shadow[2 * verdict(prediction) + changed].increment(1);
    }

    /// Everything in Prometheus' text format.
    pub fn render(&self) -> String {
        self.handle.render()
    }

    /// Folds what was recorded into the histograms; without it they grow.
    pub fn fold(&self) {
        self.handle.run_upkeep();
    }
}

fn verdict(prediction: &Prediction) -> usize {
    VERDICTS.iter().position(|v| *v == prediction.verdict).unwrap_or_default()
}

/// Bounds around the energy above which inputs are searched.
fn energies(c: &Canonicalizer) -> Vec<f64> {
    let tau = f64::from(c.gate().tau());
    let tau = if tau.is_finite() { tau } else { 0.0 };
    let sure = c.score().sure().map(f64::from).filter(|s| s.is_finite());
    let spread = sure.map_or(0.25 * tau.abs(), |sure| (tau - sure).abs());
    let spread = if spread > 1e-9 { spread } else { 1.0 };
    ENERGIES.iter().map(|e| tau + spread * e).collect()
}

/// Registers metrics, each with what it is about.
struct Registry<'a> {
    recorder: &'a PrometheusRecorder,
}

impl Registry<'_> {
    const METADATA: Metadata<'static> = Metadata::new("upright", Level::INFO, None);

    fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
        let label = |(k, v): &(&'static str, &str)| Label::new(*k, (*v).to_string());
        Key::from_parts(name, labels.iter().map(label).collect::<Vec<_>>())
    }

    fn table<'l>(
        &self,
        name: &'static str,
        about: &'static str,
        rows: impl IntoIterator<Item = Vec<(&'static str, &'l str)>>,
    ) -> Vec<Counter> {
        self.recorder.describe_counter(name.into(), None, about.into());
        let row = |labels: Vec<(&'static str, &str)>| {
            let counter =
                self.recorder.register_counter(&Self::key(name, &labels), &Self::METADATA);
            counter.increment(0);
            counter
        };
        rows.into_iter().map(row).collect()
    }

    fn counter(&self, name: &'static str, about: &'static str) -> Counter {
        self.table(name, about, [vec![]]).remove(0)
    }

    fn gauge(
        &self,
        name: &'static str,
        about: &'static str,
        labels: &[(&'static str, &str)],
    ) -> Gauge {
        self.recorder.describe_gauge(name.into(), None, about.into());
        self.recorder.register_gauge(&Self::key(name, labels), &Self::METADATA)
    }

    fn histogram(
        &self,
        name: &'static str,
        about: &'static str,
        labels: &[(&'static str, &str)],
    ) -> Histogram {
        let unit = name.ends_with("_seconds").then_some(Unit::Seconds);
        self.recorder.describe_histogram(name.into(), unit, about.into());
        self.recorder.register_histogram(&Self::key(name, labels), &Self::METADATA)
    }
}
