//! Python's core metadata: headers as in mail, in METADATA and PKG-INFO.

use crate::{Refusal, line};

/// Requirements of a package; of one with more, nothing is known.
const REQUIREMENTS: usize = 500;
/// Characters of one; longer ones are cut, and end with [`CUT`].
const REQUIREMENT: usize = 300;
/// The end of a requirement that was cut.
pub const CUT: char = '\u{2026}';

/// The fields that are read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) summary: String,
    pub(crate) license: String,
    pub(crate) requires_python: String,
    /// What it requires, each as it is written; absent if that is too much.
    pub(crate) requires_dist: Option<Vec<String>>,
}

/// Reads the headers up to the first empty line.
pub(crate) fn read(bytes: &[u8]) -> Result<Metadata, Refusal> {
    let text = std::str::from_utf8(bytes).map_err(|_| Refusal::damaged("has metadata that are not UTF-8"))?;
    let (mut metadata, mut requires_dist) = (Metadata::default(), Vec::new());
    let (mut expression, mut free, mut classifier) = (String::new(), String::new(), String::new());
    let head = text.strip_prefix('\u{feff}').unwrap_or(text).lines().take_while(|line| !line.is_empty());
    for text in head.filter(|text| !text.starts_with([' ', '\t'])) {
        let Some((field, value)) = text.split_once(':') else { continue };
        let value = value.trim();
        let target = match field.to_ascii_lowercase().as_str() {
            "name" => &mut metadata.name,
            "version" => &mut metadata.version,
            "summary" => &mut metadata.summary,
            "license-expression" => &mut expression,
            "license" => &mut free,
            "requires-python" => &mut metadata.requires_python,
            "requires-dist" => {
                requires_dist.extend((requires_dist.len() <= REQUIREMENTS).then(|| requirement(value)));
                continue;
            }
            "classifier" => match value.strip_prefix("License :: ") {
                Some(license) if classifier.is_empty() => {
                    license.rsplit(" :: ").next().unwrap_or(license).clone_into(&mut classifier);
                    continue;
                }
                _ => continue,
            },
            _ => continue,
        };
        // The first of a field counts, as for those who parse mail.
        if target.is_empty() {
            value.clone_into(target);
        }
    }
    if metadata.name.is_empty() || metadata.version.is_empty() {
        return Err(Refusal::damaged("has metadata without a name or a version"));
    }
    metadata.requires_dist = Some(requires_dist).filter(|list| list.len() <= REQUIREMENTS);
    metadata.license = [expression, free, classifier].into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    Ok(metadata)
}

fn requirement(value: &str) -> String {
    let is_long = value.chars().nth(REQUIREMENT).is_some();
    let mut text = line(value, REQUIREMENT);
    text.extend(is_long.then_some(CUT));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_counts_and_the_body_does_not() {
        let text = "Metadata-Version: 2.1\nName: Foo\nVersion: 1.0\nSummary: a\n  b\nName: Bar\n\
                    Classifier: License :: OSI Approved :: MIT License\nRequires-Dist: a>=1\n\
                    requires-dist: b; extra == 'x'\n\nLicense: none\nRequires-Dist: c\n";
        let metadata = read(text.as_bytes()).expect("metadata");
        assert_eq!((metadata.name.as_str(), metadata.summary.as_str()), ("Foo", "a"));
        assert_eq!(metadata.license, "MIT License");
        assert_eq!(metadata.requires_dist.as_deref(), Some(&["a>=1".to_owned(), "b; extra == 'x'".to_owned()][..]));
        let long =
            |length: usize| read(format!("Name: a\nVersion: 1\nRequires-Dist: {}\n", "b".repeat(length)).as_bytes());
        let only = |length| long(length).expect("metadata").requires_dist.expect("a list").remove(0);
        assert_eq!(
            (only(REQUIREMENT), only(REQUIREMENT + 1)),
            ("b".repeat(REQUIREMENT), "b".repeat(REQUIREMENT) + "\u{2026}")
        );
        let many =
            |count: usize| read(format!("Name: a\nVersion: 1\n{}", "Requires-Dist: b\n".repeat(count)).as_bytes());
        let count = |count| many(count).expect("metadata").requires_dist.map(|list| list.len());
        assert_eq!((count(0), count(REQUIREMENTS), count(REQUIREMENTS + 1)), (Some(0), Some(REQUIREMENTS), None));
        assert!(read(b"Name: Foo\n\nVersion: 1").is_err());
        assert!(read(b"\xff").is_err());
    }
}
