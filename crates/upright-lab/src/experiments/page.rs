//! A page of results in Markdown, made of nothing but lines: the same lines give
//! the same bytes.

use std::fmt::Write;

use upright::Share;
use upright::internal::stats::{mean_interval, rounded};

use super::ledger::Line;
use super::tasks::{DIGITS, FOUR};

/// A page under way.
#[derive(Default)]
pub(crate) struct Page {
    text: String,
    /// Drawings by file name.
    pub(crate) figures: Vec<(String, String)>,
    /// The experiment that is shown.
    experiment: &'static str,
}

/// A table with a row of titles; columns of numbers are right-aligned.
pub(crate) struct Table {
    titles: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Whether a column is of words: none of its cells, those left open aside, begins with a number.
    fn words(&self, column: usize) -> bool {
        let mut cells = self.rows.iter().filter_map(|row| row.get(column)).filter(|c| *c != "–");
        let number =
            |cell: &String| cell.starts_with(|c: char| c.is_ascii_digit() || "+-".contains(c));
        column == 0 || (cells.clone().next().is_some() && !cells.any(number))
    }
}

impl Table {
    pub(crate) fn new(titles: &[&str]) -> Self {
        Table { titles: titles.iter().map(|t| (*t).into()).collect(), rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Page {
    /// A page with a head.
    pub(crate) fn new(head: &str) -> Self {
        Page { text: head.into(), ..Page::default() }
    }

    /// Begins the part of an experiment.
    pub(crate) fn experiment(&mut self, name: &'static str, about: &str) {
        self.experiment = name;
        let _ = write!(self.text, "\n## {name}: {about}\n");
    }

    /// Begins a part that is no experiment.
    pub(crate) fn title(&mut self, text: &str) {
        let _ = write!(self.text, "\n## {text}\n");
    }

    pub(crate) fn heading(&mut self, text: &str) {
        let _ = write!(self.text, "\n### {text}\n");
    }

    pub(crate) fn text(&mut self, text: &str) {
        let _ = write!(self.text, "\n{text}\n");
    }

    /// Says so if some lines are not of the full scale.
    pub(crate) fn warn<'a>(&mut self, mut lines: impl Iterator<Item = &'a Line>) {
        if lines.any(|l| l.scale != "full") {
            self.text(QUICK);
        }
    }

    pub(crate) fn table(&mut self, table: &Table) {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let rules: Vec<String> = (0..table.titles.len())
            .map(|i| if table.words(i) { "---" } else { "---:" }.into())
            .collect();
        self.text.push('\n');
        self.text += &line(&table.titles);
        self.text += &line(&rules);
        for row in &table.rows {
            self.text += &line(row);
        }
    }

    /// A part for every data set that lines are of: its heading, what is shown of its lines, and
    /// how they were made.
    pub(crate) fn by_set(
        &mut self,
        lines: &[Line],
        mut show: impl FnMut(&mut Page, &'static str, &[&Line]),
    ) {
        for &set in FOUR.iter().chain(&[DIGITS]) {
            let own: Vec<&Line> = lines.iter().filter(|l| l.word("data") == set).collect();
            if !own.is_empty() {
                self.heading(set);
                show(self, set, &own);
                self.provenance(&own);
            }
        }
    }

    /// A drawing, kept in a file of its own beside the page.
    pub(crate) fn figure(&mut self, name: &str, about: &str, svg: String) {
        let file = format!("{}-{name}.svg", self.experiment);
        let _ = write!(self.text, "\n![{about}]({FIGURES}/{file})\n\n*{about}*\n");
        self.figures.push((file, svg));
    }

    /// How lines were made: scale, counts, runs, commit and command.
    pub(crate) fn provenance(&mut self, lines: &[&Line]) {
        let Some(first) = lines.first() else { return };
        let all = |word: &dyn Fn(&Line) -> String| {
            let mut words: Vec<String> = lines.iter().map(|l| word(l)).collect();
            words.sort();
            words.dedup();
            words.join(", ")
        };
        let inputs = match ends(lines.iter().map(|l| l.inputs()).filter(|n| *n > 0)) {
            Some((least, most)) if least < most => format!(", {least} to {most} answers a count"),
            Some((_, most)) => format!(", {most} answers a count"),
            None => String::new(),
        };
        let data = if first.word("data").is_empty() {
            String::new()
        } else {
            let sets = all(&|l| l.word("data").into()).replace(", ", ",");
            format!(" --data DIR --models DIR --sets {sets}")
        };
        let _ = write!(
            self.text,
            "\n`upright-lab run {}{data} --scale {}`{inputs}, seeds {}, commit {}, classifier {}, data {}\n",
            self.experiment,
            first.scale,
            all(&|l| l.seed.to_string()),
            all(&|l| l.commit.clone()),
            all(&|l| l.model.clone()),
            all(&|l| l.data.clone()),
        );
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// The least and the most of some numbers.
fn ends(numbers: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
    numbers.fold(None, |ends, n| ends.map_or(Some((n, n)), |(l, h)| Some((n.min(l), n.max(h)))))
}

const QUICK: &str = "*Lines of the scale `quick` are among these: few inputs, small banks. They \
                     show that it works, not how well.*";

/// The folder of drawings beside the page.
pub(crate) const FIGURES: &str = "docs/results";

/// The mean of some numbers and 1.96 standard errors, which one number alone has none of.
pub(crate) fn mean(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let square = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
    let error = (values.len() > 1).then(|| 1.96 * (square / (n - 1.0) / n).sqrt());
    Some((mean, error))
}

/// Mean accuracy over runs with 1.96 standard errors, and the 95 % interval that the number of
/// inputs leaves.
pub(crate) fn accuracy(lines: &[&Line], name: &str) -> String {
    let shares: Vec<Share> = lines.iter().filter_map(|l| l.count(name)).collect();
    let percents: Vec<f64> = shares.iter().map(Share::percent).collect();
    let Some((mean, error)) = mean(&percents) else { return "–".into() };
    let (low, high) = mean_interval(&shares);
    let error = error.map(|e| format!(" ±{e:.1}")).unwrap_or_default();
    format!("{mean:.1}{error} ({low:.1}..{high:.1})")
}

/// The mean of a number over runs.
pub(crate) fn number(lines: &[&Line], name: &str, decimals: usize) -> String {
    let values: Vec<f64> = lines.iter().filter_map(|l| l.number(name)).collect();
    mean(&values).map_or_else(|| "–".into(), |(mean, _)| format!("{mean:.decimals$}"))
}

/// Mean evaluations of upright and of transformed inputs, counted under a prefix.
pub(crate) fn views(lines: &[&Line], prefix: &str) -> String {
    let word = |kind| format!("{prefix}{kind} evaluations");
    let [up, tr] = super::tasks::KINDS.map(|kind| number(lines, &word(kind), 1));
    if up == tr { up } else { format!("{up} / {tr}") }
}

/// Points gained over the bare classifier on the same inputs, with the 95 % interval of one
/// run; means over runs.
pub(crate) fn gain(lines: &[&Line], name: &str) -> String {
    let of = |part: &dyn Fn(&upright::Paired) -> f64| {
        let values: Vec<f64> =
            lines.iter().filter_map(|l| Some(part(l.found.paired.get(name)?))).collect();
        mean(&values).map(|m| m.0)
    };
    let [gain, low, high] = [
        of(&|p: &upright::Paired| p.gain()),
        of(&|p: &upright::Paired| p.interval().0),
        of(&|p: &upright::Paired| p.interval().1),
    ];
    let (Some(gain), Some(low), Some(high)) = (gain, low, high) else { return "–".into() };
    format!("{:+.1} ({low:+.1}..{high:+.1})", rounded(gain, 1))
}

/// Numbers of the paper, upright / transformed.
pub(crate) fn beside(numbers: Option<(f64, f64)>) -> String {
    numbers.map_or_else(|| "–".into(), |(up, tr)| format!("{up:.1} / {tr:.1}"))
}

/// The lines of which a word is this.
pub(crate) fn with<'a>(lines: &[&'a Line], name: &str, word: &str) -> Vec<&'a Line> {
    lines.iter().copied().filter(|l| l.word(name) == word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1, 2, 3: mean 2, standard deviation 1, error 1.96 / sqrt(3) = 1.132.
    #[test]
    fn means_come_with_their_error() {
        let (m, e) = mean(&[1.0, 2.0, 3.0]).unwrap();
        assert!((m - 2.0).abs() < 1e-12 && (e.unwrap() - 1.1316).abs() < 1e-4);
        assert_eq!(mean(&[7.0]), Some((7.0, None)));
        assert_eq!(mean(&[]), None);
    }

    #[test]
    fn tables_are_markdown() {
        let mut page = Page::default();
        let mut table = Table::new(&["", "a", "b", "c"]);
        table.row(["x", "1", "–", "yes"].map(String::from).into());
        table.row(["y", "–", "–", "–"].map(String::from).into());
        page.table(&table);
        let lines = ["|  | a | b | c |", "| --- | ---: | ---: | --- |", "| x | 1 | – | yes |"];
        assert_eq!(page.into_text(), format!("\n{}\n| y | – | – | – |\n", lines.join("\n")));
    }
}
