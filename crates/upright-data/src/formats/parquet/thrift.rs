//! A walk through structs of Thrift's compact protocol, in which Parquet writes what it says
//! about itself: whole numbers are shown to the caller, and nothing is allocated. Whoever
//! allocates by those numbers can look at them first.

/// Deepest nesting that is walked.
const DEPTH_CAP: usize = 32;

/// What a walk meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// A whole number.
    Number(i64),
    /// One more struct of a list.
    Struct,
}

/// The bytes run out, or are no structs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// More bytes are needed.
    Short,
    /// They make no sense.
    Wrong,
}

/// Walks a struct at the start of some bytes and gives its length. `see` gets the numbers of
/// the fields that lead to a value, and the value.
pub(super) fn walk(bytes: &[u8], see: &mut dyn FnMut(&[i16], Met)) -> Result<usize, Stop> {
    let mut walk = Walk { bytes, at: 0, path: Vec::new(), see };
    walk.fields()?;
    Ok(walk.at)
}

struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    path: Vec<i16>,
    see: &'a mut dyn FnMut(&[i16], Met),
}

impl Walk<'_> {
    fn byte(&mut self) -> Result<u8, Stop> {
        let byte = *self.bytes.get(self.at).ok_or(Stop::Short)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Stop> {
        let mut out = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            out |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(out);
            }
        }
        Err(Stop::Wrong)
    }

    fn number(&mut self) -> Result<i64, Stop> {
        let bits = self.varint()?;
        Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed())
    }

    fn pass(&mut self, count: u64) -> Result<(), Stop> {
        let left = (self.bytes.len() - self.at) as u64;
        if count > left {
            return Err(Stop::Short);
        }
        self.at += count as usize;
        Ok(())
    }

    fn fields(&mut self) -> Result<(), Stop> {
        let mut field = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            field = match head >> 4 {
                0 => i16::try_from(self.number()?).map_err(|_| Stop::Wrong)?,
                step => field.checked_add(i16::from(step)).ok_or(Stop::Wrong)?,
            };
            if self.path.len() >= DEPTH_CAP {
                return Err(Stop::Wrong);
            }
            self.path.push(field);
            // A truth value is in the head itself.
            if !matches!(head & 15, 1 | 2) {
                self.value(head & 15)?;
            }
            self.path.pop();
        }
    }

    fn value(&mut self, kind: u8) -> Result<(), Stop> {
        match kind {
            1..=3 => self.pass(1),
            4..=6 => {
                let number = self.number()?;
                (self.see)(&self.path, Met::Number(number));
                Ok(())
            }
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => self.list(),
            12 => self.fields(),
            // Parquet has no maps.
            _ => Err(Stop::Wrong),
        }
    }

    fn list(&mut self) -> Result<(), Stop> {
        let head = self.byte()?;
        let (kind, count) = (head & 15, u64::from(head >> 4));
        let count = if count == 15 { self.varint()? } else { count };
        for _ in 0..count {
            let before = self.at;
            if kind == 12 {
                (self.see)(&self.path, Met::Struct);
            }
            if self.path.len() >= DEPTH_CAP {
                return Err(Stop::Wrong);
            }
            self.path.push(0);
            self.value(kind)?;
            self.path.pop();
            // Readers make room for structs that may be empty.
            if kind == 12 && self.at < before + 2 {
                return Err(Stop::Wrong);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type All = Vec<(Vec<i16>, Met)>;

    fn met(bytes: &[u8]) -> Result<(usize, All), Stop> {
        let mut out = Vec::new();
        let length = walk(bytes, &mut |path, met| out.push((path.to_vec(), met)))?;
        Ok((length, out))
    }

    #[test]
    fn numbers_are_shown_with_the_fields_that_lead_to_them() {
        // {1: -3, 2: [{5: 8}, {5: 1}], 3: "ab", 5: true, 6: {1: 300}}
        let bytes = [
            0x15, 5, 0x19, 0x2c, 0x55, 16, 0, 0x55, 2, 0, 0x18, 2, b'a', b'b', 0x21, 0x1c, 0x15,
            0xd8, 0x04, 0, 0, 99,
        ];
        let (length, met) = met(&bytes).unwrap();
        assert_eq!(length, bytes.len() - 1);
        let number = |path: &[i16], n| (path.to_vec(), Met::Number(n));
        let one_more = (vec![2], Met::Struct);
        let expected = [
            number(&[1], -3),
            one_more.clone(),
            number(&[2, 0, 5], 8),
            one_more,
            number(&[2, 0, 5], 1),
            number(&[6, 1], 300),
        ];
        assert_eq!(met, expected);
        for cut in 0..length {
            assert_eq!(super::tests::met(&bytes[..cut]), Err(Stop::Short), "{cut}");
        }
    }

    #[test]
    fn nonsense_ends_the_walk() {
        let deep = [0x1c].repeat(1000);
        let numbers = [&[0x15][..], &[0xff; 12]].concat();
        let empty_structs = [&[0x19, 0xfc, 0xff, 0x0f][..], &[0; 4000]].concat();
        for bytes in [deep, numbers, empty_structs, vec![0x1b, 0]] {
            assert_eq!(met(&bytes), Err(Stop::Wrong));
        }
    }
}
