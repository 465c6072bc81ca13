//! The first help page: commands by what one wants to do.

use std::fmt::Write;

use clap::Command;

/// What the tool is, in a line.
pub const ABOUT: &str =
    "undo rotation, scale and shear in front of any classifier. The model is not changed.";

/// Groups of commands, in the order in which one meets them.
const GROUPS: &[(&str, &[&str])] = &[
    ("Try it", &["demo"]),
    ("Set up", &["inspect", "check", "fit"]),
    ("Use", &["predict", "serve"]),
    ("Understand", &["eval", "report", "explain", "list"]),
    ("Parts", &["score", "warp"]),
];

const FOOT: &str = "-h is short, --help long with examples, before and after a command";

const EXAMPLES: &str = "Examples:
  upright demo
  upright fit resnet.onnx train/ -t rotate
  upright predict resnet.onnx photos/ --json
  upright score --score energy --train bank.npz --test new.npz --json

Exit codes: 0 done, 2 usage, 3 data, 4 model, 5 artifact of another model, 6 done in part.
Data go to standard output, everything else to standard error.";

/// Whether a command has a group.
#[cfg(test)]
pub fn is_grouped(name: &str) -> bool {
    GROUPS.iter().any(|(_, names)| names.contains(&name))
}

/// Gives the command line its first help page.
pub fn dress(command: Command) -> Command {
    let mut commands = String::new();
    for (group, names) in GROUPS {
        let mut heading = *group;
        for name in *names {
            let Some(sub) = command.find_subcommand(name) else { continue };
            let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(commands, "{heading:<14} {name:<10} {about}");
            heading = "";
        }
    }
    let template = format!(
        "{{name}} - {{about}}\n\n{commands}\n{{usage-heading}} {{usage}}\n\n{{options}}\n\n{FOOT}{{after-help}}"
    );
    command.help_template(template).after_long_help(EXAMPLES)
}
