//! Parquet files of images: a column `image` of encoded images, or the struct of `bytes` and
//! `path` that Hugging Face writes; if they are there, a column `id` and one of labels. Images
//! are read row by row; only ids are held.

mod check;
mod thrift;

use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use parquet::basic::{CompressionCodec, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use parquet::file::serialized_reader::SerializedPageReader;
use upright::SignalKind;

use super::list::LABELS;
use super::{Format, Holds, Read, image};
use crate::error::{Error, Found, Result};
use crate::examples;
use crate::item::{Decoded, Fetched, Items, Set};
use crate::labels::Labels;
use crate::names::Names;
use crate::options::{Options, Want};
use crate::skip::Unusable;

pub(super) const FORMAT: Format = Format {
    name: "parquet",
    about: "Parquet files with a column of images and, if they are known, their ids and classes.",
    endings: &[".parquet", ".pq"],
    called: "parquet",
    kinds: &[SignalKind::Image],
    gz: false,
    parts: true,
    sniff: |_| Some(Holds::Many),
    read: Read::Many(open),
    words: &["PAR1", "image", "bytes", "path", "label", "id", "schema", "\x15\x00", "\x19\x2c"],
    examples: || {
        let image = &(image::FORMAT.examples)()[0];
        vec![
            examples::parquet(false, true, &[("a", image, 0), ("b", image, 1)]),
            examples::parquet(true, true, &[("a", image, 0), ("b", image, 1)]),
            examples::parquet(true, false, &[("a", image, 0)]),
        ]
    },
    ..Format::BASE
};

/// Names of the column of images.
const IMAGES: &[&str] = &["image", "img"];
/// How columns may be packed.
const PACKED: [CompressionCodec; 4] = [
    CompressionCodec::UNCOMPRESSED,
    CompressionCodec::SNAPPY,
    CompressionCodec::ZSTD,
    CompressionCodec::GZIP,
];
/// Rows of a column that are read at a time.
const CHUNK: usize = 1024;
const FIX: &str = "write columns `id` and `image`, the latter as encoded bytes (PNG, JPEG, ..), \
                   with pyarrow or `datasets`";

/// What went wrong inside a file, as words.
type Words<T> = std::result::Result<T, String>;

/// A file whose columns are read from front to back.
struct Table {
    path: String,
    file: Arc<File>,
    meta: ParquetMetaData,
    image: usize,
    /// The first row of each group of rows, and the end of the last.
    starts: Vec<usize>,
    ids: Option<Names>,
    /// Where the last reading ended; whoever holds it may read the file.
    cursor: Mutex<Option<Cursor>>,
    ignore_exif: bool,
}

/// A place in the column of images.
struct Cursor {
    group: usize,
    next: usize,
    reader: ColumnReaderImpl<ByteArrayType>,
}

fn open(path: &Path, options: &Options) -> Result<Set> {
    let file = File::open(path).map_err(|e| Error::io(path, e))?;
    let opened = image::contain(|| Table::open(path, file, options));
    let (table, labels) = opened.map_err(|why| Error::unreadable(path, why, FIX))?;
    if table.len() == 0 {
        let (kind, found) = (SignalKind::Image, Found::Nothing("a table without rows"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    Ok(Set::new(table, labels))
}

impl Table {
    fn open(path: &Path, file: File, options: &Options) -> Words<(Self, Labels)> {
        check::footer(&file)?;
        let length = file.metadata().map_err(|e| e.to_string())?.len();
        let meta = ParquetMetaDataReader::new().parse_and_finish(&file).map_err(words)?;
        let mut starts = vec![0usize];
        for group in meta.row_groups() {
            let rows = usize::try_from(group.num_rows()).map_err(|_| "fewer than no rows")?;
            let end = starts[starts.len() - 1].checked_add(rows).ok_or("too many rows")?;
            starts.push(end);
        }
        let rows = starts[starts.len() - 1];
        if rows as u64 > length {
            return Err(format!("{rows} rows in {length} bytes"));
        }
        let mut table = Table {
            path: path.display().to_string(),
            file: Arc::new(file),
            image: 0,
            meta,
            starts,
            ids: None,
            cursor: Mutex::new(None),
            ignore_exif: options.ignore_exif,
        };
        table.image = table.images()?;
        if let Some(column) = table.column("id") {
            let mut ids = Names::default();
            table.each(column, &mut |id| {
                ids.push(&id.ok_or_else(|| format!("row {} has no id", ids.len()))?);
                Ok(())
            })?;
            table.ids = Some(ids);
        }
        let labels = match LABELS.iter().find_map(|name| table.column(name)) {
            Some(column) if options.want == Want::Labelled => table.labels(column)?,
            _ => Labels::None,
        };
        Ok((table, labels))
    }

    /// The number of the column that lies at a place of the schema.
    fn place(&self, wanted: &[&str]) -> Option<usize> {
        let columns = self.meta.file_metadata().schema_descr().columns();
        columns.iter().position(|c| c.path().parts() == wanted)
    }

    fn column(&self, name: &str) -> Option<usize> {
        self.place(&[name])
    }

    fn images(&self) -> Words<usize> {
        let columns = self.meta.file_metadata().schema_descr().columns();
        let found = IMAGES
            .iter()
            .find_map(|name| self.place(&[name]).or_else(|| self.place(&[name, "bytes"])));
        let Some(found) = found else {
            let names: Vec<String> = columns.iter().take(20).map(|c| c.path().string()).collect();
            return Err(format!("no column `image`; there are: {}", names.join(", ")));
        };
        if columns[found].physical_type() != Physical::BYTE_ARRAY {
            return Err("the column `image` holds no encoded images".into());
        }
        Ok(found)
    }

    /// A reader of a column of one group of rows, once all it says is checked.
    fn reader<T: DataType>(&self, group: usize, column: usize) -> Words<ColumnReaderImpl<T>> {
        let descr = self.meta.file_metadata().schema_descr().column(column);
        if descr.max_rep_level() > 0 {
            return Err(format!("the column `{}` holds lists", descr.path().string()));
        }
        let rows = self.starts[group + 1] - self.starts[group];
        let chunk = self.meta.row_group(group).column(column);
        let codec = chunk.compression_codec();
        if !PACKED.contains(&codec) {
            return Err(format!("packed as {codec:?}; write it with snappy, zstd or gzip"));
        }
        check::pages(&self.file, chunk, rows as u64)?;
        let pages = SerializedPageReader::new(Arc::clone(&self.file), chunk, rows, None);
        Ok(ColumnReaderImpl::new(descr, Box::new(pages.map_err(words)?)))
    }

    /// Shows every cell of a column of texts or whole numbers, as text.
    fn each(&self, column: usize, see: &mut dyn FnMut(Option<String>) -> Words<()>) -> Words<()> {
        let descr = self.meta.file_metadata().schema_descr().column(column);
        let text = |bytes: &ByteArray| {
            let text = std::str::from_utf8(bytes.data()).map_err(|_| "a text is not UTF-8")?;
            Ok(text.to_owned())
        };
        match descr.physical_type() {
            Physical::BYTE_ARRAY => self.cells::<ByteArrayType>(column, text, see),
            Physical::INT32 => self.cells::<Int32Type>(column, |n| Ok(n.to_string()), see),
            Physical::INT64 => self.cells::<Int64Type>(column, |n| Ok(n.to_string()), see),
            other => Err(format!("the column `{}` is of type {other}", descr.path().string())),
        }
    }

    fn cells<T: DataType>(
        &self,
        column: usize,
        text: impl Fn(&T::T) -> Words<String>,
        see: &mut dyn FnMut(Option<String>) -> Words<()>,
    ) -> Words<()> {
        let top = self.meta.file_metadata().schema_descr().column(column).max_def_level();
        for group in 0..self.meta.num_row_groups() {
            let mut reader = self.reader::<T>(group, column)?;
            let mut left = self.starts[group + 1] - self.starts[group];
            while left > 0 {
                let (mut levels, mut values) = (Vec::new(), Vec::new());
                let wanted = left.min(CHUNK);
                let read = reader.read_records(wanted, Some(&mut levels), None, &mut values);
                let (rows, ..) = read.map_err(words)?;
                if rows == 0 {
                    return Err("a column ends early".into());
                }
                let mut values = values.iter();
                // Where every cell has a value there are no levels.
                for row in 0..rows {
                    let value = match levels.get(row) {
                        Some(&level) if level < top => None,
                        _ => Some(text(values.next().ok_or("a column ends early")?)?),
                    };
                    see(value)?;
                }
                left -= rows;
            }
        }
        Ok(())
    }

    /// Numbers of outputs, or names; none if a row has neither.
    fn labels(&self, column: usize) -> Words<Labels> {
        let mut texts = Vec::new();
        self.each(column, &mut |text| {
            texts.push(text);
            Ok(())
        })?;
        let descr = self.meta.file_metadata().schema_descr().column(column);
        let Some(texts) = texts.into_iter().collect::<Option<Vec<String>>>() else {
            return Ok(Labels::None);
        };
        if descr.physical_type() == Physical::BYTE_ARRAY {
            return Ok(Labels::Names(texts));
        }
        // Sets without known classes have -1 for all.
        let numbers = texts.iter().map(|text| text.parse().ok()).collect::<Option<Vec<u32>>>();
        Ok(numbers.map_or(Labels::None, Labels::Numbers))
    }

    /// The bytes of a row's image. Rows in order are read from front to back.
    fn bytes(&self, cursor: &mut Option<Cursor>, row: usize) -> Words<ByteArray> {
        let group = self.starts.partition_point(|&start| start <= row) - 1;
        let at = row - self.starts[group];
        if cursor.as_ref().is_none_or(|c| c.group != group || c.next > at) {
            *cursor = Some(Cursor { group, next: 0, reader: self.reader(group, self.image)? });
        }
        let Some(place) = cursor else { return Err("no place in the file".into()) };
        let skipped = place.reader.skip_records(at - place.next).map_err(words)?;
        if skipped != at - place.next {
            return Err("the column of images ends early".into());
        }
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        let read = place.reader.read_records(1, Some(&mut levels), None, &mut values);
        let (rows, ..) = read.map_err(words)?;
        place.next = at + 1;
        match values.pop() {
            Some(bytes) => Ok(bytes),
            None if rows == 0 => Err("the column of images ends early".into()),
            None => Err("no image".into()),
        }
    }
}

fn words(e: ParquetError) -> String {
    match e {
        ParquetError::General(text) | ParquetError::EOF(text) | ParquetError::NYI(text) => text,
        other => other.to_string(),
    }
}

impl Items for Table {
    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn name(&self, row: usize) -> String {
        match &self.ids {
            Some(ids) => ids.get(row).to_owned(),
            None => format!("{}#{row}", self.path),
        }
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        self.fetch(&[row]).pop().map_or_else(|| Err("not read".into()), |decode| decode())
    }

    fn fetch<'a>(&'a self, rows: &[usize]) -> Vec<Fetched<'a>> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|&i| rows[i]);
        let mut out: Vec<(usize, Fetched<'a>)> = Vec::with_capacity(rows.len());
        for i in order {
            let bytes = image::contain(|| self.bytes(&mut cursor, rows[i]));
            // After an error the place is not known.
            if bytes.is_err() {
                *cursor = None;
            }
            let ignore_exif = self.ignore_exif;
            out.push((i, Box::new(move || image::from_bytes(bytes?.data(), ignore_exif))));
        }
        out.sort_by_key(|(i, _)| *i);
        out.into_iter().map(|(_, decode)| decode).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Item;
    use upright::Signal;

    fn grey(value: u8) -> Vec<u8> {
        let mut out = std::io::Cursor::new(Vec::new());
        let picture = ::image::GrayImage::from_pixel(1, 1, ::image::Luma([value]));
        picture.write_to(&mut out, ::image::ImageFormat::Png).unwrap();
        out.into_inner()
    }

    fn opened(bytes: &[u8], want: Want) -> Result<(tempfile::TempDir, Set)> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        std::fs::write(&path, bytes).unwrap();
        let set = open(&path, &Options::new(want, Signal::image(1, 1, 1)))?;
        Ok((folder, set))
    }

    fn pixel(item: Decoded) -> f32 {
        let Item::Image(picture) = item.item else { panic!() };
        picture.data()[0]
    }

    #[test]
    fn bytes_and_structs_are_read_in_any_order() {
        let images: Vec<Vec<u8>> = (0..=250u8).map(grey).collect();
        let ids: Vec<String> = (0..=250).map(|i| format!("id-{i}")).collect();
        let rows: Vec<(&str, &[u8], i64)> =
            (0..=250usize).map(|i| (ids[i].as_str(), &images[i][..], i as i64 % 10)).collect();
        for (nested, named) in [(false, true), (true, true), (true, false)] {
            let bytes = examples::parquet(nested, named, &rows);
            let (_folder, set) = opened(&bytes, Want::Labelled).unwrap();
            assert_eq!(set.items.len(), 251);
            let name = set.items.name(7);
            assert!(if named { name == "id-7" } else { name.ends_with("a.parquet#7") }, "{name}");
            let Labels::Numbers(labels) = &set.labels else { panic!("{:?}", set.labels) };
            assert_eq!((labels[7], labels[250]), (7, 0));
            let asked = [0, 1, 2, 99, 100, 101, 250, 3, 3, 200];
            for (row, item) in asked.iter().zip(set.items.fetch(&asked)) {
                assert!((pixel(item().unwrap()) - *row as f32 / 255.0).abs() < 1e-6, "{row}");
            }
            assert!(set.items.item(250).is_ok());
        }
    }

    #[test]
    fn a_broken_or_missing_image_is_one_row() {
        let image = grey(3);
        let rows = [("a", &b"nonsense"[..], 0), ("b", &b""[..], 0), ("c", &image[..], 0)];
        let (_folder, set) = opened(&examples::parquet(true, true, &rows), Want::Inputs).unwrap();
        assert_eq!(set.labels, Labels::None);
        let why = |row| set.items.item(row).unwrap_err().to_string();
        assert_eq!(why(0), "not an image of a known format");
        assert_eq!(why(1), "no image");
        assert!(set.items.item(2).is_ok());
    }

    #[test]
    fn labels_below_zero_are_none() {
        let image = grey(3);
        let rows = [("a", &image[..], -1), ("b", &image[..], -1)];
        let set = opened(&examples::parquet(true, true, &rows), Want::Labelled).unwrap().1;
        assert_eq!(set.labels, Labels::None);
    }

    #[test]
    fn what_is_no_table_of_images_says_so() {
        let e = |bytes: &[u8]| opened(bytes, Want::Inputs).err().unwrap().to_string();
        assert!(e(b"hello, this is text").ends_with("not a Parquet file, or not all of it"));
        let image = grey(3);
        let whole = examples::parquet(false, true, &[("a", &image, 0)]);
        assert!(e(&whole[..whole.len() - 5]).contains("not all of it"));
        let mut renamed = whole.clone();
        for at in 0..renamed.len() - 5 {
            if &renamed[at..at + 5] == b"image" {
                renamed[at..at + 5].copy_from_slice(b"photo");
            }
        }
        assert!(e(&renamed).ends_with("no column `image`; there are: id, photo, label"));
    }
}
