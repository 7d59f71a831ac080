//! How severe vulnerabilities are, by the records of them.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::{Error, Result};
use bowline_osv::{Record, Severity, SeverityKind};
use bowline_store::{ReadTx, Row, Value};

use super::statements::{IN_A_LIST, among};
use super::visible::VISIBLE;

/// The severities of vulnerabilities by id. One without a record of its own, or whose record has no severity, has
/// those of the records that name it as an alias. Unknown ids are left out.
pub(crate) async fn severities(tx: &mut ReadTx, ids: &[&str]) -> Result<BTreeMap<String, Vec<Severity>>> {
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    let own = "SELECT r.id, r.severities, r.modified, r.source FROM records r";
    let mut found = collect(tx, own, "r.id", &unique).await?;
    let missing: BTreeSet<&str> = unique.into_iter().filter(|id| !found.contains_key(*id)).collect();
    let by_alias = "SELECT a.alias, r.severities, r.modified, r.source
                    FROM record_aliases a JOIN records r ON r.n = a.record";
    found.extend(collect(tx, by_alias, "a.alias", &missing).await?);
    Ok(found.into_iter().map(|(id, (_, stored))| (id, read(&stored))).collect())
}

/// The most recent record with a severity, by id: its recency (`modified`, then the lower source number) and the stored
/// text.
type Newest = BTreeMap<String, ((i64, i64), String)>;

async fn collect(tx: &mut ReadTx, select: &str, column: &str, ids: &BTreeSet<&str>) -> Result<Newest> {
    let ids: Vec<&str> = ids.iter().copied().collect();
    let mut newest = Newest::new();
    for part in ids.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().copied().map(Value::Text));
        let sql = format!("{select} {VISIBLE} WHERE {column} IN {placeholders} AND r.severities <> ''");
        let row = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, (row.int(2)?, -row.int(3)?)));
        for (id, stored, recency) in tx.query(&sql, &values, row).await? {
            if newest.get(&id).is_none_or(|(known, _)| recency > *known) {
                newest.insert(id, (recency, stored));
            }
        }
    }
    Ok(newest)
}

/// The severities of a record as one text: a line for each. Those of a package count where the vulnerability has none.
pub(super) fn stored(record: &Record) -> String {
    let of_packages = record.affected.iter().flat_map(|affected| &affected.severity);
    let all: Vec<&Severity> =
        if record.severity.is_empty() { of_packages.collect() } else { record.severity.iter().collect() };
    let mut lines: Vec<String> = Vec::new();
    for severity in all {
        let kind = match severity.kind {
            SeverityKind::CvssV2 => "2",
            SeverityKind::CvssV3 => "3",
            SeverityKind::CvssV4 => "4",
            SeverityKind::Ubuntu => "u",
            SeverityKind::Other => continue,
        };
        let line = format!("{kind}{}", severity.score);
        if !severity.score.contains(char::is_control) && !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Reads what [`stored`] wrote.
pub(crate) fn read(stored: &str) -> Vec<Severity> {
    let lines = stored.lines().filter_map(|line| line.split_at_checked(1));
    lines
        .filter_map(|(kind, score)| {
            let kind = match kind {
                "2" => SeverityKind::CvssV2,
                "3" => SeverityKind::CvssV3,
                "4" => SeverityKind::CvssV4,
                "u" => SeverityKind::Ubuntu,
                _ => return None,
            };
            Some(Severity { kind, score: score.into() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_are_read_as_they_were_stored() {
        let json = r#"{"id": "A-1", "modified": "2024-01-01T00:00:00Z",
                       "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/x"}, {"type": "Ubuntu", "score": "high"},
                                    {"type": "CVSS_V9", "score": "?"}]}"#;
        let record = bowline_osv::parse(json.as_bytes()).unwrap().record;
        assert_eq!(stored(&record), "3CVSS:3.1/x\nuhigh");
        assert_eq!(read(&stored(&record)), record.severity[..2]);
    }
}
