//! Accuracy against budget: some inputs answered again with smaller and with
//! twice the budget, by the same search behind the same gate.

use upright::{Accuracy, Canonicalizer, Dataset};

use super::Inputs;
use crate::Common;
use crate::progress::Progress;
use crate::report::Result;

/// Most inputs of each kind that are answered again.
const SAMPLE: usize = 120;

/// What one budget does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// Views that a search may evaluate.
    pub views: usize,
    /// Upright inputs.
    pub upright: Accuracy,
    /// Transformed ones.
    pub transformed: Accuracy,
}

/// Evenly spaced rows, at most so many.
pub(super) fn sample(data: &dyn Dataset, most: usize) -> Vec<usize> {
    let (n, most) = (data.len(), most.max(1));
    let step = n.div_ceil(most).max(1);
    (0..n).step_by(step).collect()
}

/// Answers samples with an eighth, a quarter, half, all and twice the fitted budget.
pub fn budgets(
    c: &Canonicalizer,
    upright: &Inputs,
    transformed: &Inputs,
    common: &Common,
) -> Result<Vec<Budget>> {
    let fitted = c.config().budget;
    let mut sizes: Vec<usize> =
        [fitted.div_ceil(8), fitted.div_ceil(4), fitted.div_ceil(2), fitted, 2 * fitted].into();
    sizes.dedup();
    let rows = [upright, transformed].map(|inputs| sample(inputs.data, SAMPLE));
    let each: usize = rows.iter().map(Vec::len).sum();
    let bar = Progress::start("budgets", sizes.len() * each, common.quiet);
    let mut seen = Vec::new();
    for budget in sizes {
        let c = &c.with_budget(budget);
        let answer = |inputs: &Inputs, rows: &[usize]| -> Result<Accuracy> {
            let mut accuracy = Accuracy::default();
            c.measure(&inputs.posed(), rows, &mut |some| {
                accuracy.add(some.predictions, some.labels);
                bar.advance(some.asked);
            })?;
            Ok(accuracy)
        };
        seen.push(Budget {
            views: budget,
            upright: answer(upright, &rows[0])?,
            transformed: answer(transformed, &rows[1])?,
        });
    }
    Ok(seen)
}
