//! PEP 440, with the spellings that it asks readers to accept.

use super::Read;
use crate::key::{Key, digits, is_number};

/// `[N!]N(.N)*[{a|b|rc}N][.postN][.devN][+local]`, in any of the permitted spellings.
pub(super) fn read(version: &str) -> Option<Read> {
    let lower = version.to_ascii_lowercase();
    let (public, local) = match lower.split_once('+') {
        Some((public, local)) => (public, Some(local)),
        None => (lower.as_str(), None),
    };
    let public = public.strip_prefix('v').unwrap_or(public);
    let (epoch, public) = match public.split_once('!') {
        Some((epoch, public)) if is_number(epoch) => (epoch, public),
        Some(_) => return None,
        None => ("0", public),
    };
    let (release, rest) = release(public)?;
    let (pre, rest) = pre(rest);
    let (post, rest) = post(rest);
    let (dev, rest) = labelled(rest, &["dev"]).map_or((None, rest), |(_, number, rest)| (Some(number), rest));
    if !rest.is_empty() {
        return None;
    }
    let mut key = Key::default();
    key.number(epoch);
    for number in release {
        key.byte(1).number(number);
    }
    key.byte(0);
    // A development release of the release itself comes before all its pre-releases; without any, nothing comes after.
    match pre {
        Some((class, number)) => key.byte(class).number(number),
        None if post.is_none() && dev.is_some() => key.byte(0),
        None => key.byte(4),
    };
    match post {
        Some(number) => key.byte(1).number(number),
        None => key.byte(0),
    };
    match dev {
        Some(number) => key.byte(0).number(number),
        None => key.byte(1),
    };
    append_local(&mut key, local)?;
    Some(Read { key: key.finish(), prerelease: pre.is_some() || dev.is_some() })
}

/// The numbers of the release without trailing zeros, and what follows them.
fn release(text: &str) -> Option<(Vec<&str>, &str)> {
    let (first, mut rest) = digits(text);
    if first.is_empty() {
        return None;
    }
    let mut numbers = vec![first];
    while let Some((number, after)) = rest.strip_prefix('.').map(digits).filter(|(number, _)| !number.is_empty()) {
        numbers.push(number);
        rest = after;
    }
    while numbers.last().is_some_and(|number| number.bytes().all(|byte| byte == b'0')) {
        numbers.pop();
    }
    Some((numbers, rest))
}

/// The class of a pre-release among them, and its number.
fn pre(text: &str) -> (Option<(u8, &str)>, &str) {
    // Longer words first: what begins with `alpha` begins with `a` too.
    const WORDS: &[&str] = &["alpha", "beta", "preview", "pre", "rc", "a", "b", "c"];
    match labelled(text, WORDS) {
        Some((word, number, rest)) => {
            let class = match word {
                "alpha" | "a" => 1,
                "beta" | "b" => 2,
                _ => 3,
            };
            (Some((class, number)), rest)
        }
        None => (None, text),
    }
}

fn post(text: &str) -> (Option<&str>, &str) {
    if let Some((number, rest)) = text.strip_prefix('-').map(digits).filter(|(number, _)| !number.is_empty()) {
        return (Some(number), rest);
    }
    labelled(text, &["post", "rev", "r"]).map_or((None, text), |(_, number, rest)| (Some(number), rest))
}

/// `[.-_]word[.-_][N]`: the word, its number (0 if there is none), and the rest.
fn labelled<'a>(text: &'a str, words: &[&'static str]) -> Option<(&'static str, &'a str, &'a str)> {
    let separator = |text: &'a str| text.strip_prefix(['.', '-', '_']).unwrap_or(text);
    let start = separator(text);
    let (word, after) = words.iter().find_map(|word| Some((*word, start.strip_prefix(word)?)))?;
    let (number, rest) = digits(separator(after));
    if number.is_empty() { Some((word, "0", after)) } else { Some((word, number, rest)) }
}

/// Numbers sort above words, and what has fewer segments first.
fn append_local(key: &mut Key, local: Option<&str>) -> Option<()> {
    for segment in local.into_iter().flat_map(|local| local.split(['.', '-', '_'])) {
        if segment.is_empty() || !segment.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return None;
        }
        if is_number(segment) {
            key.byte(2).number(segment);
        } else {
            key.byte(1).text(segment);
        }
    }
    key.byte(0);
    Some(())
}
