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
//! - invariants of clouds: prepared as clouds, then each row holds numbers that no rotation
//!   changes: how far out its point lies, how it lies to the second and third moments of the
//!   cloud, and how many of some points, the [`ANCHORS`], lie about as far from it as each of
//!   [`SHELLS`] distances.

use crate::onnx_write::{Attribute, Graph};

/// Brings steps between neighbouring points to the size of coordinates.
pub(crate) const STEP_GAIN: f32 = 4.0;

/// Added to squares before the root, so that a single point has a size.
pub(crate) const TINY: f32 = 1e-12;

/// The first points of a cloud, to which the others are compared: all would take long.
pub(crate) const ANCHORS: usize = 128;
/// Distances at which anchors are counted: [`SHELL`] apart, blurred by [`BLUR`].
pub(crate) const SHELLS: usize = 12;
pub(crate) const SHELL: f32 = 0.4;
pub(crate) const BLUR: f32 = 0.3;
/// Mean square distance of prepared points from their centre: products are divided by it.
pub(crate) const SPREAD: f32 = 3.0;

/// What the rows are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// Stroke sequences.
    Strokes,
    /// Point clouds.
    Cloud,
    /// Point clouds, whatever their rotation.
    #[cfg_attr(not(any(test, feature = "train")), allow(dead_code))] // made by training only
    Invariants,
}

impl Rows {
    /// Numbers per prepared row.
    pub(crate) fn channels(self) -> usize {
        match self {
            Rows::Strokes => 6,
            Rows::Cloud => 3,
            Rows::Invariants => 5 + SHELLS,
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
        let mut graph = self.begun();
        match self.rows {
            Rows::Strokes => strokes(&mut graph, self.length),
            Rows::Cloud => {
                cloud(&mut graph, self.length);
                graph.node("Identity", &["place"], "rows", &[]);
            }
            Rows::Invariants => {
                cloud(&mut graph, self.length);
                invariants(&mut graph, self.length);
            }
        }
        self.write(&mut graph, "rows", "");
        graph.file(properties)
    }

    /// The network, of clouds, behind one that finds a linear map of each: input `points`
    /// `[n, length, 3]`, whose prepared rows are multiplied by the nine outputs of `finder`,
    /// rows first, and the identity.
    #[cfg_attr(not(any(test, feature = "train")), allow(dead_code))] // made by training only
    pub(crate) fn onnx_behind(&self, finder: &Network, properties: &[(&str, &str)]) -> Vec<u8> {
        let mut graph = self.begun();
        cloud(&mut graph, self.length);
        finder.write(&mut graph, "place", "find.");
        graph.weights("identity", &[9], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        graph.node("Add", &["find.logits", "identity"], "map.row", &[]);
        graph.integers("map.shape", &[0, 3, 3]);
        graph.node("Reshape", &["map.row", "map.shape"], "map", &[]);
        graph.node("MatMul", &["place", "map"], "rows", &[]);
        self.write(&mut graph, "rows", "");
        graph.file(properties)
    }

    /// A graph with the outputs, and the number that preparing needs.
    fn begun(&self) -> Graph {
        let classes = self.bias.len();
        let mut graph = Graph::new("pooled network");
        graph.output("logits", &[classes]);
        graph.output("features", &[self.weight.len() / classes]);
        graph.weights("tiny", &[], &[TINY]);
        graph
    }

    /// From prepared rows to `logits` and `features`, all names behind a prefix.
    fn write(&self, graph: &mut Graph, rows: &str, prefix: &str) {
        let classes = self.bias.len();
        let features = self.weight.len() / classes;
        let name = |part: &str| format!("{prefix}{part}");
        let swap = [("perm", Attribute::Ints(&[0, 2, 1]))];
        graph.node("Transpose", &[rows], &name("channels"), &swap);
        let mut x = name("channels");
        for (i, conv) in self.convs.iter().enumerate() {
            let (conv_name, last) =
                (name(&format!("conv{}", i + 1)), name(&format!("layer{}", i + 1)));
            conv.write(graph, &x, &conv_name);
            let active =
                if self.rows == Rows::Strokes { format!("{conv_name}.act") } else { last.clone() };
            graph.node("Relu", &[&conv_name], &active, &[]);
            if self.rows == Rows::Strokes {
                graph.node("Mul", &[&active, "used.channels"], &last, &[]);
            }
            x = last;
        }
        let over = [("axes", Attribute::Ints(&[2])), ("keepdims", Attribute::Int(0))];
        let (largest, mean) = (name("largest"), name("mean"));
        graph.node("ReduceMax", &[&x], &largest, &over);
        match self.rows {
            Rows::Strokes => {
                graph.integers("axis2", &[2]);
                let flat = [("keepdims", Attribute::Int(0))];
                graph.node("ReduceSum", &[&x, "axis2"], "total", &flat);
                graph.node("Squeeze", &["count", "axis2"], "count.flat", &[]);
                graph.node("Div", &["total", "count.flat"], &mean, &[]);
            }
            Rows::Cloud | Rows::Invariants => graph.node("ReduceMean", &[&x], &mean, &over),
        }
        let joined = name("features");
        graph.node("Concat", &[&largest, &mean], &joined, &[("axis", Attribute::Int(1))]);
        let (weight, bias) = (name("fc.weight"), name("fc.bias"));
        graph.weights(&weight, &[classes, features], &self.weight);
        graph.weights(&bias, &[classes], &self.bias);
        let inputs = [joined.as_str(), &weight, &bias];
        graph.node("Gemm", &inputs, &name("logits"), &[("transB", Attribute::Int(1))]);
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

/// From `points` to `place`.
fn cloud(graph: &mut Graph, length: usize) {
    graph.input("points", &[length, 3]);
    graph.node("ReduceMean", &["points"], "middle", &[("axes", Attribute::Ints(&[1]))]);
    graph.node("Sub", &["points", "middle"], "centred", &[]);
    graph.node("Mul", &["centred", "centred"], "squares", &[]);
    graph.node("ReduceMean", &["squares"], "square", &[("axes", Attribute::Ints(&[1, 2]))]);
    scaled(graph);
}

/// From `place` to `rows` that no rotation changes.
fn invariants(graph: &mut Graph, length: usize) {
    graph.weights("nought", &[], &[0.0]);
    graph.weights("two", &[], &[2.0]);
    graph.weights("spread", &[], &[SPREAD]);
    graph.weights("number", &[], &[length as f32]);
    graph.weights("narrow", &[], &[-0.5 / (BLUR * BLUR)]);
    for (name, value) in [("first", 0), ("last", ANCHORS.min(length) as i64), ("second", 1)] {
        graph.integers(name, &[value]);
    }
    graph.integers("third", &[2]);
    let swap = [("perm", Attribute::Ints(&[0, 2, 1]))];
    let mean = [("axes", Attribute::Ints(&[2])), ("keepdims", Attribute::Int(1))];
    graph.node("Slice", &["place", "first", "last", "second"], "anchors", &[]);
    graph.node("Transpose", &["anchors"], "across", &swap);
    graph.node("MatMul", &["place", "across"], "products", &[]);

    graph.node("Mul", &["place", "place"], "place.squares", &[]);
    graph.node("ReduceSum", &["place.squares", "third"], "out", &[]);
    graph.node("Div", &["out", "spread"], "out.square", &[]);
    graph.node("Sqrt", &["out.square"], "radius", &[]);

    graph.node("Div", &["products", "spread"], "along", &[]);
    graph.node("Mul", &["along", "along"], "along2", &[]);
    graph.node("ReduceMean", &["along2"], "moment2", &mean);
    graph.node("Mul", &["along2", "along"], "along3", &[]);
    graph.node("ReduceMean", &["along3"], "moment3", &mean);
    graph.node("Transpose", &["place"], "place.across", &swap);
    graph.node("MatMul", &["place.across", "place"], "sums", &[]);
    graph.node("Div", &["sums", "number"], "covariance", &[]);
    graph.node("MatMul", &["place", "covariance"], "drawn", &[]);
    graph.node("Mul", &["drawn", "drawn"], "drawn.squares", &[]);
    graph.node("ReduceSum", &["drawn.squares", "third"], "drawn.sum", &[]);
    graph.node("Div", &["drawn.sum", "spread"], "drawn.out", &[]);

    graph.node("Mul", &["across", "across"], "across.squares", &[]);
    graph.node("ReduceSum", &["across.squares", "second"], "across.out", &[]);
    graph.node("Add", &["out", "across.out"], "both.out", &[]);
    graph.node("Mul", &["products", "two"], "products2", &[]);
    graph.node("Sub", &["both.out", "products2"], "apart.raw", &[]);
    graph.node("Max", &["apart.raw", "nought"], "apart.square", &[]);
    graph.node("Sqrt", &["apart.square"], "apart", &[]);
    let mut rows: Vec<String> =
        ["radius", "out.square", "moment2", "moment3", "drawn.out"].map(String::from).into();
    for shell in 0..SHELLS {
        let name = |part: &str| format!("shell{shell}{part}");
        graph.weights(&name(".at"), &[], &[shell as f32 * SHELL]);
        graph.node("Sub", &["apart", &name(".at")], &name(".off"), &[]);
        graph.node("Mul", &[&name(".off"), &name(".off")], &name(".square"), &[]);
        graph.node("Mul", &[&name(".square"), "narrow"], &name(".power"), &[]);
        graph.node("Exp", &[&name(".power")], &name(".near"), &[]);
        graph.node("ReduceMean", &[&name(".near")], &name(""), &mean);
        rows.push(name(""));
    }
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    graph.node("Concat", &rows, "rows", &[("axis", Attribute::Int(2))]);
}

/// From `centred` and the mean `square` to `place`.
fn scaled(graph: &mut Graph) {
    graph.node("Add", &["square", "tiny"], "square.safe", &[]);
    graph.node("Sqrt", &["square.safe"], "size", &[]);
    graph.node("Div", &["centred", "size"], "place", &[]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::{Batch, Map, Model, ModelOptions, Resample, Signal, View, warp};

    /// Weights that follow from their place.
    fn spread(count: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * 37 % 101) as f32 / 101.0 - 0.5) / 4.0).collect()
    }

    #[test]
    fn a_network_of_invariants_does_not_see_a_rotation() {
        let (length, width) = (160, 8);
        let channels = Rows::Invariants.channels();
        let conv = Conv {
            shape: [width, channels, 1],
            weight: spread(width * channels),
            bias: vec![0.1; width],
        };
        let network = Network {
            rows: Rows::Invariants,
            length,
            convs: vec![conv],
            weight: spread(3 * 2 * width),
            bias: vec![0.0; 3],
        };
        let bytes = network.onnx(&[("task", "classification"), ("signal", "cloud")]);
        let model = Model::from_bytes("invariants", &bytes, &ModelOptions::default()).unwrap();
        let points = |salt: f32| -> Vec<f32> {
            (0..3 * length).map(|i| (salt * i as f32).sin() * (1 + i % 3) as f32).collect()
        };
        let clouds =
            Batch::new(Signal::Cloud { points: length }, [points(1.7), points(2.9)].concat());
        let clouds = clouds.unwrap();
        let (s, c) = 0.7f32.sin_cos();
        let map = Map::Space([c, -s, 0.0, s * c, c * c, -s, s * s, s * c, c]);
        let views = [0, 1].map(|item| View { item, map });
        let turned = warp(&clouds, &views, &Resample::default()).unwrap();
        assert!((turned.item(0)[0] - clouds.item(0)[0]).abs() > 1e-3);
        let logits = |batch: &Batch| model.run(batch).unwrap().logits.data().to_vec();
        let (before, after) = (logits(&clouds), logits(&turned));
        for (a, b) in before.iter().zip(&after) {
            assert!((a - b).abs() < 1e-4, "{before:?} {after:?}");
        }
        assert!((before[0] - before[3]).abs() > 1e-3, "other clouds look different: {before:?}");
    }
}
