//! Every format of sketches and clouds as a data set, written by hand here.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::tempdir;
use upright::{Dataset, Signal};
use upright_data::{Allowance, Note, Options, Prepare, Source, Split, Want, open};

fn source(path: &Path, want: Want, signal: Signal) -> Source {
    let options = Options { allowance: Allowance::Percent(100.0), ..Options::new(want, signal) };
    open(&[PathBuf::from(path)], &options, Prepare::for_points(signal, 0)).unwrap()
}

fn rows(path: &Path, signal: Signal) -> Vec<f32> {
    let source = source(path, Want::Inputs, signal);
    let loaded = source.read(&(0..source.len()).collect::<Vec<_>>()).unwrap();
    assert_eq!(source.skipped_count(), 0, "{}: {:?}", path.display(), source.notes());
    loaded.batch.data().to_vec()
}

fn lines(points: &[[f32; 3]], between: &str) -> String {
    points.iter().fold(String::new(), |mut out, [x, y, z]| {
        let _ = writeln!(out, "{x}{between}{y}{between}{z}");
        out
    })
}

fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_le_bytes).collect()
}

fn npy(shape: &str, data: &[u8]) -> Vec<u8> {
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00".as_slice(), &(head.len() as u16).to_le_bytes(), head.as_bytes(), data]
        .concat()
}

/// The same cloud in every format.
fn clouds(folder: &Path, points: &[[f32; 3]]) -> Vec<PathBuf> {
    let n = points.len();
    let xyz = "property float x\nproperty float y\nproperty float z\nend_header\n";
    let ply = |form: &str| format!("ply\nformat {form} 1.0\nelement vertex {n}\n{xyz}");
    let pcd = |form: &str| {
        format!(
            "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nWIDTH {n}\nHEIGHT 1\nPOINTS {n}\nDATA {form}\n"
        )
    };
    let little = floats(points.iter().copied().flatten());
    let big: Vec<u8> = points.iter().flatten().flat_map(|v| v.to_be_bytes()).collect();
    let files = [
        ("a.off", format!("OFF{n} 0 0\n{}", lines(points, " ")).into_bytes()),
        ("a.xyz", lines(points, "\t").into_bytes()),
        ("a.txt", lines(points, ",").into_bytes()),
        ("text.ply", (ply("ascii") + &lines(points, " ")).into_bytes()),
        ("little.ply", [ply("binary_little_endian").as_bytes(), &little].concat()),
        ("big.ply", [ply("binary_big_endian").as_bytes(), &big].concat()),
        ("text.pcd", (pcd("ascii") + &lines(points, " ")).into_bytes()),
        ("binary.pcd", [pcd("binary").as_bytes(), &little].concat()),
        ("one.npy", npy(&format!("({n}, 3)"), &little)),
        ("many.npy", npy(&format!("(1, {n}, 3)"), &little)),
    ];
    files
        .into_iter()
        .map(|(name, bytes)| {
            fs::write(folder.join(name), bytes).unwrap();
            folder.join(name)
        })
        .collect()
}

fn coordinate() -> impl Strategy<Value = f32> {
    prop_oneof![-1e6f32..1e6, -1f32..1.0, Just(0.0), Just(1e-30), Just(-3e38)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_cloud_is_the_same_to_the_bit_in_every_format(
        points in prop::collection::vec(prop::array::uniform3(coordinate()), 2..80)
    ) {
        let folder = tempdir().unwrap();
        for path in clouds(folder.path(), &points) {
            let mut distinct = points.clone();
            distinct.sort_by(|a, b| a.partial_cmp(b).unwrap());
            distinct.dedup();
            let signal = Signal::Cloud { points: points.len() };
            if distinct.len() >= points.len().min(64) {
                prop_assert_eq!(&rows(&path, signal)[..], points.as_flattened(), "{}", path.display());
            }
        }
    }

    #[test]
    fn a_sketch_is_the_same_in_every_format(
        strokes in prop::collection::vec(prop::collection::vec(prop::array::uniform2(-1000i32..1000), 2..6), 1..6)
    ) {
        prop_assume!(strokes.iter().flatten().any(|p| *p != strokes[0][0]));
        let folder = tempdir().unwrap();
        let lists: Vec<[Vec<i32>; 2]> =
            strokes.iter().map(|s| [0, 1].map(|c| s.iter().map(|p| p[c]).collect())).collect();
        let ndjson = format!("{{\"word\":\"x\",\"drawing\":{lists:?}}}\n");
        let mut path = String::new();
        for stroke in &strokes {
            for (i, [x, y]) in stroke.iter().enumerate() {
                let _ = write!(path, "{}{x} {y}", if i == 0 { 'M' } else { 'L' });
            }
        }
        let want: Vec<f32> = strokes.iter().flat_map(|s| s.iter().enumerate().flat_map(|(i, p)| [p[0] as f32, p[1] as f32, if i == 0 { 1.0 } else { 0.0 }])).collect();
        let n = want.len() / 3;
        for (name, bytes) in [
            ("a.ndjson", ndjson.into_bytes()),
            ("a.svg", format!("<svg><g><path d='{path}'/></g></svg>").into_bytes()),
            ("one.npy", npy(&format!("({n}, 3)"), &floats(want.iter().copied()))),
            ("many.npy", npy(&format!("(1, {n}, 3)"), &floats(want.iter().copied()))),
        ] {
            let path = folder.path().join(name);
            fs::write(&path, bytes).unwrap();
            let mut padded = want.clone();
            padded.extend([0.0, 0.0, -1.0].repeat(3));
            prop_assert_eq!(&rows(&path, Signal::Strokes { length: n }), &want, "{}", name);
            prop_assert_eq!(&rows(&path, Signal::Strokes { length: n + 3 }), &padded, "{}", name);
        }
    }
}

#[test]
fn class_folders_of_meshes_are_sampled_and_broken_ones_reported() {
    let folder = tempdir().unwrap();
    let cube = "OFF8 6 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n0 0 1\n1 0 1\n1 1 1\n0 1 1\n4 0 1 2 3\n4 4 5 6 7\n4 0 1 5 4\n4 2 3 7 6\n4 1 2 6 5\n4 0 3 7 4\n";
    for class in ["bed", "chair"] {
        fs::create_dir(folder.path().join(class)).unwrap();
        fs::write(folder.path().join(class).join("a.off"), cube).unwrap();
    }
    fs::write(folder.path().join("chair/b.off"), "OFF\n2 0 0\n0 0 0\n1 1 1\n").unwrap();
    fs::write(folder.path().join("chair/c.off"), &cube[..40]).unwrap();
    let source = source(folder.path(), Want::Labelled, Signal::Cloud { points: 600 });
    assert_eq!(source.classes(), ["bed", "chair"]);
    let loaded = source.read(&[0, 1, 2, 3]).unwrap();
    assert_eq!(loaded.rows, [0, 1]);
    assert_eq!(loaded.batch.item(0), loaded.batch.item(1), "the content alone draws the points");
    for p in loaded.batch.item(0).chunks(3) {
        assert!(
            p.iter().any(|v| v.abs() < 1e-6 || (v - 1.0).abs() < 1e-6),
            "{p:?} is not on the cube"
        );
    }
    let notes = source.notes();
    let Note::Skipped { count: 2, total: 4, first, .. } = &notes[0] else { panic!("{notes:?}") };
    assert_eq!(first.row, 2);
    assert_eq!(first.why.to_string(), "2 points after de-duplication, need >= 64");
}

#[test]
fn few_points_and_many_strokes_are_noted() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.xyz");
    let points: Vec<[f32; 3]> = (0..70).map(|i| [i as f32, 0.0, 0.0]).collect();
    fs::write(&path, lines(&points, " ")).unwrap();
    let few = source(&path, Want::Inputs, Signal::Cloud { points: 100 });
    few.read(&[0]).unwrap();
    assert_eq!(few.notes()[0].code(), "cloud::few");
    let path = folder.path().join("a.svg");
    fs::write(&path, format!("<svg><path d='{}'/></svg>", "m1 1l5 5".repeat(30))).unwrap();
    let many = source(&path, Want::Inputs, Signal::Strokes { length: 10 });
    many.read(&[0]).unwrap();
    assert_eq!(many.notes()[0].code(), "strokes::many");
}

#[test]
fn a_folder_of_arrays_is_chosen_by_split_with_its_labels() {
    let folder = tempdir().unwrap();
    for (split, label) in [("train", 1), ("test", 0)] {
        let at = |name: &str| folder.path().join(format!("set-{split}-{name}"));
        let values = (0..12).map(|i| (i * (label + 1)) as f32);
        fs::write(at("points.npy"), npy("(2, 2, 3)", &floats(values))).unwrap();
        fs::write(at("labels.csv"), format!("name,label\na,{label}\nb,{label}\n")).unwrap();
    }
    let signal = Signal::Cloud { points: 2 };
    let split = Some(Split::Train);
    let options = Options { split, ..Options::new(Want::Labelled, signal) };
    let source = open(&[folder.path().into()], &options, Prepare::for_points(signal, 0)).unwrap();
    assert_eq!((source.len(), source.label(0)), (2, Some(1)));
    assert_eq!(source.read(&[0]).unwrap().batch.data(), [0., 2., 4., 6., 8., 10.]);
    let open_all = open(
        &[folder.path().into()],
        &Options { split: None, ..options },
        Prepare::for_points(signal, 0),
    );
    assert_eq!(open_all.err().unwrap().code(), "data::splits");
}
