//! The paper's residual network for 40 x 40 gray images as plain weights: a
//! 3 x 3 stem of stride 2, four stages of one basic block with strides 1, 2,
//! 2, 2, GELU, a global mean, a linear layer. Batch norms are already folded
//! into the convolutions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::onnx_write::{Attribute, Graph};

/// Rows and columns of an input.
pub(crate) const SIDE: usize = 40;

/// A convolution with bias, padded so that stride 1 keeps the size.
pub(crate) struct Conv {
    /// Channels out, channels in, kernel side.
    pub(crate) shape: [usize; 3],
    /// Steps between outputs.
    pub(crate) stride: usize,
    /// Row-major `[out, in, kernel, kernel]`.
    pub(crate) weight: Vec<f32>,
    /// One per channel out.
    pub(crate) bias: Vec<f32>,
}

/// A basic block: `gelu(second(gelu(first(x))) + skip(x))`.
pub(crate) struct Block {
    /// Carries the stride.
    pub(crate) first: Conv,
    /// Keeps size and channels.
    pub(crate) second: Conv,
    /// 1 x 1, where size or channels change.
    pub(crate) skip: Option<Conv>,
}

/// The whole network.
pub(crate) struct Network {
    /// From the image to the first stage.
    pub(crate) stem: Conv,
    /// One per stage.
    pub(crate) blocks: Vec<Block>,
    /// Neighbouring channels that are one seen under so many turns: the largest of their means
    /// is a feature. 1 where every channel stands for itself.
    pub(crate) turns: usize,
    /// Row-major `[classes, features]`.
    pub(crate) weight: Vec<f32>,
    /// One per class.
    pub(crate) bias: Vec<f32>,
}

impl Network {
    /// He-initialised weights and zero biases.
    pub(crate) fn random(widths: &[usize], classes: usize, seed: u64) -> Self {
        let mut random = Normal(ChaCha8Rng::seed_from_u64(seed));
        let stem = random.conv([widths[0], 1, 3], 2);
        let mut from = widths[0];
        let mut blocks = Vec::new();
        for (stage, &to) in widths.iter().enumerate() {
            let stride = if stage == 0 { 1 } else { 2 };
            blocks.push(Block {
                first: random.conv([to, from, 3], stride),
                second: random.conv([to, to, 3], 1),
                skip: (stride != 1 || from != to).then(|| random.conv([to, from, 1], stride)),
            });
            from = to;
        }
        let weight = random.draw(classes * from, from);
        Network { stem, blocks, turns: 1, weight, bias: vec![0.0; classes] }
    }

    /// Number of weights and biases.
    #[cfg(any(test, feature = "train"))]
    pub(crate) fn parameters(&self) -> usize {
        let convs =
            self.blocks.iter().flat_map(|b| [Some(&b.first), Some(&b.second), b.skip.as_ref()]);
        let convs = convs.flatten().chain([&self.stem]);
        convs.map(|c| c.weight.len() + c.bias.len()).sum::<usize>()
            + self.weight.len()
            + self.bias.len()
    }

    /// The network as an ONNX file: input `image` `[n, 1, 40, 40]`, output `logits`; the tensor
    /// `features` is the input of the last layer.
    pub(crate) fn onnx(&self, properties: &[(&str, &str)]) -> Vec<u8> {
        let mut graph = begun();
        self.write(&mut graph, "image");
        graph.file(properties)
    }

    /// Adds the network to a graph that [`begun`] has made; it reads `from`.
    pub(crate) fn write(&self, graph: &mut Graph, from: &str) {
        let classes = self.bias.len();
        let features = self.weight.len() / classes;
        graph.output("logits", &[classes]);
        self.stem.write(graph, from, "stem.conv");
        gelu(graph, "stem.conv", "stem");
        let mut x = "stem".to_string();
        for (i, block) in self.blocks.iter().enumerate() {
            let name = |part: &str| format!("stage{}{part}", i + 1);
            block.first.write(graph, &x, &name(".conv1"));
            gelu(graph, &name(".conv1"), &name(".act1"));
            block.second.write(graph, &name(".act1"), &name(".conv2"));
            let skip = block.skip.as_ref().map_or(x.clone(), |skip| {
                skip.write(graph, &x, &name(".skip"));
                name(".skip")
            });
            graph.node("Add", &[&name(".conv2"), &skip], &name(".sum"), &[]);
            gelu(graph, &name(".sum"), &name(""));
            x = name("");
        }
        let mean = [("axes", Attribute::Ints(&[2, 3])), ("keepdims", Attribute::Int(0))];
        if self.turns == 1 {
            graph.node("ReduceMean", &[&x], "features", &mean);
        } else {
            graph.node("ReduceMean", &[&x], "turned", &mean);
            graph.integers("turns", &[0, features as i64, self.turns as i64]);
            graph.node("Reshape", &["turned", "turns"], "turned.apart", &[]);
            let most = [("axes", Attribute::Ints(&[2])), ("keepdims", Attribute::Int(0))];
            graph.node("ReduceMax", &["turned.apart"], "features", &most);
        }
        graph.weights("fc.weight", &[classes, features], &self.weight);
        graph.weights("fc.bias", &[classes], &self.bias);
        let inputs = ["features", "fc.weight", "fc.bias"];
        graph.node("Gemm", &inputs, "logits", &[("transB", Attribute::Int(1))]);
    }
}

/// A graph with the image as its input, and the numbers that [`gelu`] needs.
pub(crate) fn begun() -> Graph {
    let mut graph = Graph::new("residual network");
    graph.input("image", &[1, SIDE, SIDE]);
    graph.weights("sqrt2", &[], &[std::f32::consts::SQRT_2]);
    graph.weights("one", &[], &[1.0]);
    graph.weights("half", &[], &[0.5]);
    graph
}

impl Conv {
    pub(crate) fn write(&self, graph: &mut Graph, from: &str, to: &str) {
        let [channels_out, channels_in, kernel] = self.shape;
        let (weight, bias) = (format!("{to}.weight"), format!("{to}.bias"));
        graph.weights(&weight, &[channels_out, channels_in, kernel, kernel], &self.weight);
        graph.weights(&bias, &[channels_out], &self.bias);
        let (kernel, stride) = (kernel as i64, self.stride as i64);
        let attributes = [
            ("kernel_shape", Attribute::Ints(&[kernel; 2])),
            ("pads", Attribute::Ints(&[kernel / 2; 4])),
            ("strides", Attribute::Ints(&[stride; 2])),
        ];
        graph.node("Conv", &[from, &weight, &bias], to, &attributes);
    }
}

/// `x (1 + erf(x / sqrt 2)) / 2` in the operators that engines recognise and fuse.
pub(crate) fn gelu(graph: &mut Graph, x: &str, to: &str) {
    let name = |part: &str| format!("{to}.{part}");
    graph.node("Div", &[x, "sqrt2"], &name("div"), &[]);
    graph.node("Erf", &[&name("div")], &name("erf"), &[]);
    graph.node("Add", &[&name("erf"), "one"], &name("add"), &[]);
    graph.node("Mul", &[x, &name("add")], &name("mul"), &[]);
    graph.node("Mul", &[&name("mul"), "half"], to, &[]);
}

/// Normally distributed weights.
struct Normal(ChaCha8Rng);

impl Normal {
    fn conv(&mut self, shape: [usize; 3], stride: usize) -> Conv {
        let [channels_out, channels_in, kernel] = shape;
        let fan_in = channels_in * kernel * kernel;
        let weight = self.draw(channels_out * fan_in, fan_in);
        Conv { shape, stride, weight, bias: vec![0.0; channels_out] }
    }

    /// Standard deviation `sqrt(2 / fan_in)`, by Box and Muller.
    fn draw(&mut self, count: usize, fan_in: usize) -> Vec<f32> {
        let scale = libm::sqrt(2.0 / fan_in as f64);
        let mut unit = || (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        (0..count)
            .map(|_| {
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - unit()));
                (scale * radius * libm::cos(std::f64::consts::TAU * unit())) as f32
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_network_has_five_million_parameters() {
        let network = Network::random(&[64, 128, 256, 512], 10, 0);
        // Per stage 9 (in + out) out + 2 out, plus (in + 1) out where there is a skip.
        let stages = 9 * 128 * 64
            + 128
            + 9 * 192 * 128
            + 256
            + 65 * 128
            + 9 * 384 * 256
            + 512
            + 129 * 256
            + 9 * 768 * 512
            + 1024
            + 257 * 512;
        assert_eq!(network.parameters(), 10 * 64 + stages + 513 * 10);
    }

    #[test]
    fn random_weights_have_the_spread_that_keeps_activations_level() {
        let network = Network::random(&[8, 16, 32, 64], 10, 3);
        let weight = &network.blocks[3].second.weight;
        let square = weight.iter().map(|w| w * w).sum::<f32>() / weight.len() as f32;
        assert!((square / (2.0 / (64.0 * 9.0)) - 1.0).abs() < 0.05);
        assert_eq!(weight, &Network::random(&[8, 16, 32, 64], 10, 3).blocks[3].second.weight);
    }
}
