//! From what clients send to inputs as the model takes them.

use std::io::Cursor;

use image::ImageReader;
use upright::{Model, Signal, SignalKind};
use upright_data::{Options as Reading, Prepare, Want, decode_item, supported};

use crate::options::Options;
use crate::refusal::Refusal;

/// Values of images lie in 0..1; beyond these bounds they are of another scale.
const RANGE: std::ops::RangeInclusive<f32> = -1.0..=2.0;

/// Makes inputs of files.
pub struct Files {
    reading: Reading,
    prepare: Prepare,
    pixels: u64,
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Files({:?})", self.prepare.signal)
    }
}

impl Files {
    /// Files as a model takes them.
    pub fn new(model: &Model, options: &Options) -> Self {
        let reading = Reading {
            ignore_exif: options.ignore_exif,
            ..Reading::new(Want::Inputs, model.signal())
        };
        let prepare = Prepare::for_model(model, options.seed);
        Files { reading, prepare, pixels: options.pixels }
    }

    /// The numbers of one file.
    pub fn read(&self, name: &str, bytes: &[u8]) -> Result<Vec<f32>, Refusal> {
        let kind = self.reading.kind();
        if kind == SignalKind::Image {
            self.check_size(bytes)?;
        }
        let decoded = decode_item(name, bytes, &self.reading).map_err(|why| {
            let hint = format!("send {} as: {}", kind.singular(), supported(kind));
            Refusal::unusable("input::unreadable", why.to_string(), &hint)
        })?;
        match (self.prepare.apply)(decoded.item) {
            Ok(Ok((numbers, _))) => Ok(numbers),
            Ok(Err(why)) => Err(Refusal::unusable("input::unusable", why.to_string(), "")),
            Err(e) => {
                let hint = "send pictures of the model's size, or start the server with \
                            `--resize`, `--crop` or `--pad`";
                Err(Refusal::unusable(e.code(), e.to_string(), hint))
            }
        }
    }

    /// Looks at the size that an image announces, before anything is decoded.
    fn check_size(&self, bytes: &[u8]) -> Result<(), Refusal> {
        let reader = ImageReader::new(Cursor::new(bytes)).with_guessed_format();
        // What has no size is refused with a better reason by the decoder.
        let Some((width, height)) = reader.ok().and_then(|r| r.into_dimensions().ok()) else {
            return Ok(());
        };
        if u64::from(width) * u64::from(height) <= self.pixels {
            return Ok(());
        }
        let limit = self.pixels;
        let message = format!("{width} x {height} pixels, the limit is {limit}");
        Err(Refusal::unusable("input::size", message, "send it smaller, or raise `--max-pixels`"))
    }
}

/// Whether the numbers of a tensor are what a signal holds.
pub fn check(signal: Signal, numbers: &[f32]) -> Result<(), Refusal> {
    if let Some(at) = numbers.iter().position(|v| !v.is_finite()) {
        let message = format!("number {at} of the input is {}", numbers[at]);
        return Err(Refusal::bad("input::nan", message, "send finite numbers"));
    }
    if signal.kind() != SignalKind::Image {
        return Ok(());
    }
    if let Some(odd) = numbers.iter().find(|v| !RANGE.contains(v)) {
        let message = format!("the image holds {odd}, but values lie in 0..1");
        let hint = "send values before the model's normalisation, divided by 255, or UINT8";
        return Err(Refusal::bad("input::range", message, hint));
    }
    Ok(())
}
