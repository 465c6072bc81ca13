//! Energy over two axes, for a few inputs.

use std::fmt::Write;

use super::{Figure, Table, legend};
use crate::plot::{Anchor, Frame, Scale, Svg, at, escape, heat};
use crate::study::{Grid, Landscape};

const SIZE: (f64, f64) = (720.0, 330.0);

/// A landscape and the input it belongs to.
pub struct Drawn {
    /// What became of the input, in words.
    pub heading: String,
    /// Its class.
    pub truth: u32,
    /// The input and the view that answered, as addresses that hold them.
    pub pictures: [String; 2],
    /// The landscape.
    pub landscape: Landscape,
}

/// Draws a heat map of each.
pub(super) fn draw(landscapes: &[Drawn]) -> Figure {
    let mut data = Table::new(&[
        "landscape",
        "what",
        "order",
        "x_axis",
        "x",
        "y_axis",
        "y",
        "energy",
        "rank",
        "label",
        "truth",
    ]);
    let mut body = String::new();
    for (i, d) in landscapes.iter().enumerate() {
        let [input, view] = &d.pictures;
        let _ = writeln!(
            body,
            "<h3 class=\"with\"><img src=\"{input}\" alt=\"input\"><i>→</i>\
             <img src=\"{view}\" alt=\"view that answered\"><span>{}</span></h3>\n{}",
            escape(&d.heading),
            heat_map(&d.landscape, Some(d.truth), SIZE).figure(&d.heading)
        );
        rows(&mut data, i + 1, d.truth, &d.landscape);
    }
    if landscapes.is_empty() {
        body.push_str(
            "<p class=\"none\">No input was searched, or the space has a single axis.</p>",
        );
    } else {
        body.push_str(&legend(&[
            ("seen", "views the search looked at (they differ in other ways, too)"),
            ("raw", "the input as it is"),
            ("chosen", "the view that answered"),
            ("region", "edge of the region where the model is right"),
        ]));
    }
    Figure {
        id: "landscape",
        title: "Energy landscape",
        lead: "Each cell is a view of the input under two of its pose's numbers, or turned about \
               two directions; the others are as in the view that answered. Colour is the rank of the energy among all cells, \
               from dark (most familiar) to bright: ranks show the shape, not the depth, of the \
               landscape. A good score is dark inside the outlined region and bright outside."
            .into(),
        body,
        data: Some(data),
    }
}

fn rows(data: &mut Table, number: usize, truth: u32, l: &Landscape) {
    let Grid { x, y, energies, labels } = &l.grid;
    let ranks = l.grid.ranks();
    let columns = x.values.len();
    for (i, ((e, label), rank)) in energies.iter().zip(labels).zip(ranks).enumerate() {
        data.row([
            number.to_string(),
            "cell".into(),
            i.to_string(),
            x.title(),
            format!("{:.4}", x.of(x.values[i % columns])),
            y.title(),
            format!("{:.4}", y.of(y.values[i / columns])),
            e.to_string(),
            format!("{rank:.4}"),
            label.to_string(),
            truth.to_string(),
        ]);
    }
    let seen = std::iter::once(&l.trace.raw).chain(&l.trace.seen);
    for (i, (seen, place)) in seen.zip(&l.places).enumerate() {
        data.row([
            number.to_string(),
            if i == 0 { "raw" } else { "view" }.into(),
            i.to_string(),
            x.title(),
            format!("{:.4}", place.0),
            y.title(),
            format!("{:.4}", place.1),
            seen.energy.to_string(),
            String::new(),
            seen.label.to_string(),
            truth.to_string(),
        ]);
    }
}

/// The heat map of a landscape with the search on it. Cells where the model says `right`
/// are outlined.
pub fn heat_map(l: &Landscape, right: Option<u32>, size: (f64, f64)) -> Svg {
    let Grid { x, y, labels, .. } = &l.grid;
    let frame = Frame::inside((64.0, 10.0), (size.0 - 110.0, size.1 - 46.0), x.ends(), y.ends());
    let (left, top, edge, bottom) = frame.edges();
    let (columns, rows) = (x.values.len(), y.values.len());
    let (w, h) = ((edge - left) / columns as f64, (bottom - top) / rows as f64);
    let corner =
        |i: usize| (left + (i % columns) as f64 * w, bottom - (i / columns + 1) as f64 * h);
    let mut svg = Svg::new(size.0, size.1);
    for (i, rank) in l.grid.ranks().into_iter().enumerate() {
        // Half a pixel over the edge, or the paper shines through between cells.
        svg.tile(&heat(rank), corner(i), (w + 0.5, h + 0.5));
    }
    let inside = |i: usize| Some(labels[i]) == right;
    let mut d = String::new();
    let mut side = |from: (f64, f64), to: (f64, f64)| {
        let _ = write!(d, "M{} {}L{} {}", at(from.0), at(from.1), at(to.0), at(to.1));
    };
    for i in 0..columns * rows {
        let (cx, cy) = corner(i);
        if i % columns + 1 < columns && inside(i) != inside(i + 1) {
            side((cx + w, cy), (cx + w, cy + h));
        }
        if i / columns + 1 < rows && inside(i) != inside(i + columns) {
            side((cx, cy), (cx + w, cy));
        }
    }
    svg.outline("halo", &d);
    svg.outline("region", &d);
    for place in l.places.iter().skip(1) {
        svg.circle("seen", frame.at(place.0, place.1), 3.0);
    }
    let raw = l.places.first().unwrap_or(&l.through);
    let (cx, cy) = frame.at(raw.0, raw.1);
    for class in ["raw-halo", "raw"] {
        svg.outline(
            class,
            &format!(
                "M{} {}L{} {}M{} {}L{} {}",
                at(cx - 6.0),
                at(cy - 6.0),
                at(cx + 6.0),
                at(cy + 6.0),
                at(cx - 6.0),
                at(cy + 6.0),
                at(cx + 6.0),
                at(cy - 6.0),
            ),
        );
    }
    svg.circle("chosen", frame.at(l.through.0, l.through.1), 7.0);
    let x_ticks = if x.unit.is_empty() { frame.x.ticks(6) } else { degrees(x.ends()) };
    for (v, text) in x_ticks {
        frame.x_tick(&mut svg, v, &text);
    }
    for (v, text) in frame.y.ticks(5) {
        svg.text("tick", (left - 8.0, frame.y.at(v) + 4.0), Anchor::End, &text);
    }
    frame.x_title(&mut svg, &x.title());
    let middle = f64::midpoint(top, bottom);
    svg.turned("title", (left - 46.0, middle), Anchor::Middle, -90, &y.title());
    bar(&mut svg, (edge + 20.0, top), bottom);
    svg
}

/// The key of the colours.
fn bar(svg: &mut Svg, (x, top): (f64, f64), bottom: f64) {
    let scale = Scale::new((0.0, 24.0), (bottom, top));
    for i in 0..24u8 {
        let (low, high) = (scale.at(f64::from(i)), scale.at(f64::from(i) + 1.0));
        svg.tile(&heat((f64::from(i) + 0.5) / 24.0), (x, high - 0.5), (12.0, low - high + 0.5));
    }
    svg.text("tick", (x + 17.0, top + 9.0), Anchor::Start, "unfamiliar");
    svg.text("tick", (x + 17.0, bottom), Anchor::Start, "familiar");
}

/// Marks every 45 degrees, or fewer round ones if that would be too few.
pub(super) fn degrees((low, high): (f64, f64)) -> Vec<(f64, String)> {
    let step = if high - low > 180.0 {
        45.0
    } else {
        return Scale::new((low, high), (0.0, 1.0)).ticks(6);
    };
    let first = (low / step - 1e-6).ceil();
    (0..=((high / step + 1e-6).floor() - first) as usize)
        .map(|i| (first + i as f64) * step)
        .map(|v| (v, format!("{v:.0}°")))
        .collect()
}
