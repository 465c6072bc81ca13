//! From numbers to pixels, and the round numbers in between.

/// A linear scale from a stretch of numbers to a stretch of pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    domain: (f64, f64),
    range: (f64, f64),
}

impl Scale {
    /// From numbers to pixels. An empty or infinite stretch of numbers becomes one of
    /// length 1.
    pub fn new((low, high): (f64, f64), range: (f64, f64)) -> Self {
        let domain = match (low.is_finite(), high.is_finite()) {
            (true, true) if high > low => (low, high),
            (true, _) => (low, low + 1.0),
            (_, true) => (high - 1.0, high),
            _ => (0.0, 1.0),
        };
        Scale { domain, range }
    }

    /// The same, wide enough to begin and end at round numbers.
    #[must_use]
    pub fn nice(self, count: usize) -> Self {
        let step = step(self.domain, count);
        let domain = ((self.domain.0 / step).floor() * step, (self.domain.1 / step).ceil() * step);
        Scale { domain, ..self }
    }

    /// The pixel of a number; numbers beyond the ends are put at the ends.
    pub fn at(&self, v: f64) -> f64 {
        let (low, high) = self.domain;
        let share = ((v - low) / (high - low)).clamp(0.0, 1.0);
        self.range.0 + share * (self.range.1 - self.range.0)
    }

    /// The stretch of numbers.
    #[cfg(test)]
    pub fn domain(&self) -> (f64, f64) {
        self.domain
    }

    /// About `count` round numbers inside, with their texts.
    pub fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        let step = step(self.domain, count);
        let decimals = (-step.log10().floor()).clamp(0.0, 9.0) as usize;
        let (first, last) =
            ((self.domain.0 / step - 1e-6).ceil(), (self.domain.1 / step + 1e-6).floor());
        (0..=(last - first).max(0.0) as usize)
            .map(|i| (first + i as f64) * step)
            .map(|v| (v, format!("{:.decimals$}", if v.abs() < step / 2.0 { 0.0 } else { v })))
            .collect()
    }
}

/// A step of 1, 2 or 5 times a power of ten that cuts a stretch into about `count` pieces.
fn step((low, high): (f64, f64), count: usize) -> f64 {
    let rough = (high - low) / count.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough * 0.999);
    factor.unwrap_or(10.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let words = |low, high, n| -> Vec<String> {
            let ticks = Scale::new((low, high), (0.0, 1.0)).ticks(n);
            ticks.into_iter().map(|t| t.1).collect()
        };
        assert_eq!(words(0.0, 100.0, 5), ["0", "20", "40", "60", "80", "100"]);
        assert_eq!(words(-0.31, 0.12, 4), ["-0.2", "0.0"]);
        assert_eq!(words(1234.0, 1236.0, 4), ["1234.0", "1234.5", "1235.0", "1235.5", "1236.0"]);
    }

    #[test]
    fn numbers_go_to_their_pixels_and_stop_at_the_ends() {
        let scale = Scale::new((10.0, 20.0), (100.0, 0.0));
        for (v, want) in [(10.0, 100.0), (15.0, 50.0), (99.0, 0.0), (f64::NEG_INFINITY, 100.0)] {
            assert!((scale.at(v) - want).abs() < 1e-9, "{v}");
        }
        assert_eq!(Scale::new((3.0, 3.0), (0.0, 1.0)).domain(), (3.0, 4.0));
        assert_eq!(Scale::new((f64::NAN, f64::INFINITY), (0.0, 1.0)).domain(), (0.0, 1.0));
        assert_eq!(Scale::new((0.3, 9.7), (0.0, 1.0)).nice(5).domain(), (0.0, 10.0));
    }
}
