//! `upright-lab job`: what a job of very many rows holds in memory, from a Parquet file made
//! for it to the parts it writes.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use parquet::data_type::{ByteArray, ByteArrayType};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use upright::{
    Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Role, Silent, samples,
};
use upright_data::{Options, Prepare, Want};
use upright_job::{Job, Progress, Watch};

/// Different digits among the rows.
const DIGITS: usize = 1000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder to work in; the file of inputs is made if it is not there
    folder: PathBuf,
    /// Rows of the job
    #[arg(long, default_value_t = 1_000_000)]
    rows: usize,
    /// The gate; `never` answers with one forward pass each
    #[arg(long, default_value = "never")]
    gate: String,
}

/// Runs the job and prints what it holds after every twentieth of it.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let words = |e: &dyn std::error::Error| e.to_string();
    let digits = samples::digits(DIGITS, 5).map_err(|e| words(&e))?;
    let input = args.folder.join(format!("{}.parquet", args.rows));
    if !input.exists() {
        write(&input, digits.batch(), args.rows).map_err(|e| words(&e))?;
    }
    let c = fitted(&args.gate).map_err(|e| words(&e))?;
    println!("{:>10} rows  {:>6} MB held, before the list of inputs", 0, held());
    let options = Options::new(Want::Inputs, c.model().signal());
    let prepare = Prepare::for_model(c.model(), 0).leniently();
    let source = upright_data::open(&[input], &options, prepare).map_err(|e| words(&e))?;
    println!("{:>10} rows  {:>6} MB held, with the list of inputs", 0, held());
    let job = Job::new(&c, &source, &args.folder.join(format!("out-{}", args.rows)));
    let mut watch = Shown { next: 0, began: Instant::now() };
    let done = job.run(&mut watch).map_err(|e| words(&e))?;
    println!("{done:?}");
    Ok(())
}

struct Shown {
    next: usize,
    began: Instant,
}

impl Watch for Shown {
    fn progress(&mut self, now: &Progress) {
        if now.done >= self.next {
            let time = self.began.elapsed().as_secs_f64();
            println!("{:>10} rows  {:>6} MB held  {time:>8.1} s", now.done, held());
            self.next = now.done + now.rows / 20;
        }
    }
}

fn fitted(gate: &str) -> upright::Result<Canonicalizer> {
    let model = Model::from_bytes("digits", samples::glyph_model(), &ModelOptions::default())?;
    let config = Config { budget: 8, calibration: 100, ..Config::default() }
        .with(Role::Score, Part::new("energy"))
        .with(Role::Search, Part::new("grid"))
        .with(Role::Gate, Part::new("always"));
    let c = config.fit(model, &FitData::new(&samples::digits(300, 1)?), &mut Silent)?;
    c.with_part(Role::Gate, Part::new(gate))
}

/// Writes digits over and over, as grey images of an id each.
fn write(path: &Path, digits: &Batch, rows: usize) -> Result<(), ParquetError> {
    let schema = "message schema { required binary id (UTF8); required binary image; }";
    let schema = Arc::new(parse_message_type(schema)?);
    let images: Vec<ByteArray> = (0..digits.len())
        .map(|i| {
            let pixels = digits.item(i).iter().map(|v| (v * 255.0).round() as u8);
            b"P5 40 40 255\n".iter().copied().chain(pixels).collect::<Vec<u8>>().into()
        })
        .collect();
    let mut out = SerializedFileWriter::new(File::create(path)?, schema, Arc::default())?;
    let all: Vec<usize> = (0..rows).collect();
    for rows in all.chunks(10 * DIGITS) {
        let mut group = out.next_row_group()?;
        let ids = rows.iter().map(|r| format!("digit-{r:08}").into_bytes().into()).collect();
        let images = rows.iter().map(|r| images[r % images.len()].clone()).collect();
        let columns: [Vec<ByteArray>; 2] = [ids, images];
        for cells in columns {
            if let Some(mut column) = group.next_column()? {
                column.typed::<ByteArrayType>().write_batch(&cells, None, None)?;
                column.close()?;
            }
        }
        group.close()?;
    }
    out.close()?;
    Ok(())
}

/// Megabytes that the process has in memory; 0 where the system does not tell.
fn held() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<usize>().ok()).unwrap_or(0) / 1024
}
