//! The state of the data.

use std::fmt::Write;

use upright::{Canonicalizer, Transforms};

use super::{Figure, Table};
use crate::plot::escape;
use crate::study::Study;

/// Prints what was counted.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let mut data = Table::new(&["what", "upright", "transformed"]);
    let [up, tr] = study.sides().map(|s| s.health.counts());
    for ((what, a), (_, b)) in up.into_iter().zip(tr) {
        data.row([what.into(), a.to_string(), b.to_string()]);
    }
    let missing = study.sides().map(|s| {
        (0..c.model().classes() as u32).filter(|l| !s.health.classes.contains_key(l)).count()
    });
    data.row(["classes without an input".into(), missing[0].to_string(), missing[1].to_string()]);
    let fewest =
        study.sides().map(|s| s.health.classes.values().min().copied().unwrap_or(0).to_string());
    let [a, b] = fewest;
    data.row(["inputs of the rarest class present".into(), a, b]);
    let mut body = data.html(usize::MAX);
    let notes: Vec<&String> = study.sides().iter().flat_map(|s| &s.health.notes).collect();
    if !notes.is_empty() {
        body.push_str("<ul class=\"notes\">");
        for note in notes {
            let _ = write!(body, "<li>{}</li>", escape(note));
        }
        body.push_str("</ul>");
    }
    let copies = match study.transforms {
        Transforms::Synthetic => {
            " Counts of the transformed data are those of the inputs that were copied."
        }
        Transforms::Given => "",
    };
    Figure {
        id: "health",
        title: "Data health",
        lead: format!("What was read, and what is odd about it.{copies}"),
        body,
        data: Some(data),
    }
}
