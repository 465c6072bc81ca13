//! Running the real binary, and arrays for it to read.

use std::path::Path;
use std::process::Command;

use npyz::WriterBuilder;

/// What the binary did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs the binary in a folder.
pub(crate) fn upright(folder: &Path, args: &[&str]) -> Ran {
    let ran = Command::new(env!("CARGO_BIN_EXE_upright"))
        .current_dir(folder)
        .args(args)
        .output()
        .expect("the binary starts");
    Ran {
        code: ran.status.code().expect("it exits"),
        out: String::from_utf8(ran.stdout).expect("text"),
        err: String::from_utf8(ran.stderr).expect("text"),
    }
}

/// A float32 array of two dimensions, or of one if `cols` is 0.
pub(crate) struct Floats<'a>(
    pub(crate) &'a str,
    pub(crate) u64,
    pub(crate) u64,
    pub(crate) &'a [f32],
);

/// Writes float32 arrays and int64 labels as `numpy.savez` would.
#[expect(clippy::default_trait_access, reason = "the type is not exported")]
pub(crate) fn npz(path: &Path, arrays: &[Floats], labels: Option<&[i64]>) {
    let mut out = npyz::npz::NpzWriter::create(path).expect("a new file");
    for Floats(name, rows, cols, values) in arrays {
        let shape = if *cols == 0 { vec![*rows] } else { vec![*rows, *cols] };
        let mut writer = out
            .array(name, Default::default())
            .and_then(|b| b.default_dtype().shape(&shape).begin_nd())
            .expect("an array");
        writer.extend(values.iter()).expect("its numbers");
        writer.finish().expect("its end");
    }
    if let Some(labels) = labels {
        let mut writer = out
            .array("labels", Default::default())
            .and_then(|b| b.default_dtype().shape(&[labels.len() as u64]).begin_nd())
            .expect("an array");
        writer.extend(labels.iter()).expect("its numbers");
        writer.finish().expect("its end");
    }
}
