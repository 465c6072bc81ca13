//! `upright serve`: answers over HTTP until it is told to stop.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tracing_subscriber::filter::LevelFilter;
use upright::internal::canonicalizer::States;
use upright::{Canonicalizer, Model, ModelOptions, Part, Role};
use upright_serve::{Options, Server};

use super::predict::Loading;
use super::setup::artifact_path;
use crate::Common;
use crate::report::{Failure, Result};

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright serve model.onnx                               on http://127.0.0.1:8000, this machine only
  upright serve model.onnx --shadow --log json           answers are the bare model's; what upright
                                                         would have said goes to log and metrics
  upright serve model.onnx --bare                        the model alone
  UPRIGHT_TOKEN=... upright serve model.onnx --host 0.0.0.0 --port 9000

  curl --data-binary @photo.jpg localhost:8000/v1/predict
  curl -F a=@a.png -F b=@b.png 'localhost:8000/v1/predict?view=png&timeout_ms=200'
  curl localhost:8000/v2/models/model                    the Open Inference Protocol v2
  curl localhost:8000/metrics                            for Prometheus
  curl localhost:8000/openapi.json                       every path

A request that a deadline cuts short is answered by the best view so far, with \"truncated\": true.
SIGTERM and Ctrl-C let requests under way finish, then the server exits with code 0.
Put a proxy in front for TLS. The token is what clients send as `Authorization: Bearer TOKEN`.";

/// Bytes of a MiB.
const MIB: usize = 1 << 20;

/// The environment variable of the token.
const TOKEN: &str = "UPRIGHT_TOKEN";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The classifier, an ONNX file
    model: PathBuf,
    /// The artifact [default: the model's name with .upright]
    #[arg(long, short, value_name = "FILE")]
    artifact: Option<PathBuf>,
    /// What clients call the model [default: the file's name without its ending]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Answer with what the bare model says; what upright would have said goes to log and metrics
    #[arg(long)]
    shadow: bool,
    /// Answer with what the bare model says and know nothing more of inputs than its logits, as
    /// fast as that goes; the artifact only tells how inputs are prepared
    #[arg(long, conflicts_with = "shadow")]
    bare: bool,
    /// How log lines look
    #[arg(long, value_enum, default_value = "text", value_name = "FORMAT")]
    log: Log,
    #[command(flatten)]
    net: NetArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    loading: Loading,
    /// Do not turn images as their EXIF orientation asks
    #[arg(long)]
    ignore_exif: bool,
}

/// Where to listen and whom to answer.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Network")]
struct NetArgs {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 8000, value_name = "N")]
    port: u16,
    /// Address to listen on; 0.0.0.0 is all of them
    #[arg(long, default_value = "127.0.0.1", value_name = "ADDRESS")]
    host: IpAddr,
    /// File with the token that clients must send [default: that of the environment variable
    /// `UPRIGHT_TOKEN`, if it is set]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

/// Limits on what clients may ask for.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
struct LimitArgs {
    /// Longest that a request may take, in seconds; then the best view so far answers
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = seconds)]
    timeout: f64,
    /// Longest that a client may take to send the head of a request, and its body, in seconds
    #[arg(long, default_value_t = 20.0, value_name = "SECONDS", value_parser = seconds)]
    read_timeout: f64,
    /// How long requests under way may take once the server is told to stop, in seconds
    #[arg(long, default_value_t = 25.0, value_name = "SECONDS", value_parser = seconds)]
    drain: f64,
    /// Most work that may wait, in forward passes [default: 64 searches, at least 1024]
    #[arg(long, value_name = "N")]
    queue: Option<NonZeroUsize>,
    /// Largest body of a request, in MiB
    #[arg(long, default_value = "16", value_name = "MIB")]
    max_body: NonZeroUsize,
    /// Most memory that requests may take together, in MiB
    #[arg(long, default_value = "512", value_name = "MIB")]
    max_memory: NonZeroUsize,
    /// Most pixels that an image may have
    #[arg(long, default_value_t = 16_000_000, value_name = "N")]
    max_pixels: u64,
    /// Most connections at a time
    #[arg(long, default_value = "512", value_name = "N")]
    max_connections: NonZeroUsize,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Reads a time that is more than none and less than a day.
fn seconds(text: &str) -> std::result::Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err("give seconds, more than 0 and at most 86400".into()),
    }
}

/// Serves until it is told to stop.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let log = if common.json { Log::Json } else { args.log };
    start_log(log, common.quiet);
    let artifact = artifact_path(&args.model, args.artifact.as_ref());
    let Loading { other, sizes } = &args.loading;
    let (c, _) = other.load(&args.model, &artifact, sizes, common)?;
    let c = if args.bare { bare(&args.model, &c)? } else { c };
    let (net, limits) = (&args.net, &args.limits);
    let usual = Options::new(name(args)?, &c);
    let options = Options {
        address: SocketAddr::from((net.host, net.port)),
        token: token(net.token_file.as_deref())?,
        shadow: args.shadow,
        queue: limits.queue.map_or(usual.queue, NonZeroUsize::get),
        timeout: Duration::from_secs_f64(limits.timeout),
        read_timeout: Duration::from_secs_f64(limits.read_timeout),
        drain: Duration::from_secs_f64(limits.drain),
        body: limits.max_body.get().saturating_mul(MIB),
        memory: limits.max_memory.get().saturating_mul(MIB),
        pixels: limits.max_pixels,
        connections: limits.max_connections.get(),
        threads: common.threads.map_or(usual.threads, NonZeroUsize::get),
        seed: common.seed,
        ignore_exif: args.ignore_exif,
        ..usual
    };
    if options.body > options.memory {
        return Err(Failure::usage(
            "one body may be larger than the memory for all of them",
            "raise `--max-memory` or lower `--max-body`",
        ));
    }
    if options.token.is_none() && !net.host.is_loopback() {
        tracing::warn!(
            host = %net.host,
            "everybody who reaches this address may ask; set {TOKEN} or --token-file"
        );
    }
    let (model, shadow) = (options.name.clone(), options.shadow);
    let server = Server::bind(c, options)?;
    let address = server.address().map_err(upright_serve::Error::from)?;
    tracing::info!(model, shadow, url = %format_args!("http://{address}"), "listening");
    Ok(server.run()?)
}

/// The model alone, as it was loaded but without features: nothing is searched, and energies are
/// those of the logits.
fn bare(path: &Path, c: &Canonicalizer) -> Result<Canonicalizer> {
    let model = Model::load(path, &ModelOptions { taps: vec![], ..c.model().options() })?;
    let parts = [
        (Role::Score, "energy"),
        (Role::Proposer, "none"),
        (Role::Search, "random"),
        (Role::Readout, "lowest"),
        (Role::Gate, "never"),
        (Role::Abstain, "none"),
        (Role::Router, "none"),
    ];
    let config = parts
        .into_iter()
        .fold(c.config().clone(), |config, (role, name)| config.with(role, Part::new(name)));
    Ok(Canonicalizer::restore(model, config, c.report().clone(), &States::default())?)
}

/// The name that was given, or the model's file without its ending.
fn name(args: &Args) -> Result<String> {
    let stem = || args.model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let name = args.name.clone().unwrap_or_else(stem);
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.chars().all(plain) {
        return Ok(name);
    }
    if args.name.is_none() {
        return Ok(name.chars().map(|c| if plain(c) { c } else { '_' }).collect());
    }
    Err(Failure::usage(
        format!("`{name}` cannot be part of a path"),
        "use letters, digits, `-`, `_` and `.`",
    ))
}

/// The token in a file, else in the environment. Never an argument: those are seen by all.
fn token(file: Option<&Path>) -> Result<Option<String>> {
    let token = match file {
        Some(path) => Some(std::fs::read_to_string(path).map_err(|e| Failure::io(path, e))?),
        None => std::env::var(TOKEN).ok(),
    };
    let token = token.map(|token| token.trim().to_string());
    match token {
        Some(token) if token.len() < 8 => Err(Failure::usage(
            "the token is shorter than 8 characters",
            "make one with `openssl rand -hex 16`",
        )),
        token => Ok(token),
    }
}

/// Log lines go to standard error.
fn start_log(log: Log, quiet: bool) {
    let level = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_target(false);
    // Other front ends may have one already.
    let _ = match log {
        Log::Text => lines.with_ansi(false).try_init(),
        Log::Json => lines.json().flatten_event(true).try_init(),
    };
}
