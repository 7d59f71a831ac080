//! Versions of packages: each is matched with records of vulnerabilities once, however many SBOMs list it.
//!
//! A push notes its SBOM alone, so that pushes with the same packages do not wait for each other. The task that matches
//! adds the versions, and it alone deletes them.

use bowline_core::{Error, Result};
use bowline_formats::purl::PackageUrl;
use bowline_store::{Row, Sql, Value, WriteTx};
use bowline_versions::{Scheme, order_key};

use super::extract::package_of;

/// Versions that one statement names.
const AT_ONCE: usize = 100;

/// A version of a package, as in `components`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageVersion {
    pub package: String,
    pub version: String,
}

impl PackageVersion {
    /// Reads the first two columns.
    pub fn read(row: &Row<'_>) -> Result<PackageVersion> {
        Ok(PackageVersion { package: row.text(0)?, version: row.text(1)? })
    }

    /// Orders a version of the package as its ecosystem does.
    pub fn order_key(&self, version: &str) -> Vec<u8> {
        let kind = self.package.split('/').next().unwrap_or_default();
        order_key(Scheme::of_purl_type(kind), version)
    }

    /// Begins a statement that names these, as the table `wanted`.
    pub fn with(wanted: &[PackageVersion]) -> Sql<'_> {
        let mut sql = Sql::new("WITH wanted (package, version) AS (VALUES ");
        for (at, one) in wanted.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, &one.package).bind(", ", &one.version).push(")");
        }
        sql.push(") ");
        sql
    }

    /// Runs a statement that ends with `WHERE`, or with a condition and `AND`, for these.
    ///
    /// # Errors
    /// Those of the statement.
    pub async fn for_each(tx: &mut WriteTx, head: &str, versions: &[PackageVersion]) -> Result<()> {
        for part in versions.chunks(AT_ONCE) {
            let mut sql = PackageVersion::with(part);
            sql.push(head).push(" (package, version) IN (SELECT package, version FROM wanted)");
            tx.execute(&sql.text, &sql.params).await?;
        }
        Ok(())
    }
}

/// The origin of a component that no record can be compared with, though records know its ecosystem.
pub const UNCOMPARED: &str = "?";

/// A version of a package as SBOMs list it, by what it is compared with.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListedVersion {
    pub version: PackageVersion,
    /// Release and source package of what is of a distribution, as in `components`; else empty.
    pub origin: String,
}

impl ListedVersion {
    /// Reads the first three columns.
    pub fn read(row: &Row<'_>) -> Result<ListedVersion> {
        Ok(ListedVersion { version: PackageVersion::read(row)?, origin: row.text(2)? })
    }

    /// Begins a statement that names these, as the table `wanted`.
    pub fn with(wanted: &[ListedVersion]) -> Sql<'_> {
        let mut sql = Sql::new("WITH wanted (package, version, origin) AS (VALUES ");
        for (at, one) in wanted.iter().enumerate() {
            sql.bind(if at == 0 { "(" } else { ", (" }, &one.version.package).bind(", ", &one.version.version);
            sql.bind(", ", &one.origin).push(")");
        }
        sql.push(") ");
        sql
    }

    /// Runs a statement as [`PackageVersion::for_each`] does.
    ///
    /// # Errors
    /// Those of the statement.
    pub async fn for_each(tx: &mut WriteTx, head: &str, versions: &[ListedVersion]) -> Result<()> {
        for part in versions.chunks(AT_ONCE) {
            let mut sql = ListedVersion::with(part);
            sql.push(head).push(" (package, version, origin) IN (SELECT package, version, origin FROM wanted)");
            tx.execute(&sql.text, &sql.params).await?;
        }
        Ok(())
    }
}

/// A search for a package, perhaps in one version.
pub struct PackageCondition {
    /// The package, as `components` names it.
    pub package: String,
    /// Orders the version; absent for all versions.
    pub version_key: Option<Vec<u8>>,
    pub(super) scheme: Scheme,
}

impl PackageCondition {
    /// Reads the package URL in the field `package` of a request.
    ///
    /// # Errors
    /// It is not a package URL.
    pub fn parse(text: &str) -> Result<PackageCondition> {
        let purl = PackageUrl::parse(text)
            .map_err(|error| Error::invalid_field("package", format!("must be a package URL: {error}")))?;
        let scheme = Scheme::of_purl_type(&purl.kind);
        let version = Some(purl.version.trim()).filter(|version| !version.is_empty());
        let version_key = version.map(|version| order_key(scheme, version));
        Ok(PackageCondition { package: package_of(&purl), version_key, scheme })
    }
}

/// Notes that the components of an SBOM are new.
pub(super) async fn note(tx: &mut WriteTx, sbom: &[u8]) -> Result<()> {
    let sql = "INSERT INTO unmatched_sboms (sbom) VALUES ($1) ON CONFLICT DO NOTHING";
    tx.execute(sql, &[Value::from(sbom)]).await?;
    Ok(())
}

/// Notes, before its components are deleted, which versions only this SBOM lists.
pub(super) async fn leave(tx: &mut WriteTx, sbom: &[u8]) -> Result<()> {
    let sbom = [Value::from(sbom)];
    // First: a step of the task that adds the versions of this SBOM ends before, or finds that it is gone.
    tx.execute("DELETE FROM unmatched_sboms WHERE sbom = $1", &sbom).await?;
    let listed = "DELETE FROM version_sboms WHERE (package, version, sbom) IN
                    (SELECT c.package, c.version, c.sbom FROM components c WHERE c.sbom = $1)";
    tx.execute(listed, &sbom).await?;
    let only_here = "UPDATE package_versions SET state = 2 WHERE (package, version, origin) IN
                       (SELECT c.package, c.version, c.origin FROM components c WHERE c.sbom = $1)
                     AND NOT EXISTS (SELECT 1 FROM version_sboms s
                                     WHERE s.package = package_versions.package AND s.version = package_versions.version
                                       AND s.origin = package_versions.origin)";
    tx.execute(only_here, &sbom).await?;
    Ok(())
}
