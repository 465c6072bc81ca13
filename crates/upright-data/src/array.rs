//! Numpy arrays: the `.npy` header and the numbers behind it.
//!
//! The header is read by hand, because it comes from outside: its length is
//! capped, its shape is multiplied out with care, and it is checked against
//! the bytes that are there before anything of its size is allocated.

use std::io::Read;

use crate::skip::Unusable;

/// The type of an array's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Number {
    /// Booleans and unsigned whole numbers of 1, 2, 4 or 8 bytes.
    Unsigned(usize),
    /// Signed whole numbers of 1, 2, 4 or 8 bytes.
    Signed(usize),
    /// Floating-point numbers of 2, 4 or 8 bytes.
    Float(usize),
}

impl Number {
    /// Bytes of one number.
    pub fn size(self) -> usize {
        match self {
            Number::Unsigned(n) | Number::Signed(n) | Number::Float(n) => n,
        }
    }
}

/// An array in memory, in row-major order and in its own number type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    shape: Vec<usize>,
    number: Number,
    big_endian: bool,
    bytes: Vec<u8>,
}

const HEADER_CAP: usize = 64 << 10;

/// The shape that a `.npy` stream's header announces.
pub(crate) fn announced(mut from: impl Read) -> Result<Vec<usize>, String> {
    header(&mut from).map(|(header, _)| header.shape)
}

/// What the header says.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    shape: Vec<usize>,
    number: Number,
    big_endian: bool,
    fortran: bool,
}

impl Array {
    /// Reads a whole `.npy` stream of which `length` bytes are announced.
    pub fn read(mut from: impl Read, length: u64) -> Result<Array, Unusable> {
        let (header, taken) = header(&mut from)?;
        let bytes = header
            .shape
            .iter()
            .try_fold(header.number.size(), |n, &d| n.checked_mul(d))
            .ok_or_else(|| format!("its shape {:?} is too large to exist", header.shape))?;
        let there = length.saturating_sub(taken as u64);
        if bytes as u64 != there {
            return Err(format!(
                "its shape {:?} takes {bytes} bytes, but {there} bytes follow the header",
                header.shape
            )
            .into());
        }
        let mut data = Vec::new();
        from.by_ref().take(bytes as u64).read_to_end(&mut data).map_err(|e| e.to_string())?;
        if data.len() != bytes {
            return Err(format!("it ends after {} of {bytes} bytes of data", data.len()).into());
        }
        let mut beyond = [0];
        if from.read(&mut beyond).map_err(|e| e.to_string())? != 0 {
            return Err(format!("it goes on after the {bytes} bytes of its shape").into());
        }
        let Header { shape, number, big_endian, fortran } = header;
        let bytes = if fortran { row_major(&data, &shape, number.size()) } else { data };
        Ok(Array { shape, number, big_endian, bytes })
    }

    /// Lengths of the dimensions, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The type of the numbers.
    pub fn number(&self) -> Number {
        self.number
    }

    /// Whether it holds no number.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Number of numbers.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.number.size()
    }

    /// The numbers from `from` on, `count` of them, as `f32`. Panics beyond the end.
    pub fn floats(&self, from: usize, count: usize) -> Vec<f32> {
        let size = self.number.size();
        let bytes = &self.bytes[from * size..(from + count) * size];
        bytes.chunks_exact(size).map(|b| self.value(b) as f32).collect()
    }

    /// All numbers as `f32`.
    pub fn all_floats(&self) -> Vec<f32> {
        self.floats(0, self.len())
    }

    /// All numbers as class numbers: whole and not negative.
    pub fn labels(&self) -> Result<Vec<u32>, Unusable> {
        let size = self.number.size();
        let read = |(i, b): (usize, &[u8])| {
            let v = self.value(b);
            if v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v) {
                Ok(v as u32)
            } else {
                Err(format!("{v} at row {i} is not a class number (0, 1, 2, ...)").into())
            }
        };
        self.bytes.chunks_exact(size).enumerate().map(read).collect()
    }

    fn value(&self, bytes: &[u8]) -> f64 {
        let mut le = [0u8; 8];
        let n = bytes.len();
        for (i, b) in bytes.iter().enumerate() {
            le[if self.big_endian { n - 1 - i } else { i }] = *b;
        }
        let raw = u64::from_le_bytes(le);
        match self.number {
            Number::Unsigned(_) => raw as f64,
            Number::Signed(n) => {
                let unused = 64 - 8 * n as u32;
                ((raw << unused) as i64 >> unused) as f64
            }
            Number::Float(2) => half(raw),
            Number::Float(4) => f64::from(f32::from_bits(raw as u32)),
            Number::Float(_) => f64::from_bits(raw),
        }
    }
}

/// The number that a half-precision pattern stands for (IEEE 754 binary16).
fn half(bits: u64) -> f64 {
    const SUBNORMAL_STEP: f64 = 1.0 / (1u64 << 24) as f64;
    let (exponent, fraction) = (bits >> 10 & 0x1f, bits & 0x3ff);
    let size = match exponent {
        0 => fraction as f64 * SUBNORMAL_STEP,
        31 if fraction == 0 => f64::INFINITY,
        31 => f64::NAN,
        _ => f64::from_bits((exponent + 1023 - 15) << 52 | fraction << 42),
    };
    if bits >> 15 & 1 == 1 { -size } else { size }
}

/// Reads the header, and says how many bytes it took.
fn header(from: &mut impl Read) -> Result<(Header, usize), String> {
    let mut start = [0; 8];
    from.read_exact(&mut start).map_err(|_| "it is too short for a numpy array".to_owned())?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("it is not a numpy array".into());
    }
    let wide = match start[6] {
        1 => false,
        2 | 3 => true,
        v => return Err(format!("its numpy format version {v} is unknown")),
    };
    let mut length = [0; 4];
    let field = if wide { 4 } else { 2 };
    from.read_exact(&mut length[..field]).map_err(|_| "its header is cut off".to_owned())?;
    let length = u32::from_le_bytes(length) as usize;
    if length > HEADER_CAP {
        return Err(format!("its header of {length} bytes is longer than {HEADER_CAP}"));
    }
    let mut text = vec![0; length];
    from.read_exact(&mut text).map_err(|_| "its header is cut off".to_owned())?;
    let text = String::from_utf8(text).map_err(|_| "its header is not text".to_owned())?;
    Ok((parse(&text)?, 8 + field + length))
}

fn parse(text: &str) -> Result<Header, String> {
    let lacks = |key: &str| format!("its header has no readable `{key}`");
    let after = |key: &str| {
        let (_, rest) = text
            .split_once(&format!("'{key}'"))
            .or_else(|| text.split_once(&format!("\"{key}\"")))?;
        Some(rest.trim_start().strip_prefix(':')?.trim_start())
    };

    let descr = after("descr").ok_or_else(|| lacks("descr"))?;
    if descr.starts_with('[') {
        return Err("it holds records; save plain arrays instead".into());
    }
    let quoted = descr.trim_start_matches(['\'', '"']);
    let name = quoted.split(['\'', '"']).next().ok_or_else(|| lacks("descr"))?;
    let (order, code) = name.split_at_checked(1).ok_or_else(|| lacks("descr"))?;
    let number = match code {
        "b1" | "u1" => Number::Unsigned(1),
        "u2" => Number::Unsigned(2),
        "u4" => Number::Unsigned(4),
        "u8" => Number::Unsigned(8),
        "i1" => Number::Signed(1),
        "i2" => Number::Signed(2),
        "i4" => Number::Signed(4),
        "i8" => Number::Signed(8),
        "f2" => Number::Float(2),
        "f4" => Number::Float(4),
        "f8" => Number::Float(8),
        _ => {
            return Err(format!(
                "numbers of type `{name}` are not supported; save them as float32, float64, or \
                 whole numbers"
            ));
        }
    };

    let fortran = after("fortran_order").ok_or_else(|| lacks("fortran_order"))?;
    let fortran = match (fortran.starts_with("True"), fortran.starts_with("False")) {
        (true, _) => true,
        (_, true) => false,
        _ => return Err(lacks("fortran_order")),
    };

    let shape = after("shape").and_then(|s| s.strip_prefix('(')?.split_once(')'));
    let (shape, _) = shape.ok_or_else(|| lacks("shape"))?;
    let shape = shape
        .split(',')
        .map(str::trim)
        .filter(|d| !d.is_empty())
        .map(|d| d.parse().map_err(|_| format!("its dimension `{d}` is not a length")))
        .collect::<Result<Vec<usize>, String>>()?;
    if shape.len() > 8 {
        return Err(format!("it has {} dimensions; 8 are the most", shape.len()));
    }
    Ok(Header { shape, number, big_endian: order == ">", fortran })
}

/// The bytes of a column-major array, reordered.
fn row_major(data: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len());
    let mut at = vec![0; shape.len()];
    for _ in 0..data.len() / size {
        let offset = at.iter().zip(shape).rev().fold(0, |o, (&i, &d)| o * d + i);
        out.extend_from_slice(&data[offset * size..(offset + 1) * size]);
        for (i, &d) in at.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < d {
                break;
            }
            *i = 0;
        }
    }
    out
}

/// The bytes of a `.npy` file that holds one row of `f32` numbers.
pub fn write_floats(values: &[f32]) -> Vec<u8> {
    let mut text =
        format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}", values.len());
    let room = (10 + text.len() + 1).next_multiple_of(64) - 11;
    text.extend(std::iter::repeat_n(' ', room - text.len()));
    text.push('\n');
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
    out.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::npy;

    fn read(bytes: &[u8]) -> Result<Array, String> {
        Array::read(bytes, bytes.len() as u64).map_err(|e| e.to_string())
    }

    #[test]
    fn every_number_type_reads_as_its_value() {
        for (descr, bytes, value) in [
            ("|u1", vec![200], 200.0),
            ("|i1", vec![0xff], -1.0),
            ("<i4", (-7i32).to_le_bytes().to_vec(), -7.0),
            (">i4", (-7i32).to_be_bytes().to_vec(), -7.0),
            ("<i8", (-70_000i64).to_le_bytes().to_vec(), -70_000.0),
            ("<u2", 65_535u16.to_le_bytes().to_vec(), 65_535.0),
            ("<f2", vec![0x00, 0xc1], -2.5),
            (">f2", vec![0x00, 0x01], 1.0 / 16_777_216.0),
            ("<f2", vec![0xff, 0x7b], 65_504.0),
            ("<f2", vec![0x00, 0x7c], f32::INFINITY),
            ("<f4", 0.5f32.to_le_bytes().to_vec(), 0.5),
            (">f8", (-0.25f64).to_be_bytes().to_vec(), -0.25),
        ] {
            let array = read(&npy(descr, false, "(1,)", &bytes)).unwrap();
            assert_eq!(array.all_floats(), [value], "{descr}");
        }
    }

    #[test]
    fn a_column_major_array_comes_out_row_by_row() {
        // numpy.asfortranarray([[1, 2, 3], [4, 5, 6]]) stores 1 4 2 5 3 6.
        let array = read(&npy("|u1", true, "(2, 3)", &[1, 4, 2, 5, 3, 6])).unwrap();
        assert_eq!(array.all_floats(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }

    #[test]
    fn shapes_that_do_not_match_the_bytes_are_refused_before_allocation() {
        for (shape, why) in [
            ("(4,)", "its shape [4] takes 4 bytes, but 3 bytes follow the header"),
            (
                "(18446744073709551615, 3)",
                "its shape [18446744073709551615, 3] is too large to exist",
            ),
            ("(99999999999999999999,)", "its dimension `99999999999999999999` is not a length"),
            ("(-1,)", "its dimension `-1` is not a length"),
        ] {
            assert_eq!(read(&npy("|u1", false, shape, &[0; 3])).unwrap_err(), why);
        }
    }

    #[test]
    fn objects_records_and_strings_are_refused() {
        assert!(read(&npy("|O", false, "(1,)", &[0; 8])).unwrap_err().contains("not supported"));
        assert!(read(&npy("<U3", false, "(1,)", &[0; 12])).unwrap_err().contains("not supported"));
        let records = b"\x93NUMPY\x01\x00\x3f\x00{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}";
        assert!(read(records).unwrap_err().contains("records"));
    }

    #[test]
    fn no_prefix_of_a_file_is_accepted() {
        let whole = npy("<f4", false, "(2,)", &[0; 8]);
        assert!(read(&whole).is_ok());
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
            assert!(Array::read(&whole[..cut], whole.len() as u64).is_err(), "{cut}");
        }
    }

    #[test]
    fn labels_must_be_whole_and_not_negative() {
        let floats = |v: f32| npy("<f4", false, "(1,)", &v.to_le_bytes());
        assert_eq!(read(&floats(3.0)).unwrap().labels().unwrap(), [3]);
        for bad in [-1.0, 0.5, f32::NAN, f32::INFINITY] {
            assert!(read(&floats(bad)).unwrap().labels().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for n in [0, 1, 7, 1000] {
            let values: Vec<f32> = (0..n).map(|i| i as f32 - 0.5).collect();
            let bytes = write_floats(&values);
            assert_eq!((bytes.len() - 4 * values.len()) % 64, 0);
            assert_eq!(read(&bytes).unwrap().all_floats(), values);
        }
    }
}
