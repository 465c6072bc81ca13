//! A bank small enough to work energies by hand, for the tests of the bank scores.

use crate::config::{Part, Value};
use crate::outputs::Outputs;
use crate::score::{Bank, Score, fit};
use crate::tensor::Matrix;

/// Bank: (0,0) and (0,2) of class 0, (6,0) and (6,8) of class 1; the last is misclassified.
/// Query: (3,0), predicted as class 1; then as class 2, which has no samples.
pub(crate) fn fitted(part: &Part) -> (Box<dyn Score>, Outputs) {
    let features = Matrix::new(4, 2, vec![0.0, 0.0, 6.0, 0.0, 0.0, 2.0, 6.0, 8.0]).unwrap();
    let logits =
        Matrix::new(4, 3, vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0])
            .unwrap();
    let outputs = Outputs::new(logits, vec![features]).unwrap();
    let bank = Bank::of(&outputs, &[0, 1, 0, 1]);
    let query = Outputs::new(
        Matrix::new(2, 3, vec![0.0, 1.0, 0.0, 0.0, 0.0, 1.0]).unwrap(),
        vec![Matrix::new(2, 2, vec![3.0, 0.0, 3.0, 0.0]).unwrap()],
    )
    .unwrap();
    (fit(part, &bank).unwrap(), query)
}

/// Whether the energies of both queries are as worked by hand.
pub(crate) fn near(part: &Part, want: [f64; 2]) {
    let (score, query) = fitted(part);
    for (got, want) in score.energy(&query).iter().zip(want) {
        assert!((f64::from(*got) - want).abs() < 1e-6 * (1.0 + want), "{part:?}: {got} {want}");
    }
}

/// The same score on correctly classified samples only.
pub(crate) fn correct(part: Part) -> Part {
    part.with("correct_only", Value::Flag(true))
}

/// The same score with squared distances.
pub(crate) fn squared(part: Part) -> Part {
    part.with("squared", Value::Flag(true))
}
