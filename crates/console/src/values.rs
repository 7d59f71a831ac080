//! Values as people read them: times, sizes, names, enumerations.

use bowline_core::rfc3339::{self, Digits};
use maud::{Markup, html};
use prost_types::Timestamp;

/// Maximum bytes of a value that is shown in a line or a cell: other people write it, and each quotation mark is six bytes
/// of a page.
pub(crate) const MAX_VALUE: usize = 1 << 10;
/// Maximum bytes of a note.
const MAX_NOTE: usize = 4 << 10;
/// Maximum bytes of a text in a block of its own.
pub(crate) const MAX_BLOCK: usize = 64 << 10;

/// A time in UTC, which the script shows in the reader's zone.
pub(crate) fn time(time: Option<&Timestamp>) -> Markup {
    let Some(time) = time else { return none() };
    let micros = time.seconds.saturating_mul(1_000_000);
    let text = rfc3339::text(micros, Digits::Fewest);
    let shown = text.get(..16).unwrap_or(&text).replace('T', " ");
    html! { time datetime=(text) { (shown) " UTC" } }
}

/// The day of a time in UTC.
pub(crate) fn day(time: Option<&Timestamp>) -> String {
    let text = rfc3339::text(time.map_or(0, |time| time.seconds.saturating_mul(1_000_000)), Digits::Fewest);
    text.get(..10).unwrap_or(&text).to_owned()
}

/// A value that is not there.
pub(crate) fn none() -> Markup {
    html! { span.none { "none" } }
}

/// A text that a person wrote: isolated, so that its direction does not reach what is beside it.
pub(crate) fn text(text: &str) -> Markup {
    if text.trim().is_empty() { none() } else { isolated(text, MAX_VALUE) }
}

/// A longer text that a person wrote; nothing without one.
pub(crate) fn note(text: &str) -> Markup {
    html! { @if !text.trim().is_empty() { (isolated(text, MAX_NOTE)) } }
}

fn isolated(text: &str, max: usize) -> Markup {
    let shown = beginning(text, max);
    html! { bdi { (shown) } (cut(text, shown)) }
}

/// The beginning of a text, cut between two characters.
pub(crate) fn beginning(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

/// Says that a text is longer than what is shown of it.
fn cut(text: &str, shown: &str) -> Markup {
    html! { @if shown.len() < text.len() { " " span.small { "(cut: " (bytes(text.len() as i64)) " in all)" } } }
}

/// What stands in the place of what may be a secret.
pub(crate) const NOT_SHOWN: &str = "(not shown)";

/// Whether an address has a part that may be a secret.
pub(crate) fn has_path_or_query(address: &str) -> bool {
    address_of(address).ends_with(NOT_SHOWN)
}

/// An address with its scheme and host alone: receivers take secrets in paths and queries.
pub(crate) fn address_of(address: &str) -> String {
    if address.is_empty() {
        return String::new();
    }
    let Some(url) = url::Url::parse(address).ok().filter(url::Url::has_host) else { return NOT_SHOWN.to_owned() };
    let is_without_user = url.username().is_empty() && url.password().is_none();
    if is_without_user && matches!(&url[url::Position::AfterPort..], "" | "/") {
        return address.to_owned();
    }
    format!("{}://{}/{NOT_SHOWN}", url.scheme(), &url[url::Position::BeforeHost..url::Position::AfterPort])
}

/// A text for machines in a block of its own.
pub(crate) fn block(text: &str) -> Markup {
    let shown = beginning(text, MAX_BLOCK);
    html! { @if text.is_empty() { (none()) } @else { pre tabindex="0" { code { (shown) } } (cut(text, shown)) } }
}

/// An id, a digest, a version: a text for machines.
pub(crate) fn code(text: &str) -> Markup {
    let shown = beginning(text, MAX_VALUE);
    html! { @if text.is_empty() { (none()) } @else { code { (shown) } (cut(text, shown)) } }
}

/// A digest, shortened where it is one of many; the whole one is in the title.
pub(crate) fn digest(digest: &str) -> Markup {
    let digest = beginning(digest, MAX_VALUE);
    let short = digest.split_once(':').map_or(digest, |(_, rest)| rest);
    html! { code title=(digest) { (beginning(short, 12)) } }
}

/// Bytes in binary units.
pub(crate) fn bytes(amount: i64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if amount < 1024 {
        return format!("{amount} B");
    }
    let mut value = amount as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A number with its noun.
pub(crate) fn count(number: i64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The name of an enumeration's value without its prefix, in words: `REVIEW_STATE_PENDING` is "pending".
pub(crate) fn words(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_lowercase().replace('_', " ")
}

/// A word with a color. Its text says everything.
pub(crate) fn badge(kind: &str, text: &str) -> Markup {
    html! { span class={ "badge " (kind) } { (text) } }
}

/// Yes or no, as a badge.
pub(crate) fn yes(is_so: bool) -> Markup {
    if is_so { badge("good", "yes") } else { badge("plain", "no") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_well() {
        let at = Timestamp { seconds: 1_700_000_000, nanos: 5 };
        assert_eq!(
            time(Some(&at)).into_string(),
            r#"<time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13 UTC</time>"#
        );
        assert_eq!(day(Some(&at)), "2023-11-14");
        assert_eq!((bytes(0), bytes(1023), bytes(1024)), ("0 B".into(), "1023 B".into(), "1.0 KiB".into()));
        assert_eq!((bytes(1 << 30), bytes((1 << 30) - 1)), ("1.0 GiB".into(), "1.0 GiB".into()));
        assert_eq!(words("REVIEW_STATE_PENDING", "REVIEW_STATE_"), "pending");
        assert_eq!(
            digest("sha256:0123456789abcdef").into_string(),
            "<code title=\"sha256:0123456789abcdef\">0123456789ab</code>"
        );
        assert_eq!(text("<b>").into_string(), "<bdi>&lt;b&gt;</bdi>");
    }

    #[test]
    fn addresses_are_shown_with_their_host() {
        for address in ["", "https://hooks.example", "https://hooks.example:8443/"] {
            assert_eq!(address_of(address), address);
            assert!(!has_path_or_query(address), "{address}");
        }
        for (address, shown) in [
            ("https://hooks.example/a/b", "https://hooks.example/(not shown)"),
            ("https://hooks.example:8443?token=x", "https://hooks.example:8443/(not shown)"),
            ("https://[2001:db8::1]/x#y", "https://[2001:db8::1]/(not shown)"),
            ("https://hooks.example/#x", "https://hooks.example/(not shown)"),
            ("mailto:token", "(not shown)"),
            ("no address", "(not shown)"),
        ] {
            assert_eq!(address_of(address), shown, "{address}");
            assert!(has_path_or_query(address), "{address}");
        }
        assert_eq!(address_of("https://u:hunter2@hooks.example/"), "https://hooks.example/(not shown)");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = "\"é".repeat(1 << 20);
        for (shown, max) in
            [(text(&long), MAX_VALUE), (code(&long), MAX_VALUE), (note(&long), MAX_NOTE), (block(&long), MAX_BLOCK)]
        {
            let shown = shown.into_string();
            assert!(
                shown.len() < 6 * max + 200 && shown.contains("(cut: 3.0 MiB in all)"),
                "{} for {max}",
                shown.len()
            );
        }
        assert!(!text(&"a".repeat(MAX_VALUE)).into_string().contains("cut"));
        assert!(digest(&long).into_string().len() < 7 * MAX_VALUE);
    }
}
