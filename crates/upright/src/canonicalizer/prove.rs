//! Proving: accuracy before and after on samples that nothing was fitted on,
//! and where little is gained, what stands in the way.

use super::fit::{Watch, evenly};
use super::held::Held;
use super::report::{Accuracy, Ceiling};
use super::{Canonicalizer, FitReport};
use crate::dataset::chunk;
use crate::error::Result;

/// A gain below this many points is looked into, on so many inputs.
const SMALL: f64 = 5.0;
const SEARCHED: usize = 200;

/// Measures accuracy before and after on samples that nothing was fitted on.
pub(super) fn prove(
    c: &Canonicalizer,
    report: &mut FitReport,
    held: &Held,
    watch: &mut dyn Watch,
) -> Result<()> {
    watch.phase("prove", held.upright.len() + held.transformed.len());
    let mut judge = |upright: bool, rows: &[usize]| -> Result<Accuracy> {
        let mut accuracy = Accuracy::default();
        c.measure(&held.side(upright), rows, &mut |some| {
            accuracy.add(some.predictions, some.labels);
            watch.advance(some.asked);
        })?;
        Ok(accuracy)
    };
    report.upright = judge(true, &held.upright)?;
    report.transformed = judge(false, &held.transformed)?;
    if report.transformed.paired.gain() < SMALL && !c.switches() {
        report.ceiling = Some(ceiling(c, held)?);
    }
    Ok(())
}

/// What searching transformed inputs would reach without the gate.
fn ceiling(c: &Canonicalizer, held: &Held) -> Result<Ceiling> {
    let mut ceiling = Ceiling::default();
    let some = evenly(&held.transformed, SEARCHED.min(held.transformed.len())).0;
    for rows in some.chunks(chunk(held.data.signal())) {
        let (batch, labels) = held.read(c, false, rows)?;
        for (trace, truth) in c.trace(&batch)?.iter().zip(labels) {
            let raw = trace.raw_look();
            let found = c.read(trace).map(|a| a.look).filter(|best| best.energy < raw.energy);
            let label = found.map_or(raw.label, |best| best.label);
            let tally = [
                (&mut ceiling.right, truth == Some(label)),
                (&mut ceiling.lower, found.is_some()),
                (&mut ceiling.changed, label != raw.label),
            ];
            for (share, hit) in tally {
                share.of += 1;
                share.hits += usize::from(hit);
            }
        }
    }
    Ok(ceiling)
}
