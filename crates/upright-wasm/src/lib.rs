//! The library in a browser, for the page that shows how it works.
//!
//! [`Stage`] is all of it and runs anywhere; [`Page`] hands it to JavaScript,
//! with plain arrays for ink, points and pixels, and JSON for the rest. One
//! thread, no files, no clock: the page runs it in a worker.

mod ink;
mod landscape;
mod stage;
mod subject;

use serde::Serialize;
use wasm_bindgen::prelude::*;

pub use stage::{Chosen, Facts, Looked, Stage, Viewed};
pub use subject::Subject;

/// A [`Stage`] as JavaScript sees it.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Page(Stage);

#[wasm_bindgen]
impl Page {
    /// The stage of `digits`, `strokes` or `solids`, from the bytes of its artifact.
    #[wasm_bindgen(constructor)]
    pub fn new(subject: &str, artifact: &[u8]) -> Result<Page, JsError> {
        Ok(Page(Stage::open(Subject::parse(subject)?, artifact)?))
    }

    /// [`Stage::facts`] as JSON.
    pub fn facts(&self) -> String {
        json(&self.0.facts())
    }

    /// [`Stage::take`].
    pub fn take(&self, class: u32, seed: u32) -> Vec<f32> {
        self.0.take(class, seed)
    }

    /// [`Stage::input`].
    pub fn input(&self, drawn: &[f32]) -> Vec<f32> {
        self.0.input(drawn)
    }

    /// [`Stage::look`] as JSON. A threshold that is no number leaves the fitted gate.
    pub fn look(&self, input: &[f32], budget: u32, tau: f32) -> Result<String, JsError> {
        let tau = (!tau.is_nan()).then_some(tau);
        Ok(json(&self.0.look(input, &Chosen { budget: budget as usize, tau })?))
    }

    /// [`Stage::views`].
    pub fn views(&self, input: &[f32], maps: &[f32]) -> Result<Vec<f32>, JsError> {
        Ok(self.0.views(input, maps)?)
    }

    /// [`Stage::landscape`].
    pub fn landscape(
        &self,
        input: &[f32],
        through: &[f32],
        columns: u32,
        rows: u32,
        row: u32,
    ) -> Result<Vec<f32>, JsError> {
        Ok(self.0.landscape(input, through, [columns as usize, rows as usize], row as usize)?)
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
