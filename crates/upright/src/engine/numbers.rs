//! [`Numbers`]: what an engine computed, in memory of its own.

use std::fmt;
use std::ops::Deref;

/// Numbers of a tensor, row-major. They may lie in memory of the engine, so that handing
/// them on costs nothing.
pub struct Numbers(Held);

enum Held {
    Own(Vec<f32>),
    Engine(Box<dyn AsRef<[f32]> + Send + Sync>),
}

impl Numbers {
    /// Numbers that an engine keeps until this is dropped.
    #[cfg_attr(not(feature = "ort"), allow(dead_code, reason = "rten hands over its vectors"))]
    pub(super) fn held(numbers: impl AsRef<[f32]> + Send + Sync + 'static) -> Self {
        Numbers(Held::Engine(Box::new(numbers)))
    }
}

impl From<Vec<f32>> for Numbers {
    fn from(numbers: Vec<f32>) -> Self {
        Numbers(Held::Own(numbers))
    }
}

impl From<Numbers> for Vec<f32> {
    fn from(numbers: Numbers) -> Self {
        match numbers.0 {
            Held::Own(v) => v,
            Held::Engine(v) => v.as_ref().as_ref().to_vec(),
        }
    }
}

impl Deref for Numbers {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match &self.0 {
            Held::Own(v) => v,
            Held::Engine(v) => v.as_ref().as_ref(),
        }
    }
}

impl Clone for Numbers {
    fn clone(&self) -> Self {
        Numbers::from(self.to_vec())
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
