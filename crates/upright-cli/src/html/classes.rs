//! Accuracy of every class before and after, on transformed inputs.

use std::collections::BTreeMap;

use upright::internal::stats::rounded;
use upright::{Canonicalizer, Share};

use super::{Figure, Table, legend};
use crate::plot::{Anchor, Frame, Svg};
use crate::study::{Side, Study};

/// Most classes that are drawn.
const SHOWN: usize = 24;

const WIDTH: f64 = 720.0;
const LINE: f64 = 30.0;

struct Class {
    label: u32,
    before: Share,
    after: Share,
}

impl Class {
    fn gain(&self) -> f64 {
        self.after.percent() - self.before.percent()
    }
}

fn classes(side: &Side) -> Vec<Class> {
    let mut all: BTreeMap<u32, [Vec<bool>; 2]> = BTreeMap::new();
    for o in &side.outcomes {
        let class = all.entry(o.truth).or_default();
        class[0].push(o.before());
        class[1].push(o.after());
    }
    let class = |(label, [before, after]): (u32, [Vec<bool>; 2])| Class {
        label,
        before: Share::count(before),
        after: Share::count(after),
    };
    all.into_iter().map(class).collect()
}

/// Draws the bars.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let name = |label: u32| c.model().class_name(label);
    let mut data = Table::new(&[
        "data",
        "class",
        "n",
        "model_right",
        "gated_right",
        "gain_points",
        "model_low",
        "model_high",
        "gated_low",
        "gated_high",
    ]);
    for side in [&study.transformed, &study.upright] {
        for class in classes(side) {
            let (before, after) = (class.before.interval(), class.after.interval());
            let tenth = |v: f64| format!("{v:.1}");
            data.row([
                side.kind.into(),
                name(class.label),
                class.before.of.to_string(),
                class.before.hits.to_string(),
                class.after.hits.to_string(),
                tenth(class.gain()),
                tenth(before.0),
                tenth(before.1),
                tenth(after.0),
                tenth(after.1),
            ]);
        }
    }
    let mut shown = classes(&study.transformed);
    let total = shown.len();
    if total > SHOWN {
        shown.sort_by(|a, b| b.gain().total_cmp(&a.gain()));
        shown.drain(SHOWN / 2..total - SHOWN / 2);
    }
    let height = shown.len() as f64 * LINE + 66.0;
    let frame =
        Frame::inside((150.0, 14.0), (WIDTH - 110.0, height - 46.0), (0.0, 100.0), (0.0, 1.0));
    let (left, top, right, bottom) = frame.edges();
    let mut svg = Svg::new(WIDTH, height);
    for (v, text) in frame.x.ticks(5) {
        svg.line("grid", (frame.x.at(v), top), (frame.x.at(v), bottom));
        frame.x_tick(&mut svg, v, &text);
    }
    frame.x_title(&mut svg, "accuracy on transformed inputs, %");
    svg.line("axis", (left, top), (left, bottom));
    for (i, class) in shown.iter().enumerate() {
        let y = top + i as f64 * LINE;
        let words = format!("{}  (n = {})", short(&name(class.label)), class.before.of);
        svg.text("tick", (left - 8.0, y + 19.0), Anchor::End, &words);
        for (share, bar, dy) in
            [(&class.before, "bar before", 4.0), (&class.after, "bar after", 15.0)]
        {
            svg.rect(bar, (left, y + dy), (frame.x.at(share.percent()) - left, 9.0));
            let (low, high) = share.interval();
            let at = |v: f64| (frame.x.at(v), y + dy + 4.5);
            svg.line("whisker-halo", at(low), at(high));
            svg.line("whisker", at(low), at(high));
        }
        let gain = format!("{:+.1} points", rounded(class.gain(), 1));
        svg.text("mark", (right + 12.0, y + 19.0), Anchor::Start, &gain);
    }
    let cut = if total > SHOWN {
        format!(
            " The {SHOWN} classes with the largest and the smallest gain of {total}; all are in the data."
        )
    } else {
        String::new()
    };
    Figure {
        id: "classes",
        title: "Gain by class",
        lead: format!(
            "Accuracy of each true class on transformed inputs, before and after. Whiskers are \
             Wilson intervals at 95 %: with few inputs a class, they are wide.{cut}"
        ),
        body: svg.figure("Accuracy by class before and after")
            + &legend(&[("before", "model alone"), ("after", "gated")]),
        data: Some(data),
    }
}

/// A name that fits beside the bars.
fn short(name: &str) -> String {
    if name.chars().count() <= 12 {
        return name.into();
    }
    name.chars().take(11).chain(['…']).collect()
}
