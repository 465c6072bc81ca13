//! [`Cloud`]: points in space or a mesh, and how it becomes as many points as the model takes.
//!
//! Coordinates stay in the units of the file.

mod sample;

use crate::skip::Unusable;

/// Most points, and most vertices of a mesh.
pub(crate) const POINT_CAP: usize = 10_000_000;
/// Most triangles of a mesh.
const TRIANGLE_CAP: usize = 20_000_000;
/// Largest file after unpacking, in bytes.
pub(crate) const FILE_CAP: u64 = 1 << 30;
/// Distinct points that a cloud must have, unless the model takes fewer.
const POINT_FLOOR: usize = 64;

/// Points, and triangles between them if it is a mesh. Every coordinate is
/// finite and every triangle's corners exist.
#[derive(Debug, Clone, PartialEq)]
pub struct Cloud {
    points: Vec<[f32; 3]>,
    triangles: Vec<[u32; 3]>,
}

impl Cloud {
    /// Checks points and triangles.
    pub fn new(points: Vec<[f32; 3]>, triangles: Vec<[u32; 3]>) -> Result<Self, Unusable> {
        if points.is_empty() {
            return Err("no points".into());
        }
        if points.len() > POINT_CAP {
            return Err(format!("{} points, the limit is {POINT_CAP}", points.len()).into());
        }
        if let Some(bad) = points.iter().flatten().find(|v| !v.is_finite()) {
            return Err(format!("holds {bad}").into());
        }
        if let Some(bad) = triangles.iter().flatten().find(|&&i| i as usize >= points.len()) {
            return Err(format!("a face names vertex {bad}, there are {}", points.len()).into());
        }
        Ok(Cloud { points, triangles })
    }

    /// A cloud from rows whose first three columns are coordinates.
    pub fn from_rows(values: &[f32], columns: usize) -> Result<Self, Unusable> {
        let points = values.chunks_exact(columns.max(3)).map(|r| [r[0], r[1], r[2]]).collect();
        Cloud::new(points, Vec::new())
    }

    /// The points, or the vertices of the mesh.
    pub fn points(&self) -> &[[f32; 3]] {
        &self.points
    }

    /// The triangles; none if it is a cloud.
    pub fn triangles(&self) -> &[[u32; 3]] {
        &self.triangles
    }

    /// `count` points as rows of (x, y, z), and whether points had to be
    /// repeated for that. They depend on the content and the seed only.
    ///
    /// A mesh is sampled evenly over its surface. A cloud of exactly `count`
    /// points stays as it is, of a larger one some are drawn, of a smaller one
    /// some are repeated.
    pub fn rows(&self, count: usize, seed: u64) -> Result<(Vec<f32>, bool), Unusable> {
        sample::rows(self, count, seed)
    }
}

/// Triangles of polygons, and a cap on them.
#[derive(Default)]
pub(crate) struct Fans {
    pub(crate) triangles: Vec<[u32; 3]>,
}

impl Fans {
    /// Adds a polygon corner by corner: a fan around its first.
    pub(crate) fn polygon(
        &mut self,
        corners: impl Iterator<Item = Result<u32, String>>,
    ) -> Result<(), String> {
        let (mut first, mut last) = (None, None);
        for corner in corners {
            let corner = corner?;
            match (first, last) {
                (None, _) => first = Some(corner),
                (_, None) => last = Some(corner),
                (Some(first), Some(before)) => {
                    if self.triangles.len() >= TRIANGLE_CAP {
                        return Err(format!("more than {TRIANGLE_CAP} triangles, the limit"));
                    }
                    self.triangles.push([first, before, corner]);
                    last = Some(corner);
                }
            }
        }
        Ok(())
    }
}

/// Refuses a number of points that a header announces.
pub(crate) fn capped(points: u64) -> Result<usize, String> {
    match usize::try_from(points) {
        Ok(n) if n <= POINT_CAP => Ok(n),
        _ => Err(format!("its header announces {points} points, the limit is {POINT_CAP}")),
    }
}
