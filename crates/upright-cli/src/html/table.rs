//! The data of a figure: a CSV file, and an HTML table where one is shown.

use std::fmt::Write;

use crate::plot::escape;

/// Named columns and rows of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    names: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(names: &[&'static str]) -> Self {
        Table { names: names.into(), rows: Vec::new() }
    }

    /// Adds a row, which must have a value for every name.
    pub fn row<const N: usize>(&mut self, values: [String; N]) {
        self.rows.push(values.into());
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// The table as CSV, with a header.
    pub fn csv(&self) -> String {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let written = writer
            .write_record(&self.names)
            .and_then(|()| self.rows.iter().try_for_each(|row| writer.write_record(row)));
        let bytes = written.ok().and_then(|()| writer.into_inner().ok()).unwrap_or_default();
        String::from_utf8(bytes).unwrap_or_default()
    }

    /// The first rows as HTML; numbers stand right.
    pub fn html(&self, most: usize) -> String {
        let mut out = String::from("<div class=\"scroll\"><table><thead><tr>");
        for name in &self.names {
            let _ = write!(out, "<th>{}</th>", escape(&name.replace('_', " ")));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in self.rows.iter().take(most) {
            out.push_str("<tr>");
            for value in row {
                let number = value.trim_end_matches(['%', ' ']).parse::<f64>().is_ok();
                let class = if number { " class=\"n\"" } else { "" };
                let _ = write!(out, "<td{class}>{}</td>", escape(value));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        if self.rows.len() > most {
            let _ = write!(
                out,
                "<p class=\"more\">{} more rows are in the data below.</p>",
                self.rows.len() - most
            );
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_quoted_as_csv_and_escaped_as_html() {
        let mut table = Table::new(&["class", "n_right"]);
        table.row(["a,<b>".into(), "3".into()]);
        table.row(["c".into(), "4 %".into()]);
        assert_eq!(table.csv(), "class,n_right\n\"a,<b>\",3\nc,4 %\n");
        let html = table.html(1);
        assert!(html.contains("<td>a,&lt;b&gt;</td><td class=\"n\">3</td>"), "{html}");
        assert!(html.contains("n right") && html.contains("1 more rows"), "{html}");
    }
}
