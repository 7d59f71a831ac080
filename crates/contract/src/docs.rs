/// Comments of the contract's messages, fields and methods: lines with a full name, a tab and a text, sorted by the names.
static LINES: &str = include_str!(concat!(env!("OUT_DIR"), "/docs.txt"));

/// Comments of the contract's messages, fields and methods, by full name.
#[derive(Debug)]
pub struct Docs;

impl Docs {
    /// The comments that are embedded; reading them takes no time.
    pub fn load() -> Docs {
        Docs
    }

    /// The comment in one line; empty where there is none.
    pub fn of(&self, name: &str) -> String {
        comment(name).to_owned()
    }
}

fn comment(name: &str) -> &'static str {
    let mut rest = LINES;
    // The middle line is one half of what is left or the name's own.
    while !rest.is_empty() {
        let (start, end) = line_at(rest, rest.len() / 2);
        let (found, text) = rest[start..end].split_once('\t').unwrap_or_default();
        match found.cmp(name) {
            std::cmp::Ordering::Equal => return text,
            std::cmp::Ordering::Less => rest = rest.get(end + 1..).unwrap_or_default(),
            std::cmp::Ordering::Greater => rest = &rest[..start],
        }
    }
    ""
}

/// Where the line that contains this byte starts and ends, without its line break.
fn line_at(text: &str, byte: usize) -> (usize, usize) {
    let bytes = text.as_bytes();
    let start = bytes[..byte].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let end = bytes[byte..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |at| byte + at);
    (start, end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_found_by_its_name() {
        let mut names = 0;
        for line in LINES.lines() {
            let (name, text) = line.split_once('\t').unwrap_or_default();
            assert_eq!(comment(name), text, "{name}");
            assert!(!text.is_empty() && !text.contains("Undocumented"), "{name}: {text}");
            names += 1;
        }
        assert!(names > 2000, "hardly any comment: {names}");
        for unknown in ["", "a", "zzz", "chainguard.platform.iam.v2.GroupsService.ListGroup"] {
            assert_eq!(comment(unknown), "", "{unknown}");
        }
    }
}
