//! Axes around a plot.

use super::{Anchor, Scale, Svg};

/// A plot's rectangle inside a drawing, with a scale on each side.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Left to right.
    pub x: Scale,
    /// Bottom to top.
    pub y: Scale,
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    /// A plot with room for tick labels and titles around it, inside a drawing of a size.
    pub fn new(size: (f64, f64), x: (f64, f64), y: (f64, f64)) -> Self {
        Self::inside((58.0, 14.0), (size.0 - 22.0, size.1 - 46.0), x, y)
    }

    /// A plot between two corners.
    pub fn inside(
        (left, top): (f64, f64),
        (right, bottom): (f64, f64),
        x: (f64, f64),
        y: (f64, f64),
    ) -> Self {
        Frame {
            x: Scale::new(x, (left, right)),
            y: Scale::new(y, (bottom, top)),
            left,
            top,
            right,
            bottom,
        }
    }

    /// The same with round ends on both axes.
    #[must_use]
    pub fn nice(self) -> Self {
        Frame { x: self.x.nice(6), y: self.y.nice(5), ..self }
    }

    /// The same with round ends on the upright axis.
    #[must_use]
    pub fn nice_y(self, count: usize) -> Self {
        Frame { y: self.y.nice(count), ..self }
    }

    /// The pixel of a point.
    pub fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Left, top, right and bottom in pixels.
    pub fn edges(&self) -> (f64, f64, f64, f64) {
        (self.left, self.top, self.right, self.bottom)
    }

    /// Draws grid lines, round numbers and both titles.
    pub fn axes(&self, svg: &mut Svg, x: &str, y: &str) {
        self.y_axis(svg, y);
        for (v, text) in self.x.ticks(6) {
            self.x_tick(svg, v, &text);
        }
        self.x_title(svg, x);
    }

    /// Draws the grid, numbers and title of the upright axis.
    pub fn y_axis(&self, svg: &mut Svg, title: &str) {
        for (v, text) in self.y.ticks(5) {
            let y = self.y.at(v);
            svg.line("grid", (self.left, y), (self.right, y));
            svg.text("tick", (self.left - 8.0, y + 4.0), Anchor::End, &text);
        }
        let middle = f64::midpoint(self.top, self.bottom);
        svg.turned("title", (self.left - 44.0, middle), Anchor::Middle, -90, title);
        svg.line("axis", (self.left, self.bottom), (self.right, self.bottom));
    }

    /// Draws one mark of the lower axis.
    pub fn x_tick(&self, svg: &mut Svg, v: f64, text: &str) {
        let x = self.x.at(v);
        svg.line("axis", (x, self.bottom), (x, self.bottom + 4.0));
        svg.text("tick", (x, self.bottom + 17.0), Anchor::Middle, text);
    }

    /// Draws the title of the lower axis.
    pub fn x_title(&self, svg: &mut Svg, title: &str) {
        let middle = f64::midpoint(self.left, self.right);
        svg.text("title", (middle, self.bottom + 37.0), Anchor::Middle, title);
    }
}
