//! `upright-lab load`: how fast a server answers, and how long it takes. Only servers on this
//! machine are asked, for a minute at most.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use upright::internal::canonicalizer::transformed_copies;
use upright::{Config, FitData, Model, ModelOptions, Resample, Signal, Silent, samples};

/// Different digits that are sent, of either kind.
const DIGITS: usize = 256;

#[derive(clap::Subcommand)]
pub(crate) enum Load {
    /// Write the embedded digit classifier and a fit of it into a folder, to be served
    Prepare {
        /// The folder
        folder: PathBuf,
        /// Digits to fit on
        #[arg(long, default_value_t = 4000)]
        digits: usize,
    },
    /// Send digits to a server and print how fast it answers, as one line of JSON
    Run(Args),
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where the server listens, on this machine
    address: SocketAddr,
    /// What the server calls the model
    #[arg(long, default_value = "model")]
    name: String,
    /// Share of transformed digits, 0..1
    #[arg(long, default_value_t = 0.0)]
    transformed: f64,
    /// Seconds to ask for, at most 60
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Clients that ask at a time, at most 64
    #[arg(long, default_value_t = 8)]
    clients: usize,
    /// Requests per second of all clients together; a late answer does not delay the next
    /// request of another client [default: each asks again at once]
    #[arg(long)]
    rate: Option<f64>,
    /// Ask for logits alone, as one would ask a server of the bare model
    #[arg(long)]
    plain: bool,
}

impl Load {
    pub(crate) fn run(&self) -> Result<(), String> {
        match self {
            Load::Prepare { folder, digits } => prepare(folder, *digits).map_err(|e| e.to_string()),
            Load::Run(args) => run(args),
        }
    }
}

fn prepare(folder: &Path, digits: usize) -> upright::Result<()> {
    let path = folder.join("model.onnx");
    let io = |e| upright::Error::io(&path, e);
    std::fs::create_dir_all(folder).map_err(io)?;
    std::fs::write(&path, samples::glyph_model()).map_err(io)?;
    let model = Model::load(&path, &ModelOptions::default())?;
    let data = samples::digits(digits, 1)?;
    let c = Config::default().fit(model, &FitData::new(&data), &mut Silent)?;
    c.save(folder.join("model.upright"))?;
    println!("{}", c.report().advice().1);
    Ok(())
}

/// One answer: whether its input was searched, and how long it took.
struct Answer {
    searched: bool,
    took: Duration,
}

#[derive(Serialize)]
struct Printed {
    clients: usize,
    rate: Option<f64>,
    transformed: f64,
    seconds: f64,
    requests: usize,
    refused: usize,
    per_second: f64,
    all: Times,
    familiar: Times,
    searched: Times,
}

/// Milliseconds.
#[derive(Serialize)]
struct Times {
    count: usize,
    p50: f64,
    p95: f64,
    p99: f64,
    most: f64,
}

impl Times {
    fn of(answers: &[Answer], which: impl Fn(&Answer) -> bool) -> Self {
        let mut ms: Vec<f64> = answers
            .iter()
            .filter(|answer| which(answer))
            .map(|answer| answer.took.as_secs_f64() * 1e3)
            .collect();
        ms.sort_by(f64::total_cmp);
        let at = |share: f64| {
            let place = (share * ms.len() as f64).ceil() as usize;
            let found = ms.get(place.saturating_sub(1)).copied().unwrap_or(0.0);
            (found * 1e3).round() / 1e3
        };
        Times { count: ms.len(), p50: at(0.5), p95: at(0.95), p99: at(0.99), most: at(1.0) }
    }
}

fn run(args: &Args) -> Result<(), String> {
    if !args.address.ip().is_loopback() {
        return Err("only servers on this machine are asked".into());
    }
    if !(0.0..=1.0).contains(&args.transformed) {
        return Err("--transformed is a share, 0..1".into());
    }
    let length = Duration::from_secs_f64(args.seconds.clamp(0.1, 60.0));
    let clients = args.clients.clamp(1, 64);
    let requests = requests(args).map_err(|e| e.to_string())?;
    let begin = Instant::now();
    let done: Result<Vec<(Vec<Answer>, usize)>, String> = thread::scope(|scope| {
        let client = |number: usize| {
            let requests = &requests;
            let pace =
                args.rate.map(|rate| Duration::from_secs_f64(clients as f64 / rate.max(0.1)));
            // Clients of a pace take turns.
            let first = begin + pace.unwrap_or_default().mul_f64(number as f64 / clients as f64);
            let job = Job { requests, number, clients, first, pace, end: begin + length };
            scope.spawn(move || job.run(args.address, args.plain))
        };
        let all: Vec<_> = (0..clients).map(client).collect();
        let joined = |one: thread::ScopedJoinHandle<'_, Result<_, String>>| {
            one.join().unwrap_or_else(|_| Err("a client panicked".into()))
        };
        all.into_iter().map(joined).collect()
    });
    let done = done?;
    let seconds = begin.elapsed().as_secs_f64();
    let refused = done.iter().map(|(_, refused)| refused).sum();
    let answers: Vec<Answer> = done.into_iter().flat_map(|(answers, _)| answers).collect();
    let printed = Printed {
        clients,
        rate: args.rate,
        transformed: args.transformed,
        seconds,
        requests: answers.len(),
        refused,
        per_second: (answers.len() as f64 / seconds).round(),
        all: Times::of(&answers, |_| true),
        familiar: Times::of(&answers, |answer| !answer.searched),
        searched: Times::of(&answers, |answer| answer.searched),
    };
    println!("{}", serde_json::to_string(&printed).map_err(|e| e.to_string())?);
    Ok(())
}

/// Whole requests, as many of a hundred with transformed digits as were asked for.
fn requests(args: &Args) -> upright::Result<Vec<Vec<u8>>> {
    let digits = samples::digits(DIGITS, 7)?;
    let space = Config::default().space.suited(Signal::image(1, 40, 40)).build()?;
    let turned = transformed_copies(digits.batch(), &space, &Resample::default(), 3)?;
    let outputs = if args.plain {
        ""
    } else {
        r#",{"name":"evaluations","parameters":{"binary_data":true}}"#
    };
    let json = format!(
        r#"{{"inputs":[{{"name":"image","shape":[1,1,40,40],"datatype":"FP32","parameters":{{"binary_data_size":6400}}}}],"outputs":[{{"name":"logits","parameters":{{"binary_data":true}}}}{outputs}]}}"#
    );
    let head = format!(
        "POST /v2/models/{}/infer HTTP/1.1\r\nhost: {}\r\ninference-header-content-length: {}\r\n\
         content-type: application/octet-stream\r\ncontent-length: {}\r\n\r\n",
        args.name,
        args.address,
        json.len(),
        json.len() + 6400
    );
    // Evenly spread, so that every client sends its share of either kind.
    let share = |i: usize| (i as f64 * args.transformed).floor();
    let one = |i: usize| {
        let batch = if share(i + 1) > share(i) { &turned } else { digits.batch() };
        let numbers = batch.item(i % DIGITS).iter().flat_map(|v| v.to_le_bytes());
        [head.as_bytes(), json.as_bytes(), &numbers.collect::<Vec<u8>>()].concat()
    };
    Ok((0..4 * DIGITS).map(one).collect())
}

/// What one client does.
struct Job<'a> {
    requests: &'a [Vec<u8>],
    number: usize,
    clients: usize,
    first: Instant,
    pace: Option<Duration>,
    end: Instant,
}

impl Job<'_> {
    /// Asks on one connection until the end; the answers, and how many requests were refused.
    fn run(&self, address: SocketAddr, plain: bool) -> Result<(Vec<Answer>, usize), String> {
        let stream = TcpStream::connect(address).map_err(|e| e.to_string())?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        let mut from = BufReader::new(&stream);
        let (mut answers, mut refused) = (Vec::new(), 0);
        let mut due = self.first;
        for i in (self.number..).step_by(self.clients) {
            let now = Instant::now();
            let start = match self.pace {
                None => now,
                Some(pace) => {
                    thread::sleep(due.saturating_duration_since(now));
                    // A request that is late because the last was slow has waited since it was due.
                    let start = due;
                    due += pace;
                    start
                }
            };
            if start >= self.end {
                break;
            }
            let request = &self.requests[i % self.requests.len()];
            (&stream).write_all(request).map_err(|e| e.to_string())?;
            let (status, body) = reply(&mut from).map_err(|e| e.to_string())?;
            if status == 200 {
                let searched = !plain && body.last_chunk() != Some(&1i64.to_le_bytes());
                answers.push(Answer { searched, took: start.elapsed() });
            } else {
                refused += 1;
            }
        }
        Ok((answers, refused))
    }
}

fn reply(from: &mut impl BufRead) -> std::io::Result<(u16, Vec<u8>)> {
    let odd = || std::io::Error::other("the server does not speak HTTP as expected");
    let mut line = String::new();
    from.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(odd)?;
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(|_| odd())?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok((status, body))
}
