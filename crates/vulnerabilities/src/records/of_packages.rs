//! What the visible records say of packages: what rules of policies are made of.

use bowline_core::{Error, Micros, Result};
use bowline_osv::{PackageKey, Rating, SeverityKind, base_score};
use bowline_store::{ReadTx, Row, Value};

use super::severities;
use super::statements::{IN_A_LIST, among};
use super::visible::Generations;

/// What a record says of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRecord {
    /// The key of the package.
    pub package: String,
    pub id: String,
    /// When it was last changed.
    pub modified: Micros,
    /// The highest that it states, by score; absent where it has none.
    pub rating: Option<Rating>,
    /// The versions that it affects, as [`bowline_osv::VersionQuery`] reads them.
    pub ranges: String,
}

/// What the records say of packages of an ecosystem, by package and id; of an id in several sources, the newest.
///
/// # Errors
/// Those of the database.
pub async fn of_packages(tx: &mut ReadTx, ecosystem: &str, names: &[&str]) -> Result<Vec<PackageRecord>> {
    let keys: Vec<PackageKey> = names.iter().map(|name| PackageKey::new(ecosystem, name)).collect();
    let generations = Generations::read(tx).await?;
    let mut found: Vec<PackageRecord> = Vec::new();
    for part in keys.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().map(|key| Value::from(key.as_str())));
        let sql = format!(
            "SELECT a.package, a.id, a.modified, r.severities, a.ranges, a.source, a.since, a.until
             FROM record_affects a JOIN records r ON r.n = a.record WHERE a.package IN {placeholders}"
        );
        let read = |row: &Row<'_>| {
            let record = PackageRecord {
                package: row.text(0)?,
                id: row.text(1)?,
                modified: row.int(2)?,
                rating: rating(&row.text(3)?),
                ranges: row.text(4)?,
            };
            Ok::<_, Error>(generations.show(row, 5)?.then_some(record))
        };
        found.extend(tx.query(&sql, &values, read).await?.into_iter().flatten());
    }
    found.sort_by(|one, other| (&one.package, &one.id, other.modified).cmp(&(&other.package, &other.id, one.modified)));
    found.dedup_by(|later, newest| later.package == newest.package && later.id == newest.id);
    Ok(found)
}

/// The highest rating of severities as they are stored.
fn rating(stored: &str) -> Option<Rating> {
    let severities = severities::read(stored);
    let scored = severities.iter().filter(|severity| severity.kind != SeverityKind::Ubuntu);
    scored.filter_map(|severity| base_score(&severity.score)).reduce(f64::max).map(Rating::of)
}
