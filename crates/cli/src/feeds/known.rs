//! What the server has of a source, and how an import differs from it.

use std::collections::HashMap;

type Digest = [u8; 32];

/// Records of a source by id.
#[derive(Default)]
pub(super) struct Known {
    records: HashMap<Box<str>, Entry>,
    /// Something could not be read, and its record is unknown.
    is_uncertain: bool,
}

#[derive(Default)]
struct Entry {
    /// What the server has, or would have if what is staged were committed.
    there: Option<Digest>,
    /// What the files have.
    brought: Option<Digest>,
    /// The files have it, but its content is not readable.
    unreadable: bool,
}

/// What a record of the files is to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    Added,
    Changed,
    Unchanged,
    /// The same as another file.
    Repeated,
    /// Another content than a file before it; that one counts.
    Conflict,
}

impl Known {
    /// The server has this record; without a digest it was there and will be removed.
    pub(super) fn there(&mut self, id: &str, digest: &[u8]) {
        self.records.entry(id.into()).or_default().there = digest.try_into().ok();
    }

    /// What the server has under another licence counts as another content.
    pub(super) fn forget_contents(&mut self) {
        for entry in self.records.values_mut().filter(|entry| entry.there.is_some()) {
            entry.there = Some([0; 32]);
        }
    }

    /// The files have this record.
    pub(super) fn bring(&mut self, id: &str, digest: Digest) -> Difference {
        let entry = self.records.entry(id.into()).or_default();
        match entry.brought {
            Some(before) if before == digest => return Difference::Repeated,
            Some(_) => return Difference::Conflict,
            None => entry.brought = Some(digest),
        }
        match entry.there {
            None => Difference::Added,
            Some(there) if there == digest => Difference::Unchanged,
            Some(_) => Difference::Changed,
        }
    }

    /// A record could not be read, and stays as it is. Which one it is says its id, or the name of its file.
    pub(super) fn skip(&mut self, name: &str, id: Option<&str>) {
        let path = std::path::Path::new(name);
        match id.or_else(|| path.file_stem().and_then(|stem| stem.to_str())) {
            Some(known) if self.records.contains_key(known) => {
                self.records.entry(known.into()).or_default().unreadable = true;
            }
            // A record that the server does not have cannot be removed.
            _ if id.is_some() => {}
            _ => self.is_uncertain = true,
        }
    }

    /// Whether any record that the files seem not to have may be one of those that could not be read.
    pub(super) fn is_uncertain(&self) -> bool {
        self.is_uncertain
    }

    /// What the server has and the files do not, in order.
    pub(super) fn gone(&self) -> Vec<String> {
        let gone = |entry: &Entry| entry.there.is_some() && entry.brought.is_none() && !entry.unreadable;
        let mut ids: Vec<String> =
            self.records.iter().filter(|(_, entry)| gone(entry)).map(|(id, _)| id.to_string()).collect();
        ids.sort_unstable();
        ids
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_told_by_digests() {
        let mut known = Known::default();
        for id in ["A", "B", "C", "D"] {
            known.there(id, &[1; 32]);
        }
        known.there("E", &[]);
        assert_eq!(known.bring("A", [1; 32]), Difference::Unchanged);
        assert_eq!(known.bring("B", [2; 32]), Difference::Changed);
        assert_eq!(known.bring("B", [2; 32]), Difference::Repeated);
        assert_eq!(known.bring("B", [3; 32]), Difference::Conflict);
        assert_eq!(known.bring("E", [1; 32]), Difference::Added);
        assert_eq!(known.bring("F", [1; 32]), Difference::Added);
        known.skip("2026/C.json", None);
        assert_eq!(known.gone(), ["D"]);
        known.skip("all.jsonl:3", Some("D"));
        known.skip("all.jsonl:4", Some("new"));
        assert!(known.gone().is_empty() && !known.is_uncertain());
        known.skip("all.jsonl:5", None);
        assert!(known.is_uncertain());
        let mut other = Known::default();
        other.there("A", &[1; 32]);
        other.forget_contents();
        assert_eq!(other.bring("A", [1; 32]), Difference::Changed);
    }
}
