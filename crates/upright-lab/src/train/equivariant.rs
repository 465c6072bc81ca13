//! A network that turns with its input: the residual network with group
//! convolutions over eight turns (Cohen and Welling 2016, "Group Equivariant
//! Convolutional Networks"). A 3 x 3 kernel turned by an eighth is its ring of eight
//! numbers moved by one place, which is exact for quarter turns on the grid and
//! close to exact between them. The largest of a channel's eight turns is its
//! feature. Written out, every group convolution is a plain one, so that the file is
//! a residual network like the others.
//!
//! Of clouds, numbers that no rotation changes ([`crate::pooled`]) are seen instead.

use burn::module::{Module, Param};
use burn::nn::{BatchNorm, BatchNormConfig, Initializer, Linear, LinearConfig};
use burn::tensor::module::conv2d;
use burn::tensor::ops::ConvOptions;
use burn::tensor::{Device, Int, Tensor, TensorData};
use upright::Signal;

use super::RealSettings;
use super::augmented::{CLOUD, Learns, classifier};
use super::course::Network;
use super::examples::Examples;
use super::net::{Body, Layer, images, numbers, scales};
use super::pooled_net::CloudNet;
use crate::resnet::Conv;

/// Turns of a whole one.
const TURNS: usize = 8;

/// Channels, each of eight turns: together as many as the plain network has.
const WIDTHS: [usize; 4] = [4, 8, 16, 32];

/// The places of a 3 x 3 kernel around its centre, one after the other.
const RING: [usize; TURNS] = [0, 1, 2, 5, 8, 7, 6, 3];

/// Trains it.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    let outputs = examples.classes();
    if let Signal::Cloud { points } = examples.signal() {
        let make = |device: &Device| CloudNet::invariant(points, &CLOUD, outputs, device);
        return classifier(settings, ("equivariant", &CLOUD), &examples, Learns::Both, make);
    }
    let make = |device: &Device| Turning::new(outputs, device);
    classifier(settings, ("equivariant", &WIDTHS), &examples, Learns::Both, make)
}

#[derive(Module, Debug)]
struct Turning {
    body: Body<Unit>,
    head: Linear,
}

/// A group convolution without bias, and its batch norm, one for all turns of a channel.
#[derive(Module, Debug)]
struct Unit {
    /// `[out, in, turns in, places]`.
    weight: Param<Tensor<4>>,
    norm: BatchNorm,
    stride: usize,
}

impl Unit {
    /// A kernel of 9 places or 1, over inputs of so many turns.
    fn new([from, to]: [usize; 2], turns: usize, places: usize, stride: usize, d: &Device) -> Self {
        let std = libm::sqrt(2.0 / (from * turns * places) as f64);
        let weight = Initializer::Normal { mean: 0.0, std };
        let norm = BatchNormConfig::new(to).init(d);
        Unit { weight: weight.init([to, from, turns, places], d), norm, stride }
    }

    /// The kernels of a plain convolution: `[out * turns, in * turns in, side, side]`.
    fn kernels(&self) -> Tensor<4> {
        let weight = self.weight.val();
        let [to, from, turns, places] = weight.dims();
        let device = weight.device();
        let chosen = |w: Tensor<4>, dim: usize, order: Vec<usize>| {
            let order: Vec<i64> = order.into_iter().map(|i| i as i64).collect();
            let count = order.len();
            let order = Tensor::<1, Int>::from_data(TensorData::new(order, [count]), &device);
            w.select(dim, order)
        };
        let turned = |turn: usize| {
            let mut w = weight.clone();
            if places > 1 {
                w = chosen(w, 3, turned_places(turn));
            }
            if turns > 1 {
                w = chosen(w, 2, (0..turns).map(|o| (o + turns - turn) % turns).collect());
            }
            w
        };
        let all: Vec<Tensor<4>> = (0..TURNS).map(turned).collect();
        let side = if places > 1 { 3 } else { 1 };
        Tensor::stack::<5>(all, 1).reshape([to * TURNS, from * turns, side, side])
    }
}

impl Layer for Unit {
    fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let kernels = self.kernels();
        let pad = kernels.dims()[2] / 2;
        let options = ConvOptions::new([self.stride; 2], [pad; 2], [1; 2], 1);
        let y = conv2d(x, kernels, None, options);
        let [items, channels, height, width] = y.dims();
        let y = y.reshape([items, channels / TURNS, TURNS * height, width]);
        self.norm.forward(y).reshape([items, channels, height, width])
    }

    fn fold(&self) -> Result<Conv, String> {
        let kernels = self.kernels();
        let [to, from, side, _] = kernels.dims();
        let mut weight = numbers(kernels)?;
        let (scale, bias) = scales(&self.norm)?;
        for (row, kernel) in weight.chunks_exact_mut(from * side * side).enumerate() {
            for w in kernel {
                *w *= scale[row / TURNS];
            }
        }
        let bias = (0..to).map(|row| bias[row / TURNS]).collect();
        Ok(Conv { shape: [to, from, side], stride: self.stride, weight, bias })
    }
}

/// Which place of a kernel each place of the turned one shows.
fn turned_places(turn: usize) -> Vec<usize> {
    let mut shown: Vec<usize> = (0..=TURNS).collect();
    for (k, &place) in RING.iter().enumerate() {
        shown[place] = RING[(k + TURNS - turn) % TURNS];
    }
    shown
}

impl Turning {
    fn new(outputs: usize, device: &Device) -> Self {
        let stem = Unit::new([1, WIDTHS[0]], 1, 9, 2, device);
        let unit =
            |between, side: usize, stride| Unit::new(between, TURNS, side * side, stride, device);
        let last = WIDTHS[WIDTHS.len() - 1];
        Turning {
            body: Body::new(&WIDTHS, stem, unit),
            head: LinearConfig::new(last, outputs).init(device),
        }
    }
}

impl Network for Turning {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        let means = self.body.forward(images(items));
        let [items, channels] = means.dims();
        let turned = means.reshape([items, channels / TURNS, TURNS]);
        self.head.forward(turned.max_dim(2).reshape([items, channels / TURNS]))
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        Ok(self.body.fold(&self.head, TURNS)?.onnx(properties))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of numbers as one image of a side, turned by a quarter: what was right is at the top.
    fn quarter(x: &[f32], side: usize) -> Vec<f32> {
        (0..side * side).map(|i| x[(i % side) * side + side - 1 - i / side]).collect()
    }

    /// A quarter turn of the input turns every map and moves channels on by two turns.
    #[test]
    fn a_group_convolution_turns_with_its_input() {
        let device = Device::flex();
        device.seed(3);
        let (lift, group) =
            (Unit::new([1, 2], 1, 9, 1, &device), Unit::new([2, 1], TURNS, 9, 1, &device));
        let side = 5;
        let x: Vec<f32> = (0..25u8).map(|i| f32::from(i * i % 17)).collect();
        let run = |x: Vec<f32>| {
            let x = Tensor::<4>::from_data(TensorData::new(x, [1, 1, side, side]), &device);
            numbers(group.forward(lift.forward(x))).unwrap()
        };
        let (plain, turned) = (run(x.clone()), run(quarter(&x, side)));
        let maps: Vec<Vec<f32>> = plain.chunks(25).map(|m| quarter(m, side)).collect();
        let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-3);
        let moved = |by: usize| {
            let own = turned.chunks(25).enumerate();
            own.into_iter().all(|(t, m)| close(m, &maps[(t + by) % TURNS]))
        };
        assert!(moved(2) || moved(TURNS - 2), "{plain:?} {turned:?}");
        assert!(!moved(0));
    }
}
