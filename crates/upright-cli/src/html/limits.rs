//! What the report does not show.

use std::fmt::Write;

use upright::{Canonicalizer, Transforms};

use super::{Figure, Material, prose};
use crate::study::Side;

/// Lists the limits that apply.
pub(super) fn draw(c: &Canonicalizer, material: &Material) -> Figure {
    let study = material.study;
    let [up, tr] = study.sides().map(Side::accuracy);
    let mut limits = vec![match study.transforms {
        Transforms::Synthetic => {
            "The transformed inputs are copies under random poses of the very \
             space that is searched, resampled by the same code. Really transformed data can do \
             better or worse: interpolation alone can look unfamiliar. `--transformed` takes such \
             data."
                .to_string()
        }
        Transforms::Given => "The transformed inputs were given. How they were transformed is not \
             known, and they may differ from the upright ones in other ways."
            .to_string(),
    }];
    let wide = |share: &upright::Share| {
        let (low, high) = share.interval();
        format!("{low:.1} to {high:.1} %")
    };
    limits.push(format!(
        "Accuracies come from {} upright and {} transformed inputs: the true ones lie in {} and \
         {} with 95 % confidence, if these inputs are like those to come.",
        up.after.of,
        tr.after.of,
        wide(&up.after),
        wide(&tr.after)
    ));
    let few = study.transformed.health.classes.values().filter(|&&n| n < 20).count();
    if few > 0 {
        limits.push(format!("{few} classes have fewer than 20 inputs: their bars say little."));
    }
    limits.push(
        "Where orientation carries the class (6 and 9, arrows, text), the most familiar view can \
         be that of another class. No threshold mends that; a narrower space does."
            .into(),
    );
    limits.push(
        "Inputs that are unfamiliar for other reasons (blur, other cameras, unknown classes) are \
         searched in vain. They mostly stay as they are, at the cost of a search."
            .into(),
    );
    if tr.after.percent() < up.before.percent() - 5.0 {
        limits.push(format!(
            "Transformed inputs stay {:.1} points below the bare model on upright ones. A model \
             trained with such transforms is cheaper to run and usually better.",
            up.before.percent() - tr.after.percent()
        ));
    }
    limits.push(
        "Times are those of this machine and of inputs answered one by one; larger batches are \
         cheaper per input."
            .into(),
    );
    if !c.gate().tau().is_finite() {
        limits.push("The gate has no finite threshold: it searches everything or nothing.".into());
    }
    let mut body = String::from("<ul class=\"limits\">");
    for limit in limits {
        let _ = write!(body, "<li>{}</li>", prose(&limit));
    }
    body.push_str("</ul>");
    Figure {
        id: "limits",
        title: "Limits",
        lead: "What these figures do not prove.".into(),
        body,
        data: None,
    }
}
