//! The `data` of a tensor in JSON: a flat list, or lists within lists in
//! row-major order.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};

/// The values of a tensor.
#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    /// No value at all.
    Nothing,
    /// Numbers.
    Numbers(Vec<f32>),
    /// Texts.
    Texts(Vec<String>),
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut data = Data::Nothing;
        from.deserialize_seq(Into(&mut data))?;
        Ok(data)
    }
}

/// Appends values to others.
struct Into<'a>(&'a mut Data);

impl Into<'_> {
    fn number<E: Error>(self, number: f64) -> Result<(), E> {
        match self.0 {
            Data::Numbers(all) => all.push(number as f32),
            Data::Nothing => *self.0 = Data::Numbers(vec![number as f32]),
            Data::Texts(_) => return Err(E::custom("numbers and texts in one tensor")),
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Into<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Into<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("numbers, texts or lists of them")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<(), A::Error> {
        while all.next_element_seed(Into(self.0))?.is_some() {}
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.number(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.number(number as f64)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.number(number as f64)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match self.0 {
            Data::Texts(all) => all.push(text.into()),
            Data::Nothing => *self.0 = Data::Texts(vec![text.into()]),
            Data::Numbers(_) => return Err(E::custom("numbers and texts in one tensor")),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_within_lists_are_flattened_in_order() {
        let read = |text: &str| serde_json::from_str::<Data>(text);
        assert_eq!(read("[1, [2.5, [-3]], []]").unwrap(), Data::Numbers(vec![1.0, 2.5, -3.0]));
        let texts = Data::Texts(vec!["a".into(), "b".into()]);
        assert_eq!(read(r#"[["a"], "b"]"#).unwrap(), texts);
        assert_eq!(read("[]").unwrap(), Data::Nothing);
        let deep = "[".repeat(10_000);
        for bad in ["1", r#"[1, "a"]"#, "[NaN]", "[null]", "[true]", "[{}]", &deep] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
