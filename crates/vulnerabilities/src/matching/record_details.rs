//! What a match shows of its record.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::v1::registry::vulnerability::Severity;
use bowline_core::{Error, Result};
use bowline_osv::{OtherIds, Rating, SeverityKind, highest_score};
use bowline_store::{ReadTx, Row, Value};

use crate::records::{among, stored_severities};

/// Records that one statement reads.
const AT_ONCE: usize = 32;
/// Other ids of a record that are kept.
const MAX_ALIASES: usize = 100;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordDetails {
    /// The id of [`OtherIds::vulnerability`].
    pub(super) vulnerability: String,
    /// The other aliases, in order, separated by spaces.
    pub(super) aliases: String,
    pub(super) severity: Severity,
}

/// The details of these records, by number.
pub(super) async fn read(tx: &mut ReadTx, records: &BTreeSet<i64>) -> Result<BTreeMap<i64, RecordDetails>> {
    let records: Vec<i64> = records.iter().copied().collect();
    let mut details = BTreeMap::new();
    for part in records.chunks(AT_ONCE) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Int));
        let sql = format!(
            "SELECT r.n, r.id, r.severities, b.body FROM records r JOIN record_bodies b ON b.record = r.n
             WHERE r.n IN {placeholders}"
        );
        details.extend(tx.query(&sql, &values, of_row).await?);
    }
    Ok(details)
}

fn of_row(row: &Row<'_>) -> Result<(i64, RecordDetails)> {
    let id = row.text(1)?;
    let ids = row.with_bytes(3, OtherIds::read)?.map_err(Error::internal)?;
    let vulnerability = ids.vulnerability(&id).to_owned();
    let aliases: BTreeSet<&str> = ids.aliases.iter().map(String::as_str).collect();
    let others = aliases.into_iter().filter(|alias| *alias != id && *alias != vulnerability);
    let aliases = others.take(MAX_ALIASES).collect::<Vec<_>>().join(" ");
    let severity = row.with_text(2, severity)?;
    Ok((row.int(0)?, RecordDetails { vulnerability, aliases, severity }))
}

/// The highest severity that a record states, as `records` stores them.
fn severity(stored: &str) -> Severity {
    let severities = stored_severities(stored);
    if let Some(score) = highest_score(severities.iter().map(|severity| severity.score.as_str())) {
        return match Rating::of(score) {
            Rating::None => Severity::Negligible,
            Rating::Low => Severity::Low,
            Rating::Medium => Severity::Medium,
            Rating::High => Severity::High,
            Rating::Critical => Severity::Critical,
        };
    }
    let word = severities.iter().find(|severity| severity.kind == SeverityKind::Ubuntu);
    match word.map(|word| word.score.to_ascii_lowercase()).as_deref() {
        Some("negligible") => Severity::Negligible,
        Some("low") => Severity::Low,
        Some("medium") => Severity::Medium,
        Some("high") => Severity::High,
        Some("critical") => Severity::Critical,
        _ => Severity::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_score_is_the_severity_and_words_count_without_scores() {
        let high = "3CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H";
        for (stored, expected) in [
            ("", Severity::Unknown),
            (high, Severity::High),
            ("2AV:N/AC:L/Au:N/C:C/I:C/A:C\n3CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:L/I:N/A:N", Severity::Critical),
            ("ulow", Severity::Low),
            (&format!("ulow\n{high}"), Severity::High),
            ("4CVSS:4.0/x", Severity::Unknown),
            ("4CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N", Severity::Critical),
            (&format!("{high}\n4CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N"), Severity::Critical),
            (&format!("{high}\n4CVSS:4.0/AV:P/AC:H/AT:P/PR:H/UI:A/VC:L/VI:N/VA:N/SC:N/SI:N/SA:N"), Severity::High),
        ] {
            assert_eq!(severity(stored), expected, "{stored}");
        }
    }
}
