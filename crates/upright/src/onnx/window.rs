//! What a convolution or a pool slides over its input.

use super::proto::NodeProto;

/// Largest stride, step or padding that makes sense.
const LARGEST: usize = 1 << 20;

/// A sliding window along each spatial dimension.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) kernel: Vec<usize>,
    pub(super) strides: Vec<usize>,
    pub(super) dilations: Vec<usize>,
    /// Padding before the first position.
    pub(super) before: Vec<usize>,
    /// Padding after the last one, as the file says it.
    pub(super) after: Vec<usize>,
}

impl Window {
    /// Reads the attributes of a node that turns spatial sizes `from` into `to` by sliding a
    /// window.
    pub(super) fn read(
        node: &NodeProto,
        kernel: Vec<usize>,
        from: &[usize],
        to: &[usize],
    ) -> Result<Self, String> {
        let rank = kernel.len();
        if from.len() != rank || to.len() != rank {
            return Err("with a kernel of another rank".into());
        }
        let list = |name: &str, default: usize, len: usize| -> Result<Vec<usize>, String> {
            match node.attr(name) {
                Some(a) if a.ints.len() == len => a
                    .ints
                    .iter()
                    .map(|v| {
                        let fits = usize::try_from(*v).ok().filter(|v| *v <= LARGEST);
                        fits.ok_or_else(|| format!("with {name} of {v}"))
                    })
                    .collect(),
                Some(a) if !a.ints.is_empty() => Err(format!("with {} {name}", a.ints.len())),
                _ => Ok(vec![default; len]),
            }
        };
        let strides = list("strides", 1, rank)?;
        let dilations = list("dilations", 1, rank)?;
        let pads = list("pads", 0, 2 * rank)?;
        if kernel.iter().any(|v| *v > LARGEST) {
            return Err("with a huge window".into());
        }
        if kernel.iter().chain(&strides).chain(&dilations).any(|v| *v == 0) {
            return Err("with a window of size 0".into());
        }
        let (mut before, mut after) = (pads[..rank].to_vec(), pads[rank..].to_vec());
        let auto = node.attr("auto_pad").and_then(|a| a.s.as_deref()).unwrap_or(b"NOTSET");
        if auto.starts_with(b"SAME") {
            for i in 0..rank {
                let covered =
                    to[i].saturating_sub(1) * strides[i] + dilations[i] * (kernel[i] - 1) + 1;
                let total = covered.saturating_sub(from[i]);
                let (small, large) = (total / 2, total - total / 2);
                (before[i], after[i]) =
                    if auto == b"SAME_UPPER" { (small, large) } else { (large, small) };
            }
        }
        Ok(Window { kernel, strides, dilations, before, after })
    }

    /// Cells between the first and the last the window sees.
    pub(super) fn reach(&self, i: usize) -> usize {
        self.dilations[i] * (self.kernel[i] - 1)
    }

    /// The cell that a place of the window sees from a position, counted row by row in `sizes`;
    /// `None` outside.
    pub(super) fn cell(
        &self,
        position: &[usize],
        place: &[usize],
        sizes: &[usize],
    ) -> Option<usize> {
        let mut cell = 0;
        for (i, size) in sizes.iter().enumerate() {
            let from_edge = position[i] * self.strides[i] + place[i] * self.dilations[i];
            let along = from_edge.checked_sub(self.before[i]).filter(|c| c < size)?;
            cell = cell * size + along;
        }
        Some(cell)
    }
}
