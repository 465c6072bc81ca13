//! `upright-lab report`: the page of results and its drawings, from stored lines
//! alone. The same lines give the same bytes.

use std::fs;
use std::path::{Path, PathBuf};

use super::ledger::{Ledger, Line};
use super::page::{FIGURES, Page};
use super::{Experiment, TABLE, summary};

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
Views are network runs per input, the input as it is included where it is looked at. Runs differ \
in what is fitted and in what chance draws but, *fresh* aside, not in the test inputs; which seeds \
they have has no meaning. Where runs judged different numbers of inputs, those on as many as most \
are shown. Defaults were chosen while looking at some of these results.
";

fn page(results: &Path) -> Result<Page, String> {
    let mut page = Page::new(HEAD);
    let mut stored: Vec<(&Experiment, Vec<Line>)> = Vec::new();
    for experiment in TABLE {
        stored.push((experiment, Ledger::open(results, experiment.name)?.shown()));
    }
    let all = |name: &str| -> Vec<&Line> {
        let found = stored.iter().find(|(e, _)| e.name == name);
        found.map_or(vec![], |(_, lines)| lines.iter().collect())
    };
    summary::show(&all, &mut page);
    for (experiment, lines) in &stored {
        if lines.is_empty() {
            continue;
        }
        page.experiment(experiment.name, experiment.about);
        page.warn(lines.iter());
        (experiment.show)(lines, &mut page);
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines were made by `upright-lab run ... --sets digits` with few inputs, the page and its
    /// drawings by `upright-lab report --results tests/stored/results --out tests/stored`.
    #[test]
    fn stored_lines_give_the_stored_page_byte_for_byte() {
        let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
        let folder = tempfile::tempdir().unwrap();
        run(&Args { results: stored.join("results"), out: folder.path().into() }).unwrap();
        let read =
            |path: PathBuf| fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path:?}: {e}"));
        let made = read(folder.path().join("RESULTS.md"));
        assert_eq!(made, read(stored.join("RESULTS.md")));
        let figures = fs::read_dir(folder.path().join(FIGURES)).unwrap();
        let names: Vec<_> = figures.map(|f| f.unwrap().file_name()).collect();
        assert!(names.len() >= 3, "{names:?}");
        for name in names {
            let at = |root: &Path| root.join(FIGURES).join(&name);
            assert_eq!(read(at(folder.path())), read(at(&stored)), "{name:?}");
        }
    }

    #[test]
    fn without_lines_the_page_is_its_head() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(page(folder.path()).unwrap().into_text(), HEAD);
    }
}
