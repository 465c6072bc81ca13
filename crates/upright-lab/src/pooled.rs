//! A small network for rows of three numbers as plain weights: convolutions
//! along the rows with `ReLU`, the largest and the mean of each channel, a
//! linear layer. Batch norms are already folded into the convolutions.
//!
//! Rows are prepared inside the graph, so that it takes raw coordinates:
//!
//! - strokes `(x, y, pen)`: centred on the mean point and divided by the root
//!   mean square distance from it; each row then holds `x, y`, the step from
//!   the row before times [`STEP_GAIN`], 1 where a stroke starts, and 1. Rows
//!   of padding (`pen < 0`) hold 0 there and after every convolution, and the
//!   pools leave them out, whatever their x and y are.
//! - clouds `(x, y, z)`: centred on the mean point and divided by the root mean
//!   square coordinate. Kernels of size 1 make the order of points irrelevant.

use crate::onnx_write::{Attribute, Graph};

/// Brings steps between neighbouring points to the size of coordinates.
pub(crate) const STEP_GAIN: f32 = 4.0;

/// Added to squares before the root, so that a single point has a size.
pub(crate) const TINY: f32 = 1e-12;

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Stroke sequences.
    Strokes,
    /// Point clouds.
    Cloud,
}

impl Rows {
    /// Numbers per prepared row.
    pub(crate) fn channels(self) -> usize {
        match self {
            Rows::Strokes => 6,
            Rows::Cloud => 3,
        }
    }
}

/// A convolution along the rows with bias; its input is padded with zeros to keep the length.
pub(crate) struct Conv {
    /// Channels out, channels in, kernel (odd).
    pub(crate) shape: [usize; 3],
    /// Row-major `[out, in, kernel]`.
    pub(crate) weight: Vec<f32>,
    /// One per channel out.
    pub(crate) bias: Vec<f32>,
}

/// The whole network.
pub(crate) struct Network {
    /// What it reads.
    pub(crate) rows: Rows,
    /// Rows of an input.
    pub(crate) length: usize,
    /// At least one.
    pub(crate) convs: Vec<Conv>,
    /// Row-major `[classes, 2 channels]`: first those of the largest, then of the mean values.
    pub(crate) weight: Vec<f32>,
    /// One per class.
    pub(crate) bias: Vec<f32>,
}

impl Network {
    /// Number of weights and biases.
    pub(crate) fn parameters(&self) -> usize {
        let convs = self.convs.iter().map(|c| c.weight.len() + c.bias.len());
        convs.sum::<usize>() + self.weight.len() + self.bias.len()
    }

    /// The network as an ONNX file: input `strokes` or `points` `[n, length, 3]`, outputs
    /// `logits` and `features`, the input of the last layer.
    pub(crate) fn onnx(&self, properties: &[(&str, &str)]) -> Vec<u8> {
        let classes = self.bias.len();
        let features = self.weight.len() / classes;
        let mut graph = Graph::new("pooled network");
        graph.output("logits", &[classes]);
        graph.output("features", &[features]);
        graph.weights("tiny", &[], &[TINY]);
        match self.rows {
            Rows::Strokes => strokes(&mut graph, self.length),
            Rows::Cloud => cloud(&mut graph, self.length),
        }
        graph.node("Transpose", &["rows"], "channels", &[("perm", Attribute::Ints(&[0, 2, 1]))]);
        let mut x = "channels".to_string();
        for (i, conv) in self.convs.iter().enumerate() {
            let (name, last) = (format!("conv{}", i + 1), format!("layer{}", i + 1));
            conv.write(&mut graph, &x, &name);
            let active =
                if self.rows == Rows::Strokes { format!("{name}.act") } else { last.clone() };
            graph.node("Relu", &[&name], &active, &[]);
            if self.rows == Rows::Strokes {
                graph.node("Mul", &[&active, "used.channels"], &last, &[]);
            }
            x = last;
        }
        let over = [("axes", Attribute::Ints(&[2])), ("keepdims", Attribute::Int(0))];
        graph.node("ReduceMax", &[&x], "largest", &over);
        match self.rows {
            Rows::Strokes => {
                graph.integers("axis2", &[2]);
                let flat = [("keepdims", Attribute::Int(0))];
                graph.node("ReduceSum", &[&x, "axis2"], "total", &flat);
                graph.node("Squeeze", &["count", "axis2"], "count.flat", &[]);
                graph.node("Div", &["total", "count.flat"], "mean", &[]);
            }
            Rows::Cloud => graph.node("ReduceMean", &[&x], "mean", &over),
        }
        graph.node("Concat", &["largest", "mean"], "features", &[("axis", Attribute::Int(1))]);
        graph.weights("fc.weight", &[classes, features], &self.weight);
        graph.weights("fc.bias", &[classes], &self.bias);
        let inputs = ["features", "fc.weight", "fc.bias"];
        graph.node("Gemm", &inputs, "logits", &[("transB", Attribute::Int(1))]);
        graph.file(properties)
    }
}

impl Conv {
    fn write(&self, graph: &mut Graph, from: &str, to: &str) {
        let (weight, bias) = (format!("{to}.weight"), format!("{to}.bias"));
        graph.weights(&weight, &self.shape, &self.weight);
        graph.weights(&bias, &[self.shape[0]], &self.bias);
        let kernel = self.shape[2] as i64;
        let pads = [kernel / 2; 2];
        let attributes =
            [("kernel_shape", Attribute::Ints(&[kernel])), ("pads", Attribute::Ints(&pads))];
        graph.node("Conv", &[from, &weight, &bias], to, &attributes);
    }
}

/// From `strokes` to `rows`, with the masks `used` `[n, length, 1]` and `used.channels`
/// `[n, 1, length]` and the number of points `count` `[n, 1, 1]`.
fn strokes(graph: &mut Graph, length: usize) {
    graph.input("strokes", &[length, 3]);
    graph.weights("zero", &[], &[0.0]);
    graph.weights("half", &[], &[0.5]);
    graph.weights("one", &[], &[1.0]);
    graph.weights("gain", &[], &[STEP_GAIN]);
    for (name, value) in [("at0", 0), ("at1", 1), ("at2", 2), ("at3", 3), ("before", -1)] {
        graph.integers(name, &[value]);
    }
    graph.integers("inner", &[1, 2]);
    graph.node("Slice", &["strokes", "at0", "at2", "at2"], "given", &[]);
    graph.node("Slice", &["strokes", "at2", "at3", "at2"], "pen", &[]);
    graph.node("Less", &["pen", "zero"], "padding", &[]);
    graph.node("Where", &["padding", "zero", "one"], "used", &[]);
    let swap = [("perm", Attribute::Ints(&[0, 2, 1]))];
    graph.node("Transpose", &["used"], "used.channels", &swap);
    graph.node("ReduceSum", &["used", "at1"], "points", &[]);
    graph.node("Max", &["points", "one"], "count", &[]);

    graph.node("Where", &["padding", "zero", "given"], "kept", &[]);
    graph.node("ReduceSum", &["kept", "at1"], "sum", &[]);
    graph.node("Div", &["sum", "count"], "middle", &[]);
    graph.node("Sub", &["kept", "middle"], "moved", &[]);
    graph.node("Where", &["padding", "zero", "moved"], "centred", &[]);
    graph.node("Mul", &["centred", "centred"], "squares", &[]);
    graph.node("ReduceSum", &["squares", "inner"], "square.sum", &[]);
    graph.node("Div", &["square.sum", "count"], "square", &[]);
    scaled(graph);

    graph.node("Slice", &["place", "at0", "at1", "at1"], "first", &[]);
    graph.node("Slice", &["place", "at0", "before", "at1"], "but.last", &[]);
    let rows = [("axis", Attribute::Int(1))];
    graph.node("Concat", &["first", "but.last"], "previous", &rows);
    graph.node("Sub", &["place", "previous"], "change", &[]);
    graph.node("Where", &["padding", "zero", "change"], "change.used", &[]);
    graph.node("Mul", &["change.used", "gain"], "step", &[]);
    graph.node("Greater", &["pen", "half"], "starts", &[]);
    graph.node("Where", &["starts", "one", "zero"], "start", &[]);
    let columns = [("axis", Attribute::Int(2))];
    graph.node("Concat", &["place", "step", "start", "used"], "rows", &columns);
}

/// From `points` to `rows`.
fn cloud(graph: &mut Graph, length: usize) {
    graph.input("points", &[length, 3]);
    graph.node("ReduceMean", &["points"], "middle", &[("axes", Attribute::Ints(&[1]))]);
    graph.node("Sub", &["points", "middle"], "centred", &[]);
    graph.node("Mul", &["centred", "centred"], "squares", &[]);
    graph.node("ReduceMean", &["squares"], "square", &[("axes", Attribute::Ints(&[1, 2]))]);
    scaled(graph);
    graph.node("Identity", &["place"], "rows", &[]);
}

/// From `centred` and the mean `square` to `place`.
fn scaled(graph: &mut Graph) {
    graph.node("Add", &["square", "tiny"], "square.safe", &[]);
    graph.node("Sqrt", &["square.safe"], "size", &[]);
    graph.node("Div", &["centred", "size"], "place", &[]);
}
