//! Claim matching of assumable identities: those that a workload acts as by presenting a token of another
//! issuer. Pure: no keys, no network.

use std::collections::BTreeMap;

pub use regex::Regex;
use regex::RegexBuilder;
use serde_json::{Map, Value};

use crate::jwt::Presented;

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 1024;
const SIZE_LIMIT: usize = 256 << 10;

/// One expectation as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    Exact(String),
    /// A regular expression that has to match the whole value.
    Pattern(String),
}

/// What an assumable identity expects of a token, as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimMatch {
    /// Expected value of `iss`.
    pub issuer: Expect,
    /// Expected value of `sub`.
    pub subject: Expect,
    /// Expected value of `aud`; absent for the default audiences.
    pub audience: Option<Expect>,
    /// Further claims by exact value.
    pub claims: BTreeMap<String, String>,
    /// Further claims by pattern.
    pub claim_patterns: BTreeMap<String, String>,
}

/// The first claim that does not fit: `iss`, `sub`, `aud` or the name of a custom claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {claim:?}")]
pub struct Mismatch {
    /// `iss`, `sub`, `aud` or the name of a custom claim.
    pub claim: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Test {
    Exact(String),
    Whole(Regex),
}

impl Test {
    pub(crate) fn compile(expect: &Expect) -> Result<Self, String> {
        match expect {
            Expect::Exact(text) => Ok(Self::Exact(text.clone())),
            Expect::Pattern(pattern) => whole(pattern).map(Self::Whole),
        }
    }

    pub(crate) fn fits(&self, value: &str) -> bool {
        match self {
            Self::Exact(text) => text == value,
            Self::Whole(regex) => regex.is_match(value),
        }
    }
}

/// Compiles a pattern so that it matches only whole values.
pub fn whole(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("a pattern has at most {MAX_PATTERN} bytes"));
    }
    let build = |text: &str| {
        RegexBuilder::new(text).size_limit(SIZE_LIMIT).dfa_size_limit(SIZE_LIMIT).nest_limit(50).build().map_err(
            |error| match error {
                regex::Error::CompiledTooBig(_) => "the pattern is too large when compiled".to_owned(),
                other => format!("not a valid pattern: {other}"),
            },
        )
    };
    // On its own first, so that the pattern cannot close the group that anchors it.
    build(pattern)?;
    build(&format!(r"\A(?:{pattern})\z"))
}

/// A claim match ready for use; cheap to clone.
#[derive(Clone, Debug)]
pub struct Compiled {
    issuer: Test,
    /// The literal prefix of an issuer pattern. A pattern without one matches nothing.
    issuer_prefix: Option<Prefix>,
    subject: Test,
    audience: Option<Test>,
    claims: Vec<(String, Test)>,
}

impl ClaimMatch {
    /// Compiles the patterns; the error is for the author of the identity. An issuer pattern that is not
    /// literal up to the end of its host compiles, but matches no issuer.
    pub fn compile(&self) -> Result<Compiled, String> {
        let named = |name: &str, error: String| format!("{name}: {error}");
        let mut claims = Vec::with_capacity(self.claims.len() + self.claim_patterns.len());
        for (name, value) in &self.claims {
            claims.push((name.clone(), Test::Exact(value.clone())));
        }
        for (name, pattern) in &self.claim_patterns {
            claims.push((name.clone(), Test::Whole(whole(pattern).map_err(|e| named(name, e))?)));
        }
        Ok(Compiled {
            issuer: Test::compile(&self.issuer).map_err(|e| named("issuer", e))?,
            issuer_prefix: match &self.issuer {
                Expect::Exact(_) => None,
                Expect::Pattern(pattern) => literal_prefix(pattern),
            },
            subject: Test::compile(&self.subject).map_err(|e| named("subject", e))?,
            audience: self.audience.as_ref().map(Test::compile).transpose().map_err(|e| named("audience", e))?,
            claims,
        })
    }
}

impl Compiled {
    /// Whether this identity trusts that issuer. Check it before sending any request to the issuer.
    pub fn trusts_issuer(&self, issuer: &str) -> bool {
        let within = match (&self.issuer, &self.issuer_prefix) {
            (Test::Exact(_), _) => true,
            (Test::Whole(_), Some(prefix)) => prefix.holds(issuer),
            (Test::Whole(_), None) => false,
        };
        within && self.issuer.fits(issuer)
    }

    /// Whether the token fits every expectation. `default_audiences` are accepted, exactly, when the identity names
    /// no audience. Strings, booleans and numbers match as JSON text; arrays match only for `aud`, by any element.
    pub fn matches(&self, token: &Presented, default_audiences: &[String]) -> Result<(), Mismatch> {
        let claims = TokenClaims {
            issuer: &token.issuer,
            subject: &token.subject,
            audiences: &token.audiences,
            further: &token.claims,
        };
        match self.checks(&claims, default_audiences).find(|(_, fits)| !fits) {
            Some((claim, _)) => Err(Mismatch { claim: claim.to_owned() }),
            None => Ok(()),
        }
    }

    /// Every expectation by the name of its claim, each with whether the claims fit: what [`Compiled::matches`] looks at.
    pub fn compare(&self, claims: &TokenClaims<'_>, default_audiences: &[String]) -> Vec<(String, bool)> {
        self.checks(claims, default_audiences).map(|(claim, fits)| (claim.to_owned(), fits)).collect()
    }

    fn checks<'a>(
        &'a self,
        token: &'a TokenClaims<'a>,
        default_audiences: &'a [String],
    ) -> impl Iterator<Item = (&'a str, bool)> {
        let audience = token.audiences.iter().any(|audience| match &self.audience {
            Some(test) => test.fits(audience),
            None => default_audiences.contains(audience),
        });
        let fixed =
            [("iss", self.trusts_issuer(token.issuer)), ("sub", self.subject.fits(token.subject)), ("aud", audience)];
        let further = self.claims.iter().map(|(name, test)| (name.as_str(), fits_claim(test, name, token)));
        fixed.into_iter().chain(further)
    }
}

/// The claims of a token, as far as they are compared.
#[derive(Clone, Copy, Debug)]
pub struct TokenClaims<'a> {
    /// Value of the claim `iss`.
    pub issuer: &'a str,
    /// Value of the claim `sub`.
    pub subject: &'a str,
    /// Values of the claim `aud`.
    pub audiences: &'a [String],
    /// All claims by name.
    pub further: &'a Map<String, Value>,
}

fn fits_claim(test: &Test, name: &str, token: &TokenClaims<'_>) -> bool {
    match token.further.get(name) {
        Some(Value::String(text)) => test.fits(text),
        Some(Value::Bool(flag)) => test.fits(if *flag { "true" } else { "false" }),
        Some(Value::Number(number)) => test.fits(&number.to_string()),
        Some(Value::Array(_)) if name == "aud" => token.audiences.iter().any(|audience| test.fits(audience)),
        _ => false,
    }
}

/// The literal beginning of an issuer pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Prefix {
    /// The pattern is this origin and nothing else.
    Whole(String),
    /// The origin with the slash behind it.
    Directory(String),
}

impl Prefix {
    fn holds(&self, issuer: &str) -> bool {
        match self {
            Self::Whole(origin) => issuer == origin,
            Self::Directory(origin) => issuer.starts_with(origin.as_str()),
        }
    }
}

/// Whether an issuer pattern is literal up to the end of the host (and port). Only such a pattern is usable:
/// any other could match a host that its author did not mean.
pub fn issuer_host_is_literal(pattern: &str) -> bool {
    literal_prefix(pattern).is_some()
}

fn literal_prefix(pattern: &str) -> Option<Prefix> {
    let mut rest = pattern.strip_prefix('^').or_else(|| pattern.strip_prefix(r"\A")).unwrap_or(pattern);
    let mut origin = String::new();
    let mut take = |literals: &[&str], rest: &mut &str| -> bool {
        for literal in literals {
            // A slash may be escaped.
            for c in literal.chars() {
                let Some(after) =
                    rest.strip_prefix(c).or_else(|| (c == '/').then(|| rest.strip_prefix(r"\/")).flatten())
                else {
                    return false;
                };
                *rest = after;
                origin.push(c);
            }
        }
        true
    };
    let scheme = if rest.starts_with("https") { "https" } else { "http" };
    if !take(&[scheme, "://"], &mut rest) {
        return None;
    }
    let host_at = origin.len();
    let mut in_port = false;
    loop {
        let mut chars = rest.chars();
        match chars.next() {
            Some(c) if c.is_ascii_digit() => origin.push(c),
            Some(c) if !in_port && (c.is_ascii_alphabetic() || c == '-') => origin.push(c),
            Some(':') if !in_port && origin.len() > host_at => {
                in_port = true;
                origin.push(':');
            }
            Some('\\') => match chars.next() {
                Some(c @ ('.' | '-')) if !in_port => origin.push(c),
                Some('/') => break,
                Some('z') if chars.as_str().is_empty() => break,
                _ => return None,
            },
            Some('/') | None => break,
            Some('$') if chars.as_str().is_empty() => break,
            _ => return None,
        }
        rest = chars.as_str();
    }
    if origin.len() == host_at || origin.ends_with(':') {
        return None;
    }
    let path = rest.strip_prefix('/').or_else(|| rest.strip_prefix(r"\/"));
    match path {
        None => Some(Prefix::Whole(origin)),
        // The slash must not be optional or repeated zero times, and no alternative may follow it.
        Some(path) if path.starts_with(['?', '*', '{']) || top_level_alternative(path) => None,
        Some(_) => {
            origin.push('/');
            Some(Prefix::Directory(origin))
        }
    }
}

/// Whether a `|` stands outside groups and classes. It improves the error alone; [`Prefix::holds`] is what
/// protects.
fn top_level_alternative(pattern: &str) -> bool {
    let (mut groups, mut classes, mut chars) = (0_usize, 0_usize, pattern.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                chars.next();
            }
            '[' => classes += 1,
            ']' => classes = classes.saturating_sub(1),
            '(' if classes == 0 => groups += 1,
            ')' if classes == 0 => groups = groups.saturating_sub(1),
            '|' if classes == 0 && groups == 0 => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
#[path = "matching_tests.rs"]
mod tests;
