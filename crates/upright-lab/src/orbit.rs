//! `upright-lab orbit`: how often transformed copies of one input get the
//! same class, from the bare model and behind the gate. Needs no labels.

use std::path::{Path, PathBuf};

use serde::Serialize;
use upright::internal::canonicalizer::Consistency;
use upright::{
    Artifact, Batch, Canonicalizer, Config, Dataset, FitData, Model, ModelOptions, Part, Role,
    Silent, samples,
};
use upright_cli::data::DataArgs;
use upright_data::{Prepare, Want};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The classifier, an ONNX file of images, strokes or clouds [default: the built-in digits]
    #[arg(requires = "data")]
    model: Option<PathBuf>,
    /// Upright inputs for it, as `upright predict` reads them
    data: Option<PathBuf>,
    /// The artifact fitted on the model [default: the model's name with .upright]
    #[arg(long)]
    artifact: Option<PathBuf>,
    /// Copies of each input
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1024))]
    copies: u32,
    /// Inputs, if the data have so many
    #[arg(long, default_value_t = 100)]
    count: usize,
    /// Put this gate, which needs no calibration, in the place of the fitted one
    #[arg(long)]
    gate: Option<String>,
    /// Seed of the poses
    #[arg(long, default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    reading: DataArgs,
}

#[derive(Serialize)]
struct Report {
    inputs: usize,
    copies: u32,
    seed: u64,
    /// Inputs all of whose copies get one class.
    whole: usize,
    #[serde(flatten)]
    consistency: Consistency,
}

/// Measures and prints.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let (mut c, batch) = match (&args.model, &args.data) {
        (Some(model), Some(data)) => given(args, model, data)?,
        _ => built_in(args.count).map_err(|e| e.to_string())?,
    };
    if let Some(gate) = &args.gate {
        c = c.with_part(Role::Gate, Part::new(gate)).map_err(|e| e.to_string())?;
    }
    let orbits = c.orbits(&batch, args.copies as usize, args.seed).map_err(|e| e.to_string())?;
    let report = Report {
        inputs: orbits.len(),
        copies: args.copies,
        seed: args.seed,
        whole: orbits.iter().filter(|o| o.canonical.hits == o.canonical.of).count(),
        consistency: Consistency::of(&orbits),
    };
    println!("{}", serde_json::to_string(&report).unwrap_or_default());
    println!(
        "copies of one input that get its most frequent class: model alone {}, gated {}",
        report.consistency.raw, report.consistency.canonical
    );
    Ok(())
}

/// A model joined with its artifact, by default the one of its name in this folder.
pub(crate) fn load(path: &Path, artifact: Option<&Path>) -> upright::Result<Canonicalizer> {
    let beside = PathBuf::from(path.file_stem().unwrap_or_default()).with_extension("upright");
    let artifact = Artifact::read(artifact.unwrap_or(&beside))?;
    let model = Model::load(path, &artifact.manifest.options)?;
    artifact.join(model)
}

fn given(args: &Args, path: &Path, data: &Path) -> Result<(Canonicalizer, Batch<'static>), String> {
    let c = load(path, args.artifact.as_deref()).map_err(|e| e.to_string())?;
    let model = c.model();
    let limit = Some(args.reading.limit.unwrap_or(args.count).min(args.count));
    let reading = DataArgs { limit, ..args.reading.clone() };
    let options = reading.options(Want::Inputs, model.signal(), None, args.seed);
    let source =
        upright_data::open(&[data.to_path_buf()], &options, Prepare::for_model(model, args.seed))
            .map_err(|e| e.to_string())?;
    let rows: Vec<usize> = (0..source.len()).collect();
    let batch = source.read(&rows).map_err(|e| e.to_string())?.batch;
    Ok((c, batch))
}

fn built_in(count: usize) -> upright::Result<(Canonicalizer, Batch<'static>)> {
    let model =
        Model::from_bytes("built-in digits", samples::glyph_model(), &ModelOptions::default())?;
    let config = Config::of_signal(model.signal());
    let training = samples::digits(2000, 1)?;
    let c = config.fit(model, &FitData::new(&training), &mut Silent)?;
    Ok((c, samples::digits(count, 2)?.batch().clone()))
}
