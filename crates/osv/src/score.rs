//! Scores of CVSS vectors. The `cvss` crate computes them; what this module adds is that it reads vectors as databases write
//! them: in parentheses, with further metrics, in any order.

use std::str::FromStr;

/// How severe a score is, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of the standard")]
pub enum Rating {
    None,
    Low,
    Medium,
    High,
    Critical,
}

impl Rating {
    /// The rating of a score, by the scale that versions 3 and 4 share.
    pub fn of(score: f64) -> Rating {
        match score {
            score if score >= 9.0 => Rating::Critical,
            score if score >= 7.0 => Rating::High,
            score if score >= 4.0 => Rating::Medium,
            score if score > 0.0 => Rating::Low,
            _ => Rating::None,
        }
    }
}

/// Base metrics by version; a vector without one of them has no score.
const BASE_2: [&str; 6] = ["AV", "AC", "Au", "C", "I", "A"];
const BASE_3: [&str; 8] = ["AV", "AC", "PR", "UI", "S", "C", "I", "A"];
const BASE_4: [&str; 11] = ["AV", "AC", "AT", "PR", "UI", "VC", "VI", "VA", "SC", "SI", "SA"];
/// Metrics of threats and environments: version 4 has one score for all that a vector has.
const FURTHER_4: [&str; 15] =
    ["E", "CR", "IR", "AR", "MAV", "MAC", "MAT", "MPR", "MUI", "MVC", "MVI", "MVA", "MSC", "MSI", "MSA"];
/// Bytes of a vector that is read; all metrics together have fewer than 200.
const LONGEST: usize = 1000;

/// The highest score of some vectors, of any version; other texts have none.
pub fn highest_score<'a>(vectors: impl IntoIterator<Item = &'a str>) -> Option<f64> {
    vectors.into_iter().filter_map(score).reduce(f64::max)
}

/// The score of a vector: of versions 2 and 3 that of its base metrics, of version 4 that of all that it has. Absent if the
/// vector is of another version, lacks a base metric, or has a value that the standard does not know.
pub fn score(vector: &str) -> Option<f64> {
    if vector.len() > LONGEST {
        return None;
    }
    match vector.split_once('/')? {
        (version @ ("CVSS:3.0" | "CVSS:3.1"), metrics) => {
            let vector = cvss::v3::Vector::from_str(&rebuilt(version, metrics, (&BASE_3, &[]))?).ok()?;
            Some(vector.base_score().value())
        }
        (version @ "CVSS:4.0", metrics) => {
            let vector = cvss::v4::Vector::from_str(&rebuilt(version, metrics, (&BASE_4, &FURTHER_4))?).ok()?;
            Some(vector.score().value())
        }
        (version, _) if version.starts_with("CVSS:") => None,
        _ => {
            let metrics = vector.trim_start_matches('(').trim_end_matches(')');
            let vector = cvss::v2::Vector::from_str(&rebuilt("", metrics, (&BASE_2, &[]))?).ok()?;
            Some(vector.score().value())
        }
    }
}

/// The vector with the base metrics and those further ones that it has, in order, each with its first value; absent if a base
/// metric is missing. Readers refuse names that they do not know, empty metrics, and names that are there twice.
fn rebuilt(version: &str, metrics: &str, (base, further): (&[&str], &[&str])) -> Option<String> {
    let given: Vec<(&str, &str)> = metrics.split('/').filter_map(|metric| metric.split_once(':')).collect();
    let first = |name: &&str| {
        let metric = given.iter().find(|(given, _)| given == name);
        metric.map(|(name, value)| format!("{name}:{value}"))
    };
    let version = Some(version).filter(|version| !version.is_empty()).map(String::from);
    let base: Vec<String> = base.iter().map(first).collect::<Option<_>>()?;
    let further = further.iter().filter_map(first);
    Some(version.into_iter().chain(base).chain(further).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
#[path = "score_tests.rs"]
mod tests;
