//! Rows as a Parquet file of one row group.

use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, FloatType, Int32Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use crate::row::{Answer, Row, Table, word};

/// Cells of a column, in the order of the rows.
enum Cells<'a> {
    Text(Vec<Option<&'a str>>),
    Whole(Vec<Option<u32>>),
    Real(Vec<Option<f32>>),
    Reals(Vec<Option<&'a [f32]>>),
}

struct Column<'a> {
    name: &'static str,
    cells: Cells<'a>,
}

/// The bytes of a file.
pub(super) fn encode(table: &Table, rows: &[Row]) -> Result<Vec<u8>> {
    let columns = columns(table, rows);
    let fields: Result<Vec<TypePtr>> = columns.iter().map(field).collect();
    let schema = Type::group_type_builder("schema").with_fields(fields?).build()?;
    let properties = WriterProperties::builder()
        .set_created_by(concat!("upright ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::SNAPPY)
        .build();
    let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in &columns {
        match &column.cells {
            Cells::Text(cells) => {
                let bytes = cells.iter().map(|c| c.map(ByteArray::from));
                write::<ByteArrayType>(&mut group, bytes)?;
            }
            // Parquet stores unsigned numbers as signed ones of the same bits.
            Cells::Whole(cells) => {
                write::<Int32Type>(&mut group, cells.iter().map(|c| c.map(u32::cast_signed)))?;
            }
            Cells::Real(cells) => write::<FloatType>(&mut group, cells.iter().copied())?,
            Cells::Reals(cells) => lists(&mut group, cells)?,
        }
    }
    group.close()?;
    writer.into_inner()
}

fn columns<'a>(table: &Table, rows: &'a [Row]) -> Vec<Column<'a>> {
    fn answers<'a, T>(rows: &'a [Row], cell: impl Fn(&'a Answer) -> Option<T>) -> Vec<Option<T>> {
        rows.iter().map(|row| row.answer.as_ref().ok().and_then(&cell)).collect()
    }
    let text = |name, cells| Column { name, cells: Cells::Text(cells) };
    let whole = |name, cells| Column { name, cells: Cells::Whole(cells) };
    let real = |name, cells| Column { name, cells: Cells::Real(cells) };
    let mut out = vec![
        text(table.id, rows.iter().map(|row| Some(row.id.as_str())).collect()),
        whole("label", answers(rows, |a| Some(a.label))),
        text("class", answers(rows, |a| Some(a.class.as_str()))),
        whole("rival", answers(rows, |a| a.rival)),
        whole("model_label", answers(rows, |a| Some(a.model_label))),
        text("verdict", answers(rows, |a| Some(word(a.verdict)))),
        real("energy_before", answers(rows, |a| Some(a.energy_before))),
        real("energy_after", answers(rows, |a| Some(a.energy_after))),
        whole("evaluations", answers(rows, |a| u32::try_from(a.evaluations).ok())),
    ];
    for (i, name) in table.map_columns().iter().enumerate() {
        out.push(real(name, answers(rows, |a| a.map.get(i).copied())));
    }
    if table.logits {
        let cells = answers(rows, |a| Some(a.logits.as_slice()));
        out.push(Column { name: "logits", cells: Cells::Reals(cells) });
    }
    if table.error {
        let cells = rows.iter().map(|row| row.answer.as_ref().err().map(String::as_str));
        out.push(text("error", cells.collect()));
    }
    out
}

fn field(column: &Column) -> Result<TypePtr> {
    let leaf = |name: &str, physical, logical: Option<LogicalType>| {
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical)
            .build()
            .map(Arc::new)
    };
    let unsigned = LogicalType::integer(32, false);
    match &column.cells {
        Cells::Text(_) => leaf(column.name, Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Cells::Whole(_) => leaf(column.name, Physical::INT32, Some(unsigned)),
        Cells::Real(_) => leaf(column.name, Physical::FLOAT, None),
        Cells::Reals(_) => {
            let item = Type::primitive_type_builder("element", Physical::FLOAT)
                .with_repetition(Repetition::REQUIRED)
                .build()?;
            let list = Type::group_type_builder("list")
                .with_repetition(Repetition::REPEATED)
                .with_fields(vec![Arc::new(item)])
                .build()?;
            Type::group_type_builder(column.name)
                .with_repetition(Repetition::OPTIONAL)
                .with_converted_type(ConvertedType::LIST)
                .with_logical_type(Some(LogicalType::List))
                .with_fields(vec![Arc::new(list)])
                .build()
                .map(Arc::new)
        }
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

/// Writes the next column; a level of 1 says that a cell has a value.
fn write<T: DataType>(group: &mut Group, cells: impl Iterator<Item = Option<T::T>>) -> Result<()> {
    let (mut values, mut levels) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    put::<T>(group, &values, &levels, None)
}

/// Writes the next column, of lists: level 0 is no list, 1 an empty one, 2 a number; what does
/// not start a row repeats at level 1.
fn lists(group: &mut Group, cells: &[Option<&[f32]>]) -> Result<()> {
    let (mut values, mut levels, mut repeats) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            None | Some([]) => {
                levels.push(i16::from(cell.is_some()));
                repeats.push(0);
            }
            Some(list) => {
                values.extend_from_slice(list);
                levels.extend(list.iter().map(|_| 2));
                repeats.extend((0..list.len()).map(|i| i16::from(i > 0)));
            }
        }
    }
    put::<FloatType>(group, &values, &levels, Some(&repeats))
}

fn put<T: DataType>(
    group: &mut Group,
    values: &[T::T],
    levels: &[i16],
    repeats: Option<&[i16]>,
) -> Result<()> {
    // One column was made for each field of the schema.
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, Some(levels), repeats)?;
        column.close()?;
    }
    Ok(())
}
