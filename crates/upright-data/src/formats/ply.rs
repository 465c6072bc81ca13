//! PLY clouds and meshes: text, or binary of either byte order. Elements and
//! properties other than coordinates and faces are passed over.

use super::text::{number, shown};
use super::{Format, Read};
use crate::cloud::{Cloud, FILE_CAP, Fans, POINT_CAP, capped};
use crate::item::Item;
use crate::skip::Unusable;
use upright::SignalKind;

pub(super) const FORMAT: Format = Format {
    name: "ply",
    about: "PLY clouds and meshes, text or binary.",
    endings: &[".ply"],
    called: "ply",
    kinds: &[SignalKind::Cloud],
    read: Read::One(|from, _| Ok(Item::Cloud(parse(&from.read(FILE_CAP)?)?).into())),
    words: &[
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
    examples,
    ..Format::BASE
};

/// Longest header, in bytes.
const HEADER_CAP: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unsigned(usize),
    Signed(usize),
    Float(usize),
}

impl Kind {
    fn named(name: &str) -> Result<Kind, String> {
        Ok(match name {
            "char" | "int8" => Kind::Signed(1),
            "uchar" | "uint8" => Kind::Unsigned(1),
            "short" | "int16" => Kind::Signed(2),
            "ushort" | "uint16" => Kind::Unsigned(2),
            "int" | "int32" => Kind::Signed(4),
            "uint" | "uint32" => Kind::Unsigned(4),
            "int64" => Kind::Signed(8),
            "uint64" => Kind::Unsigned(8),
            "float" | "float32" => Kind::Float(4),
            "double" | "float64" => Kind::Float(8),
            other => return Err(format!("its header names the unknown type `{other}`")),
        })
    }

    fn size(self) -> usize {
        match self {
            Kind::Unsigned(n) | Kind::Signed(n) | Kind::Float(n) => n,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Property {
    name: String,
    kind: Kind,
    /// The type of a list's length, if it is a list.
    list: Option<Kind>,
}

#[derive(Debug, PartialEq, Eq)]
struct Element {
    name: String,
    count: u64,
    properties: Vec<Property>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Little,
    Big,
}

/// Reads a cloud or mesh.
fn parse(bytes: &[u8]) -> Result<Cloud, Unusable> {
    let (form, elements, taken) = header(bytes)?;
    let mut values = Values { rest: &bytes[taken..], form };
    let mut points = Vec::new();
    let mut fans = Fans::default();
    for element in elements.iter().filter(|e| !e.properties.is_empty()) {
        let Element { name, count, properties } = element;
        let lack =
            |i: u64, why: String| format!("its header says {count} of `{name}`, after {i}: {why}");
        if name == "vertex" {
            let axes = ["x", "y", "z"]
                .map(|axis| properties.iter().position(|p| p.name == axis && p.list.is_none()));
            let [Some(x), Some(y), Some(z)] = axes else {
                return Err("its vertices have no x, y, z".into());
            };
            for i in 0..capped(*count)? as u64 {
                let mut point = [0.0; 3];
                for (at, property) in properties.iter().enumerate() {
                    let v = values.property(property).map_err(|e| lack(i, e))?;
                    if let Some(axis) = [x, y, z].iter().position(|&a| a == at) {
                        point[axis] = v as f32;
                    }
                }
                points.push(point);
            }
        } else {
            let face = |p: &Property| {
                name == "face" && matches!(p.name.as_str(), "vertex_indices" | "vertex_index")
            };
            for i in 0..*count {
                for property in properties {
                    if face(property) && property.list.is_some() {
                        values.polygon(property, &mut fans).map_err(|e| lack(i, e))?;
                    } else {
                        values.property(property).map_err(|e| lack(i, e))?;
                    }
                }
            }
        }
    }
    Cloud::new(points, fans.triangles)
}

/// The numbers behind the header.
struct Values<'a> {
    rest: &'a [u8],
    form: Form,
}

impl Values<'_> {
    fn next(&mut self, kind: Kind) -> Result<f64, String> {
        if self.form == Form::Text {
            let start = self.rest.trim_ascii_start();
            let end = start.iter().position(u8::is_ascii_whitespace).unwrap_or(start.len());
            let (word, rest) = start.split_at(end);
            self.rest = rest;
            if word.is_empty() {
                return Err("it ends".into());
            }
            return number(word).ok_or_else(|| format!("`{}` is not a number", shown(word)));
        }
        let (bytes, rest) = self.rest.split_at_checked(kind.size()).ok_or("it ends")?;
        self.rest = rest;
        let mut little = [0u8; 8];
        for (i, b) in bytes.iter().enumerate() {
            little[if self.form == Form::Big { bytes.len() - 1 - i } else { i }] = *b;
        }
        let raw = u64::from_le_bytes(little);
        Ok(match kind {
            Kind::Unsigned(_) => raw as f64,
            Kind::Signed(n) => {
                let unused = 64 - 8 * n as u32;
                ((raw << unused) as i64 >> unused) as f64
            }
            Kind::Float(4) => f64::from(f32::from_bits(raw as u32)),
            Kind::Float(_) => f64::from_bits(raw),
        })
    }

    fn length(&mut self, kind: Kind) -> Result<u32, String> {
        let n = self.next(kind)?;
        if n.fract() == 0.0 && (0.0..=POINT_CAP as f64).contains(&n) {
            return Ok(n as u32);
        }
        Err(format!("a list of length {n}"))
    }

    /// One value, or the last of a list.
    fn property(&mut self, property: &Property) -> Result<f64, String> {
        let Some(list) = property.list else { return self.next(property.kind) };
        let mut last = 0.0;
        for _ in 0..self.length(list)? {
            last = self.next(property.kind)?;
        }
        Ok(last)
    }

    fn polygon(&mut self, property: &Property, fans: &mut Fans) -> Result<(), String> {
        let Some(list) = property.list else { return Ok(()) };
        let corners = self.length(list)?;
        fans.polygon((0..corners).map(|_| {
            let v = self.next(property.kind)?;
            if v.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&v) {
                return Ok(v as u32);
            }
            Err(format!("a face names vertex {v}"))
        }))
    }
}

/// The form, the elements and the header's length.
fn header(bytes: &[u8]) -> Result<(Form, Vec<Element>, usize), String> {
    let mut form = None;
    let mut elements: Vec<Element> = Vec::new();
    let mut at = 0;
    let head = &bytes[..bytes.len().min(HEADER_CAP)];
    for (i, line) in head.split_inclusive(|&b| b == b'\n').enumerate() {
        at += line.len();
        if !line.ends_with(b"\n") {
            break;
        }
        let text = std::str::from_utf8(line.trim_ascii()).map_err(|_| "its header is not text")?;
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        if i == 0 && words != ["ply"] {
            return Err(format!("not a PLY file: it starts with `{}`", shown(text.as_bytes())));
        }
        match words[..] {
            ["format", name, _] => {
                form = Some(match name {
                    "ascii" => Form::Text,
                    "binary_little_endian" => Form::Little,
                    "binary_big_endian" => Form::Big,
                    other => return Err(format!("its format `{other}` is unknown")),
                });
            }
            ["element", name, count] => {
                let count =
                    count.parse().map_err(|_| format!("`{count}` of `{name}` is not a count"))?;
                elements.push(Element { name: name.into(), count, properties: Vec::new() });
            }
            ["property", ref rest @ ..] => {
                let element = elements.last_mut().ok_or("a property without an element")?;
                let (list, kind, name) = match *rest {
                    ["list", length, kind, name] => (Some(Kind::named(length)?), kind, name),
                    [kind, name] => (None, kind, name),
                    _ => return Err(format!("`{}` cannot be read", shown(text.as_bytes()))),
                };
                element.properties.push(Property {
                    name: name.into(),
                    kind: Kind::named(kind)?,
                    list,
                });
            }
            ["end_header"] => {
                let form = form.ok_or("its header names no format")?;
                return Ok((form, elements, at));
            }
            ["ply"] if i == 0 => {}
            ["comment" | "obj_info", ..] | [] => {}
            _ => return Err(format!("`{}` cannot be read", shown(text.as_bytes()))),
        }
    }
    Err("its header does not end".into())
}

/// The same triangle as text and in both byte orders.
fn examples() -> Vec<Vec<u8>> {
    let head = |form: &str| {
        format!(
            "ply\nformat {form} 1.0\ncomment c\nelement vertex 3\nproperty float x\n\
             property float y\nproperty float z\nproperty uchar red\nelement face 1\n\
             property list uchar int vertex_indices\nend_header\n"
        )
        .into_bytes()
    };
    let mut text = head("ascii");
    text.extend(b"0 0 0 9\n1 0 0 9\n0 1 0 9\n3 0 1 2\n");
    let binary = |big: bool| {
        let mut out = head(if big { "binary_big_endian" } else { "binary_little_endian" });
        let four = |v: u32| if big { v.to_be_bytes() } else { v.to_le_bytes() };
        for v in [[0.0f32, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]] {
            out.extend(v.into_iter().flat_map(|v| four(v.to_bits())));
            out.push(9);
        }
        out.push(3);
        out.extend((0..3).flat_map(four));
        out
    };
    vec![text, binary(false), binary(true)]
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "comment made by hand\nobj_info none\nelement camera 1\nproperty list uchar int ids\n\
        element vertex 4\nproperty uchar red\nproperty double x\nproperty float y\nproperty short z\n\
        element face 2\nproperty uchar flags\nproperty list uchar int vertex_indices\nelement empty 99999999999\nend_header\n";

    fn text() -> Vec<u8> {
        let body = "2 7 7\n255 0 0 0\n0 1 0 0\n0 1.5 1 0\n0 0 1 -2\n0 3 0 1 2\n1 4 0 1 2 3\n";
        format!("ply\nformat ascii 1.0\n{HEAD}{body}").into_bytes()
    }

    fn binary(big: bool) -> Vec<u8> {
        let name = if big { "binary_big_endian" } else { "binary_little_endian" };
        let mut out = format!("ply\nformat {name} 1.0\n{HEAD}").into_bytes();
        let mut put = |mut le: Vec<u8>| {
            if big {
                le.reverse();
            }
            out.extend(le);
        };
        put(vec![2]);
        for _ in 0..2 {
            put(7i32.to_le_bytes().into());
        }
        for (x, y, z) in [(0.0f64, 0.0f32, 0i16), (1.0, 0.0, 0), (1.5, 1.0, 0), (0.0, 1.0, -2)] {
            put(vec![0]);
            put(x.to_le_bytes().into());
            put(y.to_le_bytes().into());
            put(z.to_le_bytes().into());
        }
        for face in [&[0, 1, 2][..], &[0, 1, 2, 3]] {
            put(vec![1]);
            put(vec![face.len() as u8]);
            for i in face {
                put(i32::to_le_bytes(*i).into());
            }
        }
        out
    }

    #[test]
    fn text_and_both_byte_orders_read_alike() {
        for bytes in [text(), binary(false), binary(true)] {
            let mesh = parse(&bytes).unwrap();
            assert_eq!(mesh.points(), [[0., 0., 0.], [1., 0., 0.], [1.5, 1., 0.], [0., 1., -2.]]);
            assert_eq!(mesh.triangles(), [[0, 1, 2], [0, 1, 2], [0, 2, 3]]);
        }
    }

    #[test]
    fn no_prefix_of_a_file_is_accepted() {
        for whole in [binary(false), binary(true)] {
            for cut in 0..whole.len() {
                assert!(parse(&whole[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let ply = |rest: &str| format!("ply\nformat ascii 1.0\n{rest}");
        let xyz = "property float x\nproperty float y\nproperty float z\n";
        for (text, why) in [
            (String::new(), "its header does not end"),
            ("OFF\n".into(), "not a PLY file"),
            ("ply".into(), "its header does not end"),
            ("ply\nend_header\n".into(), "names no format"),
            ("ply\nformat ebcdic 1.0\n".into(), "`ebcdic` is unknown"),
            (ply("property float x\n"), "without an element"),
            (ply("element vertex many\n"), "is not a count"),
            (ply("element vertex 1\nproperty quad x\n"), "unknown type `quad`"),
            (ply("element vertex 1\nproperty float x\nend_header\n1\n"), "have no x, y, z"),
            (
                ply(&format!("element vertex 2\n{xyz}end_header\n1 2 3\n")),
                "says 2 of `vertex`, after 1: it ends",
            ),
            (
                ply(&format!("element vertex 9999999999\n{xyz}end_header\n1 2 3\n")),
                "the limit is 10000000",
            ),
            (ply(&format!("element vertex 9000000\n{xyz}end_header\n1 2 3\n")), "it ends"),
            (ply(&format!("element vertex 1\n{xyz}end_header\n1 2 x\n")), "`x` is not a number"),
            (ply(&format!("element vertex 1\n{xyz}end_header\n1 2 nan\n")), "holds NaN"),
            (
                ply(&format!(
                    "element vertex 1\n{xyz}element face 1\nproperty list char int vertex_index\nend_header\n1 2 3\n-1 0\n"
                )),
                "a list of length -1",
            ),
            (
                ply(&format!(
                    "element vertex 1\n{xyz}element face 1\nproperty list char int vertex_index\nend_header\n1 2 3\n3 0 0 1\n"
                )),
                "a face names vertex 1, there are 1",
            ),
            (ply(&"comment\n".repeat(20_000)), "its header does not end"),
        ] {
            let e = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
    }
}
