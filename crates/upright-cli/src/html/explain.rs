//! One input explained in one drawing.

use upright::gate::Reason;
use upright::score::Neighbour;
use upright::{Canonicalizer, Prediction, Trace, Verdict};

use super::landscape::degrees;
use super::{heat_map, number};
use crate::plot::{Anchor, Frame, Svg, escape};
use crate::study::{Landscape, Line};

/// Everything an explanation is made of.
pub struct Explained {
    /// What to call the input.
    pub name: String,
    /// The answer.
    pub prediction: Prediction,
    /// All that the search looked at.
    pub trace: Trace,
    /// What the gate compared.
    pub reason: Reason,
    /// Why it was decided so, in sentences.
    pub reasons: Vec<String>,
    /// The input and the view that answered, as addresses that hold them.
    pub pictures: [String; 2],
    /// Views that were the best so far: which evaluation, its energy, a picture.
    pub steps: Vec<(usize, f32, String)>,
    /// Energies and labels along the first axis, through the answered view.
    pub slice: Option<(Line, Vec<f32>, Vec<u32>)>,
    /// Energies over the first two axes.
    pub landscape: Option<Landscape>,
    /// Neighbours of the input and of the view, if the score has any.
    pub neighbours: Option<[Vec<Neighbour>; 2]>,
}

const WIDTH: f64 = 900.0;
const PICTURE: f64 = 168.0;
/// Where the reasons begin, the height of a line, and the gap between two reasons.
const REASONS: f64 = 98.0;
const LINE: f64 = 18.0;
const GAP: f64 = 6.0;

/// Draws the explanation.
pub fn draw(c: &Canonicalizer, e: &Explained) -> Svg {
    let class = |label: u32| c.model().class_name(label);
    let map = e.landscape.as_ref();
    let heights = [e.slice.as_ref().map_or(0.0, |_| 284.0), map.map_or(0.0, |_| 366.0)];
    let reasons: Vec<Vec<String>> =
        e.reasons.iter().map(|reason| wrap(&reason.replace('`', ""), 62)).collect();
    let tall: f64 = reasons.iter().map(|lines| LINE * lines.len() as f64 + GAP).sum();
    let top = 306.0f64.max(REASONS + tall + 12.0);
    let foot = top + heights[0] + heights[1];
    let mut svg = Svg::new(WIDTH, foot + 150.0);
    svg.rect("page", (0.0, 0.0), (WIDTH, foot + 150.0));
    let p = &e.prediction;
    svg.text("head", (28.0, 40.0), Anchor::Start, &heading(p, &class));
    svg.text("soft", (28.0, 62.0), Anchor::Start, &clip(&e.name, 90));

    let who = match p.verdict {
        Verdict::Switched => "second model",
        _ => "view that answered",
    };
    let captions = [format!("input: {}", class(p.raw_label)), format!("{who}: {}", class(p.label))];
    for (i, (uri, words)) in e.pictures.iter().zip(captions).enumerate() {
        let x = 28.0 + i as f64 * (PICTURE + 56.0);
        svg.picture(uri, (x, 84.0), (PICTURE, PICTURE));
        svg.rect("edge", (x, 84.0), (PICTURE, PICTURE));
        svg.text(
            "soft",
            (x + PICTURE / 2.0, 84.0 + PICTURE + 20.0),
            Anchor::Middle,
            &clip(&words, 28),
        );
    }
    let (from, to) = (28.0 + PICTURE + 14.0, 28.0 + PICTURE + 42.0);
    let y = 84.0 + PICTURE / 2.0;
    svg.outline(
        "arrow",
        &format!("M{from} {y}L{to} {y}M{} {}L{to} {y}L{} {}", to - 8.0, y - 7.0, to - 8.0, y + 7.0),
    );
    let mut y = REASONS;
    for lines in &reasons {
        for line in lines {
            svg.text("", (444.0, y), Anchor::Start, line);
            y += LINE;
        }
        y += GAP;
    }
    if let Some((line, energies, labels)) = &e.slice {
        svg.place(&curve(c, e, line, energies, labels), (0.0, top));
    }
    if let Some(l) = map {
        let y = top + heights[0];
        svg.text("name", (28.0, y + 6.0), Anchor::Start, "Energy over two axes");
        let words = format!(
            "dark = familiar (ranks); outlined: the model says {}; × input, ○ answer",
            clip(&class(p.label), 24)
        );
        svg.text("soft", (WIDTH - 28.0, y + 6.0), Anchor::End, &words);
        svg.place(&heat_map(l, Some(p.label), (WIDTH - 20.0, 330.0)), (14.0, y + 16.0));
    }
    below(&mut svg, e, foot, &class);
    svg
}

fn heading(p: &Prediction, class: &dyn Fn(u32) -> String) -> String {
    let words = match p.verdict {
        Verdict::Kept => format!("Kept: looks familiar as it is, {}", class(p.label)),
        Verdict::Accepted if p.label == p.raw_label => {
            format!("Accepted: a more familiar view, which also says {}", class(p.label))
        }
        Verdict::Accepted => format!("Accepted: {}, not {}", class(p.label), class(p.raw_label)),
        Verdict::Rejected => {
            format!("Rejected: the model's own answer, {}, stands", class(p.label))
        }
        Verdict::Switched => format!("Switched: the second model says {}", class(p.label)),
        Verdict::Abstained => format!("Left open: perhaps {}", class(p.label)),
    };
    clip(&words, 70)
}

/// Energy along one axis, with the search's points at their own energies.
fn curve(c: &Canonicalizer, e: &Explained, line: &Line, energies: &[f32], labels: &[u32]) -> Svg {
    let mut svg = Svg::new(WIDTH, 262.0);
    svg.text("name", (28.0, 6.0), Anchor::Start, &format!("Energy along {}", line.name));
    svg.text(
        "soft",
        (WIDTH - 28.0, 6.0),
        Anchor::End,
        "line: through the answered view, thick where the model gives the same answer; dots: the search",
    );
    let tau = e.reason.tau;
    let dots = std::iter::once(&e.trace.raw).chain(&e.trace.seen);
    let all = energies.iter().copied().chain(dots.clone().map(|s| s.energy));
    let all = all.chain(Some(tau)).filter(|v| v.is_finite()).map(f64::from);
    let (low, high) =
        all.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let frame = Frame::inside((78.0, 22.0), (WIDTH - 96.0, 212.0), line.ends(), (low, high));
    let frame = frame.nice_y(4);
    frame.y_axis(&mut svg, "energy");
    let ticks = if line.unit.is_empty() { frame.x.ticks(8) } else { degrees(line.ends()) };
    for (v, text) in ticks {
        frame.x_tick(&mut svg, v, &text);
    }
    frame.x_title(&mut svg, &line.title());
    if tau.is_finite() {
        let (left, _, right, _) = frame.edges();
        let y = frame.y.at(tau.into());
        svg.line("tau", (left, y), (right, y));
        svg.text("tick", (right + 6.0, y + 4.0), Anchor::Start, "threshold");
    }
    for s in &e.trace.seen {
        svg.circle("dot tr", frame.at(line.shown(c.space(), &s.pose), s.energy.into()), 2.6);
    }
    let at = |i: usize| frame.at(line.of(line.values[i]), energies[i].into());
    let path: Vec<_> = (0..energies.len()).filter(|&i| energies[i].is_finite()).map(at).collect();
    svg.path("line up thin", &path);
    let mut from = 0;
    while from < labels.len() {
        let run = labels[from..].iter().take_while(|&&l| l == labels[from]).count();
        if labels[from] == e.prediction.label {
            svg.path("line up", &(from..from + run).map(at).collect::<Vec<_>>());
        }
        from += run;
    }
    let raw = &e.trace.raw;
    let (x, y) = frame.at(line.shown(c.space(), &raw.pose), raw.energy.into());
    svg.outline("cross", &format!("M{:.1} {:.1}l12 12m0 -12l-12 12", x - 6.0, y - 6.0));
    if e.prediction.verdict == Verdict::Accepted {
        let place =
            (line.shown(c.space(), &e.prediction.pose), f64::from(e.prediction.energy_after));
        svg.circle("found", frame.at(place.0, place.1), 6.0);
    }
    svg
}

/// The steps of the search, and who the neighbours are.
fn below(svg: &mut Svg, e: &Explained, y: f64, class: &dyn Fn(u32) -> String) {
    svg.text("name", (28.0, y + 6.0), Anchor::Start, "Best so far");
    for (i, (order, energy, uri)) in e.steps.iter().rev().take(7).rev().enumerate() {
        let x = 28.0 + i as f64 * 70.0;
        svg.picture(uri, (x, y + 18.0), (60.0, 60.0));
        svg.rect("edge", (x, y + 18.0), (60.0, 60.0));
        let words = if *order == 0 { "input".into() } else { format!("view {order}") };
        svg.text("tick", (x + 30.0, y + 94.0), Anchor::Middle, &words);
        svg.text("tick", (x + 30.0, y + 110.0), Anchor::Middle, &number((*energy).into()));
    }
    let x = 540.0;
    let rows: [(&str, Vec<(String, f64)>); 2] = if let Some([input, view]) = &e.neighbours {
        svg.text("name", (x, y + 6.0), Anchor::Start, "Nearest samples in the bank");
        let list = |near: &Vec<Neighbour>| -> Vec<(String, f64)> {
            near.iter().take(4).map(|n| (class(n.class), n.distance.into())).collect()
        };
        [("input", list(input)), ("view", list(view))]
    } else {
        svg.text("name", (x, y + 6.0), Anchor::Start, "Most probable classes, %");
        [("input", top(&e.trace.raw_logits, class)), ("view", top(&e.prediction.logits, class))]
    };
    for (i, (name, entries)) in rows.iter().enumerate() {
        let y = y + 34.0 + i as f64 * 46.0;
        svg.text("soft", (x, y), Anchor::Start, name);
        for (k, (class, value)) in entries.iter().enumerate() {
            let x = x + 64.0 + k as f64 * 72.0;
            svg.text("mark", (x, y), Anchor::Start, &clip(class, 9));
            svg.text("tick", (x, y + 16.0), Anchor::Start, &number(*value));
        }
        if e.neighbours.is_some() {
            svg.text("soft", (x, y + 16.0), Anchor::Start, "distance");
        }
    }
}

/// The four most probable classes and their softmax in percent.
fn top(logits: &[f32], class: &dyn Fn(u32) -> String) -> Vec<(String, f64)> {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|&l| f64::from(l - most).exp()).sum();
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    let share = |&i: &usize| (class(i as u32), 100.0 * f64::from(logits[i] - most).exp() / sum);
    order.iter().take(4).map(share).collect()
}

/// The explanation as a page.
pub fn page(svg: &Svg, title: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <link rel=\"icon\" href=\"data:,\"><title>{}</title>\n<style>\n{}\n{}</style></head>\n\
         <body><main>{}</main></body></html>\n",
        escape(title),
        super::STYLE,
        STYLE,
        svg.finish(title)
    )
}

/// Styles that only explanations need.
pub const STYLE: &str = "svg .page{fill:var(--card)}svg .head{font-size:22px;font-weight:650}\
svg .soft{fill:var(--soft)}svg .name{font-size:14px;font-weight:650}svg .edge{fill:none;stroke:var(--line)}\
svg .arrow{fill:none;stroke:var(--soft);stroke-width:2.5}svg .line.thin{stroke-width:1}\
svg .cross{fill:none;stroke:var(--ink);stroke-width:2.4}svg .found{fill:none;stroke:var(--right);stroke-width:3}\
svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans','DejaVu Sans',sans-serif}";

/// Text cut to a length, with dots where it was cut.
fn clip(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// Text in lines of at most so many characters, broken between words where it can be.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= most => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(clip(word, most)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_wrapped_between_words_and_long_words_are_cut() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("incomprehensible", 5), ["inco…"]);
        assert!(wrap("", 5).is_empty());
    }

    /// Softmax of (ln 3, 0): 75 % and 25 %.
    #[test]
    fn the_most_probable_classes_come_first() {
        let seen = top(&[0.0, 3f32.ln()], &|label| label.to_string());
        assert_eq!(seen[0].0, "1");
        assert!((seen[0].1 - 75.0).abs() < 1e-4 && (seen[1].1 - 25.0).abs() < 1e-4);
    }
}
