//! What a user, a file beside the model or the model itself says about
//! preprocessing. All three speak the same keys and values.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::onnx::Graph;
use crate::preprocess::{Channels, Filter, Preprocess, Resize, Size};

/// Largest file beside a model that is read.
const LIMIT: u64 = 1 << 20;

/// The keys, as in flags, files and metadata.
const KEYS: &str = "resize, filter, crop, pad, fill, channels, scale, mean, std";

/// Preprocessing settings of which any may be missing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Overrides {
    /// See [`Preprocess::resize`].
    pub(crate) resize: Option<Resize>,
    /// See [`Preprocess::filter`].
    pub(crate) filter: Option<Filter>,
    /// See [`Preprocess::crop`].
    pub(crate) crop: Option<Size>,
    /// See [`Preprocess::pad`].
    pub(crate) pad: Option<Size>,
    /// See [`Preprocess::fill`].
    pub(crate) fill: Option<f32>,
    /// See [`Preprocess::channels`].
    pub(crate) channels: Option<Channels>,
    /// See [`Preprocess::scale`].
    pub(crate) scale: Option<f64>,
    /// See [`Preprocess::mean`].
    pub(crate) mean: Option<Vec<f64>>,
    /// See [`Preprocess::std`].
    pub(crate) std: Option<Vec<f64>>,
}

impl Overrides {
    /// Sets one key from text, as typed: `resize` 224 or 224x320 (rows x columns), `filter`
    /// bilinear|nearest|bicubic|lanczos|box, `crop` and `pad` 40 or 40x40, `fill` 0..1,
    /// `channels` gray|rgb|bgr, `scale` 1/255, `mean` and `std` one number, one per channel
    /// separated by commas, or `imagenet`.
    pub fn set(&mut self, key: &str, text: &str) -> Result<()> {
        let text = text.trim();
        let bad = || Error::BadSetting {
            part: "preprocessing".into(),
            name: key.into(),
            value: text.into(),
            range: takes(key).into(),
        };
        match key {
            "resize" => {
                let exact = text.contains(['x', ',']);
                let size = size(text).ok_or_else(bad)?;
                self.resize = Some(if exact {
                    Resize::Exact { height: size.height, width: size.width }
                } else {
                    Resize::Shorter(size.height)
                });
            }
            "filter" => self.filter = Some(word(text).ok_or_else(bad)?),
            "crop" => self.crop = Some(size(text).ok_or_else(bad)?),
            "pad" => {
                let to = text.rsplit("->").next().unwrap_or(text);
                self.pad = Some(size(to).ok_or_else(bad)?);
            }
            "fill" => self.fill = Some(number(text).ok_or_else(bad)? as f32),
            "channels" => {
                let text = if text == "grey" { "gray" } else { text };
                self.channels = Some(word(text).ok_or_else(bad)?);
            }
            "scale" => self.scale = Some(number(text).ok_or_else(bad)?),
            "mean" if text == "imagenet" => self.mean = Some(vec![0.485, 0.456, 0.406]),
            "std" if text == "imagenet" => self.std = Some(vec![0.229, 0.224, 0.225]),
            "mean" => self.mean = Some(numbers(text).ok_or_else(bad)?),
            "std" => self.std = Some(numbers(text).ok_or_else(bad)?),
            _ => {
                return Err(Error::UnknownSetting {
                    part: "preprocessing".into(),
                    name: key.into(),
                    known: KEYS.into(),
                });
            }
        }
        Ok(())
    }

    /// These settings, and where one is missing the other's.
    #[must_use]
    pub(crate) fn or(self, other: Overrides) -> Overrides {
        Overrides {
            resize: self.resize.or(other.resize),
            filter: self.filter.or(other.filter),
            crop: self.crop.or(other.crop),
            pad: self.pad.or(other.pad),
            fill: self.fill.or(other.fill),
            channels: self.channels.or(other.channels),
            scale: self.scale.or(other.scale),
            mean: self.mean.or(other.mean),
            std: self.std.or(other.std),
        }
    }

    /// Feeds 0..255 unless another scale is said.
    pub(crate) fn feed_bytes(&mut self) {
        self.scale.get_or_insert(1.0);
    }

    /// A preprocessing with these settings in place of its own.
    #[doc(hidden)]
    pub fn over(&self, own: &Preprocess) -> Preprocess {
        let said = self.clone();
        Preprocess {
            resize: said.resize.or(own.resize),
            filter: said.filter.unwrap_or(own.filter),
            crop: said.crop.or(own.crop),
            pad: said.pad.or(own.pad),
            fill: said.fill.unwrap_or(own.fill),
            channels: said.channels.unwrap_or(own.channels),
            scale: said.scale.unwrap_or(own.scale),
            mean: said.mean.unwrap_or_else(|| own.mean.clone()),
            std: said.std.unwrap_or_else(|| own.std.clone()),
        }
    }

    /// What the model's own metadata says; entries that mean something else are skipped.
    pub(crate) fn from_metadata(graph: &Graph) -> Overrides {
        let mut found = Overrides::default();
        for (key, value) in graph.metadata() {
            let mut tried = found.clone();
            if tried.set(&key, &value).is_ok() {
                found = tried;
            }
        }
        found
    }

    /// What `MODEL.toml` or `MODEL.onnx.toml` beside the model says; nothing if there is none.
    pub(crate) fn beside(model: &Path) -> Result<Overrides> {
        let mut name = model.as_os_str().to_owned();
        name.push(".toml");
        for path in [PathBuf::from(name), model.with_extension("toml")] {
            match std::fs::metadata(&path) {
                Ok(meta) if meta.len() > LIMIT => {
                    return Err(Error::TooLarge {
                        what: path.display().to_string(),
                        size: meta.len(),
                        limit: LIMIT,
                    });
                }
                Ok(meta) if meta.is_file() => {
                    let text = std::fs::read_to_string(&path).map_err(|e| Error::io(&path, e))?;
                    return Self::from_toml(&text).map_err(|e| match e {
                        Error::Preprocess { why, hint } => {
                            Error::Preprocess { why: format!("{}: {why}", path.display()), hint }
                        }
                        other => other,
                    });
                }
                _ => {}
            }
        }
        Ok(Overrides::default())
    }

    /// Reads TOML whose keys are those of [`Overrides::set`]; values are texts, numbers or
    /// lists. The keys may stand at the top or in a table `[preprocess]`.
    pub(crate) fn from_toml(text: &str) -> Result<Overrides> {
        let bad = |why: String| Error::Preprocess {
            why,
            hint: Some(format!("the keys are: {KEYS}").into()),
        };
        let table: toml::Table =
            toml::from_str(text).map_err(|e| bad(format!("not TOML: {}", e.message())))?;
        let table = match table.get("preprocess") {
            Some(toml::Value::Table(inner)) => inner,
            _ => &table,
        };
        let mut found = Overrides::default();
        for (key, value) in table {
            let plain = |v: &toml::Value| match v {
                toml::Value::String(s) => Some(s.clone()),
                toml::Value::Integer(n) => Some(n.to_string()),
                toml::Value::Float(x) => Some(x.to_string()),
                _ => None,
            };
            let text = match value {
                toml::Value::Array(list) => {
                    list.iter().map(plain).collect::<Option<Vec<_>>>().map(|l| l.join(","))
                }
                one => plain(one),
            };
            let text = text.ok_or_else(|| bad(format!("`{key}` takes {}", takes(key))))?;
            found.set(key, &text)?;
        }
        Ok(found)
    }

    /// Everything, with defaults for what is missing: no change of size, channels after the
    /// network's, pixels in 0..1.
    pub(crate) fn resolve(self, channels: usize) -> Result<Preprocess> {
        let default = Preprocess::default();
        let one = if channels == 1 { Channels::Gray } else { Channels::Rgb };
        let done = Preprocess {
            resize: self.resize,
            filter: self.filter.unwrap_or(default.filter),
            crop: self.crop,
            pad: self.pad,
            fill: self.fill.unwrap_or(default.fill),
            channels: self.channels.unwrap_or(one),
            scale: self.scale.unwrap_or(default.scale),
            mean: self.mean.unwrap_or(default.mean),
            std: self.std.unwrap_or(default.std),
        };
        done.check(channels)?;
        Ok(done)
    }
}

fn takes(key: &str) -> &'static str {
    match key {
        "resize" | "crop" | "pad" => "a size such as 224, or rows x columns such as 224x320",
        "filter" => "bilinear|nearest|bicubic|lanczos|box",
        "fill" => "a number in 0..1",
        "channels" => "gray|rgb|bgr",
        "scale" => "a number or a fraction such as 1/255",
        _ => "a number, numbers separated by commas, or imagenet",
    }
}

fn word<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_value(serde_json::Value::String(text.into())).ok()
}

/// The leading size of a text such as `40x40 zeros, centred`.
fn size(text: &str) -> Option<Size> {
    let first = text.split_whitespace().next()?;
    let (height, width) = first.split_once(['x', ',']).unwrap_or((first, first));
    let side = |s: &str| s.trim_matches(',').parse().ok().filter(|n| (1..=1 << 16).contains(n));
    Some(Size { height: side(height)?, width: side(width)? })
}

fn number(text: &str) -> Option<f64> {
    let value = match text.split_once('/') {
        Some((a, b)) => a.trim().parse::<f64>().ok()? / b.trim().parse::<f64>().ok()?,
        None => text.trim().parse().ok()?,
    };
    value.is_finite().then_some(value)
}

fn numbers(text: &str) -> Option<Vec<f64>> {
    text.trim_matches(['[', ']', '(', ')']).split(',').map(number).collect()
}
