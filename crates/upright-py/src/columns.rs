//! Answers as columns.

use numpy::{IntoPyArray, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use upright::{Prediction, Verdict};

/// What is said of many inputs, column by column. Rows that could not be read are -1 or NaN.
pub(crate) struct Columns {
    labels: Vec<i64>,
    rivals: Vec<i64>,
    model_labels: Vec<i64>,
    verdicts: Vec<&'static str>,
    energy_before: Vec<f32>,
    energy_after: Vec<f32>,
    evaluations: Vec<i64>,
    logits: Vec<f32>,
    maps: Vec<f32>,
    poses: Vec<f32>,
    pub(crate) errors: Vec<Option<String>>,
    classes: usize,
    axes: usize,
    entries: usize,
}

impl Columns {
    pub(crate) fn new(rows: usize, classes: usize, axes: usize, entries: usize) -> Self {
        Columns {
            labels: vec![-1; rows],
            rivals: vec![-1; rows],
            model_labels: vec![-1; rows],
            verdicts: vec![""; rows],
            energy_before: vec![f32::NAN; rows],
            energy_after: vec![f32::NAN; rows],
            evaluations: vec![0; rows],
            logits: vec![f32::NAN; rows * classes],
            maps: vec![f32::NAN; rows * entries],
            poses: vec![f32::NAN; rows * axes],
            errors: vec![None; rows],
            classes,
            axes,
            entries,
        }
    }

    pub(crate) fn put(&mut self, row: usize, p: &Prediction) {
        self.labels[row] = p.label.into();
        self.rivals[row] = p.rival.map_or(-1, i64::from);
        self.model_labels[row] = p.raw_label.into();
        self.verdicts[row] = match p.verdict {
            Verdict::Kept => "kept",
            Verdict::Accepted => "accepted",
            Verdict::Rejected => "rejected",
            Verdict::Switched => "switched",
            Verdict::Abstained => "abstained",
        };
        self.energy_before[row] = p.energy_before;
        self.energy_after[row] = p.energy_after;
        self.evaluations[row] = p.evaluations as i64;
        let put = |all: &mut Vec<f32>, width: usize, own: &[f32]| {
            all[row * width..(row + 1) * width].copy_from_slice(own);
        };
        put(&mut self.logits, self.classes, &p.logits);
        put(&mut self.maps, self.entries, p.map.entries());
        put(&mut self.poses, self.axes, &p.pose);
    }

    pub(crate) fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        let rows = self.labels.len();
        let dict = PyDict::new(py);
        dict.set_item("labels", self.labels.into_pyarray(py))?;
        dict.set_item("rivals", self.rivals.into_pyarray(py))?;
        dict.set_item("model_labels", self.model_labels.into_pyarray(py))?;
        dict.set_item("verdicts", self.verdicts)?;
        dict.set_item("energy_before", self.energy_before.into_pyarray(py))?;
        dict.set_item("energy_after", self.energy_after.into_pyarray(py))?;
        dict.set_item("evaluations", self.evaluations.into_pyarray(py))?;
        dict.set_item("logits", self.logits.into_pyarray(py).reshape([rows, self.classes])?)?;
        let maps = self.maps.into_pyarray(py).reshape([rows, self.entries / 3, 3])?;
        dict.set_item("maps", maps)?;
        dict.set_item("poses", self.poses.into_pyarray(py).reshape([rows, self.axes])?)?;
        dict.set_item("errors", self.errors)?;
        Ok(dict)
    }
}
