//! A command's flags without its command line: other front ends choose by the
//! same names and are checked in the same way.

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgAction, Args, Command, FromArgMatches};

use crate::Common;
use crate::report::{Failure, Result};

/// A flag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flag {
    /// Its long name, without dashes.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Whether it takes no value.
    pub switch: bool,
    /// Whether it may be given several times.
    pub many: bool,
}

fn command<A: clap::Args>() -> Command {
    <Common as Args>::augment_args(A::augment_args(Command::new("upright"))).no_binary_name(true)
}

/// Every flag of some arguments and those of every command, in the order of the help.
pub fn all<A: clap::Args>() -> Vec<Flag> {
    let flag = |arg: &clap::Arg| {
        Some(Flag {
            name: arg.get_long()?.to_string(),
            about: arg.get_help().map(ToString::to_string).unwrap_or_default(),
            switch: matches!(arg.get_action(), ArgAction::SetTrue),
            many: matches!(arg.get_action(), ArgAction::Append),
        })
    };
    command::<A>().get_arguments().filter_map(flag).collect()
}

/// Reads words as a command line of these arguments and those of every command.
pub fn parse<A: clap::Args>(words: &[String]) -> Result<(A, Common)> {
    let matches = command::<A>().try_get_matches_from(words).map_err(|e| refusal(&e))?;
    let own = A::from_arg_matches(&matches).map_err(|e| refusal(&e))?;
    let common = Common::from_arg_matches(&matches).map_err(|e| refusal(&e))?;
    Ok((own, common))
}

/// What is wrong with words, in one sentence.
fn refusal(e: &clap::Error) -> Failure {
    let said = |kind| e.get(kind).map(ToString::to_string).filter(|text| !text.is_empty());
    let flag = said(ContextKind::InvalidArg);
    let flag = flag.as_deref().and_then(|arg| arg.split([' ', '=', '[']).next());
    let known = said(ContextKind::ValidValue).map(|v| format!("it takes {v}")).unwrap_or_default();
    match (e.kind(), flag, said(ContextKind::InvalidValue)) {
        (ErrorKind::ArgumentConflict, Some(flag), _) => {
            let prior = said(ContextKind::PriorArg).unwrap_or_default();
            let prior = prior.split([' ', '=', '[']).next().unwrap_or_default();
            Failure::usage(format!("`{flag}` cannot go with `{prior}`"), "leave one of them out")
        }
        (_, Some(flag), Some(value)) => {
            let why = std::error::Error::source(e).map(|why| format!(": {why}"));
            let why = why.unwrap_or_default();
            Failure::usage(format!("`{value}` is not valid for `{flag}`{why}"), known)
        }
        _ => {
            let text = e.to_string();
            let first = text.lines().next().unwrap_or_default();
            Failure::usage(first.trim_start_matches("error: "), known)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::DataArgs;

    fn parsed(words: &[&str]) -> Result<(DataArgs, Common)> {
        parse(&words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn words_are_read_as_a_command_line_is() {
        let (data, common) =
            parsed(&["--limit=5", "--include=a*", "--include=b*", "--seed=7"]).unwrap();
        assert_eq!((data.limit, data.include.len(), common.seed), (Some(5), 2, 7));
        for (word, want) in [
            ("--limit=x", "`x` is not valid for `--limit`: invalid digit found in string"),
            ("--split=all", "`all` is not valid for `--split`"),
            ("--limits=3", "unexpected argument '--limits' found"),
        ] {
            assert_eq!(parsed(&[word]).unwrap_err().to_string(), want);
        }
        assert_eq!(parsed(&["--split=all"]).unwrap_err().help(), "it takes train, val, test");
    }

    #[test]
    fn every_flag_is_told_with_what_it_takes() {
        let flags = all::<DataArgs>();
        let of = |name: &str| flags.iter().find(|f| f.name == name).unwrap();
        assert!(of("strict").switch && of("include").many && !of("limit").many);
        assert!(of("seed").about.starts_with("Seed"));
    }
}
