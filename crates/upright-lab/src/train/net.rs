//! The residual network of [`resnet`](crate::resnet) as a trainable module, and its folding into
//! plain weights.

use burn::module::Module;
use burn::nn::conv::{Conv2d, Conv2dConfig};
use burn::nn::{BatchNorm, BatchNormConfig, Linear, LinearConfig, PaddingConfig2d};
use burn::tensor::activation::gelu;
use burn::tensor::{Device, Tensor};

use crate::resnet::{Block, Conv, Network, SIDE};

/// The network in training.
#[derive(Module, Debug)]
pub(super) struct Net {
    body: Body<Unit>,
    head: Linear,
}

/// What comes before the last layer: a stem, and a residual block per stage.
#[derive(Module, Debug)]
pub(super) struct Body<U: Module> {
    stem: U,
    blocks: Vec<Residual<U>>,
}

#[derive(Module, Debug)]
struct Residual<U: Module> {
    first: U,
    second: U,
    skip: Option<U>,
}

/// What a body is made of: a convolution and its batch norm.
pub(super) trait Layer: Module {
    /// The maps that it makes of others.
    fn forward(&self, x: Tensor<4>) -> Tensor<4>;

    /// `norm(conv(x))` with the running statistics as one convolution with bias.
    fn fold(&self) -> Result<Conv, String>;
}

impl<U: Layer> Body<U> {
    /// One whose stages are so wide; `unit` makes a layer between so many channels, with a kernel
    /// of so many pixels, at a stride.
    pub(super) fn new(
        widths: &[usize],
        stem: U,
        unit: impl Fn([usize; 2], usize, usize) -> U,
    ) -> Self {
        let mut from = widths[0];
        let mut blocks = Vec::new();
        for (stage, &to) in widths.iter().enumerate() {
            let stride = if stage == 0 { 1 } else { 2 };
            blocks.push(Residual {
                first: unit([from, to], 3, stride),
                second: unit([to, to], 3, 1),
                skip: (stride != 1 || from != to).then(|| unit([from, to], 1, stride)),
            });
            from = to;
        }
        Body { stem, blocks }
    }

    /// The mean of each of the last maps, `[n, channels]`.
    pub(super) fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = gelu(self.stem.forward(images));
        for block in &self.blocks {
            let y = block.second.forward(gelu(block.first.forward(x.clone())));
            let skip = match &block.skip {
                Some(skip) => skip.forward(x),
                None => x,
            };
            x = gelu(y + skip);
        }
        let [items, channels, _, _] = x.dims();
        x.mean_dim(3).mean_dim(2).reshape([items, channels])
    }

    /// The weights with those of a last layer, which takes the best of so many turns.
    pub(super) fn fold(&self, head: &Linear, turns: usize) -> Result<Network, String> {
        let blocks = self.blocks.iter().map(|block| {
            Ok(Block {
                first: block.first.fold()?,
                second: block.second.fold()?,
                skip: block.skip.as_ref().map(U::fold).transpose()?,
            })
        });
        let bias = head.bias.as_ref().ok_or("the last layer has no bias")?;
        Ok(Network {
            stem: self.stem.fold()?,
            blocks: blocks.collect::<Result<_, String>>()?,
            turns,
            weight: numbers(head.weight.val().transpose())?,
            bias: numbers(bias.val())?,
        })
    }
}

/// A convolution without bias, and its batch norm.
#[derive(Module, Debug)]
pub(super) struct Unit {
    conv: Conv2d,
    norm: BatchNorm,
}

impl Net {
    /// Untrained; the device's seed decides the weights.
    pub(super) fn new(widths: &[usize], classes: usize, device: &Device) -> Self {
        let unit = |channels, kernel, stride| Unit::new(channels, kernel, stride, device);
        let last = widths[widths.len() - 1];
        Net {
            body: Body::new(widths, unit([1, widths[0]], 3, 2), unit),
            head: LinearConfig::new(last, classes).init(device),
        }
    }

    /// Logits of images `[n, 1, 40, 40]`.
    pub(super) fn forward(&self, images: Tensor<4>) -> Tensor<2> {
        self.head.forward(self.body.forward(images))
    }

    /// The weights, batch norms folded into the convolutions.
    pub(super) fn fold(&self) -> Result<Network, String> {
        self.body.fold(&self.head, 1)
    }
}

impl super::course::Network for Net {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        self.forward(images(items))
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        Ok(self.fold()?.onnx(properties))
    }
}

/// Rows of numbers as images.
pub(super) fn images(items: Tensor<2>) -> Tensor<4> {
    let [count, _] = items.dims();
    items.reshape([count, 1, SIDE, SIDE])
}

impl Unit {
    pub(super) fn new(channels: [usize; 2], kernel: usize, stride: usize, device: &Device) -> Self {
        let pad = kernel / 2;
        let conv = Conv2dConfig::new(channels, [kernel, kernel])
            .with_stride([stride, stride])
            .with_padding(PaddingConfig2d::Explicit(pad, pad, pad, pad))
            .with_bias(false);
        Unit { conv: conv.init(device), norm: BatchNormConfig::new(channels[1]).init(device) }
    }
}

impl Layer for Unit {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        self.norm.forward(self.conv.forward(x))
    }

    fn fold(&self) -> Result<Conv, String> {
        let [channels_out, channels_in, kernel, _] = self.conv.weight.dims();
        let mut weight = numbers(self.conv.weight.val())?;
        let (scale, bias) = scales(&self.norm)?;
        for (row, scale) in weight.chunks_exact_mut(channels_in * kernel * kernel).zip(scale) {
            for w in row {
                *w *= scale;
            }
        }
        let shape = [channels_out, channels_in, kernel];
        Ok(Conv { shape, stride: self.conv.stride[0], weight, bias })
    }
}

/// A batch norm with its running statistics as a factor and an addend per channel.
pub(super) fn scales(norm: &BatchNorm) -> Result<(Vec<f32>, Vec<f32>), String> {
    let (gamma, beta) = (numbers(norm.gamma.val())?, numbers(norm.beta.val())?);
    let mean = numbers(norm.running_mean.value_sync())?;
    let var = numbers(norm.running_var.value_sync())?;
    let scale = gamma.iter().zip(&var).map(|(g, v)| g / libm::sqrtf(v + norm.epsilon as f32));
    let scale: Vec<f32> = scale.collect();
    let bias = (0..scale.len()).map(|c| beta[c] - mean[c] * scale[c]).collect();
    Ok((scale, bias))
}

pub(super) fn numbers<const D: usize>(tensor: Tensor<D>) -> Result<Vec<f32>, String> {
    tensor.into_data().try_to_vec::<f32>().map_err(|why| format!("weights: {why:?}"))
}
