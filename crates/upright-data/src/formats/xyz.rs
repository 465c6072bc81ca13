//! Lines of x, y, z and whatever else, separated by blanks or commas.
//!
//! The first line may be a number of points or the names of columns.

use super::text::{lines, point, shown};
use super::{Format, Holds, Read};
use crate::bytes;
use crate::cloud::{Cloud, FILE_CAP, POINT_CAP};
use crate::examples::texts;
use crate::item::Item;
use crate::skip::Unusable;
use std::io::Read as _;
use std::path::Path;
use upright::SignalKind;

/// Bytes that tell whether a text holds points.
const SNIFFED: u64 = 4096;

pub(super) const FORMAT: Format = Format {
    name: "xyz",
    about: "Points as lines of numbers.",
    endings: &[".xyz", ".pts", ".asc", ".txt"],
    called: "xyz",
    kinds: &[SignalKind::Cloud],
    sniff,
    read: Read::One(|from, _| Ok(Item::Cloud(parse(&from.read(FILE_CAP)?)?).into())),
    words: &["//", "#", ",", "\n", "\r"],
    examples: || {
        texts(&[
            "0 0 0\n1 2 3\n4 5 6\n",
            "x,y,z\n0,0,1\n2,3,4\n",
            "3\n0 0 0 1 1 1\n1 1 1 0 0 0\n2 2 2 9 9 9\n",
        ])
    },
    ..Format::BASE
};

/// A text is a cloud if one of its first two lines is a point.
fn sniff(path: &Path) -> Option<Holds> {
    let mut start = Vec::new();
    if bytes::ending(path) == "txt" {
        bytes::start(path, SNIFFED).ok()?.read_to_end(&mut start).ok()?;
        lines(&start).take(2).find_map(point)?;
    }
    Some(Holds::One)
}

/// Reads a cloud.
fn parse(bytes: &[u8]) -> Result<Cloud, Unusable> {
    let mut points = Vec::new();
    for (i, line) in lines(bytes).filter(|l| !l.starts_with(b"//")).enumerate() {
        match point(line) {
            Some(p) => points.push(p),
            None if i == 0 => {}
            None => return Err(format!("`{}` is not a point x y z", shown(line)).into()),
        }
        if points.len() > POINT_CAP {
            return Err(format!("more than {POINT_CAP} points, the limit").into());
        }
    }
    Cloud::new(points, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_commas_and_further_columns_are_fine() {
        let want = [[0.5, -1.0, 2e3], [3.0, 4.0, 5.0]];
        for text in [
            "0.5 -1 2e3\n3 4 5\n",
            "0.5,-1,2e3\r\n3,4,5",
            "# made by hand\n0.5\t-1 2000 255 0 0\n\n3 4 5 1 1 1 # last\n",
            "//X Y Z\n0.5; -1; 2e3\n3;4;5",
            "x,y,z,nx\n0.5,-1,2e3,0\n3,4,5,1",
            "2\n0.5 -1 2e3\n3 4 5",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap().points(), want, "{text:?}");
        }
    }

    #[test]
    fn what_is_not_a_point_is_refused() {
        for (text, why) in [
            ("1 2 3\n4 5\n", "`4 5` is not a point x y z"),
            ("1 2 3\nhello\n", "`hello` is not"),
            ("1 2 nan\n", "holds NaN"),
            ("1 2 1e99\n", "holds inf"),
            ("", "no points"),
            ("# nothing\nx y z\n", "no points"),
            ("1 2 3\n\u{0}\u{ff} 2 3", "is not a point"),
        ] {
            let e = parse(text.as_bytes()).unwrap_err().to_string();
            assert!(e.contains(why), "{why}: {e}");
        }
    }
}
