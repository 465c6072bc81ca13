//! What moving the gate's threshold does to upright and transformed accuracy.

use upright::internal::gate::Point;
use upright::{Accuracy, Canonicalizer, Share};

use super::{Figure, Table, legend, number};
use crate::plot::{Anchor, Frame, Svg};
use crate::study::{Outcome, Side, Study};

/// Most thresholds that are drawn.
const POINTS: usize = 300;

const SIZE: (f64, f64) = (720.0, 400.0);

/// Draws the curve.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let curve = study.curve(c);
    let step = curve.len().div_ceil(POINTS).max(1);
    let mut points: Vec<Point> = curve.iter().step_by(step).copied().collect();
    if let Some(last) = curve.last().filter(|last| points.last() != Some(last)) {
        points.push(*last);
    }
    let [up, tr] = study.sides().map(Side::accuracy);
    let always = study.sides().map(believing);

    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    };
    let x = ends(&mut points.iter().map(|p| p.upright.percent()).chain([always[0].percent()]));
    let y = ends(&mut points.iter().map(|p| p.transformed.percent()).chain([always[1].percent()]));
    let pad = |(low, high): (f64, f64)| ((low - 1.0).max(0.0), (high + 1.0).min(100.0));
    let frame = Frame::new(SIZE, pad(x), pad(y)).nice();
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    frame.axes(&mut svg, "upright accuracy, %", "transformed accuracy, %");
    let path: Vec<_> =
        points.iter().map(|p| frame.at(p.upright.percent(), p.transformed.percent())).collect();
    svg.path("line main", &path);
    let place = |[u, t]: [&Share; 2]| frame.at(u.percent(), t.percent());
    let chosen = place([&up.after, &tr.after]);
    let searched = place([&always[0], &always[1]]);
    let mark = |svg: &mut Svg, class: &str, both: [&Share; 2], words: &str| {
        let (x, y) = place(both);
        svg.circle(class, (x, y), 6.0);
        let (left, _, right, _) = frame.edges();
        let (dx, anchor) = if x > f64::midpoint(left, right) {
            (-11.0, Anchor::End)
        } else {
            (11.0, Anchor::Start)
        };
        // Words of points that nearly meet would lie on each other.
        let beside = |other: (f64, f64)| {
            let (dx, dy) = (x - other.0, y - other.1);
            dx.abs() < 90.0 && dy < 18.0 && (dy > 0.0 || dy == 0.0 && words == "chosen")
        };
        let below = beside(if words == "chosen" { searched } else { chosen });
        let dy = if below { 20.0 } else { 4.0 };
        svg.text("mark", (x + dx, y + dy), anchor, words);
    };
    if let Some(never) = points.first() {
        mark(&mut svg, "never", [&never.upright, &never.transformed], "never");
    }
    mark(&mut svg, "always", [&always[0], &always[1]], "always");
    mark(&mut svg, "chosen", [&up.after, &tr.after], "chosen");

    let mut data = Table::new(&[
        "point",
        "threshold",
        "upright_right",
        "upright_of",
        "transformed_right",
        "transformed_of",
        "upright_searched",
        "transformed_searched",
    ]);
    let mut row = |name: &str, tau: f32, [u, t]: [&Share; 2], [us, ts]: [usize; 2]| {
        data.row([
            name.into(),
            tau.to_string(),
            u.hits.to_string(),
            u.of.to_string(),
            t.hits.to_string(),
            t.of.to_string(),
            us.to_string(),
            ts.to_string(),
        ]);
    };
    for p in &points {
        let searched = [p.upright_searched.hits, p.transformed_searched.hits];
        row("curve", p.tau, [&p.upright, &p.transformed], searched);
    }
    let searched = |a: &Accuracy| a.searched.hits;
    row("chosen", c.gate().tau(), [&up.after, &tr.after], [searched(&up), searched(&tr)]);
    let all = [always[0].of, always[1].of];
    row("always", f32::NEG_INFINITY, [&always[0], &always[1]], all);

    Figure {
        id: "tradeoff",
        title: "Gate trade-off",
        lead: format!(
            "Every point of the line is a threshold; what the gate believes stays as fitted. From \
             `never` (the bare model) the threshold falls until every input is searched. `always` \
             searches everything and believes any more familiar view. Chosen: an energy of {}. The \
             curve comes from one search of each input, on the data shown here: choosing a \
             threshold from it would be fitting to these data.",
            number(c.gate().tau().into())
        ),
        body: svg.figure("Upright against transformed accuracy while the threshold moves")
            + &legend(&[
                ("main", "thresholds, views believed as fitted"),
                ("chosen", &spoken("chosen", &up.after, &tr.after)),
                ("never", &spoken("never", &up.before, &tr.before)),
                ("always", &spoken("always", &always[0], &always[1])),
            ]),
        data: Some(data),
    }
}

fn spoken(name: &str, upright: &Share, transformed: &Share) -> String {
    format!("{name}: upright {upright}, transformed {transformed}")
}

/// Right answers if any lower view is believed.
fn believing(side: &Side) -> Share {
    let right = |o: &Outcome| match o.found {
        Some(found) if found.energy < o.raw.energy => found.label == o.truth,
        _ => o.before(),
    };
    Share::count(side.outcomes.iter().map(right))
}
