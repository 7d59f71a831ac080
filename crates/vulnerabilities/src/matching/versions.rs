//! Which versions of packages there are: those of new SBOMs come, those of deleted SBOMs go.

use std::collections::BTreeSet;

use bowline_core::{Error, Result};
use bowline_osv::{ComponentComparison, PackageOrigin};
use bowline_registry::components::{ListedVersion, UNCOMPARED, note_sboms, store_uncompared};
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

/// SBOMs and components that one step reads.
const MAX_SBOMS: i64 = 20;
const MAX_COMPONENTS: usize = 200;
/// Versions that one step checks.
const MAX_CHECKED: i64 = 100;
/// Rows that one statement inserts.
const AT_ONCE: usize = 100;

/// The next components of SBOMs whose versions are to be known.
pub(super) struct NewVersions(Vec<Slice>);

/// Components of one SBOM, in order.
struct Slice {
    sbom: Vec<u8>,
    /// Number of the component before the first, as `unmatched_sboms` has it.
    after: i64,
    /// Number of the last component; absent if there are no more.
    last: Option<i64>,
    /// Components whose stored origin is another one, by number.
    origins: Vec<(i64, String)>,
    /// All versions, each once.
    versions: Vec<ListedVersion>,
}

pub(super) async fn next_new(tx: &mut ReadTx) -> Result<Option<NewVersions>> {
    let sql = "SELECT sbom, after FROM unmatched_sboms ORDER BY sbom LIMIT $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(0)?, row.int(1)?));
    let sboms = tx.query(sql, &[Value::Int(MAX_SBOMS)], read).await?;
    let (mut slices, mut left) = (Vec::new(), MAX_COMPONENTS);
    for (sbom, after) in sboms {
        let (slice, components) = slice(tx, sbom, after, left).await?;
        left -= components;
        slices.push(slice);
        if left == 0 {
            break;
        }
    }
    Ok(Some(NewVersions(slices)).filter(|new| !new.0.is_empty()))
}

/// The next components of an SBOM, and how many were read.
async fn slice(tx: &mut ReadTx, sbom: Vec<u8>, after: i64, most: usize) -> Result<(Slice, usize)> {
    let sql = "SELECT package, version, origin, number, purl FROM components
               WHERE sbom = $1 AND number > $2 AND package <> '' ORDER BY number LIMIT $3";
    let params = [Value::from(&sbom), Value::Int(after), Value::Int(most as i64)];
    let read = |row: &Row<'_>| Ok::<_, Error>((ListedVersion::read(row)?, row.int(3)?, row.text(4)?));
    let rows = tx.query(sql, &params, read).await?;
    let last = rows.last().filter(|_| rows.len() == most).map(|(_, number, _)| *number);
    let (count, mut origins, mut versions) = (rows.len(), Vec::new(), BTreeSet::new());
    for (stored, number, purl) in rows {
        let version = stored.version;
        let origin = match ComponentComparison::of(&purl, &version.version) {
            ComponentComparison::By(origin) => origin.to_text(),
            ComponentComparison::OtherEcosystem => String::new(),
            ComponentComparison::Unknown => UNCOMPARED.to_owned(),
        };
        if origin != stored.origin {
            origins.push((number, origin.clone()));
        }
        if !version.version.is_empty() {
            versions.insert(ListedVersion { version, origin });
        }
    }
    Ok((Slice { sbom, after, last, origins, versions: versions.into_iter().collect() }, count))
}

impl NewVersions {
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        for slice in &self.0 {
            slice.write(tx).await?;
            if tx.others_wait() {
                break;
            }
        }
        Ok(())
    }
}

impl Slice {
    /// Nothing is written if the SBOM was deleted meanwhile: it may have been pushed again since, and then waits from its
    /// first component on.
    async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        let unmatched = [Value::from(&self.sbom), Value::Int(self.after)];
        let found = match self.last {
            Some(last) => {
                let sql = "UPDATE unmatched_sboms SET after = $3 WHERE sbom = $1 AND after = $2";
                let [sbom, after] = unmatched;
                tx.execute(sql, &[sbom, after, Value::Int(last)]).await?
            }
            None => tx.execute("DELETE FROM unmatched_sboms WHERE sbom = $1 AND after = $2", &unmatched).await?,
        };
        if found == 0 {
            return Ok(());
        }
        for part in self.origins.chunks(AT_ONCE) {
            write_origins(tx, &self.sbom, part).await?;
        }
        if self.last.is_none() {
            store_uncompared(tx, &self.sbom).await?;
            note_sboms(tx, std::slice::from_ref(&self.sbom)).await?;
        }
        for part in self.versions.chunks(AT_ONCE) {
            let mut sql = Sql::new("INSERT INTO version_sboms (package, version, sbom, origin) VALUES ");
            for (at, ListedVersion { version, origin }) in part.iter().enumerate() {
                sql.bind(if at == 0 { "(" } else { ", (" }, &version.package).bind(", ", &version.version);
                sql.bind(", ", &self.sbom).bind(", ", origin).push(")");
            }
            sql.push(" ON CONFLICT DO NOTHING");
            tx.execute(&sql.text, &sql.params).await?;
        }
        let compared = self.versions.iter().filter(|listed| listed.origin != UNCOMPARED).cloned();
        for part in compared.collect::<Vec<_>>().chunks(AT_ONCE) {
            add(tx, part).await?;
        }
        Ok(())
    }
}

/// Stores what components of an SBOM are compared by.
async fn write_origins(tx: &mut WriteTx, sbom: &[u8], origins: &[(i64, String)]) -> Result<()> {
    let mut sql = Sql::new("WITH new_origins (number, origin) AS (VALUES ");
    for (at, (number, origin)) in origins.iter().enumerate() {
        sql.bind(if at == 0 { "(CAST(" } else { ", (CAST(" }, *number).bind(" AS BIGINT), ", origin).push(")");
    }
    sql.push(
        ") UPDATE components SET origin = (SELECT n.origin FROM new_origins n WHERE n.number = components.number)",
    );
    sql.bind(" WHERE sbom = ", sbom).push(" AND number IN (SELECT number FROM new_origins)");
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}

/// Those that are new wait to be matched for the first time.
async fn add(tx: &mut WriteTx, versions: &[ListedVersion]) -> Result<()> {
    let keys: Vec<[String; 2]> = versions.iter().map(record_packages).collect();
    let columns = "package, version, origin, record_package, record_source, state";
    let mut sql = Sql::new(format!("INSERT INTO package_versions ({columns}) VALUES "));
    for (at, (ListedVersion { version, origin }, [package, source])) in versions.iter().zip(&keys).enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, &version.package).bind(", ", &version.version);
        sql.bind(", ", origin).bind(", ", package).bind(", ", source).push(", 3)");
    }
    sql.push(" ON CONFLICT DO NOTHING");
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}

/// The one or two packages that records about the version name; an empty name stands where fewer are compared.
fn record_packages(ListedVersion { version, origin }: &ListedVersion) -> [String; 2] {
    let compared = PackageOrigin::from_text(origin).compared(&version.package, &version.version);
    let mut keys = compared.iter().map(|compared| compared.package.as_str().to_owned());
    [keys.next().unwrap_or_default(), keys.next().unwrap_or_default()]
}

/// Versions of deleted SBOMs, by whether another SBOM has them.
pub(super) struct CheckedVersions {
    used: Vec<ListedVersion>,
    unused: Vec<ListedVersion>,
}

pub(super) async fn next_checked(tx: &mut ReadTx) -> Result<Option<CheckedVersions>> {
    let waiting = tx.index_hint("package_versions_waiting");
    let sql = format!(
        "SELECT v.package, v.version, v.origin,
           EXISTS (SELECT 1 FROM version_sboms s
                   WHERE s.package = v.package AND s.version = v.version AND s.origin = v.origin)
         FROM package_versions v {waiting} WHERE v.state <> 0 AND v.state = 2
         ORDER BY v.package, v.version, v.origin LIMIT $1"
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((ListedVersion::read(row)?, row.bool(3)?));
    let (used, unused): (Vec<_>, Vec<_>) =
        tx.query(&sql, &[Value::Int(MAX_CHECKED)], read).await?.into_iter().partition(|(_, is_used)| *is_used);
    let versions = |rows: Vec<(ListedVersion, bool)>| rows.into_iter().map(|(version, _)| version).collect();
    let checked = CheckedVersions { used: versions(used), unused: versions(unused) };
    Ok(Some(checked).filter(|checked| !checked.used.is_empty() || !checked.unused.is_empty()))
}

impl CheckedVersions {
    /// An SBOM that was pushed meanwhile with a deleted version waits itself, and brings the version back.
    pub(super) async fn write(&self, tx: &mut WriteTx) -> Result<()> {
        // It may not have been matched before.
        let again = "UPDATE package_versions SET state = 3 WHERE state = 2 AND";
        ListedVersion::for_each(tx, again, &self.used).await?;
        ListedVersion::for_each(tx, "DELETE FROM package_matches WHERE", &self.unused).await?;
        ListedVersion::for_each(tx, "DELETE FROM package_versions WHERE", &self.unused).await
    }
}
