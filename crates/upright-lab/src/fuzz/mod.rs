//! Every reader on damaged files: none may panic, hang, or hold more memory
//! than its cap. The same seed does the same damage.

mod artifacts;
mod memory;
mod models;
mod mutate;
mod readers;
mod seeds;
mod wire;

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use mutate::Dice;
use readers::{Reader, readers};

/// Arguments of the command.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The reader, or `all` for one after the other
    #[arg(default_value = "all")]
    reader: String,
    /// Time for each reader
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// Seed of the damage
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Folder for inputs that fail
    #[arg(long, default_value = "runs/fuzz")]
    out: PathBuf,
}

/// Bytes above a cap at which the process ends rather than a report being made.
const SLACK: usize = 256 << 20;

/// How far to go.
#[derive(Clone, Copy)]
enum Until {
    Time(Duration),
    #[cfg_attr(not(test), expect(dead_code, reason = "tests count"))]
    Inputs(usize),
}

/// What was seen of a reader.
#[derive(Debug, Default)]
struct Seen {
    inputs: usize,
    accepted: usize,
    most: usize,
    slowest: Duration,
}

/// Runs the readers that were asked for.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    memory::count_all_threads();
    let readers = readers();
    let chosen: Vec<&Reader> =
        readers.iter().filter(|r| args.reader == "all" || r.name == args.reader).collect();
    if chosen.is_empty() {
        let names: Vec<&str> = readers.iter().map(|r| r.name.as_str()).collect();
        return Err(format!("no reader `{}`; there are: {}", args.reader, names.join(", ")));
    }
    let time = Duration::from_secs_f64(args.minutes * 60.0);
    let mut failed = Vec::new();
    for reader in chosen {
        match alone(reader, args.seed, Until::Time(time), &args.out) {
            Ok(seen) => println!(
                "{:12} {} inputs, {} readable, at most {} kB of {} MB, slowest {} ms",
                reader.name,
                seen.inputs,
                seen.accepted,
                seen.most >> 10,
                reader.cap >> 20,
                seen.slowest.as_millis()
            ),
            Err(why) => {
                println!("{:12} FAILED: {why}", reader.name);
                failed.push(reader.name.as_str());
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("failed: {}", failed.join(", "))) }
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Panics of readers are reported by the fuzzer; printing them would allocate.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() && !upright::internal::engine::inside() {
                usual(info);
            }
        }));
    });
}

/// Ends the process where one input takes far longer than it may, and says which.
struct Watchdog {
    since: Mutex<Option<Instant>>,
    over: AtomicBool,
}

/// How much longer than its patience an input of a reader may take before the process ends.
const FAR: u32 = 3;

impl Watchdog {
    fn new() -> Self {
        Watchdog { since: Mutex::new(None), over: AtomicBool::new(false) }
    }

    fn set(&self, since: Option<Instant>) {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }

    fn watch(&self, reader: &Reader, out: &Path) {
        while !self.over.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
            let since = *self.since.lock().unwrap_or_else(PoisonError::into_inner);
            if since.is_some_and(|since| since.elapsed() > FAR * reader.patience) {
                println!("{:12} HANGS; the input is {}", reader.name, now(reader, out).display());
                std::process::exit(1);
            }
        }
    }
}

/// Where the input lies that is being read. Should the process end, it stays there.
fn now(reader: &Reader, out: &Path) -> PathBuf {
    out.join(format!("now-{}", reader.name)).join(&reader.file)
}

/// Runs one reader on a thread of its own, so that nothing else is counted.
fn alone(reader: &Reader, seed: u64, until: Until, out: &Path) -> Result<Seen, String> {
    let watchdog = &Watchdog::new();
    std::thread::scope(|scope| {
        silence();
        let work = || {
            QUIET.set(true);
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread();
            let pool = pool.build().map_err(|e| e.to_string())?;
            pool.install(|| feed(reader, seed, until, out, watchdog))
        };
        scope.spawn(|| watchdog.watch(reader, out));
        let done = scope.spawn(work).join().map_err(|_| "the fuzzer itself panicked".to_owned());
        watchdog.over.store(true, Relaxed);
        done?
    })
}

fn feed(
    reader: &Reader,
    seed: u64,
    until: Until,
    out: &Path,
    watchdog: &Watchdog,
) -> Result<Seen, String> {
    let packed: Vec<Vec<u8>> = reader.seeds.iter().map(|s| seeds::gz(s)).collect();
    let seeds = if reader.packed { &packed } else { &reader.seeds };
    let path = now(reader, out);
    let folder = path.parent().unwrap_or(out);
    std::fs::create_dir_all(folder).map_err(|e| e.to_string())?;
    let purpose = format!("fuzz {}", reader.name);
    let start = Instant::now();
    let mut seen = Seen::default();
    for valid in seeds {
        let (ok, _) = attempt(reader, &path, valid, &mut seen, watchdog)
            .map_err(|why| save(out, reader, valid, &why))?;
        if !ok {
            return Err(save(out, reader, valid, "a valid file is refused"));
        }
    }
    loop {
        let over = match until {
            Until::Time(time) => start.elapsed() >= time,
            Until::Inputs(most) => seen.inputs >= most,
        };
        if over {
            return std::fs::remove_dir_all(folder).map(|()| seen).map_err(|e| e.to_string());
        }
        let mut dice = Dice(upright::internal::seed::stream(upright::internal::seed::of_index(
            seed,
            &purpose,
            seen.inputs,
        )));
        let mut bytes = match reader.inner {
            Some(damaged) if dice.below(4) > 0 => damaged(&mut dice, seeds, reader.words),
            _ => mutate::damaged(&mut dice, seeds, reader.words),
        };
        if reader.packed && dice.below(2) == 0 {
            // Damage below the packing, which would otherwise catch all of it.
            bytes = seeds::gz(&mutate::damaged(&mut dice, &reader.seeds, reader.words));
        }
        attempt(reader, &path, &bytes, &mut seen, watchdog)
            .map_err(|why| save(out, reader, &bytes, &why))?;
    }
}

/// Feeds one input; whether all of it could be read, and the memory it took.
fn attempt(
    reader: &Reader,
    path: &Path,
    bytes: &[u8],
    seen: &mut Seen,
    watchdog: &Watchdog,
) -> Result<(bool, usize), String> {
    // Some file systems wait for the disk when a file is cut and written again, not when it is new.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).map_err(|e| e.to_string())?;
    let start = Instant::now();
    watchdog.set(Some(start));
    let (done, most) = memory::measured(reader.cap + SLACK, || {
        catch_unwind(AssertUnwindSafe(|| (reader.read)(path)))
    });
    let took = start.elapsed();
    watchdog.set(None);
    seen.inputs += 1;
    seen.most = seen.most.max(most);
    seen.slowest = seen.slowest.max(took);
    let ok = done.map_err(|_| "it panics".to_owned())?;
    if most > reader.cap {
        return Err(format!("it holds {most} bytes, its cap is {}", reader.cap));
    }
    if took > reader.patience {
        return Err(format!("it takes {took:?}"));
    }
    seen.accepted += usize::from(ok);
    Ok((ok, most))
}

/// Keeps an input that fails, and says where.
fn save(out: &Path, reader: &Reader, bytes: &[u8], why: &str) -> String {
    let content =
        upright::internal::seed::of_index(0, &String::from_utf8_lossy(bytes), bytes.len());
    let path = out.join(format!("{}-{content:016x}-{}", reader.name, reader.file));
    let kept = std::fs::create_dir_all(out).and_then(|()| std::fs::write(&path, bytes));
    match kept {
        Ok(()) => format!("{why}; the input is {}", path.display()),
        Err(e) => format!("{why}; the input could not be kept: {e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reader_survives_some_thousand_damaged_files() {
        let out = tempfile::tempdir().unwrap();
        for reader in &readers() {
            let inputs = if reader.inner.is_some() { 300 } else { 2000 };
            let seen = alone(reader, 1, Until::Inputs(inputs), out.path());
            let seen = seen.unwrap_or_else(|why| panic!("{}: {why}", reader.name));
            assert!(seen.accepted > 0, "{}", reader.name);
        }
    }

    #[test]
    fn panics_and_greed_are_caught_and_their_inputs_kept() {
        let out = tempfile::tempdir().unwrap();
        let bad = Reader {
            name: "bad".into(),
            file: "a.bad".into(),
            words: &[],
            packed: false,
            seeds: vec![b"x".to_vec()],
            cap: 1 << 20,
            patience: Duration::from_secs(5),
            inner: None,
            read: Box::new(|path| std::fs::read(path).is_ok_and(|b| b.len() < 5 || panic!("five"))),
        };
        let why = alone(&bad, 0, Until::Inputs(10_000), out.path()).unwrap_err();
        assert!(why.starts_with("it panics; the input is "), "{why}");
        let kept =
            std::fs::read_dir(out.path()).unwrap().filter(|e| e.as_ref().unwrap().path().is_file());
        assert_eq!(kept.count(), 1);
        let greed = |_: &Path| std::hint::black_box(vec![1u8; 1_200_000]).len() > 1;
        let greedy = Reader { read: Box::new(greed), ..bad };
        let why = alone(&greedy, 0, Until::Inputs(10), out.path()).unwrap_err();
        assert!(why.starts_with("it holds 12"), "{why}");
    }
}
