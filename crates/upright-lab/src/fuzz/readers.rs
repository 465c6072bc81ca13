//! The readers, each through the front door: open the file as a data set,
//! read every row.

use std::path::Path;

use upright::dataset::Dataset;
use upright::tensor::Signal;
use upright_cli::data::{self, Allowance, Options, Prepare, Want};

use super::seeds;

/// One reader and what to feed it.
pub(super) struct Reader {
    /// What it is called.
    pub(super) name: &'static str,
    /// The name of its file, which chooses the reader.
    pub(super) file: &'static str,
    /// What its format is made of.
    pub(super) words: &'static [&'static str],
    /// Whether its files are packed with gzip.
    pub(super) packed: bool,
    /// Valid files.
    pub(super) seeds: fn() -> Vec<Vec<u8>>,
    /// The same before packing.
    pub(super) plain: fn() -> Vec<Vec<u8>>,
    /// Most bytes it may hold for files of at most [`super::mutate::LONGEST`] bytes.
    pub(super) cap: usize,
    /// Reads all of a file; whether that worked.
    pub(super) read: fn(&Path) -> bool,
}

const MB: usize = 1 << 20;

/// Every reader.
pub(super) const READERS: &[Reader] = &[
    plain("off", "a.off", &["OFF", "COFF", "NOFF", "4OFF", "BINARY", "\n", "#"], seeds::off, cloud),
    plain(
        "ply",
        "a.ply",
        &[
            "ascii",
            "binary_little_endian",
            "binary_big_endian",
            "element",
            "property",
            "list",
            "vertex",
            "face",
            "end_header",
            "float",
            "double",
            "uchar",
            "int",
            "uint64",
            "vertex_indices",
            "vertex_index",
            "\n",
        ],
        seeds::ply,
        cloud,
    ),
    plain(
        "pcd",
        "a.pcd",
        &[
            "FIELDS",
            "SIZE",
            "TYPE",
            "COUNT",
            "WIDTH",
            "HEIGHT",
            "POINTS",
            "DATA",
            "ascii",
            "binary",
            "binary_compressed",
            "\n",
        ],
        seeds::pcd,
        cloud,
    ),
    plain("xyz", "a.xyz", &["//", "#", ",", "\n", "\r"], seeds::xyz, cloud),
    plain("npy", "a.npy", NUMPY, seeds::arrays, cloud),
    Reader {
        packed: true,
        plain: seeds::arrays,
        cap: 32 * MB,
        ..plain("npy-gz", "a.npy.gz", NUMPY, seeds::packed_arrays, cloud)
    },
    plain("npz", "a.npz", NUMPY, seeds::archives, either),
    plain("ndjson", "a.ndjson", JSON, seeds::ndjson, sketch),
    Reader {
        packed: true,
        plain: seeds::ndjson,
        cap: 64 * MB,
        ..plain("ndjson-gz", "a.ndjson.gz", JSON, seeds::packed_ndjson, sketch)
    },
    plain(
        "svg",
        "a.svg",
        &[
            "<g>",
            "</g>",
            "<path d='",
            "transform='",
            "'/>",
            "<!DOCTYPE svg [",
            "<!ENTITY a 'b'>",
            "&a;",
            "&#0;",
            "<![CDATA[",
            "<!--",
            "-->",
            "A1e9 1 0 0 1 2 2",
            "M",
            "C",
            "S",
            "Q",
            "T",
            "A",
            "Z",
            "matrix(",
            "skewX(",
            "scale(",
        ],
        seeds::svg,
        sketch,
    ),
    Reader { cap: 16 * MB, ..plain("idx", "a-images-idx3-ubyte.gz", &[], seeds::idx, picture) },
    plain("picture-npz", "a.npz", NUMPY, seeds::picture_archives, picture),
    // A picture of 256 MB decoded, the decoder's own copy, and the numbers as f32.
    Reader { cap: 1536 * MB, ..plain("picture", "a.png", &[], seeds::pictures, picture) },
    plain(
        "list",
        "a.csv",
        &["path", "label", "row", "split", "\"", ",", "\n"],
        seeds::lists,
        listed,
    ),
    plain("json-list", "a.jsonl", JSON, seeds::json_lists, listed),
    plain(
        "labels",
        "labels.csv",
        &["label", "class", "path", "\"", ",", "\n"],
        seeds::labels,
        labels,
    ),
];

const NUMPY: &[&str] = &[
    "'descr'",
    "'shape'",
    "'fortran_order'",
    "True",
    "False",
    "<f4",
    "<i2",
    ">f8",
    "|u1",
    "<f2",
    "|O",
    "(",
    ")",
    ", ",
];
const JSON: &[&str] = &[
    "\"word\"",
    "\"key_id\"",
    "\"drawing\"",
    "\"path\"",
    "\"row\"",
    "\"split\"",
    "[",
    "]",
    "{",
    "}",
    "[[",
    ",",
    ":",
    "null",
    "\"",
    "\\u0000",
    "\n",
];

const fn plain(
    name: &'static str,
    file: &'static str,
    words: &'static [&'static str],
    seeds: fn() -> Vec<Vec<u8>>,
    read: fn(&Path) -> bool,
) -> Reader {
    Reader { name, file, words, packed: false, seeds, plain: seeds, cap: 8 * MB, read }
}

fn options(signal: Signal) -> Options {
    Options { allowance: Allowance::Percent(100.0), ..Options::new(Want::Inputs, signal) }
}

fn all(path: &Path, options: &Options, prepare: Prepare) -> bool {
    let Ok(source) = data::open(&[path.into()], options, prepare) else { return false };
    let rows: Vec<usize> = (0..source.len()).collect();
    let right = rows
        .chunks(16)
        .all(|rows| source.read(rows).is_ok_and(|l| l.batch.data().iter().all(|v| v.is_finite())));
    assert!(right, "what was read is not finite, or stopped");
    for &row in &rows {
        let _ = source.name(row);
    }
    source.unreadable() == 0
}

fn points(path: &Path, signal: Signal) -> bool {
    all(path, &options(signal), Prepare::for_points(signal, 0))
}

/// Two points, so that a mesh or cloud may be small.
fn cloud(path: &Path) -> bool {
    points(path, Signal::Cloud { points: 2 })
}

fn sketch(path: &Path) -> bool {
    points(path, Signal::Strokes { length: 8 })
}

fn either(path: &Path) -> bool {
    let (cloud, sketch) = (cloud(path), sketch(path));
    cloud || sketch
}

/// One pixel of each picture.
fn pixel() -> Prepare {
    let apply = |item| {
        let data::Item::Picture(picture) = item else {
            return Err(upright::Error::shape("item", "a picture", "another"));
        };
        Ok((picture.data[..1].to_vec(), data::Seen::Plain))
    };
    Prepare { signal: Signal::image(1, 1, 1), apply: Box::new(apply) }
}

fn picture(path: &Path) -> bool {
    let prepare = pixel();
    all(path, &options(prepare.signal), prepare)
}

/// The files that a list names are not there, so opening it is all.
fn listed(path: &Path) -> bool {
    let prepare = pixel();
    let options = Options { split: Some(data::Split::Train), ..options(prepare.signal) };
    match data::open(&[path.into()], &options, prepare) {
        Ok(source) => {
            let rows: Vec<usize> = (0..source.len()).collect();
            let _ = source.read(&rows);
            true
        }
        Err(e) => {
            e.to_string().contains("is no file of many") || e.to_string().contains("No such file")
        }
    }
}

/// Labels of two pictures that lie beside them.
fn labels(path: &Path) -> bool {
    let images = path.with_file_name("two-images-idx3-ubyte");
    if !images.exists()
        && std::fs::write(
            &images,
            [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1][..], &[1, 2]].concat(),
        )
        .is_err()
    {
        return false;
    }
    let prepare = pixel();
    let options = Options { labels: Some(path.into()), ..options(prepare.signal) };
    all(&images, &options, prepare)
}
