//! The JSON lines of `QuickDraw`, packed with gzip or not: one sketch per line,
//! `{"word": "cat", "key_id": "5", "drawing": [[[x, ..], [y, ..]], ..]}`. The raw
//! form has a third list, of times, in each stroke; they are not used.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::Path;

use serde::Deserialize;
use upright::SignalKind;

use super::{Format, Holds, Read};
use crate::bytes;
use crate::error::{Error, Found, Result};
use crate::examples::texts;
use crate::item::{Decoded, Item, Items, Set};
use crate::labels::Labels;
use crate::skip::Unusable;
use crate::strokes::Strokes;

pub(super) const FORMAT: Format = Format {
    name: "quickdraw",
    about: "Sketches as the JSON lines of QuickDraw.",
    endings: &[".ndjson", ".jsonl"],
    called: "QuickDraw ndjson",
    kinds: &[SignalKind::Strokes],
    parts: true,
    sniff,
    read: Read::Many(|path, _| open(path)),
    words: &[
        "\"word\"",
        "\"key_id\"",
        "\"drawing\"",
        "[",
        "]",
        "{",
        "}",
        "[[",
        ",",
        ":",
        "null",
        "\"",
        "\\u0000",
        "\n",
    ],
    examples: || {
        texts(&[
            "{\"word\":\"cat\",\"key_id\":\"0-1\",\"drawing\":[[[0,10,20],[0,5,0]],[[3,4],[5,6]]]}\n\
             {\"word\":\"dog\",\"key_id\":7,\"drawing\":[[[0.5,1.5],[2,3],[0,16]]]}\n",
        ])
    },
    ..Format::BASE
};

/// Longest line, in bytes.
const LINE_CAP: usize = 8 << 20;
/// Largest file after unpacking, in bytes.
const FILE_CAP: u64 = 4 << 30;

const FIX: &str = "give JSON lines as QuickDraw has them: \
                    {\"word\": \"cat\", \"key_id\": \"5\", \"drawing\": [[[x, ..], [y, ..]], ..]}";

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    word: Option<Cow<'a, str>>,
    key_id: Option<Key>,
    drawing: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Key {
    Text(String),
    Number(u64),
}

#[derive(Deserialize)]
struct Body {
    drawing: Vec<Vec<Vec<f64>>>,
}

/// The lines of a file, by where they start and end.
struct Lines {
    name: String,
    text: Vec<u8>,
    places: Vec<(usize, usize)>,
}

/// Many, if the first line holds a sketch; otherwise it may be a list of files.
fn sniff(path: &Path) -> Option<Holds> {
    let mut lines = bytes::start(path, LINE_CAP as u64).ok()?.split(b'\n');
    let first = lines
        .by_ref()
        .map_while(std::result::Result::ok)
        .find(|line| !line.trim_ascii().is_empty())?;
    head(&first).ok()?.drawing.map(|_| Holds::Many)
}

/// Opens a file; labels are the words, if every readable line has one.
fn open(path: &Path) -> Result<Set> {
    let text = bytes::read(path, FILE_CAP).map_err(|why| Error::unreadable(path, why, FIX))?;
    let mut places = Vec::new();
    let mut from = 0;
    for line in text.split(|&b| b == b'\n') {
        if !line.trim_ascii().is_empty() {
            places.push((from, from + line.len()));
        }
        from += line.len() + 1;
    }
    let lines = Lines { name: path.display().to_string(), text, places };
    if lines.places.is_empty() {
        let (kind, found) = (SignalKind::Strokes, Found::Nothing("a file without lines"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    let labels = lines.labels(path)?;
    Ok(Set::new(lines, labels))
}

impl Lines {
    fn line(&self, row: usize) -> &[u8] {
        let (from, to) = self.places[row];
        &self.text[from..to]
    }

    /// An unreadable line gets a label of another: it is never read with success.
    fn labels(&self, path: &Path) -> Result<Labels> {
        let mut words: Vec<String> = Vec::with_capacity(self.places.len());
        let (mut wordless, mut broken, mut leading) = (0, 0, 0);
        for row in 0..self.places.len() {
            match head(self.line(row)) {
                Ok(Head { word: Some(word), .. }) => words.push(word.into_owned()),
                other => {
                    if other.is_ok() {
                        wordless += 1;
                    } else {
                        broken += 1;
                    }
                    match words.last().cloned() {
                        Some(word) => words.push(word),
                        None => leading += 1,
                    }
                }
            }
        }
        let rows = self.places.len();
        match words.first().cloned() {
            None if broken == rows => {
                let why = head(self.line(0)).err().unwrap_or_default();
                Err(Error::unreadable(path, format!("no readable line; the first: {why}"), FIX))
            }
            None => Ok(Labels::None),
            Some(_) if wordless > 0 => Err(Error::unreadable(
                path,
                format!("{wordless} of {rows} lines have no `word`"),
                FIX,
            )),
            Some(word) => {
                words.splice(0..0, std::iter::repeat_n(word, leading));
                Ok(Labels::Names(words))
            }
        }
    }
}

fn head(line: &[u8]) -> std::result::Result<Head<'_>, String> {
    capped(line)?;
    serde_json::from_slice(line).map_err(|e| e.to_string())
}

fn capped(line: &[u8]) -> std::result::Result<(), String> {
    if line.len() > LINE_CAP {
        return Err(format!("a line of {} bytes, the limit is {LINE_CAP}", line.len()));
    }
    Ok(())
}

impl Items for Lines {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn name(&self, row: usize) -> String {
        let key = head(self.line(row)).ok().and_then(|h| h.key_id);
        match key {
            Some(Key::Text(key)) => format!("{}#{key}", self.name),
            Some(Key::Number(key)) => format!("{}#{key}", self.name),
            None => format!("{}#{row}", self.name),
        }
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        Ok(Item::Strokes(strokes(self.line(row))?).into())
    }
}

fn strokes(line: &[u8]) -> std::result::Result<Strokes, Unusable> {
    capped(line)?;
    let body: Body = serde_json::from_slice(line).map_err(|e| e.to_string())?;
    let stroke = |(i, lists): (usize, &Vec<Vec<f64>>)| match &lists[..] {
        [xs, ys] | [xs, ys, _] if xs.len() == ys.len() => {
            Ok(xs.iter().zip(ys).map(|(x, y)| [*x as f32, *y as f32]).collect())
        }
        [xs, ys] | [xs, ys, _] => Err(format!("stroke {i} has {} x and {} y", xs.len(), ys.len())),
        other => Err(format!("stroke {i} has {} lists, not [x, ..], [y, ..]", other.len())),
    };
    let strokes = body.drawing.iter().enumerate().map(stroke);
    Strokes::new(strokes.collect::<std::result::Result<_, String>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::gz;

    fn opened(bytes: &[u8]) -> Result<Set> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.ndjson");
        std::fs::write(&path, bytes).unwrap();
        open(&path)
    }

    fn strokes(opened: &Set, row: usize) -> std::result::Result<Vec<Vec<[f32; 2]>>, String> {
        match opened.items.item(row).map_err(|e| e.to_string())?.item {
            Item::Strokes(s) => Ok(s.strokes().to_vec()),
            other => Err(other.kind().singular().into()),
        }
    }

    const TWO: &str = "{\"word\":\"cat\",\"key_id\":\"0-7\",\"drawing\":[[[0,1],[2,3]],[[4],[5]]]}\n\n\
        {\"key_id\":12,\"countrycode\":\"US\",\"word\":\"dog\",\"drawing\":[[[0.5,1e1],[2,3],[0,17]]]}";

    #[test]
    fn simplified_and_raw_lines_are_read_packed_or_not() {
        for bytes in [TWO.as_bytes().to_vec(), gz(TWO.as_bytes())] {
            let opened = opened(&bytes).unwrap();
            assert_eq!(opened.labels, Labels::Names(vec!["cat".into(), "dog".into()]));
            assert_eq!(strokes(&opened, 0).unwrap(), [vec![[0., 2.], [1., 3.]], vec![[4., 5.]]]);
            assert_eq!(strokes(&opened, 1).unwrap(), [[[0.5, 2.], [10., 3.]]]);
            assert!(opened.items.name(0).ends_with("a.ndjson#0-7"));
            assert!(opened.items.name(1).ends_with("a.ndjson#12"));
        }
    }

    #[test]
    fn a_broken_line_is_a_broken_row_and_no_more() {
        let text =
            format!("{{\"word\":\n{TWO}\n{{\"word\":\"dog\",\"drawing\":[[[1],[2,3]]]}}\nnull\n");
        let opened = opened(text.as_bytes()).unwrap();
        assert_eq!(opened.items.len(), 5);
        let words = ["cat", "cat", "dog", "dog", "dog"].map(String::from);
        assert_eq!(opened.labels, Labels::Names(words.into()));
        assert!(strokes(&opened, 0).unwrap_err().contains("EOF"));
        assert_eq!(strokes(&opened, 3).unwrap_err(), "stroke 0 has 1 x and 2 y");
        assert!(strokes(&opened, 4).is_err());
        assert!(opened.items.name(4).ends_with("#4"));
    }

    #[test]
    fn degenerate_lines_say_what_is_wrong() {
        for (drawing, why) in [
            ("[]", "an empty sketch"),
            ("[[[],[]]]", "an empty sketch"),
            ("[[[1,1],[2,2]]]", "all equal"),
            ("[[[1,1]]]", "stroke 0 has 1 lists"),
            ("[[[1,1e39],[2,2]]]", "holds inf"),
            ("[[[1,1e999],[2,2]]]", "number out of range"),
            ("[[[1,null],[2,2]]]", "invalid type: null"),
        ] {
            let text = format!("{{\"word\":\"a\",\"drawing\":{drawing}}}");
            let e = strokes(&opened(text.as_bytes()).unwrap(), 0).unwrap_err();
            assert!(e.contains(why), "{why}: {e}");
        }
        let deep = format!("{{\"drawing\":{}", "[".repeat(1_000_000));
        assert!(opened(deep.as_bytes()).is_err());
        let long = format!("{{\"word\":\"a\",\"drawing\":[]}}{}", " ".repeat(LINE_CAP));
        assert!(opened(long.as_bytes()).err().unwrap().to_string().contains("the limit is"));
    }

    #[test]
    fn words_are_labels_only_if_all_have_one() {
        let bare = "{\"drawing\":[[[1,2],[3,4]]]}\n";
        assert_eq!(opened(bare.repeat(2).as_bytes()).unwrap().labels, Labels::None);
        let e = opened(format!("{bare}{TWO}").as_bytes()).err().unwrap().to_string();
        assert!(e.ends_with("1 of 3 lines have no `word`"), "{e}");
        assert!(opened(b"\n \n").is_err());
    }
}
