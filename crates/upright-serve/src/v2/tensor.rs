//! Tensors of a request as inputs of the model.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use half::f16;
use tokio::sync::OwnedSemaphorePermit;
use upright::{Batch, Signal, SignalKind};

use super::data::Data;
use crate::app::App;
use crate::prepare;
use crate::refusal::Refusal;

/// The values of a tensor, as they came.
#[derive(Debug)]
pub enum Values<'a> {
    /// In JSON, with what `content_type` says of texts.
    Json(Data, Option<&'a str>),
    /// Behind it.
    Bytes(&'a [u8]),
}

/// Takes the memory that as many inputs need as the shape of a tensor announces.
pub fn reserve(app: &App, shape: &[u64]) -> Result<OwnedSemaphorePermit, Refusal> {
    let (count, most) = (shape.first().copied().unwrap_or(0), app.runner.most());
    let fits = usize::try_from(count).ok().filter(|&count| count <= most);
    let count = fits.ok_or_else(|| {
        let message = format!("{count} inputs in one request, at most {most} are taken");
        Refusal::large(message, "send several requests")
    })?;
    app.reserve(count * app.canonicalizer.model().signal().size() * size_of::<f32>())
}

/// The inputs in a tensor.
pub fn items(
    app: &App,
    name: &str,
    datatype: &str,
    shape: &[u64],
    values: Values<'_>,
) -> Result<Vec<Vec<f32>>, Refusal> {
    let model = app.canonicalizer.model();
    if name != model.input() {
        let message = format!("the model has no input `{name}`");
        let hint = format!("its input is `{}`", model.input());
        return Err(Refusal::bad("input::name", message, &hint));
    }
    if datatype == "BYTES" {
        return files(app, name, shape, values);
    }
    let signal = model.fed();
    let numbers = match values {
        Values::Json(data, _) => from_json(name, datatype, signal, data)?,
        Values::Bytes(bytes) => from_bytes(name, datatype, signal, bytes)?,
    };
    let own: Vec<u64> = signal.shape().iter().map(|&d| d as u64).collect();
    let wrong = |what: String| {
        let dims: Vec<String> = own.iter().map(ToString::to_string).collect();
        let hint = format!("send [N,{}], or files as BYTES of shape [N]", dims.join(","));
        Refusal::bad("input::shape", what, &hint)
    };
    match shape.split_first() {
        Some((&count, item)) if item == own && count > 0 => {
            let given = (numbers.len() / signal.size()) as u64;
            if given != count || !numbers.len().is_multiple_of(signal.size()) {
                let message = format!("`{name}` is {shape:?} but holds {} numbers", numbers.len());
                return Err(wrong(message));
            }
        }
        _ => return Err(wrong(format!("`{name}` is {shape:?}"))),
    }
    prepare::check(signal, &numbers)?;
    let batch = Batch::new(signal, numbers).map_err(|e| wrong(e.to_string()))?;
    let whole = model.whole(batch).map_err(|e| wrong(e.to_string()))?;
    Ok((0..whole.len()).map(|i| whole.item(i).to_vec()).collect())
}

fn unknown(name: &str, datatype: &str) -> Refusal {
    let message = format!("`{name}` is of type {datatype}");
    Refusal::bad("input::type", message, "send FP32, FP64, FP16, UINT8 or BYTES")
}

/// What a byte of a signal means: of an image a share of white.
fn byte(signal: Signal, v: f32) -> f32 {
    if signal.kind() == SignalKind::Image { v / 255.0 } else { v }
}

fn from_json(name: &str, datatype: &str, signal: Signal, data: Data) -> Result<Vec<f32>, Refusal> {
    let mut numbers = match data {
        Data::Numbers(numbers) => numbers,
        Data::Nothing => Vec::new(),
        Data::Texts(_) => {
            let message = format!("`{name}` is {datatype} but holds texts");
            return Err(Refusal::bad("input::type", message, "send numbers, or BYTES"));
        }
    };
    match datatype {
        "FP32" | "FP64" | "FP16" => {}
        "UINT8" => {
            let whole = |v: &f32| (0.0..=255.0).contains(v) && v.fract() == 0.0;
            if let Some(odd) = numbers.iter().find(|v| !whole(v)) {
                let message = format!("`{name}` is UINT8 but holds {odd}");
                return Err(Refusal::bad("input::range", message, "send whole numbers 0 to 255"));
            }
            for v in &mut numbers {
                *v = byte(signal, *v);
            }
        }
        _ => return Err(unknown(name, datatype)),
    }
    Ok(numbers)
}

fn from_bytes(
    name: &str,
    datatype: &str,
    signal: Signal,
    bytes: &[u8],
) -> Result<Vec<f32>, Refusal> {
    let whole = |size: usize| {
        let message = format!("`{name}` is {datatype} but has {} bytes", bytes.len());
        let even = bytes.len().is_multiple_of(size);
        if even { Ok(()) } else { Err(Refusal::bad("request::binary", message, "")) }
    };
    Ok(match datatype {
        "FP32" => {
            whole(4)?;
            bytes.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
        }
        "FP64" => {
            whole(8)?;
            bytes.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect()
        }
        "FP16" => {
            whole(2)?;
            bytes.as_chunks().0.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect()
        }
        "UINT8" => bytes.iter().map(|&b| byte(signal, f32::from(b))).collect(),
        _ => return Err(unknown(name, datatype)),
    })
}

/// Encoded files: in JSON as base64, or as plain text where that is what the format is; behind
/// it each after its length in four bytes.
fn files(
    app: &App,
    name: &str,
    shape: &[u64],
    values: Values<'_>,
) -> Result<Vec<Vec<f32>>, Refusal> {
    let held: Vec<Vec<u8>>;
    let files: Vec<&[u8]> = match values {
        Values::Bytes(bytes) => split(name, bytes)?,
        Values::Json(Data::Texts(texts), content) => {
            held =
                texts.iter().map(|text| decoded(name, text, content)).collect::<Result<_, _>>()?;
            held.iter().map(Vec::as_slice).collect()
        }
        Values::Json(..) => {
            let message = format!("`{name}` is BYTES but holds no texts");
            return Err(Refusal::bad("input::type", message, "send files as base64"));
        }
    };
    let count = shape.iter().try_fold(1u64, |a, &d| a.checked_mul(d));
    let flat = matches!(shape, [_] | [_, 1]);
    if !flat || count != Some(files.len() as u64) || files.is_empty() {
        let message = format!("`{name}` is {shape:?} but holds {} files", files.len());
        return Err(Refusal::bad("input::shape", message, "send BYTES of shape [N]"));
    }
    files
        .iter()
        .enumerate()
        .map(|(at, bytes)| {
            app.files.read("", bytes).map_err(|refusal| {
                let message = format!("file {at} of `{name}`: {}", refusal.message);
                Refusal::bad(refusal.code, message, &refusal.hint)
            })
        })
        .collect()
}

fn decoded(name: &str, text: &str, content: Option<&str>) -> Result<Vec<u8>, Refusal> {
    let bytes = STANDARD.decode(text.trim_ascii());
    match (content, bytes) {
        (Some("base64") | None, Ok(bytes)) => Ok(bytes),
        (Some("base64"), Err(e)) => {
            let message = format!("`{name}` is not base64: {e}");
            Err(Refusal::bad("input::base64", message, "encode the whole file as base64"))
        }
        _ => Ok(text.as_bytes().to_vec()),
    }
}

/// Elements of a BYTES tensor, each after its length.
fn split<'a>(name: &str, mut bytes: &'a [u8]) -> Result<Vec<&'a [u8]>, Refusal> {
    let mut files = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_le_bytes(*length) as usize;
        let (file, rest) = rest.split_at_checked(length).ok_or_else(|| {
            let message = format!("element {} of `{name}` is cut off", files.len());
            Refusal::bad("request::binary", message, "write each length in 4 bytes before it")
        })?;
        files.push(file);
        bytes = rest;
    }
    if bytes.is_empty() {
        return Ok(files);
    }
    let message = format!("`{name}` ends within a length");
    Err(Refusal::bad("request::binary", message, "write each length in 4 bytes before it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_split_by_their_lengths() {
        let bytes = [2, 0, 0, 0, 7, 8, 0, 0, 0, 0];
        assert_eq!(split("x", &bytes).unwrap(), [&[7, 8][..], &[]]);
        for bad in [&bytes[..5], &bytes[..8], &[255; 8]] {
            assert_eq!(split("x", bad).unwrap_err().code, "request::binary");
        }
    }

    #[test]
    fn texts_are_base64_unless_they_cannot_be() {
        assert_eq!(decoded("x", "aGk=", None).unwrap(), b"hi");
        assert_eq!(decoded("x", "<svg/>", None).unwrap(), b"<svg/>");
        assert_eq!(decoded("x", "aGk=", Some("text")).unwrap(), b"aGk=");
        assert_eq!(decoded("x", "<", Some("base64")).unwrap_err().code, "input::base64");
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let (image, cloud) = (Signal::image(1, 1, 1), Signal::Cloud { points: 1 });
        let read = |kind: &str, bytes: &[u8]| from_bytes("x", kind, image, bytes).unwrap();
        assert_eq!(read("FP32", &0.5f32.to_le_bytes()), [0.5]);
        assert_eq!(read("FP64", &0.25f64.to_le_bytes()), [0.25]);
        assert_eq!(read("FP16", &[0x00, 0x38]), [0.5]);
        assert_eq!(read("UINT8", &[255, 0]), [1.0, 0.0]);
        assert_eq!(from_bytes("x", "UINT8", cloud, &[9]).unwrap(), [9.0]);
        assert!(from_bytes("x", "FP32", image, &[0; 6]).is_err());
        assert!(from_bytes("x", "INT32", image, &[0; 4]).is_err());
        let json = |kind: &str, v: f32| from_json("x", kind, image, Data::Numbers(vec![v]));
        assert_eq!(json("UINT8", 51.0).unwrap(), [0.2]);
        assert!(json("UINT8", 0.5).is_err() && json("BOOL", 1.0).is_err());
    }
}
