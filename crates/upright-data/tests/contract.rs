//! What every format promises, checked for each row of the table.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use tempfile::tempdir;
use upright::{Signal, SignalKind};
use upright_data::{
    Allowance, Change, Content, FORMATS, Format, Holds, Item, Options, Prepare, Read, Want,
    decode_item, open, supported,
};

/// Small enough for every example.
fn signal(kind: SignalKind) -> Signal {
    match kind {
        SignalKind::Image => Signal::image(1, 1, 1),
        SignalKind::Strokes => Signal::Strokes { length: 8 },
        SignalKind::Cloud => Signal::Cloud { points: 2 },
    }
}

/// One pixel of an image, or the points.
fn prepare(kind: SignalKind) -> Prepare {
    if kind != SignalKind::Image {
        return Prepare::for_points(signal(kind), 0);
    }
    let apply = |item| match item {
        Item::Image(picture) => Ok(Ok((picture.data()[..1].to_vec(), Change::None))),
        other => panic!("{:?} instead of an image", other.kind()),
    };
    Prepare { signal: signal(kind), apply: Box::new(apply) }
}

/// Rows that a file gives as a kind, read and skipped; `None` if it cannot be opened.
fn rows(path: &Path, kind: SignalKind) -> Option<(usize, usize)> {
    let allowance = Allowance::Percent(100.0);
    let options = Options { allowance, ..Options::new(Want::Inputs, signal(kind)) };
    let source = open(&[PathBuf::from(path)], &options, prepare(kind)).ok()?;
    let read = source.load(&(0..1000).collect::<Vec<_>>()).unwrap();
    assert!(read.batch.data().iter().all(|v| v.is_finite()));
    Some((read.rows.len(), read.skipped.len()))
}

/// Whether a file gives an item as any kind of its format; a list must open.
fn is_read(format: &Format, path: &Path) -> bool {
    let names = matches!(format.read, Read::Names(_));
    let read = |kind: &SignalKind| rows(path, *kind).is_some_and(|(read, _)| names || read > 0);
    format.kinds.iter().filter(|kind| read(kind)).count() > 0
}

/// A file of a format with some bytes.
fn file(folder: &Path, format: &Format, bytes: &[u8]) -> PathBuf {
    let path = folder.join(format!("a{}", format.endings[0]));
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn names_are_unique_and_everything_is_described() {
    let names: BTreeSet<&str> = FORMATS.iter().map(|f| f.name).collect();
    assert_eq!(names.len(), FORMATS.len());
    for format in FORMATS {
        let kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(format.name.chars().all(kebab), "{}", format.name);
        assert!(format.about.ends_with('.'), "{}", format.name);
        assert!(!format.kinds.is_empty() && !format.endings.is_empty(), "{}", format.name);
        assert!(!(format.examples)().is_empty(), "{}", format.name);
        let listed = format.kinds.iter().all(|&kind| supported(kind).contains(format.called));
        assert!(listed || matches!(format.read, Read::Names(_)), "{}", format.name);
    }
}

/// Only `QuickDraw` and lists share a name; a look at the first line tells them apart.
#[test]
fn no_two_formats_of_a_kind_claim_a_file_without_a_look_at_it() {
    let folder = tempdir().unwrap();
    for (i, a) in FORMATS.iter().enumerate() {
        for b in &FORMATS[i + 1..] {
            if !a.kinds.iter().any(|kind| b.kinds.contains(kind)) {
                continue;
            }
            for ending in b.endings {
                let path = folder.path().join(format!("a{ending}"));
                if a.is_named(&path) {
                    fs::write(&path, &(b.examples)()[0]).unwrap();
                    assert_eq!((a.sniff)(&path), None, "{} and {}", a.name, b.name);
                }
            }
        }
    }
}

#[test]
fn every_example_is_known_by_its_name_and_read() {
    let folder = tempdir().unwrap();
    for format in FORMATS {
        for (i, example) in (format.examples)().iter().enumerate() {
            let path = file(folder.path(), format, example);
            assert!(format.is_named(&path), "{}", format.name);
            let holds = match format.read {
                Read::One(_) => vec![Holds::One],
                Read::Many(_) => vec![Holds::Many],
                Read::Either(..) => vec![Holds::One, Holds::Many],
                Read::Names(_) => vec![Holds::Names],
            };
            let sniffed = (format.sniff)(&path).expect(format.name);
            assert!(holds.contains(&sniffed), "{} {i}: {sniffed:?}", format.name);
            let names_missing_stacks = matches!(format.read, Read::Names(_)) && i > 0;
            assert!(is_read(format, &path) || names_missing_stacks, "{} {i}", format.name);
        }
    }
}

/// With its name and, where another format does not take it first, without.
#[test]
fn every_example_of_one_item_reads_from_its_bytes_as_from_its_file() {
    let folder = tempdir().unwrap();
    for format in FORMATS.iter().filter(|f| f.one().is_some()) {
        for (example, &kind) in
            (format.examples)().iter().flat_map(|e| format.kinds.iter().map(move |k| (e, k)))
        {
            let path = file(folder.path(), format, example);
            let options = Options::new(Want::Inputs, signal(kind));
            let name = path.to_string_lossy();
            let want = (format.one().unwrap())(Content::File(&path), &options);
            assert_eq!(decode_item(&name, example, &options), want, "{}", format.name);
            let unnamed = decode_item("blob", example, &options);
            assert_eq!(unnamed.ok(), want.ok(), "{} without a name", format.name);
        }
    }
    let cloud = Options::new(Want::Inputs, signal(SignalKind::Cloud));
    let e = decode_item("a.exe", b"\0\x01", &cloud).unwrap_err().to_string();
    assert!(e.starts_with("not a file of a known kind; supported: off ply"), "{e}");
}

#[test]
fn no_reader_panics_on_damaged_bytes_or_reads_nothing_as_something() {
    let folder = tempdir().unwrap();
    let garbage: Vec<u8> = (0..997u32).map(|i| (i * i % 251) as u8 ^ 0x85).collect();
    for format in FORMATS {
        let check = |bytes: &[u8], may: bool| {
            let path = file(folder.path(), format, bytes);
            let read = catch_unwind(AssertUnwindSafe(|| is_read(format, &path)));
            let start = &bytes[..bytes.len().min(20)];
            let read = read.unwrap_or_else(|_| panic!("{} panics on {start:?}..", format.name));
            assert!(may || !read, "{} reads {start:?}..", format.name);
        };
        check(b"", false);
        check(&garbage, false);
        for example in (format.examples)() {
            let step = (example.len() / 40).max(1);
            (0..example.len()).step_by(step).for_each(|cut| check(&example[..cut], cut > 4));
            for at in (0..example.len()).step_by(step) {
                let mut damaged = example.clone();
                damaged[at] ^= 0xff;
                check(&damaged, true);
            }
        }
    }
}
