//! Energies of upright and transformed inputs, and of the views found.

use upright::{Canonicalizer, Role};

use super::{Figure, Table, legend, number};
use crate::plot::{Anchor, Frame, Svg};
use crate::study::{Side, Study};

const BINS: usize = 40;

const SIZE: (f64, f64) = (720.0, 320.0);

/// Draws the histograms.
pub(super) fn draw(c: &Canonicalizer, study: &Study) -> Figure {
    let finite = |mut v: Vec<f32>| {
        v.retain(|e| e.is_finite());
        v.sort_by(f32::total_cmp);
        v
    };
    let found = |side: &Side| {
        side.outcomes.iter().filter_map(|o| o.found).map(|look| look.energy).collect()
    };
    let sets = [
        finite(study.upright.energies()),
        finite(study.transformed.energies()),
        finite(found(&study.transformed)),
    ];
    let all = finite(sets.concat());
    let quantile = |share: f64| {
        all.get((share * all.len() as f64) as usize).or(all.last()).copied().unwrap_or(0.0)
    };
    let tau = c.gate().tau();
    let (mut low, mut high) = (f64::from(quantile(0.0)), f64::from(quantile(0.99)));
    if tau.is_finite() {
        (low, high) = (low.min(tau.into()), high.max(tau.into()));
    }
    if high <= low {
        high = low + 1.0;
    }
    let width = (high - low) / BINS as f64;
    let counts = sets.each_ref().map(|set| {
        let mut counts = [0usize; BINS];
        for &e in set {
            counts[(((f64::from(e) - low) / width) as usize).min(BINS - 1)] += 1;
        }
        counts
    });
    let shares = |i: usize| counts[i].map(|n| 100.0 * n as f64 / sets[i].len().max(1) as f64);
    let top = (0..3).flat_map(shares).fold(1.0, f64::max);

    let frame = Frame::new(SIZE, (low, high), (0.0, top));
    let frame = frame.nice_y(5);
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    frame.axes(&mut svg, "energy (lower = more familiar)", "share of inputs, %");
    for (i, class) in ["area up", "area tr", "line best"].into_iter().enumerate() {
        let mut points = vec![frame.at(low, 0.0)];
        for (bin, share) in shares(i).into_iter().enumerate() {
            let left = low + bin as f64 * width;
            points.extend([frame.at(left, share), frame.at(left + width, share)]);
        }
        points.push(frame.at(high, 0.0));
        svg.path(class, &points);
    }
    if tau.is_finite() {
        let (_, up, right, bottom) = frame.edges();
        let x = frame.x.at(tau.into());
        svg.line("tau", (x, up), (x, bottom));
        let (dx, anchor) =
            if x > right - 120.0 { (-6.0, Anchor::End) } else { (6.0, Anchor::Start) };
        svg.text("mark", (x + dx, up + 10.0), anchor, &format!("threshold {}", number(tau.into())));
    }

    let mut data = Table::new(&["from", "to", "upright", "transformed", "transformed_best_view"]);
    let [up, tr, best] = &counts;
    for (bin, ((up, tr), best)) in up.iter().zip(tr).zip(best).enumerate() {
        let left = low + bin as f64 * width;
        data.row([
            left.to_string(),
            (left + width).to_string(),
            up.to_string(),
            tr.to_string(),
            best.to_string(),
        ]);
    }
    let apart = study.auroc().map_or_else(String::new, |a| {
        format!(" A transformed input looks less familiar than an upright one in {:.1} of 100 pairs (AUROC).", 100.0 * a)
    });
    Figure {
        id: "energies",
        title: "Energies",
        lead: format!(
            "How unfamiliar inputs look to `{}` as they come, and the best views that searches of \
             transformed inputs found. Inputs right of the threshold are searched.{apart} The last bin \
             holds everything beyond it.",
            c.config().part(Role::Score).name
        ),
        body: svg.figure("Histograms of energies of upright and transformed inputs")
            + &legend(&[
                ("up", "upright"),
                ("tr", "transformed"),
                ("best", "transformed, best view found"),
                ("tau", "the gate's threshold"),
            ]),
        data: Some(data),
    }
}
