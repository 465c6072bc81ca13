//! The whole cost of answering transformed digits: ours against the paper's recipe
//! in the same program, in interleaved runs. `bench/rslr.py` adds the same recipe
//! in eager `PyTorch`.

use std::time::Instant;

use upright::{Canonicalizer, Role};

use super::fits::Filled;
use super::ledger::{Found, Line};
use super::main::{chosen, paper_config};
use super::measure::{gated, searched};
use super::page::{Page, Table, accuracy, number, with};
use super::tasks::Task;
use super::{Experiment, Lab};

pub(super) const EXPERIMENT: Experiment = Experiment {
    name: "speed",
    about: "answering transformed digits, ours against the paper's recipe",
    sets: &["mnist"],
    once: true,
    many: false,
    run,
    show,
};

const ROUNDS: usize = 3;
const METHODS: [(&str, &str); 3] = [
    ("oodc", "OODC: random search, refined, 60 evaluations"),
    ("always", "**ours**, always on"),
    ("gated", "**ours**, gated"),
];

fn run(lab: &mut Lab, task: &Task) -> Result<(), String> {
    lab.measure(task, &[("of", "seconds")], |lab| {
        let tuned = chosen(lab, task)?;
        let model = task.model(&tuned.taps)?;
        let config = paper_config(lab, task, &model)?.with(Role::Score, tuned.score);
        let parts = [config.part(Role::Score).clone()];
        let filled = Filled::for_scores(task, &model, lab.scale.bank, &parts)?;
        let oodc = filled.searching(&model, config)?;
        let ours = lab.ours(task)?.c;
        let test = task.test()?;
        let alone = test.kinds(&task.model(&[])?)?[1].2;
        let mut found = Found::of(&(oodc.config(), ours.config()));
        let mut seconds = [const { Vec::new() }; 3];
        for _ in 0..ROUNDS {
            for ((method, _), seconds) in METHODS.iter().zip(&mut seconds) {
                let start = Instant::now();
                let c: &Canonicalizer = if *method == "oodc" { &oodc } else { &ours };
                let answers = match *method {
                    "gated" => gated(c, &test.transformed)?,
                    method => {
                        let [alone, with_raw] = searched(c, &test.transformed)?;
                        if method == "oodc" { alone } else { with_raw }
                    }
                };
                seconds.push(start.elapsed().as_secs_f64());
                found.right(method, &answers.right(&test.labels), alone);
                found.number(&format!("{method} evaluations"), answers.mean());
            }
        }
        for ((method, _), mut seconds) in METHODS.iter().zip(seconds) {
            seconds.sort_by(f64::total_cmp);
            let per = 1000.0 / test.labels.len().max(1) as f64;
            found.number(&format!("{method} ms"), per * seconds[ROUNDS / 2]);
        }
        Ok(found)
    })
}

fn show(lines: &[Line], page: &mut Page) {
    let lines: Vec<&Line> = lines.iter().collect();
    let own = with(&lines, "of", "seconds");
    let mut table =
        Table::new(&["", "transformed accuracy", "evaluations", "times as fast as OODC"]);
    let times = |method: &str| {
        let ratios: Vec<f64> = own
            .iter()
            .filter_map(|l| Some(l.number("oodc ms")? / l.number(&format!("{method} ms"))?))
            .collect();
        super::page::mean(&ratios).map_or_else(|| "–".into(), |m| format!("{:.1}", m.0))
    };
    for (method, name) in METHODS {
        table.row(vec![
            name.into(),
            accuracy(&own, method),
            number(&own, &format!("{method} evaluations"), 1),
            times(method),
        ]);
    }
    page.table(&table);
    page.provenance(&own);
}
