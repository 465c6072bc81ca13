//! Tar shards as `WebDataset` has them: members that share a name up to its first dot are one
//! sample, an image and, as `.cls`, its class. Only the places of members are held.

use std::fs::File;
use std::io::{BufReader, Read as _, Seek, SeekFrom};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tar::Archive;
use upright::SignalKind;

use super::{Format, Holds, Read, image};
use crate::error::{self, Error, Result};
use crate::examples;
use crate::item::{Decoded, Items, Set};
use crate::labels::Labels;
use crate::names::Names;
use crate::options::{Options, Want};
use crate::skip::Unusable;

/// Largest member that is read, in bytes.
const MEMBER_CAP: u64 = 256 << 20;
/// Longest class, in bytes.
const CLASS_CAP: u64 = 1 << 10;

pub(super) const FORMAT: Format = Format {
    name: "tar",
    about: "Tar shards of images and their classes, as WebDataset has them.",
    endings: &[".tar"],
    called: "tar",
    kinds: &[SignalKind::Image],
    gz: false,
    parts: true,
    sniff: |_| Some(Holds::Many),
    read: Read::Many(open),
    words: &["ustar\x0000", "ustar  \0", ".cls", ".png", "0000644\0", "00000000017\0", "L", "x"],
    examples: || {
        let images = (image::FORMAT.examples)();
        vec![
            examples::tar(&[("a/0.png", &images[0]), ("a/0.cls", b"1"), ("a/1.png", &images[0])]),
            examples::tar(&[("b.jpg", &images[1 % images.len()]), ("b.cls", b"cat\n")]),
        ]
    },
    ..Format::BASE
};

const FIX: &str = "give a tar file whose members are named as in `0001.jpg` and `0001.cls`";

/// The samples of a shard.
struct Shard {
    path: String,
    file: Mutex<File>,
    keys: Names,
    /// Where the image of each sample lies, and how long it is.
    places: Vec<(u64, u64)>,
    ignore_exif: bool,
}

/// What a walk through the members finds.
#[derive(Default)]
struct Found {
    keys: Names,
    places: Vec<(u64, u64)>,
    /// The classes of the first samples, as long as each has one.
    classes: Vec<String>,
    /// A class that came before its image, and the key of both.
    waiting: Option<(String, String)>,
}

impl Found {
    fn image(&mut self, key: &str, place: (u64, u64)) {
        if let Some((_, class)) = self.waiting.take_if(|(other, _)| other == key)
            && self.classes.len() == self.keys.len()
        {
            self.classes.push(class);
        }
        self.keys.push(key);
        self.places.push(place);
    }

    fn class(&mut self, key: String, class: String) {
        let last = self.keys.len().checked_sub(1);
        if last.is_some_and(|l| self.classes.len() == l && self.keys.get(l) == key) {
            self.classes.push(class);
        } else {
            self.waiting = Some((key, class));
        }
    }

    /// Numbers or names; none unless every sample has a class.
    fn labels(&mut self) -> Labels {
        let classes = std::mem::take(&mut self.classes);
        match classes.iter().map(|c| c.parse().ok()).collect::<Option<Vec<u32>>>() {
            _ if classes.len() != self.places.len() => Labels::None,
            Some(numbers) => Labels::Numbers(numbers),
            None => Labels::Names(classes),
        }
    }
}

/// Opens a shard.
fn open(path: &Path, options: &Options) -> Result<Set> {
    let io = |e| Error::io(path, e);
    let file = File::open(path).map_err(io)?;
    let length = file.metadata().map_err(io)?.len();
    let archive = Archive::new(BufReader::new(file.try_clone().map_err(io)?));
    let mut found =
        members(archive, length, options.want).map_err(|why| Error::unreadable(path, why, FIX))?;
    if found.places.is_empty() {
        let (kind, found) = (SignalKind::Image, error::Found::Nothing("a tar file without images"));
        return Err(Error::Empty { path: path.into(), kind, found });
    }
    let labels = found.labels();
    let Found { keys, places, .. } = found;
    let (path, ignore_exif) = (path.display().to_string(), options.ignore_exif);
    Ok(Set::new(Shard { path, file: Mutex::new(file), keys, places, ignore_exif }, labels))
}

/// Walks through the members of an archive of a length; classes are read only if wanted.
fn members(
    mut archive: Archive<BufReader<File>>,
    length: u64,
    want: Want,
) -> std::result::Result<Found, String> {
    let mut found = Found::default();
    for entry in archive.entries_with_seek().map_err(|e| e.to_string())? {
        let mut entry = entry.map_err(|e| format!("after {} images: {e}", found.places.len()))?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let stem = name.rfind('/').map_or(0, |slash| slash + 1);
        let Some(dot) = name[stem..].find('.').filter(|&dot| dot > 0) else { continue };
        let (key, ending) = (&name[..stem + dot], name[stem + dot..].to_ascii_lowercase());
        if ending == ".cls" && want == Want::Labelled {
            let mut text = String::new();
            let read = entry.by_ref().take(CLASS_CAP).read_to_string(&mut text);
            read.map_err(|e| format!("member `{name}` is no class: {e}"))?;
            found.class(key.into(), text.trim().into());
        } else if image::FORMAT.endings.contains(&ending.as_str()) {
            let place = (entry.raw_file_position(), entry.size());
            if place.0.checked_add(place.1).is_none_or(|end| end > length) {
                return Err(format!("it ends within member `{name}`"));
            }
            found.image(key, place);
        }
    }
    Ok(found)
}

impl Items for Shard {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn name(&self, row: usize) -> String {
        format!("{}#{}", self.path, self.keys.get(row))
    }

    fn item(&self, row: usize) -> std::result::Result<Decoded, Unusable> {
        let (start, size) = self.places[row];
        if size > MEMBER_CAP {
            return Err(format!("{size} bytes, the limit is {MEMBER_CAP}").into());
        }
        let mut bytes = Vec::with_capacity(size as usize);
        {
            let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
            file.seek(SeekFrom::Start(start)).map_err(|e| e.to_string())?;
            file.by_ref().take(size).read_to_end(&mut bytes).map_err(|e| e.to_string())?;
        }
        image::from_bytes(&bytes, self.ignore_exif)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Item;
    use upright::Signal;

    fn opened(members: &[(&str, &[u8])], want: Want) -> Result<Set> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        std::fs::write(&path, examples::tar(members)).unwrap();
        open(&path, &Options::new(want, Signal::image(1, 1, 1)))
    }

    fn grey(value: u8) -> Vec<u8> {
        let mut out = std::io::Cursor::new(Vec::new());
        let picture = ::image::GrayImage::from_pixel(1, 1, ::image::Luma([value]));
        picture.write_to(&mut out, ::image::ImageFormat::Png).unwrap();
        out.into_inner()
    }

    #[test]
    fn members_of_one_name_are_one_sample() {
        let (black, white) = (grey(0), grey(255));
        let long = "x".repeat(150) + "/7";
        let set = opened(
            &[
                ("n/1.png", &black),
                ("n/1.cls", b"4\n"),
                ("n/1.json", b"{}"),
                ("n/2.cls", b"0"),
                ("n/2.seg.png", &black),
                ("n/2.PNG", &white),
                (&format!("{long}.png"), &white),
                (&format!("{long}.cls"), b"9"),
            ],
            Want::Labelled,
        )
        .unwrap();
        assert_eq!(set.items.len(), 3);
        assert!(set.items.name(1).ends_with("a.tar#n/2"));
        assert!(set.items.name(2).ends_with(&format!("a.tar#{long}")));
        assert_eq!(set.labels, Labels::Numbers(vec![4, 0, 9]));
        for (row, value) in [(0, 0.0), (1, 1.0)] {
            let Item::Image(picture) = set.items.item(row).unwrap().item else { panic!() };
            assert_eq!(picture.data(), [value]);
        }
    }

    #[test]
    fn classes_are_words_too_but_only_if_all_have_one() {
        let image = grey(9);
        let named = [("1.png", &image[..]), ("1.cls", b"cat"), ("2.png", &image), ("2.cls", b"3")];
        let labels = |members: &[(&str, &[u8])], want| opened(members, want).unwrap().labels;
        let words = Labels::Names(vec!["cat".into(), "3".into()]);
        assert_eq!(labels(&named, Want::Labelled), words);
        assert_eq!(labels(&named, Want::Inputs), Labels::None);
        assert_eq!(labels(&named[..3], Want::Labelled), Labels::None);
        assert_eq!(labels(&[named[0], named[2], named[3]], Want::Labelled), Labels::None);
    }

    #[test]
    fn a_broken_member_is_one_row_and_a_cut_file_says_so() {
        let set = opened(&[("1.png", b"nonsense"), ("2.png", &grey(1))], Want::Inputs).unwrap();
        assert!(set.items.item(0).is_err() && set.items.item(1).is_ok());
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar");
        let whole = examples::tar(&[("1.png", &[7; 2000])]);
        std::fs::write(&path, &whole[..1000]).unwrap();
        let e = open(&path, &Options::new(Want::Inputs, Signal::image(1, 1, 1))).err().unwrap();
        assert!(e.to_string().contains("it ends within member `1.png`"), "{e}");
        assert_eq!(opened(&[("a.txt", b"x")], Want::Inputs).err().unwrap().code(), "data::empty");
    }
}
