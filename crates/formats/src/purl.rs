//! Package URLs (ECMA-427): `pkg:type/namespace/name@version?qualifiers#subpath`.
//!
//! [`PackageUrl`] is a whole one. [`Split`] cuts a text where its parts end and leaves them as they are written: policies
//! read patterns by it, which may lack a name.

use std::collections::BTreeMap;
use std::fmt;

use percent_encoding::AsciiSet;

use crate::percent::{self, NOT_UNRESERVED};

/// What is escaped in a name and a version.
const ESCAPED: &AsciiSet = &NOT_UNRESERVED.remove(b':');
/// What is escaped in a qualifier, which is often an address.
const ESCAPED_IN_QUALIFIER: &AsciiSet = &ESCAPED.remove(b'/');

/// Types whose names are case-insensitive; they are stored in lower case.
const LOWER_CASE: [&str; 4] = ["bitbucket", "composer", "github", "hex"];

/// The parts of a package URL, decoded.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageUrl {
    /// Its type, in lower case.
    pub kind: String,
    /// Segments before the name, none of them empty.
    pub namespace: Vec<String>,
    /// The name; never empty in what was read.
    pub name: String,
    /// The version; empty if there is none.
    pub version: String,
    /// Qualifiers with a value.
    pub qualifiers: BTreeMap<String, String>,
    /// A path inside the package; empty if there is none.
    pub subpath: String,
}

/// Why a text is not a package URL; `Display` continues a sentence: "it has no name".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PackageUrlError {
    #[error("it does not begin with pkg:")]
    Scheme,
    /// The type has other characters than letters, digits, points and dashes, or does not begin with a letter.
    #[error("its type is invalid")]
    Type,
    /// Nothing follows the type.
    #[error("it has no name")]
    Name,
    /// A percent sign without two digits behind it, or bytes that are not UTF-8.
    #[error("it has a wrong percent sign")]
    Percent,
    /// A qualifier without a value or with an invalid name.
    #[error("a qualifier is not name=value")]
    Qualifier,
    /// The same qualifier again.
    #[error("a qualifier is there twice")]
    Twice,
    /// A control character, escaped or not.
    #[error("it has a control character")]
    Control,
}

/// Whether a text may stand as the type of a package URL.
pub fn is_kind(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-".contains(c))
}

/// A package URL cut into its parts, which are still escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split<'a> {
    /// The type, in lower case.
    pub kind: String,
    /// Namespace and name; empty if nothing follows the type.
    pub path: &'a str,
    /// What follows the at sign.
    pub version: Option<&'a str>,
    /// What follows the question mark.
    pub qualifiers: Option<&'a str>,
    /// What follows the number sign.
    pub subpath: Option<&'a str>,
}

impl<'a> Split<'a> {
    /// Cuts a text.
    ///
    /// The version follows the last at sign, unless that begins a segment before the last: scopes of npm do.
    ///
    /// # Errors
    /// It has another scheme, or no type.
    pub fn of(text: &'a str) -> Result<Split<'a>, PackageUrlError> {
        let (scheme, rest) = text.split_once(':').ok_or(PackageUrlError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("pkg") {
            return Err(PackageUrlError::Scheme);
        }
        let (rest, subpath) = cut(rest, rest.find('#'));
        let (rest, qualifiers) = cut(rest, rest.find('?'));
        let rest = rest.trim_start_matches('/');
        let (kind, path) = rest.split_once('/').unwrap_or((rest, ""));
        let kind = kind.to_ascii_lowercase();
        if !is_kind(&kind) {
            return Err(PackageUrlError::Type);
        }
        let begins_scope = |at: usize| (at == 0 || path[..at].ends_with('/')) && path[at..].contains('/');
        let at = path.rfind('@').filter(|at| !begins_scope(*at));
        let (path, version) = cut(path, at);
        Ok(Split { kind, path, version, qualifiers, subpath })
    }
}

/// Splits around the character at that index.
fn cut(text: &str, at: Option<usize>) -> (&str, Option<&str>) {
    at.map_or((text, None), |at| (&text[..at], Some(&text[at + 1..])))
}

impl PackageUrl {
    /// Reads a package URL.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<PackageUrl, PackageUrlError> {
        let split = Split::of(text)?;
        let mut namespace = segments(split.path)?;
        let name = namespace.pop().ok_or(PackageUrlError::Name)?;
        let subpath = segments(split.subpath.unwrap_or_default())?;
        let subpath: Vec<String> =
            subpath.into_iter().filter(|segment| !matches!(segment.as_str(), "." | "..")).collect();
        let purl = PackageUrl {
            kind: split.kind,
            namespace,
            name,
            version: decoded(split.version.unwrap_or_default())?,
            qualifiers: qualifiers(split.qualifiers.unwrap_or_default())?,
            subpath: subpath.join("/"),
        };
        let texts = purl.namespace.iter().chain([&purl.name, &purl.version, &purl.subpath]);
        if texts.chain(purl.qualifiers.values()).any(|text| text.chars().any(char::is_control)) {
            return Err(PackageUrlError::Control);
        }
        Ok(purl.normalized())
    }

    /// Normalizes names as their registry compares them, where that is the same for all packages of the type.
    #[must_use]
    pub fn normalized(mut self) -> PackageUrl {
        if LOWER_CASE.contains(&self.kind.as_str()) {
            self.namespace.iter_mut().for_each(|segment| *segment = segment.to_lowercase());
            self.name = self.name.to_lowercase();
        }
        if self.kind == "pypi" {
            self.name = self.name.to_lowercase().replace('_', "-");
        }
        self
    }

    /// The same without a version.
    #[must_use]
    pub fn unversioned(&self) -> PackageUrl {
        PackageUrl { version: String::new(), ..self.clone() }
    }
}

fn decoded(text: &str) -> Result<String, PackageUrlError> {
    percent::decode(text).map(String::from).ok_or(PackageUrlError::Percent)
}

fn segments(path: &str) -> Result<Vec<String>, PackageUrlError> {
    path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect()
}

fn qualifiers(text: &str) -> Result<BTreeMap<String, String>, PackageUrlError> {
    let mut qualifiers = BTreeMap::new();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(PackageUrlError::Qualifier)?;
        let name = name.to_ascii_lowercase();
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(PackageUrlError::Qualifier);
        }
        if qualifiers.insert(name, decoded(value)?).is_some() {
            return Err(PackageUrlError::Twice);
        }
    }
    qualifiers.retain(|_, value| !value.is_empty());
    Ok(qualifiers)
}

impl fmt::Display for PackageUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "pkg:{}/", self.kind)?;
        for segment in &self.namespace {
            write!(out, "{}/", percent::encode(segment, ESCAPED))?;
        }
        out.write_str(&percent::encode(&self.name, ESCAPED))?;
        if !self.version.is_empty() {
            write!(out, "@{}", percent::encode(&self.version, ESCAPED))?;
        }
        for (at, (name, value)) in self.qualifiers.iter().enumerate() {
            write!(out, "{}{name}={}", if at == 0 { '?' } else { '&' }, percent::encode(value, ESCAPED_IN_QUALIFIER))?;
        }
        if !self.subpath.is_empty() {
            write!(out, "#{}", percent::encode(&self.subpath, ESCAPED_IN_QUALIFIER))?;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "purl_tests.rs"]
mod tests;
