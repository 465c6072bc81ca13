//! `upright-lab report`: the page of results and its drawings, from stored lines
//! alone. The same lines give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use super::TABLE;
use super::ledger::Ledger;
use super::page::{FIGURES, Page};

/// Arguments of `upright-lab report`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Folder of stored lines
    #[arg(long, default_value = "results")]
    results: PathBuf,
    /// Folder that RESULTS.md and its drawings are written to
    #[arg(long, default_value = ".")]
    out: PathBuf,
}

/// Writes the page.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let page = page(&args.results)?;
    let write = |path: &Path, text: &str| {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(path, text))
            .map_err(|e| format!("{}: {e}", path.display()))
    };
    for (name, svg) in &page.figures {
        write(&args.out.join(FIGURES).join(name), svg)?;
    }
    let path = args.out.join("RESULTS.md");
    write(&path, &page.into_text())?;
    println!("{}", path.display());
    Ok(())
}

const HEAD: &str = "# Results

Made by `upright-lab report` from the lines in `results/`; every number can be worked out again \
from the counts there. Accuracies are means over runs with other seeds, ± 1.96 standard errors \
where there are several, and in brackets the 95 % interval that the number of inputs leaves. \
Views are network runs per input, the input as it is included where it is looked at.
";

fn page(results: &Path) -> Result<Page, String> {
    let mut page = Page::new(HEAD);
    for experiment in TABLE {
        let lines = Ledger::open(results, experiment.name)?.shown();
        if lines.is_empty() {
            continue;
        }
        page.experiment(experiment.name, experiment.about);
        if lines.iter().any(|l| l.scale != "full") {
            page.text("*Some of these lines are of the scale `quick`: few inputs, small banks. They show that it works, not how well.*");
        }
        (experiment.show)(&lines, &mut page);
    }
    Ok(page)
}
