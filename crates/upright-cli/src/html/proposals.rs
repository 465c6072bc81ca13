//! What the proposer suggested, and which suggestion answered.

use upright::{Canonicalizer, Role, Share};

use super::{Figure, Table};
use crate::study::{Side, Study};

/// Suggestions that have a line of their own.
const LINES: usize = 8;

/// Counts suggestions by their rank.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let mut data = Table::new(&[
        "data",
        "suggestion",
        "looked_at",
        "right_on_it",
        "answered",
        "right_answers",
    ]);
    for side in study.sides() {
        for rank in 1..=LINES {
            let line = counted(side, rank);
            if line.looked_at.hits == 0 {
                break;
            }
            data.row([
                side.kind.into(),
                rank.to_string(),
                format!("{:.1} %", line.looked_at.percent()),
                format!("{:.1} %", line.right.percent()),
                format!("{:.1} %", line.answered.percent()),
                format!("{:.1} %", line.right_answers.percent()),
            ]);
        }
    }
    let proposer = &c.config().part(Role::Proposer).name;
    let empty = data.len() == 0;
    let lead = if empty {
        format!("The proposer `{proposer}` names no class with its poses; nothing was followed.")
    } else {
        format!(
            "The proposer `{proposer}` ranks poses with the class that the input would show under \
             them. Of all searched inputs: how many were looked at under their first, second, … \
             suggestion, how often the model is right on that view, how often that view answered, \
             and how often it was right then. Every input is searched here, whatever the gate says."
        )
    };
    let body = if empty { "<p class=\"none\">none</p>".into() } else { data.html(usize::MAX) };
    Figure { id: "proposals", title: "What was proposed", lead, body, data: Some(data) }
}

struct Counted {
    looked_at: Share,
    right: Share,
    answered: Share,
    right_answers: Share,
}

fn counted(side: &Side, rank: usize) -> Counted {
    let at = |o: &crate::study::Outcome| o.followed.get(rank - 1).copied();
    let seen = || side.outcomes.iter().filter_map(|o| Some((o, at(o)?)));
    let answered = || seen().filter(|(_, f)| f.answered);
    Counted {
        looked_at: Share::count(side.outcomes.iter().map(|o| at(o).is_some())),
        right: Share::count(seen().map(|(o, f)| f.label == o.truth)),
        answered: Share::count(side.outcomes.iter().map(|o| at(o).is_some_and(|f| f.answered))),
        right_answers: Share::count(answered().map(|(o, f)| f.label == o.truth)),
    }
}
