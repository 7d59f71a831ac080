//! What a request for matches looks for.

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_core::{Error, Result};
use bowline_registry::components::{ListedVersion, PackageCondition};
use bowline_store::{ReadTx, Row, Sql, Value};

use crate::records::VISIBLE;

/// Packages of one vulnerability that a page looks at, and maximum number of records that name it as an alias.
pub(super) const MAX_PACKAGES: usize = 1000;
const MAX_RECORDS: i64 = 200;

/// A match of a version of a package.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredMatch {
    pub(super) record_id: String,
    pub(super) vulnerability: String,
    pub(super) aliases: String,
    /// Number of the source.
    pub(super) source: i64,
    pub(super) fixed_version: String,
    pub(super) severity: i32,
}

/// The conditions of a request, validated.
pub(super) struct Conditions {
    /// Ids that a match may have: the requested one, and those of records that name it as an alias; empty for all.
    ids: Vec<String>,
    package: Option<PackageCondition>,
    severities: Vec<i32>,
    fix: own::FixCondition,
}

impl Conditions {
    pub(super) async fn of(tx: &mut ReadTx, request: &own::ListMatchesRequest) -> Result<Conditions> {
        let package = request.package.trim();
        let package = if package.is_empty() { None } else { Some(PackageCondition::parse(package)?) };
        let mut ids = Vec::new();
        let id = request.vulnerability.trim();
        if !id.is_empty() {
            let sql = format!(
                "SELECT DISTINCT r.id FROM record_aliases a JOIN records r ON r.n = a.record {VISIBLE}
                 WHERE a.alias = $1 ORDER BY r.id LIMIT $2"
            );
            let params = [Value::from(id), Value::Int(MAX_RECORDS)];
            ids = tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?;
            ids.push(id.to_owned());
        }
        Ok(Conditions { ids, package, severities: request.severities.clone(), fix: request.fix() })
    }

    /// The packages from one on whose components are to be read, in order; absent if all components are.
    pub(super) async fn packages(&self, tx: &mut ReadTx, from: &str) -> Result<Option<Vec<String>>> {
        if let Some(condition) = &self.package {
            return Ok(Some(vec![condition.package.clone()]));
        }
        if self.ids.is_empty() {
            return Ok(None);
        }
        let mut sql = Sql::new("SELECT m.package FROM package_matches m WHERE ");
        sql.bind("m.package >= ", from);
        sql.bind_list(" AND m.vulnerability IN ", self.ids.iter().map(Value::from));
        sql.push(" UNION SELECT m.package FROM package_matches m WHERE ");
        sql.bind("m.package >= ", from);
        sql.bind_list(" AND m.record_id IN ", self.ids.iter().map(Value::from));
        sql.bind(" ORDER BY 1 LIMIT ", MAX_PACKAGES as i64);
        tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await.map(Some)
    }

    pub(super) fn admits_version(&self, version_key: &[u8]) -> bool {
        let wanted = self.package.as_ref().and_then(|package| package.version_key.as_deref());
        wanted.is_none_or(|wanted| wanted == version_key)
    }

    /// Adds the conditions for a match `m` to a statement.
    fn bind<'a>(&'a self, sql: &mut Sql<'a>) {
        if !self.ids.is_empty() {
            sql.bind_list(" AND (m.vulnerability IN ", self.ids.iter().map(Value::from));
            sql.bind_list(" OR m.record_id IN ", self.ids.iter().map(Value::from)).push(")");
        }
        if !self.severities.is_empty() {
            sql.bind_list(" AND m.severity IN ", self.severities.iter().map(|severity| Value::from(*severity)));
        }
        match self.fix {
            own::FixCondition::Unspecified => {}
            own::FixCondition::Fixed => _ = sql.push(" AND m.fixed_version <> ''"),
            own::FixCondition::NotFixed => _ = sql.push(" AND m.fixed_version = ''"),
        }
    }

    /// Those of these versions that have a match.
    pub(super) async fn matched(&self, tx: &mut ReadTx, versions: &[ListedVersion]) -> Result<Vec<ListedVersion>> {
        let mut sql = ListedVersion::with(versions);
        sql.push("SELECT w.package, w.version, w.origin FROM wanted w WHERE EXISTS (SELECT 1 FROM package_matches m ");
        sql.push("WHERE m.package = w.package AND m.version = w.version AND m.origin = w.origin");
        self.bind(&mut sql);
        sql.push(")");
        tx.query(&sql.text, &sql.params, ListedVersion::read).await
    }

    /// The matches of a version, by the ids of their records.
    pub(super) async fn matches(&self, tx: &mut ReadTx, listed: &ListedVersion) -> Result<Vec<StoredMatch>> {
        let mut sql = Sql::new(
            "SELECT m.record_id, m.vulnerability, m.aliases, m.source, m.fixed_version, m.severity
             FROM package_matches m",
        );
        let ListedVersion { version, origin } = listed;
        sql.bind(" WHERE m.package = ", &version.package).bind(" AND m.version = ", &version.version);
        sql.bind(" AND m.origin = ", origin);
        self.bind(&mut sql);
        sql.push(" ORDER BY m.record_id");
        let read = |row: &Row<'_>| {
            Ok::<_, Error>(StoredMatch {
                record_id: row.text(0)?,
                vulnerability: row.text(1)?,
                aliases: row.text(2)?,
                source: row.int(3)?,
                fixed_version: row.text(4)?,
                severity: i32::try_from(row.int(5)?).unwrap_or_default(),
            })
        };
        tx.query(&sql.text, &sql.params, read).await
    }
}
