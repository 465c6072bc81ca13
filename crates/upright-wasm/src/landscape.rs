//! Poses around a pose: its angle against its size in the plane, a turn about
//! z against one about y in space.

use std::f32::consts::{PI, TAU};

use upright::Space;

/// How much smaller and larger than the pose the sizes get: 2 to plus and minus this.
const OCTAVES: f32 = 0.8;

/// The poses of one row of a grid through a pose, left to right; rows count from the bottom.
pub(crate) fn row(
    space: &Space,
    through: &[f32],
    [columns, rows]: [usize; 2],
    row: usize,
) -> Vec<Vec<f32>> {
    let middle = |i: usize, of: usize| (i as f32 + 0.5) / of.max(1) as f32;
    let up = middle(row, rows);
    (0..columns)
        .map(|column| {
            let across = middle(column, columns);
            let mut pose = through.to_vec();
            match pose.as_mut_slice() {
                [angle, _, _, x, y] => {
                    *angle = TAU * across - PI;
                    let by = (OCTAVES * (2.0 * up - 1.0)).exp2();
                    *x *= by;
                    *y *= by;
                }
                turned => {
                    let axis = &space.axes()[0];
                    axis.along(1, 0.5 * up + 0.25, turned);
                    axis.along(0, across, turned);
                }
            }
            pose
        })
        .collect()
}

/// Where on the grid through a pose another one lies, both in 0..1 from the left and from the
/// bottom.
pub(crate) fn place(space: &Space, through: &[f32], pose: &[f32]) -> [f32; 2] {
    let (across, up) = if let ([_, _, _, x, y], [angle, _, _, own_x, own_y]) = (through, pose) {
        let octaves = (own_x * own_y / (x * y)).max(1e-6).log2() / 2.0;
        (angle / TAU + 0.5, 0.5 * (octaves / OCTAVES + 1.0))
    } else {
        let axis = &space.axes()[0];
        let turn = |line| axis.turn(line, through, pose).unwrap_or(0.0);
        (turn(0) / TAU + 0.5, turn(1) / PI + 0.5)
    };
    [across.rem_euclid(1.0), up.clamp(0.0, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use upright::SpaceConfig;

    #[test]
    fn poses_lie_where_they_were_put() {
        for name in ["affine", "so3"] {
            let space = SpaceConfig::parse(name).unwrap().build().unwrap();
            let through = space.draw(&vec![0.3; space.cube()]);
            for (i, pose) in row(&space, &through, [8, 4], 3).iter().enumerate() {
                let [across, up] = place(&space, &through, pose);
                assert!((across - (i as f32 + 0.5) / 8.0).abs() < 1e-3, "{name}: {across}");
                assert!((up - 3.5 / 4.0).abs() < 1e-3, "{name}: {up}");
            }
            let own = place(&space, &through, &through);
            assert!((own[1] - 0.5).abs() < 1e-3, "{name}: {own:?}");
        }
    }
}
