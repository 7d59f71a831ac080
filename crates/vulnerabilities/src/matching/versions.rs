//! Which versions of packages there are: those of new SBOMs come, those of deleted SBOMs go.

use std::collections::BTreeSet;

use bowline_core::{Error, Result};
use bowline_osv::Purl;
use bowline_registry::components::PackageVersion;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

/// SBOMs that one step reads, and number of new versions after which it reads no further SBOM.
const MAX_SBOMS: i64 = 20;
const ENOUGH: usize = 2000;
/// Versions that one step checks.
const MAX_CHECKED: i64 = 200;
/// Rows that one statement inserts.
const AT_ONCE: usize = 100;

/// Versions that SBOMs brought.
pub(super) struct NewVersions {
    sboms: Vec<Vec<u8>>,
    versions: BTreeSet<PackageVersion>,
}

/// What new SBOMs list and no SBOM has listed before.
pub(super) async fn next_new(tx: &mut ReadTx) -> Result<Option<NewVersions>> {
    let sql = "SELECT sbom FROM unmatched_sboms ORDER BY sbom LIMIT $1";
    let sboms = tx.query(sql, &[Value::Int(MAX_SBOMS)], |row| row.bytes(0).map_err(Error::from)).await?;
    let mut new = NewVersions { sboms: Vec::new(), versions: BTreeSet::new() };
    for sbom in sboms {
        let sql = "SELECT DISTINCT c.package, c.version FROM components c
                   WHERE c.sbom = $1 AND c.package <> '' AND c.version <> ''
                     AND NOT EXISTS (SELECT 1 FROM package_versions v
                                     WHERE v.package = c.package AND v.version = c.version)";
        new.versions.extend(tx.query(sql, &[Value::from(&sbom)], PackageVersion::read).await?);
        new.sboms.push(sbom);
        if new.versions.len() >= ENOUGH {
            break;
        }
    }
    Ok(Some(new).filter(|new| !new.sboms.is_empty()))
}

impl NewVersions {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        let key = |version| (version, record_package(version));
        let rows: Vec<(&PackageVersion, String)> = self.versions.iter().map(key).collect();
        for part in rows.chunks(AT_ONCE) {
            let mut sql = Sql::new("INSERT INTO package_versions (package, version, record_package, state) VALUES ");
            for (at, (row, key)) in part.iter().enumerate() {
                sql.bind(if at == 0 { "(" } else { ", (" }, &row.package).bind(", ", &row.version);
                sql.bind(", ", key).push(", 1)");
            }
            sql.push(" ON CONFLICT DO NOTHING");
            tx.execute(&sql.text, &sql.params).await?;
        }
        let mut sql = Sql::new("DELETE FROM unmatched_sboms WHERE");
        sql.bind_list(" sbom IN ", self.sboms.iter().map(Value::from));
        tx.execute(&sql.text, &sql.params).await?;
        Ok(())
    }
}

/// The package as records name it; empty if they do not know its ecosystem.
fn record_package(version: &PackageVersion) -> String {
    Purl::key_of_path(&version.package).map(|key| key.as_str().to_owned()).unwrap_or_default()
}

/// Versions of deleted SBOMs, by whether another SBOM has them.
pub(super) struct CheckedVersions {
    used: Vec<PackageVersion>,
    unused: Vec<PackageVersion>,
}

pub(super) async fn next_checked(tx: &mut ReadTx) -> Result<Option<CheckedVersions>> {
    let (waiting, by_version) = (tx.index_hint("package_versions_waiting"), tx.index_hint("components_by_version"));
    let sql = format!(
        "SELECT v.package, v.version,
           EXISTS (SELECT 1 FROM components c {by_version}
                   WHERE c.package = v.package AND c.version = v.version AND c.package <> '')
         FROM package_versions v {waiting} WHERE v.state <> 0 AND v.state = 2
         ORDER BY v.package, v.version LIMIT $1"
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((PackageVersion::read(row)?, row.bool(2)?));
    let (used, unused): (Vec<_>, Vec<_>) =
        tx.query(&sql, &[Value::Int(MAX_CHECKED)], read).await?.into_iter().partition(|(_, is_used)| *is_used);
    let versions = |rows: Vec<(PackageVersion, bool)>| rows.into_iter().map(|(version, _)| version).collect();
    let checked = CheckedVersions { used: versions(used), unused: versions(unused) };
    Ok(Some(checked).filter(|checked| !checked.used.is_empty() || !checked.unused.is_empty()))
}

impl CheckedVersions {
    /// An SBOM that was pushed meanwhile with a deleted version waits itself, and brings the version back.
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        // It may not have been matched before.
        let again = "UPDATE package_versions SET state = 1 WHERE state = 2 AND";
        PackageVersion::for_each(tx, again, &self.used).await?;
        PackageVersion::for_each(tx, "DELETE FROM package_matches WHERE", &self.unused).await?;
        PackageVersion::for_each(tx, "DELETE FROM package_versions WHERE", &self.unused).await
    }
}
