//! The network of [`pooled`](crate::pooled) as a trainable module, and its folding into plain
//! weights.

use burn::module::Module;
use burn::nn::conv::{Conv1d, Conv1dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig1d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::net::{numbers, scales};
use crate::pooled::{Conv, Network, Rows, STEP_GAIN, TINY};

/// The network in training.
#[derive(Module, Debug)]
pub(super) struct PooledNet {
    units: Vec<Unit>,
    head: Linear,
}

/// A convolution without bias, and its batch norm.
#[derive(Module, Debug)]
struct Unit {
    conv: Conv1d,
    norm: BatchNorm,
}

impl PooledNet {
    /// Untrained; the device's seed decides the weights.
    pub(super) fn new(
        rows: Rows,
        widths: &[usize],
        kernel: usize,
        classes: usize,
        device: &Device,
    ) -> Self {
        let mut from = rows.channels();
        let mut units = Vec::new();
        for &to in widths {
            let conv = Conv1dConfig::new(from, to, kernel)
                .with_padding(PaddingConfig1d::Explicit(kernel / 2, kernel / 2))
                .with_bias(false);
            units.push(Unit {
                conv: conv.init(device),
                norm: BatchNormConfig::new(to).init(device),
            });
            from = to;
        }
        PooledNet { units, head: LinearConfig::new(2 * from, classes).init(device) }
    }

    /// Logits of inputs `[n, length, 3]`.
    pub(super) fn forward(&self, rows: Rows, input: Tensor<3>) -> Tensor<2> {
        let (mut x, used) = match rows {
            Rows::Strokes => strokes(input),
            Rows::Cloud => cloud(input),
        };
        for unit in &self.units {
            x = relu(unit.norm.forward(unit.conv.forward(x))) * used.clone();
        }
        let [items, channels, _] = x.dims();
        let largest = x.clone().max_dim(2).reshape([items, channels]);
        let count = used.sum_dim(2).clamp_min(1.0);
        let mean = (x.sum_dim(2) / count).reshape([items, channels]);
        self.head.forward(Tensor::cat(vec![largest, mean], 1))
    }

    /// The weights, batch norms folded into the convolutions.
    pub(super) fn fold(&self, rows: Rows, length: usize) -> Result<Network, String> {
        let bias = self.head.bias.as_ref().ok_or("the last layer has no bias")?;
        Ok(Network {
            rows,
            length,
            convs: self.units.iter().map(Unit::fold).collect::<Result<_, String>>()?,
            weight: numbers(self.head.weight.val().transpose())?,
            bias: numbers(bias.val())?,
        })
    }
}

impl Unit {
    /// `norm(conv(x))` with the running statistics as one convolution with bias.
    fn fold(&self) -> Result<Conv, String> {
        let shape = self.conv.weight.dims();
        let mut weight = numbers(self.conv.weight.val())?;
        let (scale, bias) = scales(&self.norm)?;
        for (row, scale) in weight.chunks_exact_mut(shape[1] * shape[2]).zip(scale) {
            for w in row {
                *w *= scale;
            }
        }
        Ok(Conv { shape, weight, bias })
    }
}

/// The same for clouds of so many points.
#[derive(Module, Debug)]
pub(super) struct CloudNet {
    net: PooledNet,
    points: usize,
}

impl CloudNet {
    /// Untrained, as [`PooledNet::new`].
    pub(super) fn new(points: usize, widths: &[usize], outputs: usize, device: &Device) -> Self {
        CloudNet { net: PooledNet::new(Rows::Cloud, widths, 1, outputs, device), points }
    }
}

impl super::course::Network for CloudNet {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        let [count, _] = items.dims();
        self.net.forward(Rows::Cloud, items.reshape([count, self.points, 3]))
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        Ok(self.net.fold(Rows::Cloud, self.points)?.onnx(properties))
    }
}

/// Prepared rows `[n, channels, length]` and 1 where a row is used, else 0.
fn strokes(input: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    let [items, length, _] = input.dims();
    let pen = input.clone().narrow(2, 2, 1);
    let used = pen.clone().greater_equal_elem(0.0).float();
    let count = used.clone().sum_dim(1).clamp_min(1.0);
    let given = input.narrow(2, 0, 2) * used.clone();
    let middle = given.clone().sum_dim(1) / count.clone();
    let centred = (given - middle) * used.clone();
    let square = (centred.clone() * centred.clone()).sum_dim(1).sum_dim(2) / count;
    let place = centred / (square + TINY).sqrt();
    let previous =
        Tensor::cat(vec![place.clone().narrow(1, 0, 1), place.clone().narrow(1, 0, length - 1)], 1);
    let step = (place.clone() - previous) * used.clone() * STEP_GAIN;
    let start = pen.greater_elem(0.5).float();
    let rows = Tensor::cat(vec![place, step, start, used.clone()], 2).swap_dims(1, 2);
    (rows, used.reshape([items, 1, length]))
}

/// As [`strokes`]; every row is used.
fn cloud(input: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    let [items, length, _] = input.dims();
    let used = Tensor::ones([items, 1, length], &input.device());
    let centred = input.clone() - input.mean_dim(1);
    let square = (centred.clone() * centred.clone()).mean_dim(1).mean_dim(2);
    ((centred / (square + TINY).sqrt()).swap_dims(1, 2), used)
}
