//! What the page's classifiers answer, written down when they are fitted:
//! tests compare it with what the library and the page answer.

use serde::{Deserialize, Serialize};
use upright::internal::seed::sobol;
use upright::{Result, Space, Verdict};
use upright_wasm::{Chosen, Looked, Stage, Subject};

use crate::{artifact, place, read, write};

/// Where the answers are stored.
const PLACE: &str = "fitted/answers.json";

/// An input, every other one transformed, and what came of it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Answer {
    subject: String,
    class: u32,
    seed: u32,
    /// From the input to the sample that it was made of.
    map: Vec<f32>,
    model_label: u32,
    label: u32,
    verdict: Verdict,
    energy_before: f32,
    energy_after: f32,
    evaluations: usize,
}

fn count(subject: Subject) -> u32 {
    if subject == Subject::Digits { 200 } else { 60 }
}

/// Writes down what all subjects answer, a line for each input.
pub(crate) fn run() -> std::result::Result<(), String> {
    let mut lines = Vec::new();
    for subject in Subject::ALL {
        let artifact = read(&artifact(subject))?;
        for answer in answers(subject, &artifact).map_err(|e| e.to_string())? {
            lines.push(serde_json::to_string(&answer).unwrap_or_default());
        }
    }
    write(&place(PLACE), format!("[\n{}\n]\n", lines.join(",\n")).as_bytes())
}

fn answers(subject: Subject, artifact: &[u8]) -> Result<Vec<Answer>> {
    let stage = Stage::open(subject, artifact)?;
    let space = stage.fitted().space();
    (0..count(subject)).map(|i| answer(&stage, subject, i, &map(space, i))).collect()
}

fn map(space: &Space, i: u32) -> Vec<f32> {
    let pose =
        if i.is_multiple_of(2) { space.identity() } else { space.draw(&sobol(i, space.cube(), 5)) };
    space.map(&pose).entries().to_vec()
}

/// What comes of sample `i` of a subject under a map.
fn answer(stage: &Stage, subject: Subject, i: u32, map: &[f32]) -> Result<Answer> {
    let (class, seed) = (i % subject.classes().len() as u32, i);
    let input = stage.views(&stage.input(&stage.take(class, seed)), map)?;
    let chosen = Chosen { budget: stage.facts().budget, tau: None };
    let Looked { model_label, label, verdict, energy_before, energy_after, evaluations, .. } =
        stage.look(&input, &chosen)?;
    Ok(Answer {
        subject: subject.name().into(),
        class,
        seed,
        map: map.to_vec(),
        model_label,
        label,
        verdict,
        energy_before,
        energy_after,
        evaluations,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STALE: &str = "the page is out of date: run `upright-page fit`, then \
                         `bash crates/upright-wasm/build`";

    /// The artifacts load, and the library answers as it did when the page was made.
    #[test]
    fn the_page_answers_as_the_library_does() {
        let text = String::from_utf8(read(&place(PLACE)).unwrap()).unwrap();
        let stored: Vec<Answer> = serde_json::from_str(&text).unwrap();
        let mut right = 0;
        for subject in Subject::ALL {
            let artifact = read(&artifact(subject)).unwrap();
            let stage = Stage::open(subject, &artifact).expect(STALE);
            let own: Vec<&Answer> = stored.iter().filter(|a| a.subject == subject.name()).collect();
            assert_eq!(own.len(), count(subject) as usize, "{STALE}");
            for (i, want) in own.into_iter().enumerate() {
                let got = answer(&stage, subject, i as u32, &want.map).unwrap();
                let near = |a: f32, b: f32| (a - b).abs() < 1e-4 * (1.0 + a.abs());
                assert!(
                    near(got.energy_before, want.energy_before)
                        && near(got.energy_after, want.energy_after)
                        && (got.label, got.verdict, got.evaluations)
                            == (want.label, want.verdict, want.evaluations),
                    "{STALE}: {} {i}: {got:?}, stored {want:?}",
                    subject.name()
                );
                right += usize::from(want.label == want.class);
            }
        }
        assert!(right * 100 >= 93 * stored.len(), "{right} of {} are right", stored.len());
    }
}
