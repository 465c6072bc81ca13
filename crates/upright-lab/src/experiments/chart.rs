//! Charts of results: bars, lines and heat maps, with colours that a light and a
//! dark page both bear.

use upright_cli::internal::plot::{Anchor, Frame, Svg, heat};

const STYLE: &str = "text{font:12px system-ui,sans-serif;fill:#555}.grid{stroke:#8884;stroke-width:1}\
.axis{stroke:#888;stroke-width:1}.title{font-weight:600}.line{fill:none;stroke-width:2}\
.c0{fill:#2b6cb0;stroke:#2b6cb0}.c1{fill:#dd8452;stroke:#dd8452}.c2{fill:#55a868;stroke:#55a868}\
.c3{fill:#8172b3;stroke:#8172b3}.c4{fill:#c44e52;stroke:#c44e52}.c5{fill:#937860;stroke:#937860}\
.c6{fill:#64b5cd;stroke:#64b5cd}.c7{fill:#777;stroke:#777}path.line{fill:none}\
rect.c0,rect.c1,rect.c2{stroke:none}.edge{stroke:#fff;stroke-width:1.5}";

/// The class of a colour by number.
fn colour(i: usize) -> String {
    format!("c{}", i % 8)
}

/// Names of colours under a chart.
fn legend(svg: &mut Svg, names: &[&str], y: f64) {
    let mut x = 60.0;
    for (i, name) in names.iter().enumerate() {
        svg.rect(&colour(i), (x, y - 9.0), (10.0, 10.0));
        svg.text("tick", (x + 15.0, y), Anchor::Start, name);
        x += 34.0 + 7.0 * name.chars().count() as f64;
    }
}

/// Horizontal bars from 0, some for each row.
pub(crate) fn bars(title: &str, names: &[&str], rows: &[(String, Vec<f64>)]) -> String {
    let (left, each) = (160.0, 8.0 * names.len() as f64 + 8.0);
    let height = 30.0 + each * rows.len() as f64 + 62.0;
    let most = rows.iter().flat_map(|r| &r.1).copied().fold(1.0, f64::max);
    let bottom = 14.0 + each * rows.len() as f64;
    let frame = Frame::inside((left, 10.0), (690.0, bottom), (0.0, most), (0.0, 1.0));
    let mut svg = Svg::new(720.0, height);
    for (v, text) in frame.x.ticks(6) {
        let x = frame.x.at(v);
        svg.line("grid", (x, 10.0), (x, bottom));
        svg.text("tick", (x, bottom + 16.0), Anchor::Middle, &text);
    }
    for (i, (name, values)) in rows.iter().enumerate() {
        let y = 14.0 + each * i as f64;
        svg.text("tick", (left - 8.0, y + each / 2.0), Anchor::End, name);
        for (k, v) in values.iter().enumerate() {
            let x = frame.x.at(*v);
            svg.rect(&colour(k), (left, y + 8.0 * k as f64), (x - left, 7.0));
        }
    }
    frame.x_title(&mut svg, title);
    legend(&mut svg, names, height - 8.0);
    svg.standalone(title, STYLE)
}

/// A curve and its name.
pub(crate) struct Curve<'a> {
    pub(crate) name: &'a str,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Curves through points; x on a logarithmic scale if asked for.
pub(crate) fn lines(x: &str, y: &str, log: bool, curves: &[Curve]) -> String {
    let place = |v: f64| if log { v.max(1e-9).log2() } else { v };
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)))
    };
    let all = || curves.iter().flat_map(|c| &c.points);
    let xs = ends(&mut all().map(|p| place(p.0)));
    let ys = ends(&mut all().map(|p| p.1));
    let size = (720.0, 420.0);
    let mut svg = Svg::new(size.0, size.1);
    let frame = Frame::inside((58.0, 14.0), (698.0, 340.0), xs, ys).nice_y(5);
    frame.y_axis(&mut svg, y);
    if log {
        let first = xs.0.round() as i32;
        for power in first..=xs.1.round() as i32 {
            let v = 2f64.powi(power);
            frame.x_tick(&mut svg, f64::from(power), &format!("{}", (v * 100.0).round() / 100.0));
        }
    } else {
        for (v, text) in frame.x.ticks(6) {
            frame.x_tick(&mut svg, v, &text);
        }
    }
    frame.x_title(&mut svg, x);
    for (i, curve) in curves.iter().enumerate() {
        let points: Vec<_> = curve.points.iter().map(|p| frame.at(place(p.0), p.1)).collect();
        svg.path(&format!("line {}", colour(i)), &points);
        if points.len() <= 12 {
            for point in points {
                svg.circle(&colour(i), point, 3.0);
            }
        }
    }
    let names: Vec<&str> = curves.iter().map(|c| c.name).collect();
    legend(&mut svg, &names, size.1 - 8.0);
    svg.standalone(y, STYLE)
}

/// A picture of ranks, 0 to 1, with an outline around what is marked.
pub(crate) struct Map<'a> {
    pub(crate) name: &'a str,
    pub(crate) rows: &'a [Vec<f64>],
    pub(crate) marked: &'a [Vec<f64>],
}

/// Heat maps side by side, three in a row.
pub(crate) fn maps(x: &str, y: &str, maps: &[Map]) -> String {
    let (width, height) = (240.0, 190.0);
    let down = maps.len().div_ceil(3) as f64;
    let mut svg = Svg::new(3.0 * width, down * height + 20.0);
    for (i, map) in maps.iter().enumerate() {
        let (left, top) = ((i % 3) as f64 * width + 12.0, (i / 3) as f64 * height + 24.0);
        svg.text("title", (left, top - 6.0), Anchor::Start, map.name);
        let columns = map.rows.first().map_or(1, Vec::len).max(1) as f64;
        let (w, h) = (216.0 / columns, 150.0 / map.rows.len().max(1) as f64);
        for (r, row) in map.rows.iter().enumerate() {
            for (c, v) in row.iter().enumerate() {
                let corner = (left + c as f64 * w, top + r as f64 * h);
                svg.tile(&heat(*v), corner, (w + 0.3, h + 0.3));
            }
        }
        outline(&mut svg, map.marked, (left, top), (w, h));
    }
    let words = format!("{x} from left to right, {y} from top to bottom");
    svg.text("tick", (12.0, down * height + 12.0), Anchor::Start, &words);
    svg.standalone(&words, STYLE)
}

/// Lines between what is marked and what is not.
fn outline(svg: &mut Svg, marked: &[Vec<f64>], (left, top): (f64, f64), (w, h): (f64, f64)) {
    let at =
        |r: usize, c: usize| marked.get(r).and_then(|row| row.get(c)).is_some_and(|v| *v > 0.5);
    for (r, row) in marked.iter().enumerate() {
        for c in 0..row.len() {
            let (x, y) = (left + c as f64 * w, top + r as f64 * h);
            if c > 0 && at(r, c) != at(r, c - 1) {
                svg.line("edge", (x, y), (x, y + h));
            }
            if r > 0 && at(r, c) != at(r - 1, c) {
                svg.line("edge", (x, y), (x + w, y));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charts_hold_a_mark_for_every_number() {
        let rows = vec![("a".to_string(), vec![1.0, 2.0]), ("b<".to_string(), vec![3.0, 0.5])];
        let drawn = bars("t", &["x", "y"], &rows);
        assert_eq!(drawn.matches("height=\"7\"").count(), 4);
        assert!(drawn.contains("b&lt;"));
        let curve = Curve { name: "c", points: vec![(4.0, 1.0), (8.0, 2.0), (16.0, 4.0)] };
        let drawn = lines("x", "y", true, &[curve]);
        assert_eq!(drawn.matches("<circle").count(), 3);
        assert!(drawn.contains(">16</text>"), "{drawn}");
        let rows = vec![vec![0.0, 1.0], vec![0.5, 1.0]];
        let marked = vec![vec![0.0, 1.0], vec![0.0, 1.0]];
        let drawn = maps("x", "y", &[Map { name: "m", rows: &rows, marked: &marked }]);
        assert_eq!(drawn.matches("class=\"edge\"").count(), 2);
    }
}
