//! Which poses were found, where a view was accepted.

use std::f64::consts::PI;

use upright::{Canonicalizer, Verdict};

use super::{Figure, Table, legend};
use crate::plot::{Anchor, Scale, Svg, at};
use crate::study::{Line, Study};

/// Petals of a rose, and bins of the other axes.
const PETALS: usize = 24;
const BINS: usize = 16;

const WIDTH: f64 = 720.0;

/// Draws the rose of angles, and small histograms of the other axes.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let mut data = Table::new(&["axis", "from", "to", "upright", "transformed"]);
    let lines = Line::of_space(c, &c.space().identity(), BINS);
    let values = |line: &Line| {
        study.sides().map(|side| {
            side.outcomes
                .iter()
                .filter(|o| o.prediction.verdict == Verdict::Accepted)
                .map(|o| line.shown(c.space(), &o.prediction.pose))
                .collect::<Vec<f64>>()
        })
    };
    let (round, straight): (Vec<&Line>, Vec<&Line>) =
        lines.iter().partition(|l| l.name == "rotate");
    let height = if round.is_empty() {
        straight.len().div_ceil(3) as f64 * 150.0
    } else {
        (straight.len().div_ceil(2) as f64 * 150.0).max(330.0)
    };
    let mut svg = Svg::new(WIDTH, height.max(20.0));
    let indent = if round.is_empty() { 0.0 } else { 340.0 };
    for line in round {
        let values = values(line);
        rose(&mut svg, (165.0, 160.0), &values, &mut data);
    }
    let columns = if indent > 0.0 { 2 } else { 3 };
    let cell = (WIDTH - indent) / f64::from(columns);
    for (i, line) in straight.into_iter().enumerate() {
        let corner =
            (indent + cell * (i % columns as usize) as f64, (i / columns as usize) as f64 * 150.0);
        bars(&mut svg, corner, cell, line, &values(line), &mut data);
    }
    let none = data.len() == 0;
    let accepted = study.sides().map(|s| s.verdicts(Verdict::Accepted));
    Figure {
        id: "poses",
        title: "Poses found",
        lead: format!(
            "Poses of the views that were accepted: {} of {} transformed and {} of {} upright \
             inputs. The angle is how far the input was found turned clockwise; areas are counts. \
             Random transforms spread evenly; a camera mounted sideways makes one long petal.",
            accepted[1].hits, accepted[1].of, accepted[0].hits, accepted[0].of
        ),
        body: if none {
            "<p class=\"none\">The space has no continuous axis.</p>".into()
        } else {
            svg.figure("Poses of accepted views")
                + &legend(&[("up", "upright"), ("tr", "transformed")])
        },
        data: Some(data),
    }
}

fn rose(svg: &mut Svg, (cx, cy): (f64, f64), values: &[Vec<f64>; 2], data: &mut Table) {
    let width = 360.0 / PETALS as f64;
    let counts = values.each_ref().map(|values| {
        let mut counts = [0usize; PETALS];
        for v in values {
            counts[((v.rem_euclid(360.0) / width) as usize).min(PETALS - 1)] += 1;
        }
        counts
    });
    let most = (0..PETALS).map(|i| counts[0][i] + counts[1][i]).max().unwrap_or(0).max(1);
    // Areas are counts, so radii are their roots.
    let radius = |count: usize| 118.0 * (count as f64 / most as f64).sqrt();
    for ring in [most.div_ceil(4), most] {
        svg.circle("ring", (cx, cy), radius(ring));
        let at = (cx + 3.0, cy - radius(ring) - 3.0);
        svg.text("tick", at, Anchor::Start, &ring.to_string());
    }
    let point = |degrees: f64, r: f64| {
        let (sin, cos) = (degrees * PI / 180.0).sin_cos();
        (cx + r * sin, cy - r * cos)
    };
    for (i, (&up, &tr)) in counts[0].iter().zip(&counts[1]).enumerate() {
        let (from, to) = (i as f64 * width, (i + 1) as f64 * width);
        let inner = radius(tr);
        let outer = radius(up + tr);
        let arc = |r: f64, d: f64| (point(d, r), r);
        for (class, low, high) in [("petal up", inner, outer), ("petal tr", 0.0, inner)] {
            if high <= low {
                continue;
            }
            let ((x1, y1), r) = arc(high, from);
            let ((x2, y2), _) = arc(high, to);
            let ((x3, y3), s) = arc(low, to);
            let ((x4, y4), _) = arc(low, from);
            svg.outline(
                class,
                &format!(
                    "M{} {}A{} {} 0 0 1 {} {}L{} {}A{} {} 0 0 0 {} {}Z",
                    at(x1),
                    at(y1),
                    at(r),
                    at(r),
                    at(x2),
                    at(y2),
                    at(x3),
                    at(y3),
                    at(s),
                    at(s),
                    at(x4),
                    at(y4)
                ),
            );
        }
        data.row([
            "rotate".into(),
            format!("{from:.0}"),
            format!("{to:.0}"),
            up.to_string(),
            tr.to_string(),
        ]);
    }
    for d in [0.0, 90.0, 180.0, 270.0] {
        let (x, y) = point(d, 141.0);
        svg.line("grid", point(d, 118.0), point(d, 124.0));
        svg.text("tick", (x, y + 4.0), Anchor::Middle, &format!("{d:.0}°"));
    }
    svg.text("title", (cx, cy + 164.0), Anchor::Middle, "turn, clockwise");
}

fn bars(
    svg: &mut Svg,
    (x, y): (f64, f64),
    width: f64,
    line: &Line,
    values: &[Vec<f64>; 2],
    data: &mut Table,
) {
    let ends = line.ends();
    let step = (ends.1 - ends.0) / BINS as f64;
    let counts = values.each_ref().map(|values| {
        let mut counts = [0usize; BINS];
        for v in values {
            counts[(((v - ends.0) / step) as usize).min(BINS - 1)] += 1;
        }
        counts
    });
    let most = (0..BINS).map(|i| counts[0][i] + counts[1][i]).max().unwrap_or(0).max(1);
    let across = Scale::new(ends, (x + 18.0, x + width - 12.0));
    let rise = Scale::new((0.0, most as f64), (y + 102.0, y + 20.0));
    svg.text("mark", (across.at(ends.0), y + 12.0), Anchor::Start, &line.name);
    svg.text("tick", (across.at(ends.1), y + 12.0), Anchor::End, &format!("most: {most}"));
    for (i, (&up, &tr)) in counts[0].iter().zip(&counts[1]).enumerate() {
        let (from, to) = (ends.0 + i as f64 * step, ends.0 + (i + 1) as f64 * step);
        let (left, w) = (across.at(from), across.at(to) - across.at(from) - 1.0);
        let (lower, both) = (rise.at(tr as f64), rise.at((up + tr) as f64));
        svg.rect("bar tr", (left, lower), (w, y + 102.0 - lower));
        if up > 0 {
            svg.rect("bar up", (left, both), (w, lower - both));
        }
        data.row([
            line.name.clone(),
            format!("{from:.4}"),
            format!("{to:.4}"),
            up.to_string(),
            tr.to_string(),
        ]);
    }
    svg.line("axis", (across.at(ends.0), y + 102.0), (across.at(ends.1), y + 102.0));
    for (v, text) in across.ticks(3) {
        svg.text("tick", (across.at(v), y + 117.0), Anchor::Middle, &text);
    }
}
