//! What several tests share.

use upright::{ModelOptions, engine};

/// The engines that can run here; says which ones cannot.
fn engines() -> Vec<&'static str> {
    let (able, unable): (Vec<_>, Vec<_>) =
        engine::TABLE.iter().partition(|row| (row.make.ready)().is_ok());
    for row in unable {
        eprintln!("SKIPPED: engine {}", row.name);
    }
    able.iter().map(|row| row.name).collect()
}

/// The given options on every engine that can run here.
pub(crate) fn on_every_engine(options: &ModelOptions) -> Vec<ModelOptions> {
    engines().iter().map(|e| ModelOptions { engine: (*e).into(), ..options.clone() }).collect()
}
