//! A served model, and inputs for it.

use std::io::{BufRead, BufReader, Cursor};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;
use upright::internal::canonicalizer::transformed_copies;
use upright::{
    Batch, Canonicalizer, Config, FitData, Model, ModelOptions, Part, Role, Samples, Silent,
    samples,
};

use crate::client::{Reply, get};

/// A model with its artifact in a folder.
pub(crate) struct Fitted {
    folder: TempDir,
    pub(crate) canonicalizer: Canonicalizer,
}

impl Fitted {
    pub(crate) fn of(bytes: &'static [u8], samples: &Samples, config: &Config) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        std::fs::write(&path, bytes).unwrap();
        let model = Model::load(&path, &ModelOptions::default()).unwrap();
        let canonicalizer = config.fit(model, &FitData::new(samples), &mut Silent).unwrap();
        canonicalizer.save(folder.path().join("model.upright")).unwrap();
        Fitted { folder, canonicalizer }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }
}

/// The embedded digit classifier behind a quick fit: it searches by looking at 12 views.
pub(crate) fn digits() -> &'static Fitted {
    static FITTED: OnceLock<Fitted> = OnceLock::new();
    FITTED.get_or_init(|| {
        let config = Config { budget: 12, calibration: 120, ..Config::default() }
            .with(Role::Score, Part::new("proto"))
            .with(Role::Proposer, Part::new("moments"))
            .with(Role::Search, Part::new("rivals"))
            .with(Role::Gate, Part::new("conformal"));
        Fitted::of(samples::glyph_model(), &samples::digits(400, 11).unwrap(), &config)
    })
}

/// Digits as they are, then as many under random poses.
pub(crate) fn inputs(count: usize) -> Batch<'static> {
    let plain = samples::digits(count, 5).unwrap();
    let c = &digits().canonicalizer;
    let turned = transformed_copies(plain.batch(), c.space(), &c.config().resample, 3).unwrap();
    let numbers = [plain.batch().data(), turned.data()].concat();
    Batch::new(plain.batch().signal(), numbers).unwrap()
}

/// A digit as a PNG file.
pub(crate) fn png(item: &[f32]) -> Vec<u8> {
    let bytes = item.iter().map(|v| (v.clamp(0.0, 1.0) * 255.0).round() as u8).collect();
    let picture = image::GrayImage::from_raw(40, 40, bytes).unwrap();
    let mut out = Cursor::new(Vec::new());
    picture.write_to(&mut out, image::ImageFormat::Png).unwrap();
    out.into_inner()
}

/// Numbers that survive a PNG file.
pub(crate) fn rounded(batch: &Batch) -> Vec<Vec<f32>> {
    let one = |v: &f32| (v.clamp(0.0, 1.0) * 255.0).round() / 255.0;
    (0..batch.len()).map(|i| batch.item(i).iter().map(one).collect()).collect()
}

/// What the command line says of files that are written into a folder of their own.
pub(crate) fn said_by_cli(fitted: &Fitted, files: &[(String, Vec<u8>)]) -> Vec<Value> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for (path, (_, bytes)) in paths.iter().zip(files) {
        std::fs::write(path, bytes).unwrap();
    }
    let ran = Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(fitted.folder())
        .args(["predict", "model.onnx", "--json", "--logits"])
        .args(&paths)
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let text = String::from_utf8(ran.stdout).unwrap();
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rows.len(), files.len());
    for (row, path) in rows.iter().zip(&paths) {
        assert_eq!(row["path"], path.display().to_string());
    }
    rows
}

/// Digits as files, and what the command line says of them.
pub(crate) fn known() -> &'static [(Vec<u8>, Value)] {
    static KNOWN: OnceLock<Vec<(Vec<u8>, Value)>> = OnceLock::new();
    KNOWN.get_or_init(|| {
        let batch = inputs(16);
        let files: Vec<(String, Vec<u8>)> =
            (0..batch.len()).map(|i| (format!("{i:02}.png"), png(batch.item(i)))).collect();
        let rows = said_by_cli(digits(), &files);
        let searched = rows.iter().filter(|row| row["verdict"] != "kept").count();
        assert!((8..32).contains(&searched), "{searched} of 32 searched");
        files.into_iter().map(|(_, bytes)| bytes).zip(rows).collect()
    })
}

/// Whether an answer of `/v1/predict` says what a row of the command line says.
pub(crate) fn agrees(answer: &Value, row: &Value) {
    for field in [
        "label",
        "class",
        "rival",
        "model_label",
        "verdict",
        "energy_before",
        "energy_after",
        "evaluations",
    ] {
        assert_eq!(answer[field], row[field], "{field} of {answer} and {row}");
    }
    let entries = ["m00", "m01", "m02", "m10", "m11", "m12", "m20", "m21", "m22"];
    let map: Vec<&Value> = entries.iter().filter_map(|name| row.get(*name)).collect();
    assert_eq!(answer["map"].as_array().unwrap().iter().collect::<Vec<_>>(), map);
    assert_eq!(answer["truncated"], false);
}

/// A running server; ended when dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: SocketAddr,
    log: Arc<Mutex<Vec<Value>>>,
    /// Reads the log; ends with the server.
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts one with some more arguments and waits until it is ready.
    pub(crate) fn start(fitted: &Fitted, args: &[&str]) -> Self {
        Server::with(fitted, args, |_| {})
    }

    pub(crate) fn with(fitted: &Fitted, args: &[&str], set: impl FnOnce(&mut Command)) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_upright"));
        command
            .current_dir(fitted.folder())
            .env_remove("UPRIGHT_TOKEN")
            .args(["serve", "model.onnx", "--port", "0", "--log", "json"])
            .args(args)
            .stderr(Stdio::piped());
        set(&mut command);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("it says where it listens").unwrap();
            let json: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
            if json["message"] == "listening" {
                let url = json["url"].as_str().unwrap();
                break url.strip_prefix("http://").unwrap().parse().unwrap();
            }
        };
        let log = Arc::new(Mutex::new(Vec::new()));
        let own = log.clone();
        let reader = std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let json = serde_json::from_str(&line).unwrap_or(Value::String(line));
                own.lock().unwrap().push(json);
            }
        });
        let server = Server { child, address, log, reader: Some(reader) };
        wait_for("ready", || get(server.address, "/v2/health/ready").status == 200);
        server
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        get(self.address, path)
    }

    /// A number of `/metrics`, all series of a name and some labels added up.
    pub(crate) fn metric(&self, name: &str, labels: &str) -> f64 {
        let text = self.get("/metrics").text();
        let own = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']) && rest.contains(labels))
        };
        let number = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap();
        text.lines().filter(own).map(number).sum()
    }

    /// Log lines so far that have this message.
    pub(crate) fn logged(&self, message: &str) -> Vec<Value> {
        let log = self.log.lock().unwrap();
        log.iter().filter(|line| line["message"] == message).cloned().collect()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits for its end and for the end of its log, and gives its exit code.
    pub(crate) fn wait(&mut self) -> Option<i32> {
        let code = self.child.wait().unwrap().code();
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        code
    }

    /// Memory that it holds, in MiB; `None` where the system does not tell.
    pub(crate) fn memory(&self) -> Option<f64> {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = text.lines().find(|line| line.starts_with("VmRSS:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
    }

    /// Whether it lives and answers.
    pub(crate) fn lives(&self) {
        assert_eq!(self.get("/v2/health/live").status, 200);
        let (file, row) = &known()[0];
        let reply = crate::client::post(self.address, "/v1/predict", file);
        agrees(&reply.json()["predictions"][0], row);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits until something is so.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(30), "not {what} after 30 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}
