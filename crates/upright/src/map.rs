//! [`Map`]: where each point of a view is read in the input. This file fixes
//! the coordinate convention for the whole library.
//!
//! A map `M` takes a point **of the view (output)** to the point **of the
//! input** that is seen there, whatever the signal. So the view's pixel `p`
//! shows the input at `M p`, and the input's point `x` of a stroke or a cloud
//! appears in the view at the inverse, `M^-1 x`. One pose means the same for a
//! drawing and for the strokes it was drawn with.
//!
//! **Images.** A point is `(x, y)`, x to the right and y down, measured from
//! the centre. One unit is half the longer side of the image, so pixels are
//! square and a rotation is a rotation for any aspect ratio; on a square image
//! the coordinates are those of torch's `affine_grid(align_corners=False)`:
//! pixel centres lie at `(2 j + 1) / width - 1`.
//!
//! **Strokes.** As images, the frame being the bounding box of the points that
//! are not padding: measured from its centre, in halves of its longer side.
//! Units and place of the given coordinates therefore do not matter.
//!
//! **Clouds.** A 3-D rotation about the origin of the given coordinates.

/// A 2-D affine map or a 3-D rotation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Map {
    /// `[a, b, tx, c, d, ty]`: `(x, y) -> (a x + b y + tx, c x + d y + ty)`, from view to input.
    Plane([f32; 6]),
    /// A row-major 3 x 3 rotation matrix, from view to input.
    Space([f32; 9]),
}

impl Map {
    /// The 2-D map that changes nothing.
    pub const IDENTITY: Map = Map::Plane([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]);

    /// The 3-D map that changes nothing.
    #[doc(hidden)]
    pub const IDENTITY_3: Map = Map::Space([1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);

    /// The map as matrix entries: 6 in the plane, 9 in space.
    pub fn entries(&self) -> &[f32] {
        match self {
            Map::Plane(m) => m,
            Map::Space(m) => m,
        }
    }

    /// Whether it is exactly the identity of its dimension.
    pub fn is_identity(&self) -> bool {
        *self == Map::IDENTITY || *self == Map::IDENTITY_3
    }

    /// First `self`, then `next`: the matrix product `next * self`.
    ///
    /// `None` if one is 2-D and the other 3-D.
    pub fn then(&self, next: &Map) -> Option<Map> {
        match (self, next) {
            (Map::Plane(a), Map::Plane(b)) => Some(Map::Plane(plane_product(b, a))),
            (Map::Space(a), Map::Space(b)) => Some(Map::Space(space_product(b, a))),
            _ => None,
        }
    }

    /// The map back, if there is one.
    ///
    /// A 2-D map whose determinant is below 1e-12 in size, or is not a number, has none.
    /// A rotation's inverse is its transpose.
    pub fn inverse(&self) -> Option<Map> {
        match self {
            Map::Plane(m) => {
                let [a, b, tx, c, d, ty] = m.map(f64::from);
                let det = a * d - b * c;
                if !det.is_finite() || det.abs() < 1e-12 {
                    return None;
                }
                let (a, b, c, d) = (d / det, -b / det, -c / det, a / det);
                Some(Map::Plane(
                    [a, b, -(a * tx + b * ty), c, d, -(c * tx + d * ty)].map(|v| v as f32),
                ))
            }
            Map::Space(m) => {
                let [a, b, c, d, e, f, g, h, i] = *m;
                m.iter().all(|v| v.is_finite()).then_some(Map::Space([a, d, g, b, e, h, c, f, i]))
            }
        }
    }

    /// Where a point of the view lies in the input; `None` for a 3-D map.
    pub fn apply(&self, (x, y): (f32, f32)) -> Option<(f32, f32)> {
        match self {
            Map::Plane([a, b, tx, c, d, ty]) => Some((a * x + b * y + tx, c * x + d * y + ty)),
            Map::Space(_) => None,
        }
    }
}

/// The product `p * q` of two affine matrices.
pub(crate) fn plane_product(p: &[f32; 6], q: &[f32; 6]) -> [f32; 6] {
    [
        p[0] * q[0] + p[1] * q[3],
        p[0] * q[1] + p[1] * q[4],
        p[0] * q[2] + p[1] * q[5] + p[2],
        p[3] * q[0] + p[4] * q[3],
        p[3] * q[1] + p[4] * q[4],
        p[3] * q[2] + p[4] * q[5] + p[5],
    ]
}

/// The product `p * q` of two 3 x 3 matrices.
pub(crate) fn space_product(p: &[f32; 9], q: &[f32; 9]) -> [f32; 9] {
    std::array::from_fn(|i| {
        let (row, col) = (i / 3, i % 3);
        (0..3).map(|k| p[row * 3 + k] * q[k * 3 + col]).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Map, b: Map) -> bool {
        a.entries().iter().zip(b.entries()).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn then_applies_the_left_map_first() {
        let double = Map::Plane([2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
        let shift = Map::Plane([1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
        let both = double.then(&shift).unwrap();
        assert_eq!(both.apply((1.0, 1.0)), Some((3.0, 2.0)));
    }

    #[test]
    fn a_map_then_its_inverse_is_the_identity() {
        let m = Map::Plane([0.6, -0.9, 0.2, 0.8, 1.1, -0.4]);
        assert!(close(m.then(&m.inverse().unwrap()).unwrap(), Map::IDENTITY));
        let r = Map::Space([0.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
        assert!(close(r.then(&r.inverse().unwrap()).unwrap(), Map::IDENTITY_3));
    }

    #[test]
    fn a_singular_map_has_no_inverse() {
        assert_eq!(Map::Plane([1.0, 2.0, 0.0, 2.0, 4.0, 0.0]).inverse(), None);
        assert_eq!(Map::Plane([f32::NAN, 0.0, 0.0, 0.0, 1.0, 0.0]).inverse(), None);
    }

    #[test]
    fn maps_of_different_dimension_do_not_compose() {
        assert_eq!(Map::IDENTITY.then(&Map::IDENTITY_3), None);
    }
}
