//! Lines of numbers.

/// Lines that hold something, without comments that start with `#`. Any of
/// the usual line ends is one.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes
        .split(|b| matches!(b, b'\n' | b'\r'))
        .map(|line| line.split(|&b| b == b'#').next().unwrap_or(&[]).trim_ascii())
        .filter(|line| !line.is_empty())
}

/// The words of a line, split at blanks and at commas or semicolons.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|b| b.is_ascii_whitespace() || matches!(b, b',' | b';')).filter(|w| !w.is_empty())
}

/// A number, if the word is one; `nan` and `inf` are.
pub(super) fn number(word: &[u8]) -> Option<f64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A word for messages: its start, readable.
pub(super) fn shown(word: &[u8]) -> String {
    String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned()
}

/// The first three numbers of a line.
pub(super) fn point(line: &[u8]) -> Option<[f32; 3]> {
    let mut numbers = words(line).map(number);
    let mut next = || numbers.next()?.map(|v| v as f32);
    Some([next()?, next()?, next()?])
}
