//! Preprocessing in words.

use std::fmt;

use crate::preprocess::{Channels, Filter, Preprocess, Resize};

impl fmt::Display for Channels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Channels::Gray => "gray",
            Channels::Rgb => "rgb",
            Channels::Bgr => "bgr",
            Channels::AsGiven => "as given",
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Filter::Bilinear => "bilinear",
            Filter::Nearest => "nearest",
            Filter::Bicubic => "bicubic",
            Filter::Lanczos => "lanczos",
            Filter::Box => "box",
        })
    }
}

impl fmt::Display for Preprocess {
    /// The steps in order, such as `gray -> pad 40x40 with 0 -> x/255`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.channels)?;
        if self.channels == Channels::AsGiven {
            return Ok(());
        }
        match self.resize {
            Some(Resize::Shorter(n)) => {
                write!(f, " -> resize shorter side to {n} {}", self.filter)?;
            }
            Some(Resize::Exact { height, width }) => {
                write!(f, " -> resize to {height}x{width} {}", self.filter)?;
            }
            None => {}
        }
        if let Some(s) = self.crop {
            write!(f, " -> crop {}x{}", s.height, s.width)?;
        }
        if let Some(s) = self.pad {
            write!(f, " -> pad to {}x{} with {}", s.height, s.width, self.fill)?;
        }
        let list = |v: &[f64]| match v {
            [one] => short(*one),
            all => format!("[{}]", all.iter().map(|v| short(*v)).collect::<Vec<_>>().join(", ")),
        };
        let x = scaled(self.scale);
        let shifted = self.mean.iter().any(|m| *m != 0.0);
        let divided = self.std.iter().any(|s| (*s - 1.0).abs() > 0.0);
        let x = match self.mean.as_slice() {
            [mean] if *mean < 0.0 => format!("{x} + {}", short(-mean)),
            _ if shifted => format!("{x} - {}", list(&self.mean)),
            _ => x,
        };
        if divided { write!(f, " -> ({x}) / {}", list(&self.std)) } else { write!(f, " -> {x}") }
    }
}

/// A number with no more digits than single precision tells.
fn short(v: f64) -> String {
    (v as f32).to_string()
}

/// A pixel times a factor, as a fraction where it is one: `x/255`, `16 x/255`, `-x/255`.
fn scaled(by: f64) -> String {
    let whole = |v: f64| {
        let near = v.round();
        (near != 0.0 && (v / near - 1.0).abs() < 1e-6).then_some(near)
    };
    let times = |n: f64| match n {
        1.0 => "x".to_string(),
        -1.0 => "-x".to_string(),
        n => format!("{n} x"),
    };
    match (whole(by), whole(1.0 / by), whole(255.0 * by)) {
        (Some(n), ..) => times(n),
        (_, Some(over), _) => format!("{}/{}", times(over.signum()), over.abs()),
        (.., Some(n)) => format!("{}/255", times(n)),
        _ => format!("{} x", short(by)),
    }
}
