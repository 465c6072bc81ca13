//! Accuracy against the budget of a search.

use super::{Figure, Table, legend};
use crate::plot::{Frame, Svg};
use crate::study::Budget;

const SIZE: (f64, f64) = (720.0, 320.0);

/// Draws both lines.
pub(super) fn draw(budgets: &[Budget], fitted: usize) -> Figure {
    let mut data =
        Table::new(&["budget", "data", "n", "right", "accuracy", "low", "high", "model_right"]);
    let last = budgets.len().max(2) - 1;
    let frame = Frame::new(SIZE, (-0.3, last as f64 + 0.3), (0.0, 100.0));
    let mut svg = Svg::new(SIZE.0, SIZE.1);
    frame.y_axis(&mut svg, "accuracy, %");
    for (i, b) in budgets.iter().enumerate() {
        let words =
            if b.views == fitted { format!("{} (fitted)", b.views) } else { b.views.to_string() };
        frame.x_tick(&mut svg, i as f64, &words);
    }
    frame.x_title(&mut svg, "views that a search may evaluate");
    for (class, kind, shift) in [("up", "upright", -0.015), ("tr", "transformed", 0.015)] {
        let of = |b: &Budget| if kind == "upright" { b.upright } else { b.transformed };
        let at = |i: usize, v: f64| frame.at(i as f64 + shift, v);
        let points: Vec<_> =
            budgets.iter().enumerate().map(|(i, b)| at(i, of(b).after.percent())).collect();
        if let Some(b) = budgets.first() {
            let bare = of(b).before.percent();
            svg.line(
                &format!("bare {class}"),
                frame.at(-0.3, bare),
                frame.at(last as f64 + 0.3, bare),
            );
        }
        svg.path(&format!("line {class}"), &points);
        for (i, b) in budgets.iter().enumerate() {
            let share = of(b).after;
            let (low, high) = share.interval();
            svg.line("whisker", at(i, low), at(i, high));
            svg.circle(&format!("dot {class}"), points[i], 4.5);
            data.row([
                b.views.to_string(),
                kind.into(),
                share.of.to_string(),
                share.hits.to_string(),
                format!("{:.2}", share.percent()),
                format!("{low:.2}"),
                format!("{high:.2}"),
                of(b).before.hits.to_string(),
            ]);
        }
    }
    let n = budgets.first().map_or(0, |b| b.transformed.after.of);
    Figure {
        id: "budget",
        title: "Accuracy against budget",
        lead: format!(
            "The same search run again with other budgets, on {n} inputs of each kind spread \
             evenly over the data, behind the gate that was fitted for {fitted} views. Dashed \
             lines are the bare model. Whiskers are Wilson intervals at 95 %."
        ),
        body: svg.figure("Accuracy against budget")
            + &legend(&[("up", "upright"), ("tr", "transformed"), ("bare", "bare model")]),
        data: Some(data),
    }
}
