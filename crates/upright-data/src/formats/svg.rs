//! SVG files as sketches: the outlines of paths and basic shapes in document
//! order, under the transforms of their groups, with curves as lines.
//!
//! What is only defined, not drawn (`defs`, `symbol`, `clipPath` ...) is left
//! out. Style sheets and `use` are not followed.

mod curve;

use std::fmt::Write;

use roxmltree::{Document, Node, ParsingOptions};
use svgtypes::{
    PathParser, PathSegment, PointsParser, SimplePathSegment, SimplifyingPathParser, Transform,
};

use upright::SignalKind;

use super::{Format, Read};
use crate::examples::texts;
use crate::item::Item;
use crate::skip::Unusable;
use crate::strokes::Strokes;
use curve::{Segment, flatten};

pub(super) const FORMAT: Format = Format {
    name: "svg",
    about: "The outlines of an SVG file as one sketch.",
    endings: &[".svg"],
    called: "svg",
    kinds: &[SignalKind::Strokes],
    read: Read::One(|from, _| Ok(Item::Strokes(parse(&from.read(FILE_CAP)?)?).into())),
    words: &[
        "<g>",
        "</g>",
        "<path d='",
        "transform='",
        "'/>",
        "<!DOCTYPE svg [",
        "<!ENTITY a 'b'>",
        "&a;",
        "&#0;",
        "<![CDATA[",
        "<!--",
        "-->",
        "A1e9 1 0 0 1 2 2",
        "M",
        "C",
        "S",
        "Q",
        "T",
        "A",
        "Z",
        "matrix(",
        "skewX(",
        "scale(",
    ],
    examples: || {
        texts(&[
            "<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\">\
             <g transform=\"translate(1,2) scale(2 3) rotate(30)\">\
             <path d=\"M1 1L2 2H3V4C1 2 3 4 5 6S1 2 3 4Q1 2 3 4T5 6A1 2 30 0 1 7 8Z\"/>\
             <path d=\"m0 0l1 1h1v1c1 1 2 2 3 3s1 1 2 2q1 1 2 2t1 1a3 4 0 1 0 5 5z\"/></g></svg>",
            "<svg><line x1='1' x2='2' y1='3' y2='4'/><polyline points='0,0 1,1 2,0'/>\
             <polygon points='0 0 1 1 2 0'/><rect x='1' y='1' width='2' height='3'/>\
             <circle cx='1' cy='2' r='3'/><ellipse rx='2' ry='3'/>\
             <defs><path d='M0 0'/></defs></svg>",
        ])
    },
    ..Format::BASE
};

/// Largest file after unpacking, in bytes.
const FILE_CAP: u64 = 1 << 20;
/// Most path segments.
const SEGMENT_CAP: usize = 100_000;
/// Most elements within each other.
const DEPTH_CAP: usize = 64;

/// Largest number in a path with arcs.
const ARC_CAP: f64 = 1e7;

/// Elements whose content is not drawn where it stands.
const UNDRAWN: &[&str] =
    &["defs", "symbol", "clipPath", "mask", "marker", "pattern", "metadata", "style", "title"];

fn parse(bytes: &[u8]) -> Result<Strokes, Unusable> {
    let text = std::str::from_utf8(bytes).map_err(|e| format!("not UTF-8 text: {e}"))?;
    let text = text.trim_start_matches('\u{feff}');
    // An entity can be referred to any number of times, at its full length each time.
    if text.contains("<!ENTITY") {
        return Err("it defines entities, which are not read; save it as plain SVG".into());
    }
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|e| e.to_string())?;
    let root = document.root_element();
    if root.tag_name().name() != "svg" {
        return Err(format!("not SVG: its root is `{}`", root.tag_name().name()).into());
    }
    let mut segments = Vec::new();
    collect(root, &Transform::default(), 0, &mut segments)?;
    flatten(&segments)
}

fn collect(
    node: Node,
    outer: &Transform,
    depth: usize,
    out: &mut Vec<Segment>,
) -> Result<(), String> {
    let name = node.tag_name().name();
    if UNDRAWN.contains(&name) || node.attribute("display") == Some("none") {
        return Ok(());
    }
    if depth > DEPTH_CAP {
        return Err(format!("elements within each other more than {DEPTH_CAP} deep"));
    }
    let own = match node.attribute("transform") {
        None => Transform::default(),
        Some(text) => text.parse().map_err(|e| format!("transform `{}`: {e}", brief(text)))?,
    };
    let ts = joined(outer, &own);
    if let Some(path) = outline(node, name)? {
        draw(&path, &ts, out)?;
    }
    node.children().filter(Node::is_element).try_for_each(|n| collect(n, &ts, depth + 1, out))
}

/// What an element draws, as path data.
fn outline(node: Node, name: &str) -> Result<Option<String>, String> {
    let number = |key: &str| match node.attribute(key) {
        None => Ok(0.0),
        Some(text) => {
            let plain = text.trim().trim_end_matches("px");
            plain.parse::<f64>().map_err(|_| format!("{key} `{}` is not a number", brief(text)))
        }
    };
    let ellipse = |x: f64, y: f64, rx: f64, ry: f64| {
        let (left, right) = (x - rx, x + rx);
        format!("M{left} {y}A{rx} {ry} 0 1 1 {right} {y}A{rx} {ry} 0 1 1 {left} {y}Z")
    };
    Ok(match name {
        "path" => node.attribute("d").map(str::to_owned),
        "line" => {
            let (x, y) = (number("x1")?, number("y1")?);
            Some(format!("M{x} {y}L{} {}", number("x2")?, number("y2")?))
        }
        "polyline" | "polygon" => node.attribute("points").map(|text| {
            let mut path = String::new();
            for (i, (x, y)) in PointsParser::from(text).enumerate() {
                let _ = write!(path, "{}{x} {y}", if i == 0 { 'M' } else { 'L' });
            }
            path + if name == "polygon" && !path_is_empty(text) { "Z" } else { "" }
        }),
        "rect" => {
            let (x, y) = (number("x")?, number("y")?);
            let (w, h) = (number("width")?, number("height")?);
            Some(format!("M{x} {y}h{w}v{h}h{}Z", -w))
        }
        "circle" => {
            let r = number("r")?;
            Some(ellipse(number("cx")?, number("cy")?, r, r))
        }
        "ellipse" => Some(ellipse(number("cx")?, number("cy")?, number("rx")?, number("ry")?)),
        _ => None,
    })
}

fn path_is_empty(points: &str) -> bool {
    PointsParser::from(points).next().is_none()
}

fn draw(path: &str, ts: &Transform, out: &mut Vec<Segment>) -> Result<(), String> {
    check_arcs(path)?;
    let at = |x: f64, y: f64| [ts.a * x + ts.c * y + ts.e, ts.b * x + ts.d * y + ts.f];
    for segment in SimplifyingPathParser::from(path) {
        let segment = segment.map_err(|e| format!("path `{}`: {e}", brief(path)))?;
        if out.len() >= SEGMENT_CAP {
            return Err(format!("more than {SEGMENT_CAP} path segments, the limit"));
        }
        out.push(match segment {
            SimplePathSegment::MoveTo { x, y } => Segment::Move(at(x, y)),
            SimplePathSegment::LineTo { x, y } => Segment::Line(at(x, y)),
            SimplePathSegment::Quadratic { x1, y1, x, y } => {
                Segment::Quadratic(at(x1, y1), at(x, y))
            }
            SimplePathSegment::CurveTo { x1, y1, x2, y2, x, y } => {
                Segment::Cubic(at(x1, y1), at(x2, y2), at(x, y))
            }
            SimplePathSegment::ClosePath => Segment::Close,
        });
    }
    Ok(())
}

/// Refuses arcs that are too large: they are taken apart into curves, the more the larger.
fn check_arcs(path: &str) -> Result<(), String> {
    if !path.contains(['A', 'a']) {
        return Ok(());
    }
    for segment in PathParser::from(path).map_while(Result::ok) {
        let numbers = match segment {
            PathSegment::MoveTo { x, y, .. }
            | PathSegment::LineTo { x, y, .. }
            | PathSegment::CurveTo { x, y, .. }
            | PathSegment::SmoothCurveTo { x, y, .. }
            | PathSegment::Quadratic { x, y, .. }
            | PathSegment::SmoothQuadratic { x, y, .. } => [x, y, 0.0, 0.0],
            PathSegment::EllipticalArc { rx, ry, x, y, .. } => [x, y, rx, ry],
            PathSegment::HorizontalLineTo { x, .. } => [x, 0.0, 0.0, 0.0],
            PathSegment::VerticalLineTo { y, .. } => [0.0, y, 0.0, 0.0],
            PathSegment::ClosePath { .. } => continue,
        };
        if let Some(large) = numbers.iter().find(|v| v.is_nan() || v.abs() > ARC_CAP) {
            return Err(format!("{large} in a path with arcs, the limit is {ARC_CAP}"));
        }
    }
    Ok(())
}

fn brief(text: &str) -> String {
    text.chars().take(40).collect()
}

/// First `inner`, then `outer`.
fn joined(outer: &Transform, inner: &Transform) -> Transform {
    let (o, i) = (outer, inner);
    Transform::new(
        o.a * i.a + o.c * i.b,
        o.b * i.a + o.d * i.b,
        o.a * i.c + o.c * i.d,
        o.b * i.c + o.d * i.d,
        o.a * i.e + o.c * i.f + o.e,
        o.b * i.e + o.d * i.f + o.f,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(body: &str) -> Result<Vec<Vec<[f32; 2]>>, String> {
        let text = format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{body}</svg>");
        let parsed = parse(text.as_bytes()).map(|s| s.strokes().to_vec());
        parsed.map_err(|e| e.to_string())
    }

    fn path(d: &str) -> Vec<Vec<[f32; 2]>> {
        svg(&format!("<path d=\"{d}\"/>")).unwrap()
    }

    #[test]
    fn lines_are_the_same_absolute_and_relative() {
        let square = [[[1., 1.], [3., 1.], [3., 4.], [1., 4.], [1., 1.]]];
        assert_eq!(path("M1,1 L3,1 L3,4 L1,4 Z"), square);
        assert_eq!(path("m1 1 l2 0 0 3 -2 0 z"), square);
        assert_eq!(path("M1 1H3V4H1Z"), square);
        assert_eq!(path("m1 1h2v3h-2z"), square);
        assert_eq!(path("M0 0L1 1M2 2L3 3"), [[[0., 0.], [1., 1.]], [[2., 2.], [3., 3.]]]);
    }

    #[test]
    fn every_kind_of_curve_ends_where_it_should_and_stays_close() {
        // All trace the upper half of the unit circle, or a good likeness, from (-1,0) to (1,0).
        let k = 0.552_284_75;
        for (d, off) in [
            ("M-1 0A1 1 0 0 1 1 0".to_owned(), 0.01),
            ("M-1 0a1 1 0 0 1 2 0".to_owned(), 0.01),
            (format!("M-1 0C-1 -{k} -{k} -1 0 -1S1 -{k} 1 0"), 0.01),
            (format!("M-1 0c0 -{k} {} -1 1 -1s1 {} 1 1", 1.0 - k, 1.0 - k), 0.01),
            ("M-1 0Q-1 -1 0 -1T1 0".to_owned(), 0.1),
            ("M-1 0q0 -1 1 -1t1 1".to_owned(), 0.1),
        ] {
            let stroke = &path(&d)[0];
            let end = stroke[stroke.len() - 1];
            assert!((end[0] - 1.0).abs() < 1e-6 && end[1].abs() < 1e-6, "{d}: {end:?}");
            assert!(stroke.len() > 5, "{d}");
            for [x, y] in stroke {
                assert!((x.hypot(*y) - 1.0).abs() < off && *y < 1e-6, "{d}: {x} {y}");
            }
        }
    }

    #[test]
    fn transforms_of_groups_add_up_from_the_inside_out() {
        let drawn = svg(
            "<g transform='translate(10,0) scale(2)'><g><path transform='rotate(90)' d='M1 0L2 0'/></g></g>",
        );
        for (got, want) in drawn.unwrap()[0].iter().zip([[10.0f32, 2.0], [10.0, 4.0]]) {
            assert!((got[0] - want[0]).abs() < 1e-5 && (got[1] - want[1]).abs() < 1e-5, "{got:?}");
        }
    }

    #[test]
    fn basic_shapes_are_drawn_and_definitions_are_not() {
        let drawn = svg("<defs><path d='M0 0L9 9'/></defs><line x1='1' y2='2px'/><polyline points='0,0 1,1 2,0'/>\
            <polygon points='0,0 1,1 2,0'/><rect x='1' y='1' width='2' height='3'/><path display='none' d='M0 0L1 1'/>")
        .unwrap();
        assert_eq!(drawn.len(), 4);
        assert_eq!(drawn[0], [[1., 0.], [0., 2.]]);
        assert_eq!(drawn[1].len() + 1, drawn[2].len());
        assert_eq!(drawn[3], [[1., 1.], [3., 1.], [3., 4.], [1., 4.], [1., 1.]]);
        let circle = svg("<circle cx='1' cy='2' r='3'/>").unwrap();
        assert!(circle[0].iter().all(|[x, y]| ((x - 1.0).hypot(y - 2.0) - 3.0).abs() < 0.01));
    }

    #[test]
    fn damaged_or_hostile_files_are_refused_with_a_reason() {
        let deep = format!("{}{}", "<g>".repeat(100), "</g>".repeat(100));
        let abyss = format!("{}{}", "<g>".repeat(100_000), "</g>".repeat(100_000));
        for (body, why) in [
            ("<path d='M0 0L1'/>", "path `M0 0L1`"),
            ("<path d='M0 0L1e200 0L0 1e308'/>", "holds inf"),
            ("<path d='M0 0L1e308 0L-1e308 1'/>", "too large"),
            ("<path d='M0 0A1e300 1 0 0 1 2 2'/>", "the limit is 10000000"),
            ("<path d='M1e300 0A1 1 0 0 1 2 2'/>", "the limit is 10000000"),
            ("<circle r='1e300'/>", "the limit is 10000000"),
            ("<path d='M0 0L0 0'/>", "all equal"),
            ("<g transform='scale(x)'/>", "transform `scale(x)`"),
            ("<rect width='wide'/>", "width `wide` is not a number"),
            ("", "an empty sketch"),
            ("<g>", "expected"),
            (&deep, "more than 64 deep"),
            (&abyss, "deep"),
        ] {
            let e = svg(body).unwrap_err();
            assert!(e.contains(why), "{why}: {e}");
        }
        assert!(parse(b"<html/>").unwrap_err().to_string().contains("its root is `html`"));
        assert!(
            parse(b"<!DOCTYPE svg [<!ENTITY a 'x'>]><svg/>")
                .unwrap_err()
                .to_string()
                .contains("entities")
        );
        assert!(parse(b"\xff\xfe").unwrap_err().to_string().contains("UTF-8"));
        let many = format!("<path d='M0 0{}'/>", "h1".repeat(SEGMENT_CAP));
        assert!(svg(&many).unwrap_err().contains("the limit"));
    }

    #[test]
    fn a_doctype_without_entities_is_fine() {
        let text = "\u{feff}<?xml version='1.0'?><!DOCTYPE svg PUBLIC '-//W3C//DTD SVG 1.1//EN' \
                    'http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd'><svg><path d='M0 0L1 1'/></svg>";
        assert_eq!(parse(text.as_bytes()).unwrap().strokes().len(), 1);
    }
}
