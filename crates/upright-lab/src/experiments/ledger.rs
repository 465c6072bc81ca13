//! The ledger: what was measured, one JSON line per finished measurement, appended and
//! never rewritten. Whatever a report shows comes from these lines.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use upright::{Paired, Share};

/// What tells a measurement of an experiment from the others: data set, method and the like.
pub(crate) type What = BTreeMap<String, String>;

/// What came of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Found {
    /// Everything that was chosen.
    #[serde(default)]
    pub(crate) config: Value,
    /// Counts, such as right answers, by name: intervals can be worked out again.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) counts: BTreeMap<String, Share>,
    /// What became of the bare model's answers on the same inputs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) paired: BTreeMap<String, Paired>,
    /// Plain numbers, such as mean evaluations per input.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) numbers: BTreeMap<String, f64>,
    /// Curves as points (x, y), and pictures as rows of numbers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) curves: BTreeMap<String, Vec<Vec<f64>>>,
}

impl Found {
    /// The same with what was chosen.
    pub(crate) fn of(config: &impl Serialize) -> Self {
        Found { config: serde_json::to_value(config).unwrap_or_default(), ..Found::default() }
    }

    /// Adds a plain number.
    pub(crate) fn number(&mut self, name: &str, value: f64) {
        self.numbers.insert(name.into(), value);
    }

    /// Adds right answers, and what became of the bare model's.
    pub(crate) fn right(&mut self, name: &str, right: &[bool], alone: &[bool]) {
        self.counts.insert(name.into(), Share::count(right.iter().copied()));
        let pairs = || right.iter().zip(alone);
        let mended = pairs().filter(|(after, before)| **after && !**before).count();
        let broken = pairs().filter(|(after, before)| !**after && **before).count();
        self.paired.insert(name.into(), Paired { mended, broken, of: right.len() });
    }
}

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) experiment: String,
    pub(crate) what: What,
    /// `quick` or `full`.
    pub(crate) scale: String,
    pub(crate) seed: u64,
    /// The commit of the sources, with `+` where one of them had changed since.
    pub(crate) commit: String,
    /// BLAKE3 of model and data, the first 16 digits.
    pub(crate) model: String,
    pub(crate) data: String,
    /// Wall time of the measurement, what was kept of earlier ones not counted.
    pub(crate) seconds: f64,
    #[serde(flatten)]
    pub(crate) found: Found,
}

impl Line {
    /// One of the words that tell what it is; empty if there is none of the name.
    pub(crate) fn word(&self, name: &str) -> &str {
        self.what.get(name).map_or("", String::as_str)
    }

    /// A plain number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.found.numbers.get(name).copied()
    }

    /// How many inputs it judged, of a kind; 0 of a line without counts.
    pub(crate) fn inputs(&self) -> usize {
        self.found.counts.values().map(|share| share.of).max().unwrap_or(0)
    }

    /// Counts.
    pub(crate) fn count(&self, name: &str) -> Option<Share> {
        self.found.counts.get(name).copied()
    }
}

/// The lines of one experiment and the file they are in.
pub(crate) struct Ledger {
    path: PathBuf,
    lines: Vec<Line>,
}

impl Ledger {
    /// Reads the lines of an experiment; none if there is no file yet.
    pub(crate) fn open(folder: &Path, experiment: &str) -> Result<Self, String> {
        let path = folder.join(experiment).with_extension("jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(format!("{}: {e}", path.display())),
        };
        let read = |(at, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|e| format!("{}:{}: {e}", path.display(), at + 1))
        };
        // A line that an interrupted run has left half-written has no end.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().enumerate().map(read).collect::<Result<_, _>>()?;
        if whole.len() + 1 < text.len() {
            let kept = if whole.is_empty() { String::new() } else { format!("{whole}\n") };
            fs::write(&path, kept).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(Ledger { path, lines })
    }

    /// Whether a measurement of the same model, data, scale and seed is finished.
    pub(crate) fn has(&self, like: &Line) -> bool {
        self.lines.iter().any(|line| {
            line.what == like.what
                && line.scale == like.scale
                && line.seed == like.seed
                && line.model == like.model
                && line.data == like.data
        })
    }

    /// Appends a line.
    pub(crate) fn add(&mut self, line: Line) -> Result<(), String> {
        let bad = |e: std::io::Error| format!("{}: {e}", self.path.display());
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder).map_err(bad)?;
        }
        let mut text = serde_json::to_string(&line).map_err(|e| e.to_string())?;
        text.push('\n');
        let mut file: File =
            OpenOptions::new().create(true).append(true).open(&self.path).map_err(bad)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(bad)?;
        self.lines.push(line);
        Ok(())
    }

    /// The lines to show: of each data set those of the largest scale, of each measurement those
    /// of the number of inputs that most seeds judged (the larger of equals), of each of these
    /// seeds the last.
    pub(crate) fn shown(&self) -> Vec<Line> {
        let full = |data: &str| {
            self.lines.iter().any(|line| line.word("data") == data && line.scale == "full")
        };
        let mut shown: Vec<Line> = Vec::new();
        for line in &self.lines {
            if line.scale != "full" && full(line.word("data")) {
                continue;
            }
            let same = |other: &Line| {
                other.what == line.what
                    && other.seed == line.seed
                    && other.inputs() == line.inputs()
            };
            shown.retain(|other| !same(other));
            shown.push(line.clone());
        }
        let mut seeds: BTreeMap<(What, usize), usize> = BTreeMap::new();
        for line in &shown {
            *seeds.entry((line.what.clone(), line.inputs())).or_default() += 1;
        }
        let mut best: BTreeMap<What, (usize, usize)> = BTreeMap::new();
        for ((what, inputs), seeds) in seeds {
            let best = best.entry(what).or_default();
            *best = (*best).max((seeds, inputs));
        }
        shown.retain(|line| best.get(&line.what).is_some_and(|(_, n)| *n == line.inputs()));
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(method: &str, scale: &str, hits: usize) -> Line {
        let mut found = Found::default();
        found.counts.insert("upright".into(), Share { hits, of: 9 });
        let word = |k: &str, v: &str| (k.to_string(), v.to_string());
        Line {
            experiment: "main".into(),
            what: What::from([word("data", "digits"), word("method", method)]),
            scale: scale.into(),
            seed: 0,
            commit: "abc".into(),
            model: "m".into(),
            data: "d".into(),
            seconds: 1.5,
            found,
        }
    }

    #[test]
    fn a_ledger_goes_on_where_it_stopped_and_drops_what_was_cut_off() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path(), "main").unwrap();
        ledger.add(line("vanilla", "quick", 3)).unwrap();
        let path = folder.path().join("main.jsonl");
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
        let mut again = Ledger::open(folder.path(), "main").unwrap();
        assert!(again.has(&line("vanilla", "quick", 0)));
        assert!(!again.has(&line("vanilla", "full", 0)) && !again.has(&line("tta", "quick", 0)));
        assert_eq!(fs::read_to_string(&path).unwrap(), whole);
        again.add(line("tta", "quick", 4)).unwrap();
        assert_eq!(Ledger::open(folder.path(), "main").unwrap().lines.len(), 2);
        fs::write(&path, "{\n").unwrap();
        assert!(Ledger::open(folder.path(), "main").err().unwrap().contains("main.jsonl:1:"));
    }

    /// Runs of another number of inputs are not averaged with them.
    #[test]
    fn runs_on_as_many_inputs_as_most_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path(), "main").unwrap();
        for (seed, of) in [(0, 500), (1, 90), (2, 90), (0, 60)] {
            let mut line = line("ours", "full", seed);
            line.seed = seed as u64;
            line.found.counts.insert("upright".into(), Share { hits: seed, of });
            ledger.add(line).unwrap();
        }
        let seeds = |ledger: &Ledger| ledger.shown().iter().map(|l| l.seed).collect::<Vec<_>>();
        assert_eq!(seeds(&ledger), [1, 2]);
        let mut more = line("ours", "full", 0);
        more.found.counts.insert("upright".into(), Share { hits: 1, of: 90 });
        ledger.add(more).unwrap();
        assert_eq!(seeds(&ledger), [1, 2, 0]);
    }

    #[test]
    fn the_largest_scale_and_the_last_line_of_a_measurement_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(folder.path(), "main").unwrap();
        for (method, scale, hits) in
            [("vanilla", "quick", 1), ("vanilla", "full", 2), ("vanilla", "full", 3)]
        {
            ledger.add(line(method, scale, hits)).unwrap();
        }
        let hits: Vec<usize> =
            ledger.shown().iter().map(|l| l.count("upright").unwrap().hits).collect();
        assert_eq!(hits, [3]);
    }
}
