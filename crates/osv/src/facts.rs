//! What people read of a record, taken from its stored bytes without checking the rest again.

use std::borrow::Cow;

use serde::Deserialize;

/// The parts of a record that describe it.
#[derive(Debug, Default, Deserialize)]
pub struct Facts<'a> {
    #[serde(borrow, default)]
    pub summary: Cow<'a, str>,
    #[serde(borrow, default)]
    pub details: Cow<'a, str>,
    /// Severities of the vulnerability.
    #[serde(borrow, default)]
    pub severity: Vec<Rated<'a>>,
    #[serde(borrow, default)]
    pub references: Vec<Link<'a>>,
    /// What is affected; its severities count where the vulnerability has none of its own.
    #[serde(borrow, default)]
    affected: Vec<AffectedSeverity<'a>>,
}

/// A severity: scale and vector.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Rated<'a> {
    /// The schema's name of the scale.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub score: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
pub struct Link<'a> {
    /// The schema's word for what it is.
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub url: Cow<'a, str>,
}

#[derive(Debug, Deserialize)]
struct AffectedSeverity<'a> {
    #[serde(borrow, default)]
    severity: Option<Vec<Rated<'a>>>,
}

impl<'a> Facts<'a> {
    /// Reads them from the canonical form.
    pub fn read(canonical: &'a [u8]) -> Result<Facts<'a>, serde_json::Error> {
        serde_json::from_slice(canonical)
    }

    /// The severities of the vulnerability; of one that has them by package only, each of those once.
    pub fn severities(&self) -> Vec<&Rated<'a>> {
        if !self.severity.is_empty() {
            return self.severity.iter().collect();
        }
        let mut all: Vec<&Rated<'a>> = Vec::new();
        for rated in self.affected.iter().filter_map(|affected| affected.severity.as_ref()).flatten() {
            if !all.contains(&rated) {
                all.push(rated);
            }
        }
        all
    }
}
