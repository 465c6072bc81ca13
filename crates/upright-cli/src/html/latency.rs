//! Where the time of a decision goes.

use super::{Figure, Table, legend, number};
use crate::plot::{Anchor, Scale, Svg};
use crate::study::{Latency, PARTS};

const WIDTH: f64 = 720.0;

/// Draws mean splits and prints percentiles.
pub(super) fn draw(latency: &[Latency; 2]) -> Figure {
    let all = latency[0].with(&latency[1]);
    let mut data = Table::new(&["inputs", "part", "n", "mean_ms", "p50_ms", "p95_ms", "p99_ms"]);
    let searched: Vec<([f64; 5], usize)> = [false, true].map(|s| all.means(s)).into();
    let mut shown = Table::new(&["part", "mean_ms", "p50_ms", "p95_ms", "p99_ms"]);
    let groups = [
        ("upright", latency[0].clone()),
        ("transformed", latency[1].clone()),
        ("all", all.clone()),
    ];
    for (name, group) in &groups {
        let n = group.splits.len();
        let percentiles = group.percentiles();
        for (i, part) in PARTS.into_iter().chain(["total"]).enumerate() {
            let time = |s: &crate::study::Split| s.parts.get(i).copied().unwrap_or(s.total);
            let mean = group.splits.iter().map(time).sum::<f64>() / n.max(1) as f64;
            let [p50, p95, p99] = match percentiles.get(i) {
                Some(p) => [p.p50, p.p95, p.p99].map(number),
                None => Default::default(),
            };
            let times = [number(mean), p50, p95, p99];
            if *name == "all" {
                let [mean, p50, p95, p99] = times.clone();
                shown.row([part.into(), mean, p50, p95, p99]);
            }
            let [mean, p50, p95, p99] = times;
            data.row([(*name).into(), part.into(), n.to_string(), mean, p50, p95, p99]);
        }
    }
    let most = searched.iter().map(|(parts, _)| parts.iter().sum()).fold(1e-3, f64::max);
    let scale = Scale::new((0.0, most), (150.0, WIDTH - 90.0));
    let mut svg = Svg::new(WIDTH, 104.0);
    for (i, (parts, n)) in searched.iter().enumerate() {
        let y = 8.0 + i as f64 * 34.0;
        let words = ["kept", "searched"][i];
        svg.text("tick", (142.0, y + 17.0), Anchor::End, &format!("{words}  (n = {n})"));
        let mut from = 0.0;
        for (k, part) in parts.iter().enumerate() {
            let (x, end) = (scale.at(from), scale.at(from + part));
            svg.rect(&format!("part{k}"), (x, y), (end - x, 24.0));
            from += part;
        }
        let end = (scale.at(from) + 8.0, y + 17.0);
        svg.text("mark", end, Anchor::Start, &format!("{} ms", number(from)));
    }
    svg.line("axis", (150.0, 76.0), (WIDTH - 90.0, 76.0));
    for (v, text) in scale.ticks(5) {
        svg.text("tick", (scale.at(v), 93.0), Anchor::Middle, &text);
    }
    let keys: Vec<(String, &str)> =
        PARTS.iter().enumerate().map(|(i, part)| (format!("part{i}"), *part)).collect();
    let keys: Vec<(&str, &str)> =
        keys.iter().map(|(class, part)| (class.as_str(), *part)).collect();
    Figure {
        id: "latency",
        title: "Latency",
        lead: format!(
            "Mean milliseconds of one decision, measured on {} inputs answered one by one on this \
             machine. Model, score and warp are timed again on the views of the decision in one \
             batch; search is what remains of the whole: choosing poses, readout, gate, and \
             smaller batches. Percentiles are values that occurred, given from 100 inputs on.",
            all.splits.len()
        ),
        body: svg.figure("Mean time of a decision by part") + &legend(&keys) + &shown.html(6),
        data: Some(data),
    }
}
