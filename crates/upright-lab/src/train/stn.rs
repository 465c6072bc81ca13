//! A spatial transformer in front of the plain network: a small network finds an
//! affine map, the image is resampled under it, and the rest sees the result
//! (Jaderberg et al. 2015, "Spatial Transformer Networks"). All of it learns from
//! classes alone. Of clouds, a linear map is found that all points are multiplied by
//! (Qi et al. 2017, "`PointNet`").

use burn::module::Module;
use burn::nn::{Initializer, Linear, LinearConfig};
use burn::tensor::activation::gelu;
use burn::tensor::ops::{GridSampleOptions, InterpolateMode};
use burn::tensor::{Device, Tensor, TensorData};
use upright::Signal;

use super::RealSettings;
use super::augmented::{CLOUD, Learns, WIDTHS, classifier};
use super::course::Network;
use super::examples::Examples;
use super::net::{Layer, Net, Unit, images, numbers};
use super::pooled_net::{PooledNet, cloud, points};
use crate::onnx_write::{Attribute, Graph};
use crate::pooled::Rows;
use crate::resnet::{SIDE, begun, gelu as write_gelu};

/// Channels of the network that finds the map; each layer halves the side.
const FINDER: [usize; 3] = [8, 16, 32];
/// Positions that are left of 40 x 40.
const LEFT: usize = 25;
const HIDDEN: usize = 64;
/// Channels of the network that finds the map of a cloud.
const CLOUD_FINDER: [usize; 3] = [32, 64, 128];
/// The map that changes nothing, which training begins with.
const IDENTITY: [f32; 6] = [1.0, 0.0, 0.0, 0.0, 1.0, 0.0];

/// Trains it.
pub(super) fn train(settings: &RealSettings) -> Result<(), String> {
    let examples = Examples::open(settings)?;
    let outputs = examples.classes();
    if let Signal::Cloud { points } = examples.signal() {
        let make = |device: &Device| CloudStn::new(points, outputs, device);
        return classifier(settings, ("stn", &CLOUD), &examples, Learns::Both, make);
    }
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

/// The same for clouds.
#[derive(Module, Debug)]
struct CloudStn {
    finder: PooledNet,
    net: PooledNet,
    points: usize,
}

impl CloudStn {
    fn new(points: usize, outputs: usize, device: &Device) -> Self {
        CloudStn {
            finder: PooledNet::new(Rows::Cloud, &CLOUD_FINDER, 1, 9, device).silent(),
            net: PooledNet::new(Rows::Cloud, &CLOUD, 1, outputs, device),
            points,
        }
    }
}

impl Network for CloudStn {
    fn outputs(&self, items: Tensor<2>) -> Tensor<2> {
        let (place, used) = cloud(points(items));
        let [count, ..] = place.dims();
        let found = self.finder.read(place.clone(), &used).reshape([count, 3, 3]);
        let map = found + Tensor::eye(3, &place.device()).reshape([1, 3, 3]);
        let moved = place.swap_dims(1, 2).matmul(map).swap_dims(1, 2);
        self.net.read(moved, &used)
    }

    fn onnx(&self, properties: &[(&str, &str)]) -> Result<Vec<u8>, String> {
        let fold = |net: &PooledNet| net.fold(Rows::Cloud, self.points);
        Ok(fold(&self.net)?.onnx_behind(&fold(&self.finder)?, properties))
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

#[cfg(test)]
mod tests {
    use super::*;
    use upright::{Batch, Model, ModelOptions};

    /// What is trained and what is written give the same logits, and the map matters.
    #[test]
    fn a_written_transformer_of_clouds_is_the_trained_one() {
        let device = Device::flex();
        device.seed(7);
        let mut net = CloudStn::new(90, 4, &device);
        net.finder = PooledNet::new(Rows::Cloud, &CLOUD_FINDER, 1, 9, &device);
        let numbers_of: Vec<f32> = (0..2 * 270).map(|i| libm::sinf(i as f32 * 1.7)).collect();
        let data = TensorData::new(numbers_of.clone(), [2, 270]);
        let items = Tensor::<2>::from_data(data, &device);
        let trained = numbers(net.outputs(items.clone())).unwrap();
        let bytes = net.onnx(&[("task", "classification"), ("signal", "cloud")]).unwrap();
        let model = Model::from_bytes("cloud", &bytes, &ModelOptions::default()).unwrap();
        let batch = Batch::new(Signal::Cloud { points: 90 }, numbers_of).unwrap();
        let written = model.run(&batch).unwrap().logits;
        let far = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f32>();
        assert!(far(&trained, written.data()) < 1e-3, "{trained:?} {:?}", written.data());
        net.finder = net.finder.silent();
        let plain = numbers(net.outputs(items)).unwrap();
        assert!(far(&trained, &plain) > 1e-2, "{trained:?} {plain:?}");
    }
}
