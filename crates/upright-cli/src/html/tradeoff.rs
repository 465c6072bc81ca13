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
    let other = study.retrained.as_ref();
    let beside = |kind: usize| {
        std::iter::once(always[kind].percent()).chain(other.map(|both| both[kind].percent()))
    };
    let x = ends(&mut points.iter().map(|p| p.upright.percent()).chain(beside(0)));
    let y = ends(&mut points.iter().map(|p| p.transformed.percent()).chain(beside(1)));
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
    if let Some([up, tr]) = other {
        mark(&mut svg, "retrained", [up, tr], "retrained");
    }

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
    if let Some([up, tr]) = other {
        row("retrained", f32::NAN, [up, tr], [0, 0]);
    }

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
            + &keys([&up, &tr], &always, other),
        data: Some(data),
    }
}

/// What the marks are.
fn keys(gated: [&Accuracy; 2], always: &[Share; 2], other: Option<&[Share; 2]>) -> String {
    let [up, tr] = gated;
    let points = [
        ("chosen", Some([&up.after, &tr.after])),
        ("never", Some([&up.before, &tr.before])),
        ("always", Some([&always[0], &always[1]])),
        ("retrained", other.map(|both| [&both[0], &both[1]])),
    ];
    let words: Vec<(&str, String)> = points
        .into_iter()
        .filter_map(|(name, both)| both.map(|[u, t]| (name, spoken(name, u, t))))
        .collect();
    let mut keys = vec![("main", "thresholds, views believed as fitted")];
    keys.extend(words.iter().map(|(name, words)| (*name, words.as_str())));
    legend(&keys)
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
