//! One row of output, and which columns a table of rows has.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use upright::{Canonicalizer, Prediction, SignalKind, Verdict};

/// Names of a map's entries, row by row; the first six in the plane.
const MAP: [&str; 9] = ["m00", "m01", "m02", "m10", "m11", "m12", "m20", "m21", "m22"];

/// What became of one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// What the item is called: its path, or what its file says.
    pub id: String,
    /// The answer, or why there is none.
    pub answer: Result<Answer, String>,
}

/// The answer for one item.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The class, by number and by name.
    pub label: u32,
    /// Its name.
    pub class: String,
    /// The class of the best view that says otherwise, if one was seen.
    pub rival: Option<u32>,
    /// What the bare model says of the item as it is.
    pub model_label: u32,
    /// What became of it.
    pub verdict: Verdict,
    /// Energy of the item as it is; lower = more familiar.
    pub energy_before: f32,
    /// Energy of the view that answered.
    pub energy_after: f32,
    /// Forward passes spent.
    pub evaluations: usize,
    /// The map of the view that answered, from view to input, row by row: six numbers in the
    /// plane, nine in space.
    pub map: Vec<f32>,
    /// The logits that the answer comes from.
    pub logits: Vec<f32>,
}

impl Answer {
    /// What a prediction says.
    pub fn of(c: &Canonicalizer, p: &Prediction) -> Self {
        // Minus nought plus nought is nought, which prints without a sign.
        let plain = |v: f32| v + 0.0;
        let all = |v: &[f32]| v.iter().copied().map(plain).collect();
        Answer {
            label: p.label,
            class: c.model().class_name(p.label),
            rival: p.rival,
            model_label: p.raw_label,
            verdict: p.verdict,
            energy_before: plain(p.energy_before),
            energy_after: plain(p.energy_after),
            evaluations: p.evaluations,
            map: all(p.map.entries()),
            logits: all(&p.logits),
        }
    }
}

impl Row {
    /// The row of an answered item.
    pub fn answered(id: String, c: &Canonicalizer, p: &Prediction) -> Self {
        Row { id, answer: Ok(Answer::of(c, p)) }
    }

    /// The row of an item that could not be read.
    pub fn unread(id: String, why: impl Into<String>) -> Self {
        Row { id, answer: Err(why.into()) }
    }

    /// Whether its item was searched, or sent to a second model.
    pub fn searched(&self) -> bool {
        self.answer.as_ref().is_ok_and(|a| a.verdict != Verdict::Kept)
    }
}

/// Which columns rows have; the same for every row of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Table {
    /// What the first column is called.
    pub id: &'static str,
    /// Entries of a map: 6 or 9.
    pub entries: usize,
    /// Whether there are logits, as a list.
    pub logits: bool,
    /// Whether there is a last column with the reason why a row has no answer.
    pub error: bool,
}

impl Table {
    /// The columns of a job on items of a kind.
    pub fn of(kind: SignalKind, logits: bool) -> Self {
        let entries = if kind == SignalKind::Cloud { 9 } else { 6 };
        Table { id: "id", entries, logits, error: true }
    }

    /// The names of the columns that hold the map.
    pub fn map_columns(&self) -> &'static [&'static str] {
        &MAP[..self.entries.min(MAP.len())]
    }

    /// A row with these columns, to be serialised as a record.
    pub fn record<'a>(&'a self, row: &'a Row) -> impl Serialize + 'a {
        Record { table: self, row }
    }
}

/// A verdict in a word.
pub fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Accepted => "accepted",
        Verdict::Rejected => "rejected",
        Verdict::Switched => "switched",
        Verdict::Abstained => "abstained",
    }
}

struct Record<'a> {
    table: &'a Table,
    row: &'a Row,
}

impl Serialize for Record<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (table, answer) = (self.table, self.row.answer.as_ref().ok());
        let columns = 9 + table.entries + usize::from(table.logits) + usize::from(table.error);
        let mut out = to.serialize_struct("Row", columns)?;
        out.serialize_field(table.id, &self.row.id)?;
        out.serialize_field("label", &answer.map(|a| a.label))?;
        out.serialize_field("class", &answer.map(|a| &a.class))?;
        out.serialize_field("rival", &answer.and_then(|a| a.rival))?;
        out.serialize_field("model_label", &answer.map(|a| a.model_label))?;
        out.serialize_field("verdict", &answer.map(|a| word(a.verdict)))?;
        out.serialize_field("energy_before", &answer.map(|a| a.energy_before))?;
        out.serialize_field("energy_after", &answer.map(|a| a.energy_after))?;
        out.serialize_field("evaluations", &answer.map(|a| a.evaluations))?;
        for (i, name) in table.map_columns().iter().enumerate() {
            out.serialize_field(name, &answer.and_then(|a| a.map.get(i)))?;
        }
        if table.logits {
            out.serialize_field("logits", &answer.map(|a| &a.logits))?;
        }
        if table.error {
            out.serialize_field("error", &self.row.answer.as_ref().err())?;
        }
        out.end()
    }
}
