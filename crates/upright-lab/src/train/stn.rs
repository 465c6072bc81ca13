//! A spatial transformer in front of the plain network: a small network finds an
//! affine map, the image is resampled under it, and the rest sees the result
//! (Jaderberg et al. 2015, "Spatial Transformer Networks"). All of it learns from
//! classes alone.

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::gelu;
use burn::tensor::ops::{GridSampleOptions, InterpolateMode};
use burn::tensor::{Device, Tensor, TensorData};
use upright::Signal;

use super::RealSettings;
use super::augmented::{Learns, WIDTHS, classifier};
use super::course::Network;
use super::examples::Examples;
use super::net::{Layer, Net, Unit, images, numbers};
use crate::onnx_write::{Attribute, Graph};
use crate::resnet::{SIDE, begun, gelu as write_gelu};

/// Channels of the network that finds the map; each layer halves the side.
const FINDER: [usize; 3] = [8, 16, 32];
/// Positions that are left of 40 x 40.
const LEFT: usize = 25;
const HIDDEN: usize = 64;
/// The map that changes nothing, which training begins with.
const IDENTITY: [f32; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// Trains it.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    if !matches!(examples.signal(), Signal::Image { .. }) {
        return Err("a spatial transformer takes images; give mnist or emnist".into());
    }
    let outputs = examples.classes();
    let make = |device: &Device| Stn::new(outputs, device);
    classifier(settings, ("stn", &WIDTHS), &examples, Learns::Both, make)
}

#[derive(Module, Debug)]
struct Stn {
    finder: Vec<Unit>,
    hidden: Linear,
    map: Linear,
    net: Net,
}

impl Stn {
    fn new(outputs: usize, device: &Device) -> Self {
        let mut from = 1;
        let finder = FINDER.map(|to| {
            let unit = Unit::new([from, to], 3, 2, device);
            from = to;
            unit
        });
        Stn {
            finder: finder.into(),
            hidden: LinearConfig::new(LEFT * from, HIDDEN).init(device),
            map: LinearConfig::new(HIDDEN, 6).with_initializer(Initializer::Zeros).init(device),
            net: Net::new(&WIDTHS, outputs, device),
        }
    }

    /// The maps `[n, 6]` of images, from the resampled image to the image.
    fn maps(&self, images: Tensor<4>) -> Tensor<2> {
        let mut x = images;
        for unit in &self.finder {
            x = gelu(unit.forward(x));
        }
        let [count, channels, height, width] = x.dims();
        let x = gelu(self.hidden.forward(x.reshape([count, channels * height * width])));
        let identity = TensorData::new(IDENTITY.to_vec(), [1, 6]);
        self.map.forward(x.clone()) + Tensor::from_data(identity, &x.device())
    }
}

/// Where the pixels of an image lie, `[SIDE * SIDE, 3]`: x, y and 1, in -1..1.
fn places() -> Vec<f32> {
    let at = |i: usize| (2 * i + 1) as f32 / SIDE as f32 - 1.0;
    (0..SIDE * SIDE).flat_map(|i| [at(i % SIDE), at(i / SIDE), 1.0]).collect()
}

impl Network for Stn {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        let images = images(items);
        let [count, ..] = images.dims();
        let maps = self.maps(images.clone()).reshape([count, 2, 3]).swap_dims(1, 2);
        let places = TensorData::new(places(), [1, SIDE * SIDE, 3]);
        let places = Tensor::<3>::from_data(places, &images.device());
        let grid = places.repeat_dim(0, count).matmul(maps).reshape([count, SIDE, SIDE, 2]);
        let options = GridSampleOptions::new(InterpolateMode::Bilinear);
        self.net.forward(images.grid_sample_2d(grid, options))
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let mut graph = begun();
        let mut from = "image".to_string();
        for (i, unit) in self.finder.iter().enumerate() {
            let (conv, to) = (format!("find{i}.conv"), format!("find{i}"));
            unit.fold()?.write(&mut graph, &from, &conv);
            write_gelu(&mut graph, &conv, &to);
            from = to;
        }
        graph.node("Flatten", &[&from], "find.flat", &[]);
        linear(&mut graph, &self.hidden, "find.flat", "find.hidden", &[0.0; HIDDEN])?;
        write_gelu(&mut graph, "find.hidden", "find.act");
        linear(&mut graph, &self.map, "find.act", "map", &IDENTITY)?;
        graph.integers("map.shape", &[0, 2, 3]);
        graph.node("Reshape", &["map", "map.shape"], "map.rows", &[]);
        let turned = [("perm", Attribute::Ints(&[0, 2, 1]))];
        graph.node("Transpose", &["map.rows"], "map.columns", &turned);
        graph.weights("places", &[SIDE * SIDE, 3], &places());
        graph.node("MatMul", &["places", "map.columns"], "places.moved", &[]);
        graph.integers("grid.shape", &[0, SIDE as i64, SIDE as i64, 2]);
        graph.node("Reshape", &["places.moved", "grid.shape"], "grid", &[]);
        graph.node("GridSample", &["image", "grid"], "seen", &[]);
        self.net.fold()?.write(&mut graph, "seen");
        Ok(graph.file(properties))
    }
}

/// A linear layer with something added to its bias.
fn linear(
    graph: &mut Graph,
    layer: &Linear,
    from: &str,
    to: &str,
    added: &[f32],
) -> Result<(), String> {
    let [inputs, outputs] = layer.weight.dims();
    let weight = numbers(layer.weight.val())?;
    let bias = layer.bias.as_ref().ok_or("a layer has no bias")?;
    let bias: Vec<f32> = numbers(bias.val())?.iter().zip(added).map(|(b, a)| a + b).collect();
    let (w, b) = (format!("{to}.weight"), format!("{to}.bias"));
    graph.weights(&w, &[inputs, outputs], &weight);
    graph.weights(&b, &[outputs], &bias);
    graph.node("Gemm", &[from, &w, &b], to, &[]);
    Ok(())
}
