//! `upright predict --out FOLDER`: a job that survives a crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use signal_hook::consts::{SIGINT, SIGTERM};
use upright::Canonicalizer;
use upright_data::Want;
use upright_job::{Format, Job, PART_ROWS, Shard, Stop, Summary, Watch};

use super::predict::Args;
use super::setup::open;
use crate::Common;
use crate::progress::Progress;
use crate::report::{Failure, Note, Result};

/// Flags of jobs.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Job")]
pub struct JobArgs {
    /// Which of several shards of the inputs to answer, as in 3/64; all may share one folder
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// Rows in a part [default: 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    part_rows: Option<u32>,
    /// Go on with what the folder holds, which is what happens anyway
    #[arg(long)]
    resume: bool,
}

impl JobArgs {
    /// The folder of the job, if it is one: rows go into a folder unless a file is named.
    pub fn folder<'a>(&self, out: Option<&'a Path>, views: bool) -> Result<Option<&'a Path>> {
        let named = out.filter(|path| is_folder(path));
        let asked = self.shard.is_some() || self.part_rows.is_some() || self.resume;
        if asked && named.is_none() {
            return Err(Failure::usage(
                "`--shard`, `--part-rows` and `--resume` are for jobs, which write into a folder",
                "name one with `--out rows/`",
            ));
        }
        if views && named.is_some() {
            return Err(Failure::usage(
                "a job writes no views",
                "leave out `--views`, or name a file with `--out rows.csv`",
            ));
        }
        Ok(named)
    }
}

/// Whether a path names a folder: one that is there, or a name without an ending.
fn is_folder(path: &Path) -> bool {
    let bare = path.extension().is_none_or(|e| e == Format::Parquet.name());
    path.is_dir() || !path.is_file() && (bare || path.to_string_lossy().ends_with(['/', '\\']))
}

/// Reads a format by its name.
pub fn format() -> impl TypedValueParser<Value = Format> {
    let value = |format: Format| {
        PossibleValue::new(format.name()).help(match format {
            Format::Parquet => "Columns, compressed (jobs only)",
            Format::Csv => "A header, then one line of comma-separated fields per row",
            Format::Jsonl => "One JSON object per line",
        })
    };
    PossibleValuesParser::new(Format::ALL.map(value)).map(|name| name.parse().unwrap_or_default())
}

/// Runs the job, to its end or until it is asked to stop.
pub fn run(
    args: &Args,
    c: &Canonicalizer,
    artifact: String,
    folder: &Path,
    common: &Common,
) -> Result<()> {
    let source = open(&args.inputs, &args.reading, Want::Inputs, c.model(), common)?;
    let job = Job {
        artifact: Some(artifact),
        seed: common.seed,
        format: args.format.unwrap_or_default(),
        shard: args.job.shard.unwrap_or(Shard::WHOLE),
        part_rows: args.job.part_rows.map_or(PART_ROWS, |n| n as usize),
        logits: args.logits,
        tolerated: args.reading.tolerated(),
        ..Job::new(c, &source, folder)
    };
    let mut talk = Talk { bar: None, signals: Signals::catch()?, told: false, common };
    let summary = job.run(&mut talk)?;
    let signal = talk.signals.caught();
    drop(talk);
    if !common.quiet {
        for note in source.notes() {
            Note::from(&note).print(common.json);
        }
    }
    if let Some(signal) = signal.filter(|_| !summary.finished()) {
        let parts = summary.kept + summary.written;
        return Err(Failure::Stopped { parts, total: summary.parts, signal });
    }
    end(&summary, &job, common);
    Ok(())
}

#[derive(Serialize)]
struct Report {
    out: PathBuf,
    shard: String,
    rows: usize,
    searched: usize,
    errors: usize,
    parts: usize,
    kept: usize,
    redone: usize,
    written: usize,
}

#[expect(clippy::print_stdout, reason = "with --json the summary is the result")]
fn end(summary: &Summary, job: &Job, common: &Common) {
    let &Summary { rows, parts, kept, redone, written, searched, errors, .. } = summary;
    if common.json {
        let (out, shard) = (job.out.clone(), job.shard.to_string());
        let report = Report { out, shard, rows, searched, errors, parts, kept, redone, written };
        println!("{}", serde_json::json!(report));
        return;
    }
    if common.quiet {
        return;
    }
    let folder = job.out.display();
    if written == 0 {
        eprintln!("finished   `{folder}` has all {rows} rows in {parts} parts; nothing to do");
    } else {
        eprintln!("wrote      {written} of {parts} parts into `{folder}`, {rows} rows in all");
    }
    if redone > 0 {
        eprintln!("           {redone} parts were damaged or missing and were written again");
    }
    eprintln!("           {searched} searched, {errors} without an answer (column `error`)");
}

/// The signals that ask a job to stop. A second one ends the process at once.
struct Signals(Arc<AtomicUsize>);

impl Signals {
    fn catch() -> Result<Self> {
        let caught = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            let number = signal.unsigned_abs();
            signal_hook::flag::register_conditional_shutdown(
                signal,
                128 + signal,
                Arc::clone(&again),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&again)))
            .and_then(|_| {
                signal_hook::flag::register_usize(signal, Arc::clone(&caught), number as usize)
            })
            .map_err(|e| Failure::io(Path::new("signals"), e))?;
        }
        Ok(Signals(caught))
    }

    fn caught(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::SeqCst)).ok().filter(|&signal| signal != 0)
    }
}

/// Shows progress and hears signals.
struct Talk<'a> {
    bar: Option<(Progress, usize)>,
    signals: Signals,
    told: bool,
    common: &'a Common,
}

impl Watch for Talk<'_> {
    fn progress(&mut self, now: &upright_job::Progress) {
        let quiet = self.common.quiet;
        let (bar, shown) =
            self.bar.get_or_insert_with(|| (Progress::start("predict", now.rows, quiet), 0));
        bar.advance(now.done.saturating_sub(*shown));
        *shown = now.done;
        bar.say(format!("{} searched, {} without an answer", now.searched, now.errors));
    }

    fn stop(&mut self) -> Stop {
        if self.signals.caught().is_none() {
            return Stop::No;
        }
        if !self.told && !self.common.quiet {
            eprintln!("stopping after the part in hand; once more to stop at once");
        }
        self.told = true;
        Stop::AfterPart
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_whether_rows_go_into_a_folder() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("a.d")).unwrap();
        std::fs::write(here.path().join("rows"), "").unwrap();
        for (name, folder) in [
            ("out", true),
            ("out.parquet", true),
            ("out.v2/", true),
            ("a.d", true),
            ("rows", false),
            ("out.csv", false),
            ("out.txt", false),
        ] {
            assert_eq!(is_folder(&here.path().join(name)), folder, "{name}");
        }
    }

    #[test]
    fn formats_are_read_by_name() {
        #[derive(clap::Parser)]
        struct Flags {
            #[arg(long, value_parser = format())]
            format: Format,
        }
        for format in Format::ALL {
            let flags = <Flags as clap::Parser>::parse_from(["x", "--format", format.name()]);
            assert_eq!(flags.format, format);
        }
    }
}
