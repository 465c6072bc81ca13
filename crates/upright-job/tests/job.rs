//! Jobs on digits in memory: shards, stops, limits and what the parts hold.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use tempfile::tempdir;
use upright::{
    Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Role, Signal, Silent, samples,
};
use upright_data::{Allowance, Rows, Skipped};
use upright_job::{Error, Format, Hint, Input, Job, Progress, Quiet, Shard, Stop, Watch};

const ITEMS: usize = 128;

/// Drawn digits of which some cannot be read.
struct Digits {
    batch: Batch<'static>,
    bad: &'static [usize],
    /// The items from here on have the ids of those from the first on.
    again: usize,
}

impl Digits {
    fn new(bad: &'static [usize]) -> Self {
        let digits = samples::digits(ITEMS, 5).unwrap();
        let batch = Batch::new(digits.batch().signal(), digits.batch().data().to_vec()).unwrap();
        Digits { batch, bad, again: ITEMS }
    }
}

impl Input for Digits {
    fn len(&self) -> usize {
        self.batch.len()
    }

    fn id(&self, row: usize) -> String {
        format!("digit-{}", row % self.again)
    }

    fn load(&self, rows: &[usize]) -> upright_data::Result<Rows> {
        let mut batch = Batch::new(Signal::image(1, 40, 40), Vec::new())?;
        let (mut read, mut skipped) = (Vec::new(), Vec::new());
        for &row in rows {
            if self.bad.contains(&row) {
                skipped.push(Skipped { row, name: self.id(row), why: "torn, \"half\"".into() });
            } else {
                batch.push(self.batch.item(row))?;
                read.push(row);
            }
        }
        Ok(Rows { batch, rows: read, skipped })
    }

    fn stamp(&self) -> String {
        String::new()
    }
}

fn fitted() -> &'static Canonicalizer {
    static FITTED: OnceLock<Canonicalizer> = OnceLock::new();
    FITTED.get_or_init(|| {
        let bytes = samples::glyph_model();
        let model = Model::from_bytes("digits", bytes, &ModelOptions::default()).unwrap();
        let config = Config { budget: 4, calibration: 40, ..Config::default() }
            .with(Role::Score, Part::new("energy"))
            .with(Role::Gate, Part::new("always"))
            .with(Role::Search, Part::new("grid"));
        config.fit(model, &FitData::new(&samples::digits(200, 1).unwrap()), &mut Silent).unwrap()
    })
}

fn job<'a>(input: &'a Digits, out: &Path) -> Job<'a> {
    Job { format: Format::Csv, part_rows: 10, ..Job::new(fitted(), input, out) }
}

/// Every line of every part below a folder but the headers, and the number of parts.
fn lines(folder: &Path) -> (Vec<String>, usize) {
    let (mut out, mut parts) = (Vec::new(), 0);
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            let (more, count) = lines(&path);
            out.extend(more);
            parts += count;
        } else if path.extension().is_some_and(|e| e == "csv") {
            let text = fs::read_to_string(path).unwrap();
            out.extend(text.lines().skip(1).map(str::to_owned));
            parts += 1;
        }
    }
    out.sort();
    (out, parts)
}

#[test]
fn any_number_of_shards_has_the_rows_of_one_run() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[3, 77]));
    let whole = folder.path().join("whole");
    let done = job(&input, &whole).run(&mut Quiet).unwrap();
    assert_eq!((done.rows, done.parts, done.errors), (ITEMS, 13, 2));
    let (rows, parts) = lines(&whole);
    assert_eq!((rows.len(), parts), (ITEMS, 13));
    assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), ITEMS);
    for of in [1, 5, 64] {
        let out = folder.path().join(of.to_string());
        for number in 1..=of {
            let shard = Shard::new(number, of).unwrap();
            let job = Job { shard, ..job(&input, &out) };
            let done = job.run(&mut Quiet).unwrap();
            assert!(done.finished());
            assert_eq!(job.run(&mut Quiet).unwrap().written, 0);
        }
        assert_eq!(lines(&out).0, rows, "{of} shards");
    }
}

#[test]
fn shards_of_another_job_are_not_mixed() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[]));
    let out = folder.path().join("out");
    let share = |number, of| Job { shard: Shard::new(number, of).unwrap(), ..job(&input, &out) };
    share(1, 5).run(&mut Quiet).unwrap();
    let error = share(1, 4).run(&mut Quiet).unwrap_err();
    assert!(error.to_string().ends_with("its job has 5 shards, not 4"), "{error}");
    let error = job(&input, &out).run(&mut Quiet).unwrap_err();
    assert!(error.to_string().ends_with("it holds the shards of one"), "{error}");
    let error = Job { seed: 3, ..share(2, 5) }.run(&mut Quiet).unwrap_err();
    assert!(error.to_string().ends_with("shard-1-of-5` was begun with another seed (0, now 3)"));
    share(2, 5).run(&mut Quiet).unwrap();
    let whole = folder.path().join("whole");
    job(&input, &whole).run(&mut Quiet).unwrap();
    let error = Job { out: whole, ..share(1, 5) }.run(&mut Quiet).unwrap_err();
    assert_eq!(error.code(), "job::folder");
}

#[test]
fn two_items_of_one_id_are_refused_before_anything_is_written() {
    let folder = tempdir().unwrap();
    let out = folder.path().join("out");
    let input = Digits { again: 100, ..Digits::new(&[]) };
    let error = job(&input, &out).run(&mut Quiet).unwrap_err();
    let Error::Duplicate { id, rows } = &error else { panic!("{error}") };
    assert_eq!((id.as_str(), *rows), ("digit-0", [0, 100]));
    assert_eq!(error.hint(), Some(Hint::UniqueIds));
    assert!(!out.exists());
}

/// Stops after so many reports.
struct After(usize, Stop);

impl Watch for After {
    fn progress(&mut self, now: &Progress) {
        assert!(now.done <= now.rows);
        self.0 = self.0.saturating_sub(1);
    }

    fn stop(&mut self) -> Stop {
        if self.0 == 0 { self.1 } else { Stop::No }
    }
}

#[test]
fn a_stopped_job_goes_on_where_it_was() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[40]));
    let whole = folder.path().join("whole");
    job(&input, &whole).run(&mut Quiet).unwrap();
    for (stop, parts) in [(Stop::AfterPart, 3), (Stop::Now, 3)] {
        let out = folder.path().join(format!("{stop:?}"));
        let first = job(&input, &out).run(&mut After(4, stop)).unwrap();
        assert_eq!((first.written, first.done, first.finished()), (parts, 30, false));
        let second = job(&input, &out).run(&mut Quiet).unwrap();
        assert_eq!((second.kept, second.written, second.finished()), (parts, 13 - parts, true));
        for entry in fs::read_dir(&whole).unwrap() {
            let name = entry.unwrap().file_name();
            assert_eq!(fs::read(whole.join(&name)).unwrap(), fs::read(out.join(&name)).unwrap());
        }
        assert_eq!(fs::read_dir(&out).unwrap().count(), 14);
    }
    // A part of many micro-batches is given up in its middle.
    let out = folder.path().join("middle");
    let large = Job { part_rows: 1000, ..job(&input, &out) };
    assert_eq!(large.run(&mut After(1, Stop::Now)).unwrap().written, 0);
}

#[test]
fn no_more_items_than_tolerated_stay_without_an_answer() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[3, 5, 25]));
    let out = folder.path().join("out");
    let limited = |tolerated| Job { tolerated: Some(tolerated), ..job(&input, &out) };
    for _ in 0..2 {
        let error = limited(Allowance::Count(2)).run(&mut Quiet).unwrap_err();
        assert!(matches!(error, Error::Unread { count: 3, total: ITEMS }), "{error}");
    }
    let done = limited(Allowance::Percent(3.0)).run(&mut Quiet).unwrap();
    assert_eq!((done.kept, done.written, done.errors), (3, 10, 3));
}

#[test]
fn every_format_holds_the_same_rows() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[1]));
    for format in Format::ALL {
        let out = folder.path().join(format.name());
        let logits = format != Format::Csv;
        Job { format, logits, part_rows: 4, ..job(&input, &out) }.run(&mut Quiet).unwrap();
    }
    let csv = fs::read_to_string(folder.path().join("csv/part-00000.csv")).unwrap();
    let mut csv = csv.lines();
    assert_eq!(
        csv.next().unwrap(),
        "id,label,class,rival,model_label,verdict,energy_before,energy_after,evaluations,\
         m00,m01,m02,m10,m11,m12,error"
    );
    let csv: Vec<&str> = csv.collect();
    assert_eq!(csv[1], "digit-1,,,,,,,,,,,,,,,\"torn, \"\"half\"\"\"");
    let text = fs::read_to_string(folder.path().join("jsonl/part-00000.jsonl")).unwrap();
    let json: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((json.len(), csv.len()), (4, 4));
    assert_eq!(json[1]["error"], "torn, \"half\"");
    assert!(json[1]["label"].is_null() && json[1]["logits"].is_null());

    let file = fs::File::open(folder.path().join("parquet/part-00000.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    let names: Vec<&String> = rows[0].get_column_iter().map(|(name, _)| name).collect();
    let keys: Vec<&String> = json[0].as_object().unwrap().keys().collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>(), keys.iter().collect::<BTreeSet<_>>());
    for (i, row) in rows.iter().enumerate() {
        let at = |name: &str| names.iter().position(|n| *n == name).unwrap();
        assert_eq!(row.get_string(at("id")).unwrap(), &format!("digit-{i}"));
        if i == 1 {
            assert_eq!(row.get_string(at("error")).unwrap(), "torn, \"half\"");
            assert!(
                row.get_float(at("energy_after")).is_err() && row.get_list(at("logits")).is_err()
            );
            continue;
        }
        let cells: Vec<&str> = csv[i].split(',').collect();
        assert_eq!(row.get_uint(at("label")).unwrap().to_string(), cells[1]);
        assert_eq!(row.get_string(at("class")).unwrap(), cells[2]);
        assert_eq!(row.get_string(at("verdict")).unwrap(), json[i]["verdict"].as_str().unwrap());
        let energy = row.get_float(at("energy_after")).unwrap();
        assert!((f64::from(energy) - cells[7].parse::<f64>().unwrap()).abs() < 1e-6);
        assert!((f64::from(energy) - json[i]["energy_after"].as_f64().unwrap()).abs() < 1e-6);
        assert_eq!(row.get_uint(at("evaluations")).unwrap().to_string(), cells[8]);
        let entry: f32 = cells[10].parse().unwrap();
        assert!((row.get_float(at("m01")).unwrap() - entry).abs() < 1e-6);
        let logits = json[i]["logits"].as_array().unwrap();
        assert_eq!(row.get_list(at("logits")).unwrap().len(), logits.len());
    }
    let refused = Job { logits: true, ..job(&input, folder.path()) }.run(&mut Quiet);
    assert_eq!(refused.unwrap_err().code(), "config::setting");
}

#[test]
fn a_folder_with_anything_else_is_refused_and_left_alone() {
    let (folder, input) = (tempdir().unwrap(), Digits::new(&[]));
    fs::write(folder.path().join("thesis.tex"), "years of work").unwrap();
    let error = job(&input, folder.path()).run(&mut Quiet).unwrap_err();
    assert_eq!((error.code(), error.hint()), ("job::folder", Some(Hint::OtherFolder)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    assert!(job(&input, &out).run(&mut Quiet).unwrap().finished());
    // Parts whose journal is gone may be anyone's.
    fs::write(out.join("_journal.jsonl"), "").unwrap();
    assert_eq!(job(&input, &out).run(&mut Quiet).unwrap_err().code(), "job::folder");
}
