//! What the binary `upright` is made of and others may use: the flags that say
//! how to read data, saying what went wrong, and [`main`] for other front ends.
//!
//! Standard output carries data, standard error talk; the exit codes are those
//! of [`report::Failure::exit`].
#![allow(unreachable_pub, reason = "pub says what a module shares with the others")]

mod commands;
pub mod data;
mod figure;
#[doc(hidden)]
pub mod flags;
mod help;
mod hints;
mod html;
mod pixels;
mod plot;
mod progress;
pub mod report;
pub mod rows;
mod sheet;
mod study;
mod view;

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser};

use commands::Command;
use report::{Failure, Result};

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "upright", version, about = help::ABOUT, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

/// Flags of every command.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Every command")]
pub struct Common {
    /// Seed of everything random
    #[arg(long, global = true, default_value_t = 0, value_name = "N")]
    pub seed: u64,
    /// Threads to use, at most 256 [default: all cores]
    #[arg(long, global = true, value_name = "N", value_parser = threads)]
    pub threads: Option<std::num::NonZeroUsize>,
    /// What runs the model: rten, ort (ONNX Runtime) or auto, the fastest that is there
    /// [default: what an artifact was fitted with, else auto]
    #[arg(long, global = true, value_name = "NAME")]
    pub engine: Option<String>,
    /// Say nothing but errors
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Results and errors as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// The command as it was typed, without the program's name.
    #[arg(skip)]
    pub typed: Vec<String>,
}

impl Common {
    /// The engine asked for, else the automatic one.
    pub fn engine(&self) -> String {
        self.engine.clone().unwrap_or_else(|| upright::engine::AUTO.into())
    }
}

/// Does what a command line asks for, the program's name left out; the exit code.
pub fn main(words: &[OsString]) -> u8 {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        // What an engine panics about is told as an error.
        if !upright::internal::engine::inside() {
            usual(info);
        }
    }));
    let program = OsString::from("upright");
    let command = help::dress(Cli::command());
    let matches = command
        .try_get_matches_from(std::iter::once(&program).chain(words))
        .unwrap_or_else(|e| e.exit());
    let mut cli = Cli::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    cli.common.typed = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    match run(&cli) {
        Ok(()) => 0,
        Err(failure) => {
            failure.print(cli.common.json);
            failure.exit()
        }
    }
}

/// Reads a number of threads that a machine can have.
fn threads(text: &str) -> std::result::Result<std::num::NonZeroUsize, String> {
    match text.parse::<std::num::NonZeroUsize>() {
        Ok(count) if count.get() <= 256 => Ok(count),
        _ => Err("give a number from 1 to 256".into()),
    }
}

fn run(cli: &Cli) -> Result<()> {
    if let Some(threads) = cli.common.threads {
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads.get())
            .build_global()
            .map_err(|e| Failure::usage(e.to_string(), "choose another `--threads`"))?;
    }
    cli.command.run(&cli.common)
}

/// What other front ends use beside the public face. It may change with any version.
#[doc(hidden)]
pub mod internal {
    pub use crate::commands::tune;
    pub use crate::commands::{check, eval, explain, fit, inspect, list, predict, report, setup};
    pub use crate::study::Inputs;
    pub mod plot {
        pub use crate::plot::{Anchor, Frame, Scale, Svg, heat};
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        help::dress(Cli::command()).debug_assert();
    }

    #[test]
    fn the_help_shows_every_command_in_its_group() {
        let text = help::dress(Cli::command()).render_help().to_string();
        for command in Cli::command().get_subcommands() {
            let name = command.get_name();
            assert!(help::is_grouped(name), "`{name}` has no group");
            assert!(text.contains(&format!(" {name} ")), "`{name}` is not in the help");
        }
    }
}
