//! The binary `upright`.
fn main() {}
