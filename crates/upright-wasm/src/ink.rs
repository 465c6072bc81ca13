//! Ink: what a pen drew, as rows `(x, y, half width, start)` in the coordinates
//! of [`upright::Map`]; start is 1 at the first point of a stroke and else 0.

use upright::internal::samples::Glyph;

/// Numbers in a row.
pub(crate) const ROW: usize = 4;

/// The rows of a glyph.
pub(crate) fn rows(glyph: &Glyph) -> Vec<f32> {
    let mut rows = Vec::new();
    for (points, nib) in glyph.strokes.iter().zip(&glyph.nib) {
        for (i, ([x, y], half)) in points.iter().zip(nib).enumerate() {
            rows.extend([*x, *y, *half, if i == 0 { 1.0 } else { 0.0 }]);
        }
    }
    rows
}

/// The glyph of rows. Rows that are not finite are left out.
pub(crate) fn glyph(rows: &[f32]) -> Glyph {
    let mut glyph = Glyph { label: 0, strokes: Vec::new(), nib: Vec::new() };
    let (rows, _) = rows.as_chunks::<ROW>();
    for &[x, y, half, start] in rows.iter().filter(|row| row.iter().all(|v| v.is_finite())) {
        if start > 0.5 || glyph.strokes.is_empty() {
            glyph.strokes.push(Vec::new());
            glyph.nib.push(Vec::new());
        }
        if let (Some(points), Some(nib)) = (glyph.strokes.last_mut(), glyph.nib.last_mut()) {
            points.push([x, y]);
            nib.push(half);
        }
    }
    glyph
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::internal::samples::draw;

    #[test]
    fn ink_is_the_glyph_it_came_from() {
        let drawn = Glyph { label: 0, ..draw(4, 9) };
        assert!(drawn.strokes.len() > 1);
        assert_eq!(glyph(&rows(&drawn)), drawn);
    }

    #[test]
    fn ink_that_is_no_number_is_left_out() {
        let odd = [0.0, 0.1, 0.05, 0.0, f32::NAN, 0.0, 0.05, 0.0, 0.2, 0.3, 0.05, 1.0, 7.0];
        let glyph = glyph(&odd);
        assert_eq!(glyph.strokes, [[[0.0, 0.1]], [[0.2, 0.3]]]);
    }
}
