//! OFF meshes, also as they are found: `OFF490 518 0` in one line, comments,
//! colours and normals that are not announced, polygons of any size.

use super::text::{lines, number, point, shown, words};
use super::{Format, Read};
use crate::cloud::{Cloud, FILE_CAP, Fans, capped};
use crate::examples::texts;
use crate::item::Item;
use crate::skip::Unusable;
use upright::SignalKind;

pub(super) const FORMAT: Format = Format {
    name: "off",
    about: "OFF meshes.",
    endings: &[".off"],
    called: "off",
    kinds: &[SignalKind::Cloud],
    read: Read::One(|from, _| Ok(Item::Cloud(parse(&from.read(FILE_CAP)?)?).into())),
    words: &["OFF", "COFF", "NOFF", "4OFF", "BINARY", "\n", "#"],
    examples: || {
        texts(&[
            "OFF\n4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0.5\n3 0 1 2\n4 0 1 2 3\n",
            "OFF4 2 0\n0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n3 0 1 3\n",
            "# c\nCOFF\n3 1 0\n0 0 0 255 0 0 255\n1 0 0 0 0 0 0\n0 1 0 1 1 1 1\n3 0 1 2 9 9 9\n",
        ])
    },
    ..Format::BASE
};

/// Reads a mesh.
fn parse(bytes: &[u8]) -> Result<Cloud, Unusable> {
    let mut lines = lines(bytes);
    let first = lines.next().ok_or("an empty file")?;
    let word: usize = first.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (keyword, rest) = first.split_at(word);
    if !keyword.is_empty() && !keyword.to_ascii_uppercase().ends_with(b"OFF")
        || first.starts_with(b"4OFF")
    {
        return Err(format!("not an OFF file: it starts with `{}`", shown(first)).into());
    }
    if rest.trim_ascii().eq_ignore_ascii_case(b"BINARY") {
        return Err("binary OFF is not supported; save it as text, or as PLY".into());
    }
    let counts = if rest.trim_ascii().is_empty() {
        lines.next().ok_or("it ends after its first line")?
    } else {
        rest
    };
    let mut counts = words(counts).map(|w| number(w).filter(|n| *n >= 0.0 && n.fract() == 0.0));
    let (Some(Some(vertices)), Some(Some(faces))) = (counts.next(), counts.next()) else {
        return Err("its numbers of vertices and faces cannot be read".into());
    };
    let (vertices, faces) = (capped(vertices as u64)?, faces as u64);

    let mut points = Vec::new();
    while points.len() < vertices {
        let line = lines.next().ok_or_else(|| {
            format!("its header says {vertices} vertices, but {} follow", points.len())
        })?;
        points.push(point(line).ok_or_else(|| format!("`{}` is not a vertex", shown(line)))?);
    }
    let mut fans = Fans::default();
    for i in 0..faces {
        let line =
            lines.next().ok_or_else(|| format!("its header says {faces} faces, but {i} follow"))?;
        face(line, &mut fans)?;
    }
    Cloud::new(points, fans.triangles)
}

fn face(line: &[u8], fans: &mut Fans) -> Result<(), String> {
    let bad = || format!("`{}` is not a face", shown(line));
    let whole = |w: &[u8]| std::str::from_utf8(w).ok()?.parse::<u32>().ok();
    let mut words = words(line);
    let corners = words.next().and_then(whole).ok_or_else(bad)? as usize;
    let mut there = 0;
    let named = words.take(corners).map(|w| {
        there += 1;
        whole(w).ok_or_else(bad)
    });
    fans.polygon(named)?;
    if there < corners {
        return Err(format!(
            "`{}` is a face of {corners} corners, but {there} follow",
            shown(line)
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "0 0 0\n1 0 0\n1 1 0\n0 1 0\n3 0 1 2\n4 0 1 2 3\n";

    #[test]
    fn all_headers_in_use_are_read() {
        let want = parse(format!("OFF\n4 2 0\n{BODY}").as_bytes()).unwrap();
        assert_eq!(want.points()[1..3], [[1., 0., 0.], [1., 1., 0.]]);
        assert_eq!(want.triangles(), [[0, 1, 2], [0, 1, 2], [0, 2, 3]]);
        for header in [
            "OFF4 2 0",
            "OFF 4 2 0",
            "off\r\n4 2",
            "# c\n\nOFF # d\n\n# e\n4 2 0",
            "COFF\n4 2 0",
            "NOFF4 2 0",
            "4 2 0",
        ] {
            let text = format!("{header}\n{BODY}");
            assert_eq!(parse(text.as_bytes()).unwrap(), want, "{header}");
        }
    }

    #[test]
    fn colours_and_normals_are_passed_over() {
        let text = "COFF\n3 1 0\n0 0 0 255 0 0 255\n1 0 0 0.1 0.2 0.3\n0 1 0\n3 0 1 2 128 128 128\n2 0 1\n";
        let mesh = parse(text.as_bytes()).unwrap();
        assert_eq!((mesh.points().len(), mesh.triangles()), (3, &[[0, 1, 2]][..]));
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        for (text, why) in [
            ("", "an empty file"),
            ("PLY\n", "not an OFF file: it starts with `PLY`"),
            ("OFF", "it ends after its first line"),
            ("OFF BINARY\n\u{0}", "binary OFF"),
            ("OFF\nfour 2 0\n", "cannot be read"),
            ("OFF\n-4 2 0\n", "cannot be read"),
            ("OFF\n4 2 0\n0 0 0\n", "its header says 4 vertices, but 1 follow"),
            ("OFF\n9000000 1 0\n0 0 0\n", "but 1 follow"),
            ("OFF\n99999999999999 1 0\n0 0 0\n", "the limit is 10000000"),
            ("OFF\n1 99999999999999 0\n0 0 0\n", "faces, but 0 follow"),
            ("OFF\n1 1 0\n0 0\n", "`0 0` is not a vertex"),
            ("OFF\n1 1 0\n0 0 0\n3 0 0 1\n", "a face names vertex 1, there are 1"),
            (
                "OFF\n1 1 0\n0 0 0\n4294967295 0 0\n",
                "is a face of 4294967295 corners, but 2 follow",
            ),
            ("OFF\n1 1 0\n0 0 0\n3 0 0 -1\n", "is not a face"),
            ("OFF\n1 0 0\n0 0 inf\n", "holds inf"),
            ("OFF\n0 0 0\n", "no points"),
        ] {
            let e = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
    }
}
