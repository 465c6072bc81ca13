//! Lines of x, y, z and whatever else, separated by blanks or commas.
//!
//! The first line may be a number of points or the names of columns.

use super::text::{lines, point, shown};
use super::{POINT_CAP, Shape};

/// Reads a cloud.
pub(super) fn parse(bytes: &[u8]) -> Result<Shape, String> {
    let mut points = Vec::new();
    for (i, line) in lines(bytes).filter(|l| !l.starts_with(b"//")).enumerate() {
        match point(line) {
            Some(p) => points.push(p),
            None if i == 0 => {}
            None => return Err(format!("`{}` is not a point x y z", shown(line))),
        }
        if points.len() > POINT_CAP {
            return Err(format!("more than {POINT_CAP} points, the limit"));
        }
    }
    Shape::new(points, Vec::new())
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
            let e = parse(text.as_bytes()).unwrap_err();
            assert!(e.contains(why), "{why}: {e}");
        }
    }
}
