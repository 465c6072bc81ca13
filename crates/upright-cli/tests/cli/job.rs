//! `predict --out FOLDER` with the real binary: killed, stopped, damaged, starved.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Ran, digits, model, upright};
use tempfile::{TempDir, tempdir};

/// A fitted model, and 200 digits in `in/`.
fn ready() -> TempDir {
    let folder = tempdir().unwrap();
    model(folder.path());
    digits(folder.path(), "train", 300, 1);
    digits(folder.path(), "in", 200, 2);
    let fit = ["fit", "model.onnx", "train", "--budget", "12", "--calibration", "120"];
    let fit =
        [&fit[..], &["--score", "proto", "--search", "grid", "--accept-harm", "100"]].concat();
    let ran = upright(folder.path(), &fit);
    assert_eq!(ran.code, 0, "{}", ran.err);
    folder
}

/// Arguments of a job of 20 parts.
fn job(out: &str) -> Vec<&str> {
    let args = ["predict", "model.onnx", "in", "--gate", "always", "--part-rows", "10", "--json"];
    [&args[..], &["--out", out]].concat()
}

fn run(folder: &Path, out: &str) -> Ran {
    upright(folder, &job(out))
}

/// The summary of a run that must succeed.
fn summary(folder: &Path, out: &str) -> serde_json::Value {
    let ran = run(folder, out);
    assert_eq!(ran.code, 0, "{}", ran.err);
    serde_json::from_str(&ran.out).unwrap()
}

fn start(folder: &Path, args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(folder)
        .args(args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Every file of a folder, hidden ones too.
fn content(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = fs::read_dir(folder).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap())
    });
    files.collect()
}

fn journalled(folder: &Path) -> usize {
    let text = fs::read_to_string(folder.join("_journal.jsonl")).unwrap_or_default();
    text.matches('\n').count().saturating_sub(1)
}

/// Waits until the journal of a running job has so many parts.
fn wait_for(folder: &Path, parts: usize) {
    let patience = Instant::now();
    while journalled(folder) < parts {
        assert!(patience.elapsed() < Duration::from_mins(1), "no part {parts} in a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills a job of 20 parts at random points, lets it end, and compares all its bytes with those
/// of a run that nothing ended. Gives the numbers of parts that were there when it was killed.
fn killed(times: u64) -> Vec<usize> {
    let folder = ready();
    let folder = folder.path();
    let began = Instant::now();
    assert_eq!(summary(folder, "whole")["written"], 20);
    let time = began.elapsed();
    let whole = content(&folder.join("whole"));
    assert_eq!(whole.len(), 21);
    let mut random = 12345u64;
    let mut found = Vec::new();
    for round in 0..times {
        let (out, mut delay) = (format!("out-{round}"), Duration::ZERO);
        let mut kept = 0;
        // Twice each, so that a run that went on is killed, too.
        for _ in 0..2 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            delay += time.mul_f64((random >> 40) as f64 / (1u64 << 24) as f64) / 2;
            let mut child = start(folder, &job(&out));
            std::thread::sleep(delay);
            child.kill().unwrap();
            child.wait().unwrap();
            kept = journalled(&folder.join(&out));
            found.push(kept);
        }
        let ended = summary(folder, &out);
        assert_eq!(
            (ended["kept"].as_u64(), ended["redone"].as_u64()),
            (Some(kept as u64), Some(0))
        );
        assert_eq!(content(&folder.join(&out)), whole, "round {round}, {kept} parts kept");
    }
    found
}

#[test]
fn a_killed_job_ends_with_the_same_bytes() {
    let found = killed(2);
    eprintln!("parts when killed: {found:?}");
}

#[test]
#[ignore = "takes a minute; `cargo test -p upright-cli --test cli -- --ignored killed --nocapture`"]
fn a_job_killed_at_many_points_ends_with_the_same_bytes() {
    let found = killed(20);
    eprintln!("parts when killed: {found:?}");
    assert!(found.iter().filter(|n| (1..20).contains(*n)).count() >= 10, "{found:?}");
}

#[test]
fn only_whole_parts_are_kept_and_only_the_same_job_goes_on() {
    let folder = ready();
    let folder = folder.path();
    assert_eq!(summary(folder, "out")["written"], 20);
    let out = folder.join("out");
    let whole = content(&out);

    let again = summary(folder, "out");
    assert_eq!((again["kept"].as_u64(), again["written"].as_u64()), (Some(20), Some(0)));
    let told =
        upright(folder, &job("out").into_iter().filter(|a| *a != "--json").collect::<Vec<_>>());
    assert!(told.err.contains("`out` has all 200 rows in 20 parts; nothing to do"), "{}", told.err);

    // Half a last line, a damaged part, a missing part, and what a crash left behind.
    let journal = &whole["_journal.jsonl"];
    fs::write(out.join("_journal.jsonl"), &journal[..journal.len() - 30]).unwrap();
    let mut damaged = whole["part-00003.parquet"].clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(out.join("part-00003.parquet"), damaged).unwrap();
    fs::remove_file(out.join("part-00007.parquet")).unwrap();
    fs::write(out.join(".part-00019.parquet.tmp"), "half").unwrap();
    let mended = summary(folder, "out");
    assert_eq!((mended["kept"].as_u64(), mended["redone"].as_u64()), (Some(17), Some(2)));
    assert_eq!(content(&out), whole);

    let refused = |args: &[&str], words: &str| {
        let ran = upright(folder, &[&job("out")[..], args].concat());
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("job::differs") && ran.err.contains(words), "{}", ran.err);
        assert_eq!(content(&out), whole);
    };
    refused(&["--budget", "5"], "another settings.budget (12, now 5)");
    refused(&["--seed", "4"], "another seed (0, now 4)");
    refused(&["--format", "csv"], "another format (parquet, now csv)");
    refused(&["--limit", "150"], "another input.items (200, now 150)");
    fs::copy(folder.join("model.upright"), folder.join("other.upright")).unwrap();
    let fit = ["fit", "model.onnx", "train", "--budget", "12", "--calibration", "100", "--out"];
    let fit = [&fit[..], &["other.upright", "--score", "proto", "--accept-harm", "100"]].concat();
    assert_eq!(upright(folder, &fit).code, 0);
    refused(&["--artifact", "other.upright"], "another artifact (");
    let first = folder.join("in/0");
    let name = fs::read_dir(&first).unwrap().next().unwrap().unwrap().path();
    let bytes = fs::read(&name).unwrap();
    fs::write(&name, [&bytes[..], b"more"].concat()).unwrap();
    refused(&[], "another input.files (");
    fs::rename(&name, first.join("new.png")).unwrap();
    refused(&[], "another input.listing (");
}

#[test]
fn two_runs_do_not_share_a_folder() {
    let folder = ready();
    let out = folder.path().join("out");
    let mut first = start(folder.path(), &job("out"));
    wait_for(&out, 1);
    let second = run(folder.path(), "out");
    let busy = second.err.contains("job::busy");
    let ended = first.wait().unwrap();
    assert!(ended.success());
    assert_eq!((second.code, busy), (2, true), "{}", second.err);
    assert_eq!(journalled(&out), 20);
}

#[cfg(unix)]
#[test]
fn ctrl_c_finishes_the_part_in_hand_and_a_second_one_does_not_wait() {
    let folder = ready();
    let folder = folder.path();
    let interrupt = |child: &Child| {
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    };
    assert_eq!(summary(folder, "whole")["written"], 20);
    let mut child = start(folder, &job("out"));
    wait_for(&folder.join("out"), 2);
    interrupt(&child);
    let ended = child.wait_with_output().unwrap();
    let (said, parts) = (String::from_utf8(ended.stderr).unwrap(), journalled(&folder.join("out")));
    assert_eq!(ended.status.code(), Some(130), "{said}");
    assert!(said.contains(&format!("stopped after {parts} of 20 parts")), "{said}");
    assert!((2..20).contains(&parts), "{parts}");
    assert!(said.contains("run the same command again to go on"), "{said}");
    assert_eq!(summary(folder, "out")["kept"], parts);
    assert_eq!(content(&folder.join("out")), content(&folder.join("whole")));

    let large = [&job("large")[..8], &["--out", "large", "--budget", "200"]].concat();
    let large: Vec<&str> = large.iter().map(|&a| if a == "10" { "200" } else { a }).collect();
    child = start(folder, &large);
    while !folder.join("large/_journal.jsonl").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Two signals sent at once may arrive as one.
    let ended = loop {
        if let Some(ended) = child.try_wait().unwrap() {
            break ended;
        }
        interrupt(&child);
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!(ended.code(), Some(130));
    assert_eq!(journalled(&folder.join("large")), 0);
}

#[test]
fn bad_items_are_rows_and_two_of_one_name_are_refused() {
    let folder = ready();
    let folder = folder.path();
    fs::write(folder.join("in/0/broken.png"), "nonsense").unwrap();
    let csv = [&job("rows")[..], &["--format", "csv"]].concat();
    let ran = upright(folder, &csv);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((json["rows"].as_u64(), json["errors"].as_u64()), (Some(201), Some(1)));
    let parts = content(&folder.join("rows"));
    let text: String =
        parts.values().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
    assert!(text.contains("broken.png,,,,,,,,,,,,,,,not an image of a known format"), "{text}");
    assert_eq!(upright(folder, &[&csv[..], &["--strict"]].concat()).code, 3);

    let twice = ["predict", "model.onnx", "in", "in/0/broken.png", "--out", "twice"];
    let ran = upright(folder, &twice);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("job::duplicate") && ran.err.contains("broken.png`"), "{}", ran.err);
    assert!(!folder.join("twice").exists());

    let foreign = run(folder, "train");
    assert_eq!(foreign.code, 2);
    assert!(foreign.err.contains("job::folder"), "{}", foreign.err);
    let views = upright(folder, &[&job("v")[..], &["--views", "views"]].concat());
    assert_eq!(views.code, 2, "{}", views.err);
    let file = ["predict", "model.onnx", "in", "--out", "rows.csv", "--shard", "1/2"];
    assert_eq!(upright(folder, &file).code, 2);
}

#[test]
fn shards_have_the_rows_of_one_run() {
    let folder = ready();
    let folder = folder.path();
    let rows = |out: &str, args: &[&str]| {
        let all = [&job(out)[..], &["--format", "jsonl"], args].concat();
        assert_eq!(upright(folder, &all).code, 0);
    };
    let lines = |out: &str| {
        let mut lines: Vec<String> = Vec::new();
        for entry in fs::read_dir(folder.join(out)).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("part-") {
                lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
            }
        }
        lines.sort();
        lines
    };
    rows("whole", &[]);
    let mut together = Vec::new();
    for number in 1..=3 {
        rows("shards", &["--shard", &format!("{number}/3")]);
        together.extend(lines(&format!("shards/shard-{number}-of-3")));
    }
    together.sort();
    assert_eq!(together.len(), 200);
    assert_eq!(together, lines("whole"));
}

/// On a file system of its own, where one may be mounted: first too small, then read-only.
#[cfg(target_os = "linux")]
#[test]
fn a_full_or_read_only_disk_loses_nothing() {
    let inside = |script: &str, folder: &Path| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .current_dir(folder)
            .env("UPRIGHT", env!("CARGO_BIN_EXE_upright"))
            .output()
    };
    let folder = ready();
    let folder = folder.path();
    fs::create_dir(folder.join("disk")).unwrap();
    let mount = "mount -t tmpfs -o size=64k tmpfs disk";
    if !inside(mount, folder).is_ok_and(|ran| ran.status.success()) {
        eprintln!("skipped: no file system can be mounted here");
        return;
    }
    let job = job("disk/out").join(" ");
    let script = format!(
        "{mount} && $UPRIGHT {job}; echo code $?; ls -a disk/out; \
         mount -o remount,size=8m disk && mount -o remount,ro disk; $UPRIGHT {job}; echo code $?; \
         mount -o remount,rw disk; $UPRIGHT {job}; echo code $?; cp -r disk/out out"
    );
    let ran = inside(&script, folder).unwrap();
    let (out, err) =
        (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
    let codes: Vec<&str> = out.lines().filter(|line| line.starts_with("code")).collect();
    assert_eq!(codes, ["code 3", "code 3", "code 0"], "{out}{err}");
    for words in
        ["No space left", "make room, then run", "Read-only file system", "make it writable"]
    {
        assert!(err.contains(words), "{words}: {err}");
    }
    assert!(!out.contains(".tmp"), "{out}");
    let last = out.lines().find(|line| line.starts_with('{')).unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert!(last["kept"].as_u64() > Some(0) && last["redone"] == 0, "{last}");
    assert_eq!(summary(folder, "whole")["written"], 20);
    assert_eq!(content(&folder.join("out")), content(&folder.join("whole")));
}

#[cfg(unix)]
#[test]
fn a_folder_that_may_not_be_written_is_told_before_any_work() {
    use std::os::unix::fs::PermissionsExt;
    let folder = ready();
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        eprintln!("skipped: this user may write anywhere");
        return;
    }
    let ran = run(folder.path(), "locked/out");
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("make it writable"), "{}", ran.err);
}
