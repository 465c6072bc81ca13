//! The network of [`pooled`](crate::pooled) as a trainable module, and its folding into plain
//! weights.

use burn::module::Module;
use burn::nn::conv::{Conv1d, Conv1dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear, LinearConfig, PaddingConfig1d};
use burn::tensor::activation::relu;
use burn::tensor::{Device, Tensor};

use super::net::{numbers, scales};
use crate::pooled::{ANCHORS, BLUR, Conv, Network, Rows, SHELL, SHELLS, SPREAD, STEP_GAIN, TINY};

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

    /// The same, whose outputs are zero before it is trained.
    pub(super) fn silent(mut self) -> Self {
        let [inputs, outputs] = self.head.weight.dims();
        let zeros = LinearConfig::new(inputs, outputs).with_initializer(Initializer::Zeros);
        self.head = zeros.init(&self.head.weight.device());
        self
    }

    /// Logits of inputs `[n, length, 3]`.
    pub(super) fn forward(&self, rows: Rows, input: Tensor<3>) -> Tensor<2> {
        let (rows, used) = match rows {
            Rows::Strokes => strokes(input),
            Rows::Cloud => cloud(input),
            Rows::Invariants => invariants(input),
        };
        self.read(rows, &used)
    }

    /// Logits of prepared rows `[n, channels, length]`, of which some are used.
    pub(super) fn read(&self, rows: Tensor<3>, used: &Tensor<3>) -> Tensor<2> {
        let mut x = rows;
        for unit in &self.units {
            x = relu(unit.norm.forward(unit.maps(x))) * used.clone();
        }
        let [items, channels, _] = x.dims();
        let largest = x.clone().max_dim(2).reshape([items, channels]);
        let count = used.clone().sum_dim(2).clamp_min(1.0);
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
    /// What the convolution makes of rows. With kernels of size 1 it is a product, which takes a
    /// fraction of the time.
    fn maps(&self, x: Tensor<3>) -> Tensor<3> {
        let [to, from, kernel] = self.conv.weight.dims();
        if kernel > 1 {
            return self.conv.forward(x);
        }
        self.conv.weight.val().reshape([1, to, from]).matmul(x)
    }

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

/// The same for clouds. It is written for so many points; others will do while it is trained.
#[derive(Module, Debug)]
pub(super) struct CloudNet {
    net: PooledNet,
    points: usize,
    /// Whether it sees numbers that no rotation changes.
    invariant: bool,
}

impl CloudNet {
    /// Untrained, as [`PooledNet::new`].
    pub(super) fn new(points: usize, widths: &[usize], outputs: usize, device: &Device) -> Self {
        CloudNet {
            net: PooledNet::new(Rows::Cloud, widths, 1, outputs, device),
            points,
            invariant: false,
        }
    }

    /// The same, of numbers that no rotation changes.
    pub(super) fn invariant(
        points: usize,
        widths: &[usize],
        outputs: usize,
        device: &Device,
    ) -> Self {
        let net = PooledNet::new(Rows::Invariants, widths, 1, outputs, device);
        CloudNet { net, points, invariant: true }
    }

    fn rows(&self) -> Rows {
        if self.invariant { Rows::Invariants } else { Rows::Cloud }
    }
}

impl super::course::Network for CloudNet {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        self.net.forward(self.rows(), points(items))
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        Ok(self.net.fold(self.rows(), self.points)?.onnx(properties))
    }
}

/// Rows of numbers as clouds.
pub(super) fn points(items: Tensor<2>) -> Tensor<3> {
    let [count, numbers] = items.dims();
    items.reshape([count, numbers / 3, 3])
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
pub(super) fn cloud(input: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    let [items, length, _] = input.dims();
    let used = Tensor::ones([items, 1, length], &input.device());
    let centred = input.clone() - input.mean_dim(1);
    let square = (centred.clone() * centred.clone()).mean_dim(1).mean_dim(2);
    ((centred / (square + TINY).sqrt()).swap_dims(1, 2), used)
}

/// As [`cloud`], with numbers that no rotation changes; [`crate::pooled`] says which.
fn invariants(input: Tensor<3>) -> (Tensor<3>, Tensor<3>) {
    let (place, used) = cloud(input);
    let [_, _, length] = place.dims();
    let across = place.clone().narrow(2, 0, ANCHORS.min(length));
    let place = place.swap_dims(1, 2);
    let products = place.clone().matmul(across.clone());
    let out = (place.clone() * place.clone()).sum_dim(2);
    let along = products.clone() / SPREAD;
    let along2 = along.clone() * along.clone();
    let covariance = place.clone().swap_dims(1, 2).matmul(place.clone()) / length as f32;
    let drawn = place.matmul(covariance);
    let mut rows = vec![
        (out.clone() / SPREAD).sqrt(),
        out.clone() / SPREAD,
        along2.clone().mean_dim(2),
        (along2 * along).mean_dim(2),
        (drawn.clone() * drawn).sum_dim(2) / SPREAD,
    ];
    let apart = out + (across.clone() * across).sum_dim(1) - products * 2.0;
    let apart = apart.clamp_min(0.0).sqrt();
    for shell in 0..SHELLS {
        let off = apart.clone() - shell as f32 * SHELL;
        rows.push((off.clone() * off * (-0.5 / (BLUR * BLUR))).exp().mean_dim(2));
    }
    (Tensor::cat(rows, 2).swap_dims(1, 2), used)
}

#[cfg(test)]
mod tests {
    use super::super::course::Network;
    use super::*;
    use burn::tensor::TensorData;
    use upright::{Batch, Model, ModelOptions, Signal};

    /// What is trained and what is written give the same logits.
    #[test]
    fn a_written_network_of_invariants_is_the_trained_one() {
        let device = Device::flex();
        device.seed(5);
        let net = CloudNet::invariant(150, &[8, 16], 4, &device);
        let points: Vec<f32> = (0..2 * 450).map(|i| libm::sinf(i as f32 * 1.3)).collect();
        let items = Tensor::<2>::from_data(TensorData::new(points.clone(), [2, 450]), &device);
        let trained = numbers(net.outputs(items)).unwrap();
        let bytes = net.onnx(&[("task", "classification"), ("signal", "cloud")]).unwrap();
        let model = Model::from_bytes("cloud", &bytes, &ModelOptions::default()).unwrap();
        let batch = Batch::new(Signal::Cloud { points: 150 }, points).unwrap();
        let written = model.run(&batch).unwrap().logits;
        for (a, b) in trained.iter().zip(written.data()) {
            assert!((a - b).abs() < 1e-3, "{trained:?} {:?}", written.data());
        }
    }
}
