//! Which versions of packages there are: those of new SBOMs come, those of deleted SBOMs go.

use bowline_core::{Error, Result};
use bowline_osv::Purl;
use bowline_registry::components::{PackageVersion, note_sboms};
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
    versions: Vec<PackageVersion>,
}

pub(super) async fn next_new(tx: &mut ReadTx) -> Result<Option<NewVersions>> {
    let sql = "SELECT sbom, after FROM unmatched_sboms ORDER BY sbom LIMIT $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(0)?, row.int(1)?));
    let sboms = tx.query(sql, &[Value::Int(MAX_SBOMS)], read).await?;
    let (mut slices, mut left) = (Vec::new(), MAX_COMPONENTS);
    for (sbom, after) in sboms {
        let slice = slice(tx, sbom, after, left).await?;
        left -= slice.versions.len();
        slices.push(slice);
        if left == 0 {
            break;
        }
    }
    Ok(Some(NewVersions(slices)).filter(|new| !new.0.is_empty()))
}

async fn slice(tx: &mut ReadTx, sbom: Vec<u8>, after: i64, most: usize) -> Result<Slice> {
    let sql = "SELECT package, version, number FROM components
               WHERE sbom = $1 AND number > $2 AND package <> '' AND version <> '' ORDER BY number LIMIT $3";
    let params = [Value::from(&sbom), Value::Int(after), Value::Int(most as i64)];
    let read = |row: &Row<'_>| Ok::<_, Error>((PackageVersion::read(row)?, row.int(2)?));
    let rows = tx.query(sql, &params, read).await?;
    let last = rows.last().filter(|_| rows.len() == most).map(|(_, number)| *number);
    Ok(Slice { sbom, after, last, versions: rows.into_iter().map(|(version, _)| version).collect() })
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
        if self.last.is_none() {
            note_sboms(tx, std::slice::from_ref(&self.sbom)).await?;
        }
        for part in self.versions.chunks(AT_ONCE) {
            let mut sql = Sql::new("INSERT INTO version_sboms (package, version, sbom) VALUES ");
            for (at, row) in part.iter().enumerate() {
                sql.bind(if at == 0 { "(" } else { ", (" }, &row.package).bind(", ", &row.version);
                sql.bind(", ", &self.sbom).push(")");
            }
            sql.push(" ON CONFLICT DO NOTHING");
            tx.execute(&sql.text, &sql.params).await?;
            add(tx, part).await?;
        }
        Ok(())
    }
}

/// Those that are new wait to be matched.
async fn add(tx: &mut WriteTx, versions: &[PackageVersion]) -> Result<()> {
    let keys: Vec<String> = versions.iter().map(record_package).collect();
    let mut sql = Sql::new("INSERT INTO package_versions (package, version, record_package, state) VALUES ");
    for (at, (row, key)) in versions.iter().zip(&keys).enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, &row.package).bind(", ", &row.version);
        sql.bind(", ", key).push(", 1)");
    }
    sql.push(" ON CONFLICT DO NOTHING");
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
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
    let waiting = tx.index_hint("package_versions_waiting");
    let sql = format!(
        "SELECT v.package, v.version,
           EXISTS (SELECT 1 FROM version_sboms s WHERE s.package = v.package AND s.version = v.version)
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
