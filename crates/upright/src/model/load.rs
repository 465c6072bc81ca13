//! Making a network ready to run.

use std::cell::OnceCell;
use std::sync::Arc;

use super::batching::{self, Batching, Size};
use super::description::Description;
use super::gradient::Gradient;
use super::network::Network;
use super::taps::{self, Asked};
use super::{Model, Options, describe, external};
use crate::engine::{self, Lane, Lanes};
use crate::error::Result;
use crate::onnx::depth::depths;
use crate::onnx::facts::Facts;
use crate::onnx::{Dim, Graph, products};
use crate::preprocess::Overrides;
use crate::tensor::Signal;

/// Refuses what gives a single number.
pub(super) fn several(model: Model) -> Result<Model> {
    if model.classes() > 1 {
        return Ok(model);
    }
    let what = format!("output `{}` has one number per input", model.output());
    let why = format!("{what}; a classifier gives [N,classes]");
    Err(describe::unusable(&model.description.name, why))
}

/// A graph, with what lies beside its file.
pub(super) fn graph(graph: Graph, beside: Overrides, options: &Options) -> Result<Model> {
    let graph = graph.adapted()?;
    let input = describe::input(&graph)?;
    let mut said = options.preprocess.clone().or(beside).or(Overrides::from_metadata(&graph));
    if graph.was().bytes {
        said.feed_bytes();
    }
    let (fed, said) = describe::signal(&graph, &input, said, options)?;
    let output = describe::output(&graph, options.output.as_deref())?;
    let ending = graph.ending(&output);
    let fixed = match input.dims.as_deref() {
        Some([Dim::Fixed(n), ..]) if *n > 0 => Some(*n),
        _ => None,
    };
    let most = describe::fits(&graph, &input, fed, fixed.or(options.micro_batch).unwrap_or(1))?;
    let row = engine::row(&options.engine)?;
    let preprocess = options.exact.clone().unwrap_or(said);
    if let Signal::Image { channels, .. } = fed {
        preprocess.check(channels)?;
    }
    let description = Description {
        name: graph.name().into(),
        fingerprint: graph.fingerprint().into(),
        signal: describe::kept(fed, &preprocess),
        fed,
        preprocess,
        output,
        ending,
        class_names: None,
        options: Options { engine: row.name.into(), ..options.clone() },
    };
    let sizes = if fixed.or(options.micro_batch) == Some(1) {
        Facts::default()
    } else {
        // What an engine cannot run is reported when it is loaded.
        let shape = description.shape(fixed.unwrap_or(1));
        let once = describe::once(row.name, &input.name, &shape);
        products::learn(&graph, &input.name, &shape, &once).unwrap_or_default()
    };
    let with_products = products::rewritten(&graph, &sizes)?;
    let usual = batching::usual(&graph, with_products.is_some()).max(row.make.micro_batch);
    let size = Size {
        items: fixed.or(options.micro_batch).unwrap_or(usual.min(most)).max(1),
        fixed: fixed.is_some(),
        asked: options.micro_batch.is_some(),
        small: batching::is_small(&graph),
    };
    let (output, ending) = (&description.output, &description.ending);
    let found = OnceCell::new();
    // What an engine cannot run is reported when it is loaded.
    let depths = || {
        let shape = description.shape(fixed.unwrap_or(2.min(most)));
        let once = describe::once(row.name, &input.name, &shape);
        found
            .get_or_init(|| depths(&graph, output, &input.name, &shape, &once).unwrap_or_default())
            .clone()
    };
    let wanted = if options.energy { &[][..] } else { &options.taps };
    let asked = wanted.iter().filter_map(|tap| {
        let tensors = describe::tensors(&graph, output, ending, &tap.name, depths);
        let found = |tensors: Vec<String>| Asked { tap: tap.clone(), tensors };
        match tensors {
            Ok(tensors) => (!tensors.is_empty()).then(|| Ok(found(tensors))),
            Err(e) => Some(Err(e)),
        }
    });
    let asked = asked.collect::<Result<Vec<_>>>()?;
    let tensors = taps::tensors(&ending.logits, &asked);
    let runs = with_products.as_ref().unwrap_or(&graph);
    let engine = engine::load(row.name, runs, &tensors, options.threads)?.into();
    let network = Network {
        graph: Some(graph),
        sizes,
        engine,
        input: input.name,
        tensors,
        taps: vec![],
        classes: 0,
        head: None,
    };
    let model = ready(network, description, asked, size, Lanes::of(options.threads))?;
    if options.energy { external::check(&model).map(|()| model) } else { several(model) }
}

/// Tries a network on made-up items: learns its sizes, and whether its head is right.
pub(super) fn ready(
    mut network: Network,
    mut description: Description,
    taps: Vec<Asked>,
    size: Size,
    lanes: Arc<Lanes>,
) -> Result<Model> {
    let made_up = describe::specimen(description.fed, size.items)?;
    let batching = Batching::tried(size, lanes, network.engine.as_ref(), |lane, items| {
        network.forward(&description, lane, &made_up.select(items))
    })?;
    let batch = made_up.slice(0..batching.micro_batch);
    let values = network.forward(&description, Lane::Whole, &batch)?;
    network.learn(&description.name, taps, &values, batch.len())?;
    let Description { ending, class_names, .. } = &mut description;
    if let Some(graph) = &network.graph {
        *class_names = describe::class_names(graph, network.classes);
    }
    let first = network.taps.first();
    let keeps = first.is_some_and(|t| t.tensors == ending.features && t.reduction.keeps());
    if let Some(head) = &ending.head
        && keeps
        && network.agrees(head, ending.rounding, &values, batch.len())?
    {
        network.head = Some(head.clone());
    }
    Ok(Model {
        network: network.into(),
        batching: batching.into(),
        description: description.into(),
        gradient: Arc::new(Gradient::default()),
        external: None,
    })
}
