//! One file a command.

mod list;
mod score;

use crate::Common;
use crate::report::Result;

/// What can be asked for.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Show the parts there are, with what they need and take
    #[command(after_long_help = list::EXAMPLES)]
    List(list::Args),
    /// Fit a score on arrays and print the energies of others
    #[command(after_long_help = score::EXAMPLES)]
    Score(score::Args),
}

impl Command {
    /// Does it.
    pub fn run(&self, common: &Common) -> Result<()> {
        match self {
            Command::List(args) => list::run(args, common),
            Command::Score(args) => score::run(args, common),
        }
    }
}
