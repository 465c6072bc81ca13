//! PCD clouds: text, binary and packed binary. Points with NaN are missing
//! measurements by the format's convention and left out.

mod lzf;

use super::text::{lines, number, shown};
use super::{Format, Read};
use crate::cloud::{Cloud, FILE_CAP, capped};
use crate::item::Item;
use crate::skip::Unusable;
use upright::SignalKind;

pub(super) const FORMAT: Format = Format {
    name: "pcd",
    about: "PCD clouds: text, binary or packed.",
    endings: &[".pcd"],
    called: "pcd",
    kinds: &[SignalKind::Cloud],
    read: Read::One(|from, _| Ok(Item::Cloud(parse(&from.read(FILE_CAP)?)?).into())),
    words: &[
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
    examples,
    ..Format::BASE
};

/// Longest header, in bytes.
const HEADER_CAP: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Field {
    size: usize,
    kind: u8,
    /// Numbers in it.
    count: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Binary,
    Packed,
}

struct Header {
    fields: Vec<Field>,
    /// The places of x, y, z among the fields.
    axes: [usize; 3],
    points: usize,
    form: Form,
}

/// Reads a cloud.
fn parse(bytes: &[u8]) -> Result<Cloud, Unusable> {
    let (header, rest) = header(bytes)?;
    let mut points = match header.form {
        Form::Text => text(&header, rest),
        Form::Binary => binary(&header, rest),
        Form::Packed => packed(&header, rest),
    }?;
    points.retain(|p| !p.iter().any(|v| v.is_nan()));
    Cloud::new(points, Vec::new())
}

fn text(header: &Header, rest: &[u8]) -> Result<Vec<[f32; 3]>, String> {
    let before = |axis: usize| header.fields[..axis].iter().map(|f| f.count).sum::<usize>();
    let places = header.axes.map(before);
    let mut points = Vec::new();
    for line in lines(rest).take(header.points) {
        let mut point = [None; 3];
        for (i, word) in line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).enumerate() {
            if let Some(axis) = places.iter().position(|&p| p == i) {
                point[axis] = number(word).map(|v| v as f32);
            }
        }
        let [Some(x), Some(y), Some(z)] = point else {
            return Err(format!("`{}` is not a point", shown(line)));
        };
        points.push([x, y, z]);
    }
    if points.len() < header.points {
        return Err(format!(
            "its header says {} points, but {} follow",
            header.points,
            points.len()
        ));
    }
    Ok(points)
}

fn binary(header: &Header, rest: &[u8]) -> Result<Vec<[f32; 3]>, String> {
    let stride = header.stride();
    let there = rest.len() / stride;
    if there < header.points {
        return Err(format!("its header says {} points, but {there} follow", header.points));
    }
    let starts =
        header.axes.map(|a| header.fields[..a].iter().map(|f| f.size * f.count).sum::<usize>());
    let fields = header.axes.map(|a| header.fields[a]);
    let point = |row: &[u8]| {
        std::array::from_fn(|k| value(fields[k], &row[starts[k]..starts[k] + fields[k].size]))
    };
    Ok(rest.chunks_exact(stride).take(header.points).map(point).collect())
}

/// Packed data come field by field, all points of each.
fn packed(header: &Header, rest: &[u8]) -> Result<Vec<[f32; 3]>, String> {
    let word = |at: usize| {
        let four = rest
            .get(at..at + 4)
            .and_then(|b| b.try_into().ok())
            .ok_or("it ends before its data")?;
        Ok::<_, String>(u32::from_le_bytes(four) as usize)
    };
    let (taken, size) = (word(0)?, word(4)?);
    let packed = rest.get(8..).and_then(|r| r.get(..taken)).ok_or("its packed data are cut off")?;
    let needed = header.stride().checked_mul(header.points).filter(|&n| n as u64 <= FILE_CAP);
    if needed != Some(size) {
        return Err(format!("{size} bytes unpacked do not make {} points", header.points));
    }
    let plain = lzf::unpack(packed, size)?;
    let n = header.points;
    let starts =
        header.axes.map(|a| n * header.fields[..a].iter().map(|f| f.size * f.count).sum::<usize>());
    let point = |i: usize| {
        std::array::from_fn(|k| {
            let field = header.fields[header.axes[k]];
            let at = starts[k] + i * field.size * field.count;
            value(field, &plain[at..at + field.size])
        })
    };
    Ok((0..n).map(point).collect())
}

fn value(field: Field, bytes: &[u8]) -> f32 {
    let mut eight = [0; 8];
    eight[..bytes.len()].copy_from_slice(bytes);
    let raw = u64::from_le_bytes(eight);
    match (field.kind, field.size) {
        (b'F', 4) => f32::from_bits(raw as u32),
        (b'F', _) => f64::from_bits(raw) as f32,
        (b'U', _) => raw as f32,
        (_, size) => {
            let unused = 64 - 8 * size as u32;
            ((raw << unused) as i64 >> unused) as f32
        }
    }
}

impl Header {
    fn stride(&self) -> usize {
        self.fields.iter().map(|f| f.size * f.count).sum()
    }
}

fn header(bytes: &[u8]) -> Result<(Header, &[u8]), String> {
    let (mut names, mut sizes, mut kinds, mut counts) = (vec![], vec![], vec![], None);
    let (mut width, mut height, mut points) = (None, 1, None);
    let mut at = 0;
    let head = &bytes[..bytes.len().min(HEADER_CAP)];
    for line in head.split_inclusive(|&b| b == b'\n') {
        at += line.len();
        if !line.ends_with(b"\n") {
            break;
        }
        let text = std::str::from_utf8(line.trim_ascii()).map_err(|_| "its header is not text")?;
        let mut words = text.split_ascii_whitespace();
        let key = words.next().unwrap_or("");
        let words: Vec<&str> = words.collect();
        let bad = || format!("`{}` cannot be read", shown(text.as_bytes()));
        let whole = |word: &&str| word.parse::<u64>().map_err(|_| bad());
        let one = || words.first().ok_or_else(bad).and_then(whole);
        match key {
            "FIELDS" | "COLUMNS" => names = words.iter().map(|&w| w.to_owned()).collect(),
            "SIZE" => sizes = words.iter().map(whole).collect::<Result<_, _>>()?,
            "TYPE" => kinds = words.iter().map(|w| w.as_bytes()[0]).collect(),
            "COUNT" => counts = Some(words.iter().map(whole).collect::<Result<Vec<_>, _>>()?),
            "WIDTH" => width = Some(one()?),
            "HEIGHT" => height = one()?,
            "POINTS" => points = Some(one()?),
            "DATA" => {
                let form = match words.first() {
                    Some(&"ascii") => Form::Text,
                    Some(&"binary") => Form::Binary,
                    Some(&"binary_compressed") => Form::Packed,
                    _ => return Err(bad()),
                };
                let points = points
                    .or_else(|| width?.checked_mul(height))
                    .ok_or("its header names no number of points")?;
                let counts = counts.unwrap_or_else(|| vec![1; names.len()]);
                let fields = fields(&names, &sizes, &kinds, &counts)?;
                let axis =
                    |name: &str| names.iter().position(|n| n == name).filter(|&a| counts[a] >= 1);
                let (Some(x), Some(y), Some(z)) = (axis("x"), axis("y"), axis("z")) else {
                    return Err(format!("no fields x, y, z; there are: {}", names.join(", ")));
                };
                let header = Header { fields, axes: [x, y, z], points: capped(points)?, form };
                return Ok((header, &bytes[at..]));
            }
            "VERSION" | "VIEWPOINT" | "" => {}
            key if key.starts_with('#') => {}
            _ => return Err(format!("not a PCD file: {}", bad())),
        }
    }
    Err("its header does not end".into())
}

fn fields(
    names: &[String],
    sizes: &[u64],
    kinds: &[u8],
    counts: &[u64],
) -> Result<Vec<Field>, String> {
    if [sizes.len(), kinds.len(), counts.len()].iter().any(|&n| n != names.len()) {
        return Err("its FIELDS, SIZE, TYPE and COUNT differ in length".into());
    }
    let field = |((&size, &kind), &count): ((&u64, &u8), &u64)| {
        let known = match kind {
            b'F' => matches!(size, 4 | 8),
            b'I' | b'U' => matches!(size, 1 | 2 | 4 | 8),
            _ => false,
        };
        if !known || count > 1 << 20 {
            return Err(format!("{count} of type `{}` with {size} bytes is unknown", kind as char));
        }
        Ok(Field { size: size as usize, kind, count: count as usize })
    };
    sizes.iter().zip(kinds).zip(counts).map(field).collect()
}

/// Three points in every form.
fn examples() -> Vec<Vec<u8>> {
    let head = |form: &str| {
        format!(
            "VERSION .7\nFIELDS x y z i\nSIZE 4 4 4 1\nTYPE F F F U\nCOUNT 1 1 1 1\nWIDTH 3\n\
             HEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 3\nDATA {form}\n"
        )
        .into_bytes()
    };
    let mut text = head("ascii");
    text.extend(b"0 0 0 1\n1 2 3 1\nnan 0 0 2\n");
    let mut binary = head("binary");
    binary.extend(0..39);
    let mut packed = head("binary_compressed");
    let body = [&[2u8, 1, 2, 3][..], &[7 << 5, 27, 2]].concat();
    packed.extend((body.len() as u32).to_le_bytes());
    packed.extend(39u32.to_le_bytes());
    packed.extend(body);
    vec![text, binary, packed]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(form: &str, points: usize) -> String {
        format!(
            "# .PCD v.7\nVERSION .7\nFIELDS rgb x y z n\nSIZE 4 4 8 2 1\nTYPE U F F I U\nCOUNT 1 1 1 1 2\n\
             WIDTH {points}\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS {points}\nDATA {form}\n"
        )
    }

    /// The fields of three points, the second of which is missing.
    fn fields() -> Vec<[Vec<u8>; 5]> {
        [(0.5f32, -1.0f64, 3i16), (f32::NAN, 0.0, 0), (2.0, 4.0, -7)]
            .map(|(x, y, z)| {
                [
                    vec![9; 4],
                    x.to_le_bytes().into(),
                    y.to_le_bytes().into(),
                    z.to_le_bytes().into(),
                    vec![1, 2],
                ]
            })
            .into()
    }

    fn binary() -> Vec<u8> {
        [head("binary", 3).into_bytes(), fields().iter().flatten().flatten().copied().collect()]
            .concat()
    }

    /// Packed as literals only.
    fn packed() -> Vec<u8> {
        let plain: Vec<u8> =
            (0..5).flat_map(|f| fields().into_iter().flat_map(move |p| p[f].clone())).collect();
        let body: Vec<u8> =
            plain.chunks(32).flat_map(|c| [&[c.len() as u8 - 1], c].concat()).collect();
        let mut out = head("binary_compressed", 3).into_bytes();
        out.extend((body.len() as u32).to_le_bytes());
        out.extend((plain.len() as u32).to_le_bytes());
        out.extend(body);
        out
    }

    #[test]
    fn text_binary_and_packed_read_alike_without_missing_points() {
        let text = format!("{}9 0.5 -1 3 1 2\n9 nan 0 0 1 2\n9 2 4 -7 1 2\n", head("ascii", 3))
            .into_bytes();
        for bytes in [text, binary(), packed()] {
            assert_eq!(parse(&bytes).unwrap().points(), [[0.5, -1.0, 3.0], [2.0, 4.0, -7.0]]);
        }
    }

    #[test]
    fn no_prefix_of_a_file_is_accepted() {
        for whole in [binary(), packed()] {
            for cut in 0..whole.len() {
                assert!(parse(&whole[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let xyz = "FIELDS x y z\nSIZE 4 4 4\nTYPE F F F\n";
        for (text, why) in [
            ("ply\n".to_owned(), "not a PCD file"),
            (String::new(), "its header does not end"),
            (format!("{xyz}DATA ascii\n"), "no number of points"),
            (format!("{xyz}POINTS 2\nDATA ascii\n1 2 3\n"), "says 2 points, but 1 follow"),
            (format!("{xyz}POINTS 9000000\nDATA binary\n1 2 3\n"), "but 0 follow"),
            (format!("{xyz}POINTS 99999999999\nDATA binary\n"), "the limit is 10000000"),
            (
                format!("{xyz}WIDTH 18446744073709551615\nHEIGHT 2\nDATA binary\n"),
                "no number of points",
            ),
            (format!("{xyz}POINTS 1\nDATA ascii\n1 2\n"), "`1 2` is not a point"),
            (format!("{xyz}POINTS 1\nDATA morse\n"), "`DATA morse` cannot be read"),
            (
                "FIELDS x y\nSIZE 4 4\nTYPE F F\nPOINTS 1\nDATA ascii\n".into(),
                "no fields x, y, z; there are: x, y",
            ),
            (
                "FIELDS x y z\nSIZE 4 4\nTYPE F F F\nPOINTS 1\nDATA ascii\n".into(),
                "differ in length",
            ),
            (
                "FIELDS x y z\nSIZE 4 4 3\nTYPE F F F\nPOINTS 1\nDATA ascii\n".into(),
                "with 3 bytes is unknown",
            ),
            (format!("{xyz}COUNT 1 1 0\nPOINTS 1\nDATA binary\n"), "no fields x, y, z"),
            (format!("{xyz}POINTS 1\nDATA ascii\nnan nan nan\n"), "no points"),
        ] {
            let e = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
        let mut lies = packed();
        let at = head("binary_compressed", 3).len() + 4;
        lies[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(parse(&lies).unwrap_err().to_string().contains("do not make 3 points"));
    }
}
