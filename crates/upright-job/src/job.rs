//! [`Job`]: from a data set to a folder of parts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use upright::Canonicalizer;
use upright::internal::dataset::chunk;
use upright_data::{Allowance, Rows};

use crate::error::{Error, Result};
use crate::facts::{self, Facts};
use crate::folder;
use crate::format::Format;
use crate::input::{self, Input, Listing};
use crate::journal::{Entry, Journal};
use crate::row::{Row, Table};
use crate::shard::Shard;
use crate::watch::{Progress, Stop, Watch};

/// Rows in a part, unless others are asked for.
pub const PART_ROWS: usize = 1000;

/// Predictions for all items of a data set, or for a shard of them.
#[derive(Clone)]
pub struct Job<'a> {
    /// What answers.
    pub canonicalizer: &'a Canonicalizer,
    /// The items.
    pub input: &'a dyn Input,
    /// The folder to write into; shards have a folder each inside it.
    pub out: PathBuf,
    /// The digest of the artifact, if the canonicalizer came from one.
    pub artifact: Option<String>,
    /// The seed that items were prepared with.
    pub seed: u64,
    /// How parts are written.
    pub format: Format,
    /// Which items are this run's.
    pub shard: Shard,
    /// Rows in a part; the last one may have fewer.
    pub part_rows: usize,
    /// Whether rows have logits, too.
    pub logits: bool,
    /// Items that may stay without an answer, of all that the run has; `None` for all.
    pub tolerated: Option<Allowance>,
}

/// What a run has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Rows of the job, or of the shard.
    pub rows: usize,
    /// Parts of the job, or of the shard.
    pub parts: usize,
    /// Parts that were there before and whole.
    pub kept: usize,
    /// Parts that the journal names but that were missing or damaged, and were written again.
    pub redone: usize,
    /// Parts that this run wrote, those written again among them.
    pub written: usize,
    /// Rows in all parts there are now.
    pub done: usize,
    /// Those of them that were searched.
    pub searched: usize,
    /// Those of them without an answer.
    pub errors: usize,
}

impl Summary {
    /// Whether all parts are there.
    pub fn finished(&self) -> bool {
        self.kept + self.written == self.parts
    }
}

impl<'a> Job<'a> {
    /// A job with the usual settings.
    pub fn new(canonicalizer: &'a Canonicalizer, input: &'a dyn Input, out: &Path) -> Self {
        Job {
            canonicalizer,
            input,
            out: out.into(),
            artifact: None,
            seed: 0,
            format: Format::default(),
            shard: Shard::WHOLE,
            part_rows: PART_ROWS,
            logits: false,
            tolerated: None,
        }
    }

    /// Writes every part that is not there yet. A folder that was begun with the same job is
    /// gone on with; one that holds anything else is refused.
    pub fn run(&self, watch: &mut dyn Watch) -> Result<Summary> {
        if self.part_rows == 0 {
            return Err(Error::Setting("a part needs at least one row"));
        }
        if self.logits && self.format == Format::Csv {
            return Err(Error::Setting("a table of csv cannot hold logits, which are lists"));
        }
        let listing = input::list(self.input, self.shard)?;
        let (folder, journal) = folder::open(&self.out, self.shard, &self.facts(&listing))?;
        let table = Table::of(self.canonicalizer.model().signal().kind(), self.logits);
        let parts = listing.rows.len().div_ceil(self.part_rows);
        let summary = Summary { rows: listing.rows.len(), parts, ..Summary::default() };
        Run { job: self, folder, journal, table, rows: listing.rows, summary }.all(watch)
    }

    /// What must stay the same from the first run to the last.
    fn facts(&self, listing: &Listing) -> Facts {
        let model = self.canonicalizer.model();
        let facts = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "model": model.fingerprint(),
            "artifact": self.artifact,
            "settings": facts::settings(self.canonicalizer.config(), &model.options()),
            "seed": self.seed,
            "input": {
                "items": self.input.len(),
                "listing": listing.hash,
                "files": self.input.stamp(),
            },
            "shard": self.shard.to_string(),
            "format": self.format.name(),
            "part_rows": self.part_rows,
            "logits": self.logits,
        });
        facts.as_object().cloned().unwrap_or_default()
    }
}

/// A job at work.
struct Run<'a> {
    job: &'a Job<'a>,
    folder: PathBuf,
    journal: Journal,
    table: Table,
    rows: Vec<usize>,
    summary: Summary,
}

impl Run<'_> {
    fn all(mut self, watch: &mut dyn Watch) -> Result<Summary> {
        let parts = 0..self.summary.parts;
        let missing: Vec<usize> = parts.filter(|&part| !self.keep(part)).collect();
        self.within_limit()?;
        watch.progress(&self.progress());
        for part in missing {
            if watch.stop() != Stop::No {
                break;
            }
            let before = self.progress();
            let Some(rows) = self.answers(part, before, watch)? else { break };
            self.write(part, &rows)?;
            self.within_limit()?;
        }
        Ok(self.summary)
    }

    /// Counts a part as done if the journal has it and its file is what the journal says.
    fn keep(&mut self, part: usize) -> bool {
        let Some(entry) = self.journal.parts.get(&part) else { return false };
        let whole = entry.file == self.name(part)
            && entry.rows == self.of_part(part).len()
            && folder::hash(&self.folder.join(&entry.file)).as_ref() == Some(&entry.blake3);
        if whole {
            self.summary.kept += 1;
            self.summary.done += entry.rows;
            self.summary.searched += entry.searched;
            self.summary.errors += entry.errors;
        } else {
            self.summary.redone += 1;
        }
        whole
    }

    fn name(&self, part: usize) -> String {
        format!("part-{part:05}.{}", self.job.format.name())
    }

    fn of_part(&self, part: usize) -> &[usize] {
        let from = part * self.job.part_rows;
        &self.rows[from..self.rows.len().min(from + self.job.part_rows)]
    }

    fn progress(&self) -> Progress {
        let Summary { rows, done, searched, errors, .. } = self.summary;
        Progress { rows, done, searched, errors }
    }

    /// The rows of a part; `None` if it was given up.
    fn answers(
        &self,
        part: usize,
        mut progress: Progress,
        watch: &mut dyn Watch,
    ) -> Result<Option<Vec<Row>>> {
        let c = self.job.canonicalizer;
        let items = self.of_part(part);
        let mut out = Vec::with_capacity(items.len());
        for items in items.chunks(chunk(c.model().signal())) {
            if watch.stop() == Stop::Now {
                return Ok(None);
            }
            let rows = self.chunk(items)?;
            progress.done += rows.len();
            progress.searched += rows.iter().filter(|r| r.searched()).count();
            progress.errors += rows.iter().filter(|r| r.answer.is_err()).count();
            out.extend(rows);
            watch.progress(&progress);
        }
        Ok(Some(out))
    }

    fn chunk(&self, items: &[usize]) -> Result<Vec<Row>> {
        let c = self.job.canonicalizer;
        let Rows { batch, rows, skipped } = self.job.input.load(items)?;
        let predictions = if rows.is_empty() { Vec::new() } else { c.predict(&batch)? };
        let answers: HashMap<usize, _> = rows.into_iter().zip(&predictions).collect();
        let reasons: HashMap<usize, _> = skipped.into_iter().map(|s| (s.row, s.why)).collect();
        let row = |&item: &usize| {
            let id = self.job.input.id(item);
            match (answers.get(&item), reasons.get(&item)) {
                (Some(prediction), _) => Row::answered(id, c, prediction),
                (None, Some(why)) => Row::unread(id, why.to_string()),
                (None, None) => Row::unread(id, "it was not read"),
            }
        };
        Ok(items.iter().map(row).collect())
    }

    fn write(&mut self, part: usize, rows: &[Row]) -> Result<()> {
        let name = self.name(part);
        let encoded = self.job.format.encode(&self.table, rows);
        let bytes = encoded.map_err(|e| Error::io(&self.folder.join(&name), e))?;
        folder::write(&self.folder, &name, &bytes)?;
        let id = |row: Option<&Row>| row.map(|r| r.id.clone()).unwrap_or_default();
        let entry = Entry {
            part,
            file: name,
            rows: rows.len(),
            errors: rows.iter().filter(|r| r.answer.is_err()).count(),
            searched: rows.iter().filter(|r| r.searched()).count(),
            first: id(rows.first()),
            last: id(rows.last()),
            blake3: blake3::hash(&bytes).to_hex().to_string(),
        };
        self.summary.written += 1;
        self.summary.done += entry.rows;
        self.summary.searched += entry.searched;
        self.summary.errors += entry.errors;
        self.journal.record(entry)
    }

    /// Refuses to go on once more items than tolerated are without an answer.
    fn within_limit(&self) -> Result<()> {
        let Summary { rows: total, errors: count, .. } = self.summary;
        match self.job.tolerated.map(|allowance| allowance.of(total)) {
            Some(limit) if count > limit => Err(Error::Unread { count, total }),
            _ => Ok(()),
        }
    }
}
