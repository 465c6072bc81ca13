//! Drawing figures as SVG: [`Svg`] collects elements, [`Scale`] places numbers,
//! [`Frame`] draws axes. Colours are CSS classes, so that a page's light and
//! dark styles reach them.

mod frame;
mod scale;

use std::fmt::{Display, Write};

pub use frame::Frame;
pub use scale::Scale;

/// Text made harmless inside HTML and SVG, also between quotes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for ch in text.chars() {
        match ch {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() && c != '\n' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A coordinate: one decimal is enough, and keeps files small.
pub fn at(v: f64) -> String {
    let text = format!("{:.1}", if v.is_finite() { v } else { 0.0 });
    match text.strip_suffix(".0") {
        Some("-0") => "0".into(),
        Some(whole) => whole.into(),
        None => text,
    }
}

/// Where text stands relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It starts there.
    Start,
    /// It is centred there.
    Middle,
    /// It ends there.
    End,
}

/// A drawing under way. Coordinates are pixels, y down.
#[derive(Debug)]
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty drawing of a size.
    pub fn new(width: f64, height: f64) -> Self {
        Svg { width, height, body: String::new() }
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let (x1, y1, x2, y2) = (at(from.0), at(from.1), at(to.0), at(to.1));
        self.put(format_args!(
            r#"<line class="{class}" x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>"#
        ));
    }

    /// A rectangle. Sizes below zero are taken as zero.
    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let (x, y, w, h) = (at(x), at(y), at(w.max(0.0)), at(h.max(0.0)));
        self.put(format_args!(
            r#"<rect class="{class}" x="{x}" y="{y}" width="{w}" height="{h}"/>"#
        ));
    }

    /// A rectangle of a given colour.
    pub fn tile(&mut self, fill: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let (x, y, w, h) = (at(x), at(y), at(w), at(h));
        self.put(format_args!(r#"<rect fill="{fill}" x="{x}" y="{y}" width="{w}" height="{h}"/>"#));
    }

    /// A disc.
    pub fn circle(&mut self, class: &str, (x, y): (f64, f64), r: f64) {
        let (x, y, r) = (at(x), at(y), at(r));
        self.put(format_args!(r#"<circle class="{class}" cx="{x}" cy="{y}" r="{r}"/>"#));
    }

    /// A line through points; nothing if there are none.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (i, &(x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, at(x), at(y));
        }
        self.outline(class, &d);
    }

    /// A path in SVG's own words; nothing if there are none.
    pub fn outline(&mut self, class: &str, d: &str) {
        if !d.is_empty() {
            self.put(format_args!(r#"<path class="{class}" d="{d}"/>"#));
        }
    }

    /// A line of text, made harmless.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        self.turned(class, (x, y), anchor, 0, text);
    }

    /// A line of text turned clockwise by some degrees about its point.
    pub fn turned(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        anchor: Anchor,
        turn: i32,
        text: &str,
    ) {
        let (x, y, text) = (at(x), at(y), escape(text));
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let turn = match turn {
            0 => String::new(),
            turn => format!(r#" transform="rotate({turn} {x} {y})""#),
        };
        self.put(format_args!(
            r#"<text class="{class}" x="{x}" y="{y}"{anchor}{turn}>{text}</text>"#
        ));
    }

    /// An embedded picture, drawn with sharp pixels.
    pub fn picture(&mut self, uri: &str, (x, y): (f64, f64), (w, h): (f64, f64)) {
        let (x, y, w, h) = (at(x), at(y), at(w), at(h));
        self.put(format_args!(
            r#"<image href="{uri}" x="{x}" y="{y}" width="{w}" height="{h}" style="image-rendering:pixelated"/>"#
        ));
    }

    /// Puts another drawing inside, its top left corner at a point.
    pub fn place(&mut self, other: &Svg, (x, y): (f64, f64)) {
        let (x, y) = (at(x), at(y));
        self.put(format_args!(r#"<g transform="translate({x} {y})">{}</g>"#, other.body));
    }

    /// The element, described for readers who cannot see it. It scales with its column.
    pub fn finish(&self, label: &str) -> String {
        let (w, h) = (at(self.width), at(self.height));
        format!(
            r#"<svg viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{}">{}</svg>"#,
            escape(label),
            self.body
        )
    }

    /// The same in a box that scrolls sideways where it would become too small to read.
    pub fn figure(&self, label: &str) -> String {
        format!("<div class=\"plot\">{}</div>", self.finish(label))
    }

    /// The same as a file of its own, with a style sheet.
    pub fn standalone(&self, label: &str, style: &str) -> String {
        let open = r#"<svg xmlns="http://www.w3.org/2000/svg""#;
        let out = self.finish(label).replacen("<svg", open, 1);
        out.replacen('>', &format!("><style>{style}</style>"), 1) + "\n"
    }

    fn put(&mut self, element: impl Display) {
        let _ = write!(self.body, "{element}");
    }
}

/// Colours from low to high: dark blue over grey to yellow, told apart by every kind of
/// colour vision because lightness rises all the way.
pub fn heat(share: f64) -> String {
    const STOPS: [[f64; 3]; 6] = [
        [8.0, 29.0, 88.0],
        [37.0, 74.0, 130.0],
        [82.0, 116.0, 138.0],
        [134.0, 155.0, 135.0],
        [197.0, 193.0, 110.0],
        [253.0, 232.0, 92.0],
    ];
    let place = if share.is_nan() { 1.0 } else { share.clamp(0.0, 1.0) } * (STOPS.len() - 1) as f64;
    let below = (place as usize).min(STOPS.len() - 2);
    let part = place - below as f64;
    let mix =
        |c: usize| (STOPS[below][c] * (1.0 - part) + STOPS[below + 1][c] * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        let mut svg = Svg::new(10.0, 10.0);
        svg.text("t", (1.0, 2.0), Anchor::Start, "</text><script>\"&'\u{1b}");
        let out = svg.finish("a \"label\"");
        assert!(
            out.contains("&lt;/text&gt;&lt;script&gt;&quot;&amp;&#39;\u{fffd}</text>"),
            "{out}"
        );
        assert!(out.contains("aria-label=\"a &quot;label&quot;\""), "{out}");
    }

    #[test]
    fn coordinates_have_one_decimal_at_most() {
        let seen: Vec<String> = [1.0, -0.04, 2.26, f64::NAN].into_iter().map(at).collect();
        assert_eq!(seen, ["1", "0", "2.3", "0"]);
    }

    #[test]
    fn heat_rises_in_lightness() {
        let light = |share: f64| {
            let hex = heat(share);
            let channel = |i: usize| f64::from(u8::from_str_radix(&hex[i..i + 2], 16).unwrap());
            0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
        };
        assert!((0..20).all(|i| light(f64::from(i) / 20.0) < light(f64::from(i + 1) / 20.0)));
        assert_eq!(heat(f64::NAN), heat(1.0));
    }
}
