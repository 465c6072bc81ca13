//! Which answers changed from right to wrong and back.

use std::collections::BTreeMap;

use upright::Canonicalizer;

use super::{Figure, Table};
use crate::study::Study;

/// Rows shown of each table.
const SHOWN: usize = 12;

/// Counts the flips.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let class = |label: u32| c.model().class_name(label);
    let names = ["data", "change", "true_class", "model_says", "answer", "count"];
    let mut data = Table::new(&names);
    let mut body = String::new();
    let mut sums = Vec::new();
    for (change, title) in
        [("right -> wrong", "Right to wrong"), ("wrong -> right", "Wrong to right")]
    {
        let mut counts: BTreeMap<(&str, u32, u32, u32), usize> = BTreeMap::new();
        for side in study.sides() {
            for o in &side.outcomes {
                let flip = if change == "right -> wrong" {
                    o.before() && !o.after()
                } else {
                    !o.before() && o.after()
                };
                if flip {
                    let p = &o.prediction;
                    *counts.entry((side.kind, o.truth, p.raw_label, p.label)).or_default() += 1;
                }
            }
        }
        let mut rows: Vec<_> = counts.into_iter().collect();
        rows.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
        sums.push(rows.iter().map(|r| r.1).sum::<usize>());
        let mut shown = Table::new(&["data", "true_class", "model_says", "answer", "count"]);
        for ((kind, truth, before, after), count) in rows {
            let [truth, before, after] = [truth, before, after].map(class);
            let count = count.to_string();
            shown.row([kind.into(), truth.clone(), before.clone(), after.clone(), count.clone()]);
            data.row([kind.into(), change.into(), truth, before, after, count]);
        }
        body.push_str("<div><h3>");
        body.push_str(title);
        body.push_str("</h3>");
        body.push_str(&if shown.len() == 0 {
            "<p class=\"none\">None.</p>".to_string()
        } else {
            shown.html(SHOWN)
        });
        body.push_str("</div>");
    }
    Figure {
        id: "flips",
        title: "Answers that changed",
        lead: format!(
            "{} answers became wrong and {} became right, on upright and transformed inputs \
             together.",
            sums[0], sums[1]
        ),
        body: format!("<div class=\"pair\">{body}</div>"),
        data: Some(data),
    }
}
