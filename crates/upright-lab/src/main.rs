//! The lab: training and experiments.
fn main() {}
