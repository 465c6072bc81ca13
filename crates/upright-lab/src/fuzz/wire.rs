//! Protocol buffers as trees: damage that leaves all lengths right, so that
//! what is damaged is what a file says, not how it is packed.

use super::mutate::Dice;

/// Messages in messages deeper than this are left as bytes.
const DEEPEST: usize = 12;

/// Numbers that dimensions, axes, counts and types stumble over.
const AWKWARD: [i64; 20] = [
    0,
    1,
    2,
    3,
    4,
    5,
    7,
    10,
    11,
    16,
    -1,
    -2,
    -5,
    1000,
    1 << 20,
    1 << 31,
    1 << 40,
    1 << 62,
    i64::MAX,
    i64::MIN,
];

#[derive(Debug, Clone, PartialEq)]
struct Field {
    tag: u64,
    value: Value,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Number(u64),
    Fixed(Vec<u8>),
    Bytes(Vec<u8>),
    Message(Vec<Field>),
}

fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn parse(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = number(&mut bytes)?;
        let mut take = |count: usize| {
            let (taken, rest) = bytes.split_at_checked(count)?;
            bytes = rest;
            Some(taken)
        };
        let value = match key & 7 {
            0 => Value::Number(number(&mut bytes)?),
            1 => Value::Fixed(take(8)?.to_vec()),
            5 => Value::Fixed(take(4)?.to_vec()),
            2 => {
                let length = usize::try_from(number(&mut bytes)?).ok()?;
                let (inner, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                let text = inner.iter().all(|b| (b' '..=b'~').contains(b));
                let message = (!text && depth > 0).then(|| parse(inner, depth - 1)).flatten();
                message.map_or_else(|| Value::Bytes(inner.to_vec()), Value::Message)
            }
            _ => return None,
        };
        if key >> 3 == 0 {
            return None;
        }
        fields.push(Field { tag: key >> 3, value });
    }
    Some(fields)
}

fn put(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn write(fields: &[Field]) -> Vec<u8> {
    let mut out = Vec::new();
    for Field { tag, value } in fields {
        let kind = match value {
            Value::Number(_) => 0,
            Value::Fixed(bytes) if bytes.len() == 8 => 1,
            Value::Fixed(_) => 5,
            Value::Bytes(_) | Value::Message(_) => 2,
        };
        put(tag << 3 | kind, &mut out);
        let inner;
        let bytes = match value {
            Value::Number(n) => {
                put(*n, &mut out);
                continue;
            }
            Value::Fixed(bytes) => {
                out.extend(bytes);
                continue;
            }
            Value::Bytes(bytes) => bytes,
            Value::Message(fields) => {
                inner = write(fields);
                &inner
            }
        };
        put(bytes.len() as u64, &mut out);
        out.extend(bytes);
    }
    out
}

/// The way to every field: positions, from the outermost message on.
fn ways(fields: &[Field], from: &mut Vec<usize>, all: &mut Vec<Vec<usize>>) {
    for (i, field) in fields.iter().enumerate() {
        from.push(i);
        all.push(from.clone());
        if let Value::Message(inner) = &field.value {
            ways(inner, from, all);
        }
        from.pop();
    }
}

/// The message that holds a field, and the field's position in it.
fn at<'a>(mut fields: &'a mut Vec<Field>, way: &[usize]) -> Option<(&'a mut Vec<Field>, usize)> {
    let (&last, outer) = way.split_last()?;
    for &i in outer {
        let Value::Message(inner) = &mut fields.get_mut(i)?.value else { return None };
        fields = inner;
    }
    (last < fields.len()).then_some((fields, last))
}

fn texts<'a>(fields: &'a [Field], all: &mut Vec<&'a [u8]>) {
    for field in fields {
        match &field.value {
            Value::Bytes(text) if !text.is_empty() && text.len() < 80 => all.push(text),
            Value::Message(inner) => texts(inner, all),
            _ => {}
        }
    }
}

/// A copy of one of the seeds, which are messages, with some fields changed, left out, doubled
/// or exchanged. `words` are texts that mean something to the reader.
pub(super) fn damaged(dice: &mut Dice, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let seed = dice.one(seeds);
    let Some(mut fields) = parse(seed, DEEPEST) else { return seed.clone() };
    for _ in 0..=dice.below(4) {
        change(dice, &mut fields, words);
    }
    write(&fields)
}

fn change(dice: &mut Dice, fields: &mut Vec<Field>, words: &[&str]) -> Option<()> {
    let mut all = Vec::new();
    ways(fields, &mut Vec::new(), &mut all);
    if all.is_empty() {
        return None;
    }
    let way = dice.one(&all).clone();
    let other = dice.one(&all).clone();
    let mut known = Vec::new();
    texts(fields, &mut known);
    let text = if known.is_empty() || dice.below(3) == 0 {
        dice.one(words).as_bytes().to_vec()
    } else {
        dice.one(&known).to_vec()
    };
    let copy = at(fields, &other).map(|(holder, i)| holder[i].clone())?;
    let (holder, i) = at(fields, &way)?;
    match dice.below(10) {
        0 => drop(holder.remove(i)),
        1 => {
            let again = holder[i].clone();
            let times = if dice.below(8) == 0 { 200 } else { 1 };
            holder.splice(i..i, vec![again; times]);
        }
        2 => {
            let with = dice.below(holder.len());
            holder.swap(i, with);
        }
        3 => holder.insert(i, copy),
        4 => holder[i].value = copy.value,
        5 => holder[i].tag = 1 + dice.below(26) as u64,
        _ => match &mut holder[i].value {
            Value::Number(n) => {
                *n = match dice.below(4) {
                    0 => n.wrapping_add(1),
                    1 => n.wrapping_sub(1),
                    _ => dice.one(&AWKWARD).cast_unsigned(),
                }
            }
            Value::Bytes(bytes) if bytes.len() < 80 => *bytes = text,
            Value::Bytes(bytes) | Value::Fixed(bytes) => {
                let from = dice.below(bytes.len());
                let byte = *dice.one(&[0u8, 0x7f, 0x80, 0xff]);
                bytes.iter_mut().skip(from).take(8).for_each(|b| *b = byte);
            }
            Value::Message(inner) => inner.truncate(dice.below(inner.len())),
        },
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzz::models;

    #[test]
    fn what_is_parsed_is_written_again() {
        for seed in models::seeds() {
            let fields = parse(&seed, DEEPEST).unwrap();
            assert!(fields.len() > 2);
            assert!(write(&fields) == seed);
        }
    }
}
