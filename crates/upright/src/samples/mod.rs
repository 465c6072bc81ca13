//! Data that we make ourselves, so that the demo and the tests need no download.

mod alphabet;
mod glyphs;

pub use glyphs::{Glyph, NAMES, SIZE, digits, draw, glyphs, render};
