//! Many short texts in one piece of memory.

/// Texts by number, at eight bytes each beside their own.
#[derive(Debug, Default)]
pub(crate) struct Names {
    text: String,
    ends: Vec<usize>,
}

impl Names {
    /// Adds one.
    pub(crate) fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len());
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// One of them.
    pub(crate) fn get(&self, at: usize) -> &str {
        let from = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.text[from..self.ends[at]]
    }
}
