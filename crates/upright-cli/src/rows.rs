//! Where results go: a [`Sink`] is standard output or a file that appears only
//! once it is complete; [`Rows`] writes one record per row into it.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::report::{Failure, Result};

/// Standard output, or a file written beside its place and renamed into it.
pub struct Sink {
    out: BufWriter<Box<dyn Write>>,
    place: Option<Place>,
}

struct Place {
    file: File,
    temporary: PathBuf,
    path: PathBuf,
    /// Whether what was written stays if it is never finished.
    stays: bool,
}

impl Sink {
    /// Opens the path, or standard output if there is none.
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let Some(path) = path else {
            return Ok(Sink { out: BufWriter::new(Box::new(std::io::stdout())), place: None });
        };
        let Some(name) = path.file_name() else {
            return Err(Failure::usage(
                format!("`{}` is not the name of a file", path.display()),
                "give a file to write to",
            ));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.tmp", std::process::id()));
        Sink::through(path, path.with_file_name(hidden), false)
    }

    /// The same, but what was written before an interruption stays, as `NAME.partial`.
    pub fn open_growing(path: Option<&Path>) -> Result<Self> {
        let Some((path, name)) = path.and_then(|p| Some((p, p.file_name()?))) else {
            return Sink::open(path);
        };
        let mut partial = name.to_os_string();
        partial.push(".partial");
        Sink::through(path, path.with_file_name(partial), true)
    }

    fn through(path: &Path, temporary: PathBuf, stays: bool) -> Result<Self> {
        let unwritable = |source| Failure::Unwritable { path: path.into(), source };
        let file = File::create(&temporary).map_err(unwritable)?;
        let writer = file.try_clone().map_err(|e| Failure::io(path, e))?;
        let place = Place { file, temporary, path: path.into(), stays };
        Ok(Sink { out: BufWriter::new(Box::new(writer)), place: Some(place) })
    }

    /// Hands on what was written so far.
    pub fn flush(&mut self) -> Result<()> {
        let done = self.out.flush();
        done.map_err(|e| self.failure(e))
    }

    /// Writes bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.out.write_all(bytes);
        done.map_err(|e| self.failure(e))
    }

    /// Flushes; for a file, also syncs it and puts it in its place.
    pub fn finish(mut self) -> Result<()> {
        let flushed = self.out.flush();
        flushed.map_err(|e| self.failure(e))?;
        let Some(place) = self.place.take() else { return Ok(()) };
        let moved = place
            .file
            .sync_all()
            .and_then(|()| std::fs::rename(&place.temporary, &place.path))
            .map_err(|e| Failure::io(&place.path, e));
        if moved.is_err() {
            std::fs::remove_file(&place.temporary).ok();
        }
        moved
    }

    fn failure(&self, e: std::io::Error) -> Failure {
        match &self.place {
            Some(place) => Failure::io(&place.path, e),
            None if e.kind() == ErrorKind::BrokenPipe => Failure::Closed,
            None => Failure::io(Path::new("standard output"), e),
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        if let Some(place) = self.place.take().filter(|p| !p.stays) {
            std::fs::remove_file(&place.temporary).ok();
        }
    }
}

/// How records are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// A header, then one line of comma-separated fields per record.
    Csv,
    /// One JSON object per line.
    Jsonl,
}

impl Format {
    /// The format that a file's name asks for, if it does.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Format::Csv),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            _ => None,
        }
    }
}

/// Records on their way to a [`Sink`].
pub struct Rows {
    sink: Sink,
    format: Format,
    headed: bool,
}

impl Rows {
    /// Opens the path, or standard output if there is none.
    pub fn open(path: Option<&Path>, format: Format) -> Result<Self> {
        Ok(Rows { sink: Sink::open(path)?, format, headed: false })
    }

    /// The same, but rows written before an interruption stay, in `NAME.partial`.
    pub fn open_growing(path: Option<&Path>, format: Format) -> Result<Self> {
        Ok(Rows { sink: Sink::open_growing(path)?, format, headed: false })
    }

    /// Hands on the rows so far.
    pub fn flush(&mut self) -> Result<()> {
        self.sink.flush()
    }

    /// Writes a record: a struct of plain fields. For CSV, nested fields are refused;
    /// the header comes from the first record.
    pub fn write<T: Serialize>(&mut self, row: &T) -> Result<()> {
        let bytes = match self.format {
            Format::Jsonl => {
                let mut line = serde_json::to_vec(row).map_err(unwritable)?;
                line.push(b'\n');
                line
            }
            Format::Csv => {
                let mut writer =
                    csv::WriterBuilder::new().has_headers(!self.headed).from_writer(Vec::new());
                writer.serialize(row).map_err(unwritable)?;
                writer.into_inner().map_err(unwritable)?
            }
        };
        self.headed = true;
        self.sink.write(&bytes)
    }

    /// Flushes; for a file, also syncs it and puts it in its place.
    pub fn finish(self) -> Result<()> {
        self.sink.finish()
    }
}

fn unwritable(e: impl std::fmt::Display) -> Failure {
    Failure::usage(
        format!("a row does not fit the format: {e}"),
        "use `--json` or a .jsonl file, which hold nested fields",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Row<'a> {
        path: &'a str,
        label: u32,
        energy: f32,
        class: Option<&'a str>,
    }

    const ROWS: [Row; 2] = [
        Row { path: "a, b.png", label: 3, energy: -1.5, class: None },
        Row { path: "c.png", label: 0, energy: 0.1, class: Some("cat") },
    ];

    #[test]
    fn rows_that_were_never_finished_stay_under_a_clear_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.csv");
        let mut rows = Rows::open_growing(Some(&path), Format::Csv).unwrap();
        rows.write(&ROWS[0]).unwrap();
        rows.flush().unwrap();
        drop(rows);
        let partial = std::fs::read_to_string(folder.path().join("rows.csv.partial")).unwrap();
        assert_eq!(partial.lines().count(), 2);
        assert!(!path.exists());
        let mut rows = Rows::open_growing(Some(&path), Format::Csv).unwrap();
        rows.write(&ROWS[1]).unwrap();
        rows.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(std::fs::read_to_string(path).unwrap().contains("c.png"));
    }

    fn written(name: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut rows = Rows::open(Some(&path), Format::of(&path).unwrap()).unwrap();
        for row in &ROWS {
            rows.write(row).unwrap();
        }
        assert!(!path.exists(), "the file appears only when complete");
        rows.finish().unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn csv_has_one_header_and_quotes_commas() {
        assert_eq!(
            written("rows.csv"),
            "path,label,energy,class\n\"a, b.png\",3,-1.5,\nc.png,0,0.1,cat\n"
        );
    }

    #[test]
    fn jsonl_has_one_object_a_line() {
        assert_eq!(
            written("rows.jsonl"),
            "{\"path\":\"a, b.png\",\"label\":3,\"energy\":-1.5,\"class\":null}\n\
             {\"path\":\"c.png\",\"label\":0,\"energy\":0.1,\"class\":\"cat\"}\n"
        );
    }

    #[test]
    fn an_abandoned_file_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let mut sink = Sink::open(Some(&folder.path().join("x.csv"))).unwrap();
        sink.write(b"half").unwrap();
        drop(sink);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
