//! Rotation matrices in double precision: from two vectors, from quaternions,
//! from an axis and an angle, and back.

/// A 3 x 3 matrix, row after row.
pub(crate) type Matrix3 = [f64; 9];

/// Vectors shorter than this have no direction.
const FLOOR: f64 = 1e-8;

/// The product `a * b`.
pub(crate) fn product(a: &Matrix3, b: &Matrix3) -> Matrix3 {
    std::array::from_fn(|i| (0..3).map(|k| a[i / 3 * 3 + k] * b[k * 3 + i % 3]).sum())
}

/// The transpose, which is a rotation's inverse.
pub(crate) fn transpose(m: &Matrix3) -> Matrix3 {
    std::array::from_fn(|i| m[i % 3 * 3 + i / 3])
}

pub(crate) fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

pub(crate) fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// The vector of length 1 and the length it had; `None` if it has no direction.
pub(crate) fn unit(v: [f64; 3]) -> Option<([f64; 3], f64)> {
    let length = dot(v, v).sqrt();
    (length.is_finite() && length > FLOOR).then(|| (v.map(|x| x / length), length))
}

/// `a` without its part along the unit vector `b`.
pub(crate) fn without(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    let along = dot(a, b);
    std::array::from_fn(|i| a[i] - along * b[i])
}

/// The coordinate axis furthest from `v`.
pub(crate) fn aside(v: [f64; 3]) -> [f64; 3] {
    let mut least = 0;
    for i in 1..3 {
        if v[i].abs() < v[least].abs() {
            least = i;
        }
    }
    std::array::from_fn(|i| if i == least { 1.0 } else { 0.0 })
}

/// The matrix with these columns.
pub(crate) fn columns(b: [[f64; 3]; 3]) -> Matrix3 {
    std::array::from_fn(|i| b[i % 3][i / 3])
}

/// The rotation of a unit quaternion (w, x, y, z).
pub(crate) fn from_quaternion([w, x, y, z]: [f64; 4]) -> Matrix3 {
    [
        1.0 - 2.0 * (y * y + z * z),
        2.0 * (x * y - w * z),
        2.0 * (x * z + w * y),
        2.0 * (x * y + w * z),
        1.0 - 2.0 * (x * x + z * z),
        2.0 * (y * z - w * x),
        2.0 * (x * z - w * y),
        2.0 * (y * z + w * x),
        1.0 - 2.0 * (x * x + y * y),
    ]
}

/// The unit quaternion (w, x, y, z) of a rotation, w not negative.
///
/// Of the four ways the one that divides by the largest component is taken (Shepperd 1978).
pub(crate) fn quaternion(m: &Matrix3) -> [f64; 4] {
    let trace = m[0] + m[4] + m[8];
    let squares = [trace, m[0], m[4], m[8]];
    let mut largest = 0;
    for i in 1..4 {
        if squares[i] > squares[largest] {
            largest = i;
        }
    }
    let (a, b, c) = (m[7] - m[5], m[2] - m[6], m[3] - m[1]);
    let (d, e, f) = (m[1] + m[3], m[2] + m[6], m[5] + m[7]);
    let q = match largest {
        0 => [1.0 + trace, a, b, c],
        1 => [a, 1.0 + 2.0 * m[0] - trace, d, e],
        2 => [b, d, 1.0 + 2.0 * m[4] - trace, f],
        _ => [c, e, f, 1.0 + 2.0 * m[8] - trace],
    };
    let length = q.iter().map(|v| v * v).sum::<f64>().sqrt();
    let sign = if q[0] < 0.0 { -1.0 } else { 1.0 };
    q.map(|v| sign * v / length)
}

/// The angle of a rotation, in 0..pi.
pub(crate) fn angle(m: &Matrix3) -> f64 {
    let [w, x, y, z] = quaternion(m);
    2.0 * libm::atan2((x * x + y * y + z * z).sqrt(), w)
}

/// The mean of rotations that lie near each other: of their quaternions, each with the sign
/// nearest to the first; `None` of none.
pub(crate) fn mean(all: &[Matrix3]) -> Option<Matrix3> {
    let first = quaternion(all.first()?);
    let mut sum = [0.0; 4];
    for m in all {
        let q = quaternion(m);
        let along: f64 = q.iter().zip(first).map(|(a, b)| a * b).sum();
        for (s, v) in sum.iter_mut().zip(q) {
            *s += if along < 0.0 { -v } else { v };
        }
    }
    let length = sum.iter().map(|v| v * v).sum::<f64>().sqrt();
    (length > FLOOR).then(|| from_quaternion(sum.map(|v| v / length)))
}

/// The rotation by `angle` about the coordinate axis `k`.
pub(crate) fn about(k: usize, angle: f64) -> Matrix3 {
    let (sin, cos) = libm::sincos(angle / 2.0);
    let mut q = [cos, 0.0, 0.0, 0.0];
    q[1 + k] = sin;
    from_quaternion(q)
}

/// The rotation with the axis of `m` and another angle.
pub(crate) fn with_angle(m: &Matrix3, angle: f64) -> Matrix3 {
    let [_, x, y, z] = quaternion(m);
    let axis = unit([x, y, z]).map_or([0.0, 0.0, 1.0], |(v, _)| v);
    around(axis, angle)
}

/// The rotation by `angle` about a unit vector.
pub(crate) fn around(axis: [f64; 3], angle: f64) -> Matrix3 {
    let (sin, cos) = libm::sincos(angle / 2.0);
    from_quaternion([cos, sin * axis[0], sin * axis[1], sin * axis[2]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quaternions_and_matrices_turn_into_each_other_on_every_branch() {
        for q in [
            [1.0, 0.0, 0.0, 0.0],
            [0.5, 0.5, -0.5, 0.5],
            [0.1, 0.9, -0.3, 0.2],
            [0.1, 0.2, -0.9, 0.3],
            [0.05, -0.2, 0.3, 0.9],
            [0.0, 0.0, 0.6, 0.8],
        ] {
            let length = q.iter().map(|v: &f64| v * v).sum::<f64>().sqrt();
            let q = q.map(|v| v / length);
            let again = quaternion(&from_quaternion(q));
            let same = q.iter().zip(again).map(|(a, b)| a * b).sum::<f64>().abs();
            assert!((same - 1.0).abs() < 1e-12, "{q:?} {again:?}");
        }
    }

    /// A quarter turn about z takes x to y.
    #[test]
    fn a_rotation_about_an_axis_is_right_handed() {
        let m = about(2, std::f64::consts::FRAC_PI_2);
        assert!((m[3] - 1.0).abs() < 1e-12 && (m[1] + 1.0).abs() < 1e-12, "{m:?}");
        assert!((angle(&m) - std::f64::consts::FRAC_PI_2).abs() < 1e-12);
        assert!((angle(&with_angle(&m, 0.3)) - 0.3).abs() < 1e-12);
    }
}
