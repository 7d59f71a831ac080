//! Maven's order of versions, as its POM reference defines it: a sequence of tokens, each after a dot or a hyphen.
//!
//! Maven's own comparison is no order for a few versions that no one writes (`1.sp.1 < 1-alpha < 1 < 1.sp.1`). The
//! definition is followed instead, which agrees with it on everything else. As in current Maven, a qualifier and the number
//! right after it or after its hyphen are one (`rc1`, `rc-1`), and stand above the same qualifier with anything else after it.

use super::Read;
use crate::key::{Key, digits};

// What may follow in a sequence, from the least to the greatest.
const RELEASE: u8 = 0x20;
const SERVICE_PACK: u8 = 0x30;
const UNKNOWN: u8 = 0x31;
const HYPHEN_NUMBER: u8 = 0x40;
const DOT_NUMBER: u8 = 0x50;
const OWN_NUMBER: u8 = 0x60;

enum Token<'a> {
    Number { digits: &'a str, hyphen: bool },
    Qualifier { name: &'a str, number: Option<&'a str> },
}

/// Every text is a version to Maven.
pub(super) fn read(version: &str) -> Read {
    let lower = version.to_lowercase();
    let mut key = Key::default();
    let mut prerelease = false;
    for token in trim(tokens(&lower)) {
        match token {
            Token::Number { digits, hyphen } => {
                key.byte(if hyphen { HYPHEN_NUMBER } else { DOT_NUMBER }).number(digits);
            }
            Token::Qualifier { name, number } => {
                let rank = rank(name, number.is_some());
                prerelease |= rank < RELEASE;
                key.byte(rank);
                if rank == UNKNOWN {
                    key.text(name);
                }
                if let Some(number) = number {
                    key.byte(OWN_NUMBER).number(number);
                }
            }
        }
    }
    // The end stands where a release does: above what announces one, below what follows one.
    key.byte(RELEASE);
    Read { key: key.finish(), prerelease }
}

/// Splits at dots, hyphens, and between digits and anything else, which counts as a hyphen.
fn tokens(version: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = version;
    let mut hyphen = false;
    loop {
        let (number, after) = digits(rest);
        rest = if !number.is_empty() {
            tokens.push(Token::Number { digits: number, hyphen });
            after
        } else if rest.is_empty() || rest.starts_with(['.', '-']) {
            tokens.push(Token::Number { digits: "0", hyphen });
            rest
        } else {
            let (token, after) = qualifier(rest);
            tokens.push(token);
            after
        };
        let Some(separator) = rest.chars().next() else {
            return tokens;
        };
        hyphen = separator != '.';
        rest = rest.strip_prefix(['.', '-']).unwrap_or(rest);
    }
}

fn qualifier(text: &str) -> (Token<'_>, &str) {
    let end = text.find(|c: char| c.is_ascii_digit() || c == '.' || c == '-').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let (number, after) = digits(rest.strip_prefix('-').unwrap_or(rest));
    if number.is_empty() {
        (Token::Qualifier { name, number: None }, rest)
    } else {
        (Token::Qualifier { name, number: Some(number) }, after)
    }
}

/// Zeros and words for "released" say nothing at the end, before a hyphen, and before a qualifier.
fn trim(tokens: Vec<Token<'_>>) -> Vec<Token<'_>> {
    let mut kept: Vec<Token<'_>> = Vec::with_capacity(tokens.len());
    for token in tokens.into_iter().rev() {
        let null = match &token {
            Token::Number { digits, .. } => digits.bytes().all(|byte| byte == b'0'),
            Token::Qualifier { name, number } => number.is_none() && rank(name, false) == RELEASE,
        };
        if !null || matches!(kept.last(), Some(Token::Number { hyphen: false, .. })) {
            kept.push(token);
        }
    }
    kept.reverse();
    kept
}

/// The rank of a qualifier; one letter stands for a word only when a number follows it.
fn rank(name: &str, has_number: bool) -> u8 {
    match name {
        "alpha" => 0x10,
        "beta" => 0x11,
        "milestone" => 0x12,
        "a" if has_number => 0x10,
        "b" if has_number => 0x11,
        "m" if has_number => 0x12,
        "rc" | "cr" => 0x13,
        "snapshot" => 0x14,
        "final" | "ga" | "release" => RELEASE,
        "sp" => SERVICE_PACK,
        _ => UNKNOWN,
    }
}
