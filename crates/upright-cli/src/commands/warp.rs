//! `upright warp`: one image under a pose or a matrix.

use std::path::PathBuf;

use serde::Serialize;
use upright::internal::warp::border_colour;
use upright::{Batch, Kernel, Map, Padding, Picture, Resample, Signal, View, axes, warp};
use upright_data::decode;

use super::setup;
use crate::Common;
use crate::pixels;
use crate::report::{Failure, Result};
use crate::rows::Sink;

/// Shown at the end of the long help.
pub const EXAMPLES: &str = "Examples:
  upright warp in.png out.png --pose rotate=30 --pose scale-x=1.2
  upright warp in.png out.png --matrix 0.8,-0.6,0,0.6,0.8,0 --padding border
  upright warp out.png back.png --pose rotate=30 --inverse

A pose says where each point of the result is read in the input: x right, y down, from the
centre, in halves of the longer side. Several axes multiply from the left in the order given.
Angles are in degrees. A matrix is a,b,tx,c,d,ty: (x, y) is read at (ax + by + tx, cx + dy + ty).";

/// Arguments of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The image
    input: PathBuf,
    /// Where to write the result
    output: PathBuf,
    /// A value on an axis (`upright list axes`); may be given several times
    #[arg(long, value_name = "AXIS=VALUE", conflicts_with = "matrix")]
    pose: Vec<String>,
    /// The matrix itself
    #[arg(long, value_name = "A,B,TX,C,D,TY", allow_hyphen_values = true)]
    matrix: Option<String>,
    /// Undo the pose or matrix instead
    #[arg(long)]
    inverse: bool,
    /// How values between pixels are found
    #[arg(long, value_enum, default_value = "bicubic")]
    kernel: KernelArg,
    /// What lies outside: zeros, border, median (of the border), a grey value, or #rrggbb
    #[arg(long, default_value = "zeros", value_name = "KIND")]
    padding: String,
    /// Do not turn the photo as its EXIF orientation asks
    #[arg(long)]
    ignore_exif: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KernelArg {
    /// 4x4 cubic, a = -0.75
    Bicubic,
    /// 2x2 linear
    Bilinear,
    /// The nearest pixel
    Nearest,
}

#[derive(Serialize)]
struct Done<'a> {
    map: &'a [f32],
    width: usize,
    height: usize,
    channels: usize,
}

/// Warps and writes the image.
pub fn run(args: &Args, common: &Common) -> Result<()> {
    let map = map(args)?;
    let picture = decode(&args.input, args.ignore_exif).map_err(|why| {
        let help = "give a png, jpg, bmp, tif, webp, gif or pnm file";
        Failure::data(&args.input, why.to_string(), help)
    })?;
    let (width, height, channels) = (picture.width(), picture.height(), picture.channels());
    let batch = Batch::new(Signal::image(channels, height, width), planes(&picture))?;
    let kernel = match args.kernel {
        KernelArg::Bicubic => Kernel::Bicubic,
        KernelArg::Bilinear => Kernel::Bilinear,
        KernelArg::Nearest => Kernel::Nearest,
    };
    let resample = Resample { kernel, padding: padding(&args.padding, &batch)?, clamp: true };
    let out = warp(&batch, &[View { item: 0, map }], &resample)?;
    pixels::save(&args.output, out.signal(), out.item(0))?;
    if common.json {
        let done = Done { map: map.entries(), width, height, channels };
        let mut sink = Sink::open(None)?;
        sink.write((serde_json::to_string(&done).unwrap_or_default() + "\n").as_bytes())?;
        sink.finish()?;
    }
    Ok(())
}

/// Channel after channel, as a batch holds them.
fn planes(picture: &Picture) -> Vec<f32> {
    let n = picture.channels();
    (0..n).flat_map(|c| picture.data().iter().skip(c).step_by(n).copied()).collect()
}

fn map(args: &Args) -> Result<Map> {
    let map = match &args.matrix {
        Some(text) => {
            let numbers: Vec<f32> = text.split(',').filter_map(|t| t.trim().parse().ok()).collect();
            let six: [f32; 6] = numbers.try_into().map_err(|_| {
                Failure::usage(
                    format!("`{text}` is not a matrix"),
                    "give six numbers: a,b,tx,c,d,ty",
                )
            })?;
            Map::Plane(six)
        }
        None => posed(&args.pose)?,
    };
    if !args.inverse {
        return Ok(map);
    }
    map.inverse().ok_or_else(|| {
        Failure::usage("the matrix has no inverse", "its determinant a d - b c must not be zero")
    })
}

fn posed(pose: &[String]) -> Result<Map> {
    let mut map = Map::IDENTITY;
    for text in pose {
        let bad = || Failure::usage(format!("`{text}` is not a pose"), "e.g. `--pose rotate=30`");
        let (name, value) = text.split_once('=').ok_or_else(bad)?;
        let mut value: f32 = value.trim().parse().map_err(|_| bad())?;
        let axis = axes::make(name.trim(), None)?;
        if axis.size() != 1 {
            return Err(bad());
        }
        if axes::row(name.trim())?.make.unit == "radians" {
            value = value.to_radians();
        }
        map = map.then(&axis.map(&[value])).ok_or_else(bad)?;
    }
    Ok(map)
}

/// As everywhere, and `median`: the median colour of the image's own border.
fn padding(text: &str, batch: &Batch) -> Result<Padding> {
    if text == "median" {
        return Ok(Padding::Fill(border_colour(batch, 0)?));
    }
    Ok(match (setup::padding(text)?, batch.signal()) {
        (Padding::Fill(c), Signal::Image { channels: 1, .. }) if c.len() == 3 => {
            Padding::Fill(vec![0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2]])
        }
        (other, _) => other,
    })
}
