//! The page as one file: a line `@inline NAME` of its frame stands for a file
//! beside it, for the compiled wasm and its glue, or for an artifact.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use upright_wasm::Subject;

use crate::{artifact, place, read, write};

/// Where the sources of the page lie, and where it goes.
const SOURCES: &str = "page";
const PAGE: &str = "../upright-serve/site/index.html";

/// The most that may go over the wire: 3 MB.
const LARGEST: usize = 3_000_000;

/// Makes the page of the wasm, as `wasm-bindgen --target no-modules` leaves it, and the script
/// beside it.
pub(crate) fn run(wasm: &Path, glue: &Path) -> Result<(), String> {
    let glue = String::from_utf8(read(glue)?).map_err(|why| why.to_string())?;
    let mut made = BTreeMap::from([("core", encoded(wasm)?), ("glue", glue.trim().into())]);
    for subject in Subject::ALL {
        made.insert(subject.name(), encoded(&artifact(subject))?);
    }
    let page = assemble(&made)?;
    let wire = packed(page.as_bytes())?.len();
    if wire > LARGEST {
        return Err(format!("the page has {wire} bytes over the wire, more than {LARGEST}"));
    }
    write(&place(PAGE), page.as_bytes())?;
    println!("{wire} bytes over the wire, compressed");
    Ok(())
}

/// A file, packed, as text.
fn encoded(path: &Path) -> Result<String, String> {
    Ok(STANDARD.encode(packed(&read(path)?)?))
}

fn packed(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).map_err(|why| why.to_string())
}

/// The frame with everything inlined: what was made, by name, and the files beside it.
fn assemble(made: &BTreeMap<&str, String>) -> Result<String, String> {
    let source = |name: &str| {
        let text = read(&place(SOURCES).join(name))?;
        String::from_utf8(text).map_err(|why| format!("{name}: {why}"))
    };
    let mut page = String::new();
    for line in source("index.html")?.lines() {
        match line.trim().strip_prefix("@inline ") {
            Some(name) => match made.get(name) {
                Some(text) => page.push_str(text),
                None => page.push_str(source(name)?.trim_end()),
            },
            None => page.push_str(line),
        }
        page.push('\n');
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;

    const STALE: &str = "the page is out of date: run `bash crates/upright-wasm/build`";

    fn page() -> String {
        String::from_utf8(read(&place(PAGE)).unwrap()).unwrap()
    }

    /// What was made for a page.
    fn made(page: &str) -> BTreeMap<&'static str, String> {
        let names = ["core", "glue"].into_iter().chain(Subject::ALL.map(Subject::name));
        let script = |name: &str| {
            let start = format!("<script type=\"text/plain\" id=\"{name}\">\n");
            let from = page.find(&start).unwrap() + start.len();
            page[from..].split_once("\n</script>").unwrap().0.to_string()
        };
        names.map(|name| (name, script(name))).collect()
    }

    fn unpacked(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let packed = STANDARD.decode(text).unwrap();
        GzDecoder::new(packed.as_slice()).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn the_page_is_made_of_its_sources_and_artifacts() {
        let page = page();
        let made = made(&page);
        assert!(page == assemble(&made).unwrap(), "{STALE}");
        for subject in Subject::ALL {
            assert!(
                unpacked(&made[subject.name()]) == read(&artifact(subject)).unwrap(),
                "{STALE}"
            );
        }
        assert_eq!(unpacked(&made["core"])[..4], *b"\0asm");
    }

    #[test]
    fn the_page_loads_nothing_and_is_small() {
        let page = page();
        assert!(packed(page.as_bytes()).unwrap().len() < LARGEST);
        let made = made(&page);
        for word in ["src=\"", "@import", "url(", "http://", "https://"] {
            let own = page.matches(word).count() - made["glue"].matches(word).count();
            assert_eq!(own, 0, "{word}");
        }
    }
}
