//! Patterns for row names, as shells know them: `*` any characters, also `/`,
//! `?` one, `[a-z]` one of some, `[!a-z]` one of all others.

/// Whether a whole name fits a pattern.
pub(crate) fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
        } else if let Some(next) = one(&pattern, p, name[n]) {
            (p, n) = (next, n + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, n) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

/// The place behind the one-character pattern at `p`, if it fits.
fn one(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '?' => Some(p + 1),
        '[' => {
            let not = pattern.get(p + 1) == Some(&'!');
            let start = p + 1 + usize::from(not);
            // A bracket right at the start is one of the characters.
            let end = start + 1 + pattern.get(start + 1..)?.iter().position(|&c| c == ']')?;
            let set = &pattern[start..end];
            let mut i = 0;
            let mut inside = false;
            while i < set.len() {
                if i + 2 < set.len() && set[i + 1] == '-' {
                    inside |= (set[i]..=set[i + 2]).contains(&c);
                    i += 3;
                } else {
                    inside |= set[i] == c;
                    i += 1;
                }
            }
            (inside != not).then_some(end + 1)
        }
        &literal => (literal == c).then_some(p + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_shells_mean() {
        for (pattern, name, fit) in [
            ("*", "", true),
            ("*.png", "a/b/c.png", true),
            ("*.png", "c.png.txt", false),
            ("*#*-7[2-9]", "t.ndjson#3-74", true),
            ("*-7[2-9]", "t.ndjson#3-71", false),
            ("*-7[!2-9]", "t.ndjson#3-71", true),
            ("*-?", "a-10", false),
            ("*-?", "a-1", true),
            ("a[]]b", "a]b", true),
            ("a[-x]b", "a-b", true),
            ("a[b", "a[b", false),
            ("*a*b*c", "xaxxbxxbc", true),
            ("é?", "éß", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    #[test]
    fn a_cruel_pattern_ends_soon() {
        assert!(!fits(&"a*".repeat(50), &format!("{}b!", "a".repeat(49))));
        assert!(!fits(&format!("{}b", "*a".repeat(30)), &"a".repeat(5000)));
    }
}
