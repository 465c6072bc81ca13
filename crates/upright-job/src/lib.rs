//! Predictions for data larger than memory, written in parts that survive a crash.
//!
//! A [`Job`] reads its items part by part and writes each part into a folder: under a temporary
//! name, synced, renamed, and then noted in a journal with its hash. Whatever ends a run, a
//! power cut too, the same job run again goes on behind the last part that is noted and whole,
//! and ends with the same bytes as a run that nothing ended. Shards of one job together have
//! exactly its rows.
//!
//! ```
//! use upright::{Config, FitData, Model, Silent, samples};
//! use upright_data::{Options, Prepare, Want, open};
//! use upright_job::{Format, Job, Quiet};
//!
//! # let folder = tempfile::tempdir()?;
//! # let (data, out) = (folder.path().join("clouds"), folder.path().join("out"));
//! # std::fs::create_dir(&data)?;
//! # let clouds = samples::solids(30, 3)?;
//! # for (i, cloud) in (0..30).map(|i| (i, clouds.batch().item(i))) {
//! #     let lines = cloud.chunks(3).map(|p| format!("{} {} {}\n", p[0], p[1], p[2]));
//! #     std::fs::write(data.join(format!("{i}.xyz")), lines.collect::<String>())?;
//! # }
//! let model = Model::from_bytes("solids", samples::solid_model(), &Default::default())?;
//! # let config = Config { budget: 4, calibration: 40, ..Config::of_signal(model.signal()) };
//! # let config = config.with(upright::Role::Score, upright::Part::new("energy"));
//! let c = config.fit(model, &FitData::new(&samples::solids(200, 1)?), &mut Silent)?;
//!
//! let options = Options::new(Want::Inputs, c.model().signal());
//! let source = open(&[data], &options, Prepare::for_model(c.model(), 0).leniently())?;
//! let job = Job { format: Format::Csv, part_rows: 10, ..Job::new(&c, &source, &out) };
//! let done = job.run(&mut Quiet)?;
//! assert_eq!((done.rows, done.parts, done.written), (30, 3, 3));
//! assert_eq!(job.run(&mut Quiet)?.kept, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod facts;
mod folder;
mod format;
mod input;
mod job;
mod journal;
mod row;
mod shard;
mod watch;

pub use error::{Change, Error, Hint, Result};
pub use format::Format;
pub use input::Input;
pub use job::{Job, PART_ROWS, Summary};
pub use row::{Answer, Row, Table, word};
pub use shard::Shard;
pub use watch::{Progress, Quiet, Stop, Watch};
