//! The text of an advisory: TOML between fences, a heading and a description.

use std::fmt::Write as _;

use bowline_osv::Reference;
use url::Url;

use super::Advisory;

/// Most elements of a list.
const MAX_ELEMENTS: usize = 200;

/// The file of an advisory.
pub(super) fn text(advisory: &Advisory<'_>) -> String {
    let mut out = String::from("```toml\n[advisory]\n");
    line(&mut out, "id", &advisory.id);
    line(&mut out, "package", advisory.name);
    line(&mut out, "date", &advisory.date);
    let (url, references) = links(&advisory.record.references);
    optional(&mut out, "url", url);
    list(&mut out, "references", &references);
    list(&mut out, "categories", &advisory.categories);
    optional(&mut out, "informational", advisory.informational);
    optional(&mut out, "cvss", advisory.vector.as_deref());
    list(&mut out, "aliases", &advisory.aliases);
    line(&mut out, "license", advisory.license);
    optional(&mut out, "withdrawn", advisory.withdrawn.as_deref());
    out.push_str("\n[versions]\n");
    // Readers require it, and take an empty list for no version that is patched.
    line_of(&mut out, "patched", &array(&advisory.versions.patched));
    if !advisory.versions.unaffected.is_empty() {
        line_of(&mut out, "unaffected", &array(&advisory.versions.unaffected));
    }
    let title = title(advisory);
    let details = plain(&advisory.record.details);
    let _ = write!(out, "```\n\n# {title}\n\n{}\n", details.trim());
    out
}

fn line(out: &mut String, name: &str, value: &str) {
    line_of(out, name, &quoted(value));
}

fn optional(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        line(out, name, value);
    }
}

fn line_of(out: &mut String, name: &str, value: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "{name} = {value}");
}

fn list(out: &mut String, name: &str, values: &[&str]) {
    let values = values.get(..MAX_ELEMENTS).unwrap_or(values);
    if !values.is_empty() {
        line_of(out, name, &array(values));
    }
}

fn array(values: &[impl AsRef<str>]) -> String {
    let values: Vec<String> = values.iter().map(|value| quoted(value.as_ref())).collect();
    format!("[{}]", values.join(", "))
}

/// A basic string of TOML, which stays on one line.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            character if character.is_control() => _ = write!(out, "\\u{:04X}", u32::from(character)),
            character => out.push(character),
        }
    }
    out.push('"');
    out
}

/// The page of the advisory, and all others that readers take for addresses.
fn links(references: &[Reference]) -> (Option<&str>, Vec<&str>) {
    let is_link = |url: &str| Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
    let mut known: Vec<&Reference> = Vec::new();
    for reference in references.iter().filter(|reference| is_link(&reference.url)) {
        if !known.iter().any(|other| other.url == reference.url) {
            known.push(reference);
        }
    }
    let of = |kind: &str| known.iter().find(|reference| reference.kind == kind);
    let page = of("ADVISORY").or_else(|| of("WEB")).or(known.first()).map(|reference| reference.url.as_str());
    let others = known.iter().map(|reference| reference.url.as_str()).filter(|url| Some(*url) != page);
    (page, others.collect())
}

/// One line; the id where the record has no summary.
fn title(advisory: &Advisory<'_>) -> String {
    let words: Vec<String> =
        advisory.record.summary.split_whitespace().map(plain).filter(|word| !word.is_empty()).collect();
    let title = words.join(" ");
    if title.is_empty() { advisory.id.clone() } else { title }
}

/// Without characters that move a terminal's cursor or change its colors.
fn plain(text: &str) -> String {
    text.chars().filter(|character| matches!(character, '\n' | '\t') || !character.is_control()).collect()
}
