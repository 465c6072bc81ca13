//! How much is measured: `quick` shows within minutes that everything works,
//! `full` is what results are told by.

/// Counts that make an experiment long or short.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub(crate) name: &'static str,
    /// Inputs that judge, upright and transformed each.
    pub(crate) inputs: usize,
    /// Most training samples in banks; `None` takes all.
    pub(crate) bank: Option<usize>,
    /// Copies and lessons that parts learn from; `None` leaves it to them.
    pub(crate) learns: Option<(usize, usize)>,
    /// Most held-out samples that calibrate.
    pub(crate) calibration: usize,
    /// Runs with other seeds.
    pub(crate) runs: u64,
    /// How the score of the paper's recipe is tuned.
    pub(crate) tuning: Tuning,
}

/// How much is tried when a score is tuned.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tuning {
    pub(crate) samples: usize,
    pub(crate) bank: usize,
    pub(crate) first: usize,
    pub(crate) second: usize,
}

/// Every scale.
pub(crate) const SCALES: &[Scale] = &[
    Scale {
        name: "quick",
        inputs: 100,
        bank: Some(4000),
        learns: Some((5000, 1500)),
        calibration: 600,
        runs: 1,
        tuning: Tuning { samples: 60, bank: 1000, first: 4, second: 4 },
    },
    Scale {
        name: "full",
        inputs: 1000,
        bank: None,
        learns: None,
        calibration: 4000,
        runs: 3,
        tuning: Tuning { samples: 450, bank: 10_000, first: 10, second: 10 },
    },
];

/// The quick scale of experiments that fit or search many times over.
const QUICK_OF_MANY: Scale = Scale {
    name: "quick",
    inputs: 20,
    bank: Some(1000),
    learns: Some((1000, 200)),
    calibration: 100,
    runs: 1,
    tuning: Tuning { samples: 40, bank: 1000, first: 2, second: 2 },
};

impl Tuning {
    /// Less of everything, where every score is tuned.
    pub(crate) fn of_many(self) -> Self {
        Tuning {
            samples: self.samples.min(150),
            bank: self.bank.min(4000),
            first: self.first.min(6),
            second: self.second.min(6),
        }
    }
}

impl Scale {
    /// Whether it only shows that everything works.
    pub(crate) fn is_quick(&self) -> bool {
        self.name == QUICK_OF_MANY.name
    }

    /// The scale of a name, for an experiment that fits or searches many times over or for
    /// another.
    pub(crate) fn of(name: &str, many: bool) -> Result<&'static Scale, String> {
        if many && name == QUICK_OF_MANY.name {
            return Ok(&QUICK_OF_MANY);
        }
        SCALES.iter().find(|s| s.name == name).ok_or_else(|| {
            let known: Vec<&str> = SCALES.iter().map(|s| s.name).collect();
            format!("there is no scale `{name}`; there are {}", known.join(", "))
        })
    }
}
