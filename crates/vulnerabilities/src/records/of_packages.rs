//! What the visible records say of packages: what rules of policies are made of.

use std::collections::BTreeMap;

use bowline_core::{Error, Micros, Result};
use bowline_osv::{PackageKey, Rating, Severity, highest_score};
use bowline_store::{ReadTx, Row, Value};

use super::severities::{self, severities as severities_of};
use super::statements::{IN_A_LIST, among};
use super::visible::Generations;

/// What a record says of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRecord {
    /// The key of the package.
    pub package: String,
    pub id: String,
    /// When it was published; when it was last changed if that is not known.
    pub published: Micros,
    /// The highest that it states, by score, or that records of its aliases do; absent where none has one.
    pub rating: Option<Rating>,
    /// The versions that it affects, as [`bowline_osv::VersionQuery`] reads them.
    pub ranges: String,
    n: i64,
    modified: Micros,
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
            "SELECT a.package, a.id, r.published, a.modified, r.severities, a.source, a.since, a.until, a.ranges, a.record
             FROM record_affects a JOIN records r ON r.n = a.record WHERE a.package IN {placeholders}"
        );
        let read = |row: &Row<'_>| {
            let modified = row.int(3)?;
            let record = PackageRecord {
                package: row.text(0)?,
                id: row.text(1)?,
                published: Some(row.int(2)?).filter(|at| *at != 0).unwrap_or(modified),
                rating: rating(&severities::read(&row.text(4)?)),
                ranges: row.text(8)?,
                n: row.int(9)?,
                modified,
            };
            Ok::<_, Error>(generations.show(row, 5)?.then_some(record))
        };
        found.extend(tx.query(&sql, &values, read).await?.into_iter().flatten());
    }
    found.sort_by(|one, other| (&one.package, &one.id, other.modified).cmp(&(&other.package, &other.id, one.modified)));
    found.dedup_by(|later, newest| later.package == newest.package && later.id == newest.id);
    rate_by_aliases(tx, &mut found).await?;
    Ok(found)
}

/// Stands for what the visible records say of a package: a record that changes has another number.
///
/// # Errors
/// Those of the database.
pub async fn numbers_of_package(tx: &mut ReadTx, ecosystem: &str, name: &str) -> Result<Vec<i64>> {
    let generations = Generations::read(tx).await?;
    let sql = "SELECT record, source, since, until FROM record_affects WHERE package = $1 ORDER BY record";
    let read = |row: &Row<'_>| Ok::<_, Error>(generations.show(row, 1)?.then_some(row.int(0)?));
    let key = PackageKey::new(ecosystem, name);
    Ok(tx.query(sql, &[Value::from(key.as_str())], read).await?.into_iter().flatten().collect())
}

/// Rates records without a score of their own by those of their aliases: databases of Go and Python have none.
async fn rate_by_aliases(tx: &mut ReadTx, records: &mut [PackageRecord]) -> Result<()> {
    let unrated: Vec<i64> = records.iter().filter(|record| record.rating.is_none()).map(|record| record.n).collect();
    let mut aliases: BTreeMap<i64, Vec<String>> = BTreeMap::new();
    for part in unrated.chunks(IN_A_LIST) {
        let (placeholders, values) = among(1, part.iter().map(|n| Value::Int(*n)));
        let sql = format!("SELECT record, alias FROM record_aliases WHERE record IN {placeholders}");
        for (n, alias) in tx.query(&sql, &values, |row| Ok::<_, Error>((row.int(0)?, row.text(1)?))).await? {
            aliases.entry(n).or_default().push(alias);
        }
    }
    let names: Vec<&str> = aliases.values().flatten().map(String::as_str).collect();
    let known = severities_of(tx, &names).await?;
    for record in records.iter_mut().filter(|record| record.rating.is_none()) {
        let of_aliases = aliases.get(&record.n).into_iter().flatten().filter_map(|alias| known.get(alias));
        record.rating = rating(&of_aliases.flatten().cloned().collect::<Vec<_>>());
    }
    Ok(())
}

/// The highest rating of some severities.
fn rating(severities: &[Severity]) -> Option<Rating> {
    highest_score(severities.iter().map(|severity| severity.score.as_str())).map(Rating::of)
}
