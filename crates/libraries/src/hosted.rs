//! Packages that groups published, in the lists of the wire contract beside the catalogue.
//!
//! A caller sees those of the groups where it holds the capability of the method and that of reading packages of the
//! ecosystem. What others have is in no row, total, page token or error: it is left out by every statement here, and an id
//! that the caller may not read is one that does not exist. The lists read the rows of these groups alone, and compare
//! names with the text of a search one by one: their cost grows with what the caller may read, not with what there is.

use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::rpc::{go_host, java_host, javascript_host, python_host};
use bowline_contract::{Auth, Contract};
use bowline_core::{CapabilitySet, Error, Reason, Result, UidRange};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Sql, Value};

use super::ecosystems::{IN_CONTRACT, Language};
use super::search::ArtifactRow;

/// How ids of these artifacts begin; those of the catalogue begin with the word of an ecosystem.
pub(super) const ID_PREFIX: &str = "hosted:";
/// Parts of the hierarchy that a list looks at: each is named in its statements.
const MAX_RANGES: usize = 3000;

/// Columns of an [`ArtifactRow`]. The lists of the contract show no other versions of these than built ones.
pub(super) const COLUMNS: &str = "h.id, h.ecosystem, h.package AS name, h.folded, '' AS description, h.license, h.latest, \
     h.latest AS latest_built, h.version_count, h.version_count AS built_count, CAST(0 AS BIGINT) AS upstream_count, \
     FALSE AS is_remediated, h.created_at, h.updated_at, h.repository";

/// Whose packages a caller may read, in each ecosystem.
pub(super) struct Readable(Vec<(Language, Vec<UidRange>)>);

impl Readable {
    /// The packages of no group at all.
    pub(super) fn nothing() -> Readable {
        Readable(Vec::new())
    }

    /// Those of the groups where the caller holds the capabilities.
    ///
    /// # Errors
    /// FAILED_PRECONDITION: these are too many groups that lie apart from each other.
    pub(super) fn of<T>(call: &Authorized<T>) -> Result<Readable> {
        let mut readable = Vec::new();
        for language in IN_CONTRACT {
            let needed = call.needed().union(&needed_to_read(call.contract(), language)?);
            let ranges = call.grants().visible(&needed);
            if ranges.len() > MAX_RANGES {
                let text = format!(
                    "the caller may read packages of more than {MAX_RANGES} groups that lie apart: use a token that is \
                     narrowed to some of them"
                );
                return Err(Error::new(Reason::FailedPrecondition, text));
            }
            if !ranges.is_empty() {
                readable.push((language, ranges));
            }
        }
        Ok(Readable(readable))
    }

    /// Whether the caller may read packages of an ecosystem anywhere.
    pub(super) fn has(&self, language: Language) -> bool {
        self.ranges(language).is_some()
    }

    fn ranges(&self, language: Language) -> Option<&[UidRange]> {
        self.0.iter().find(|(of, _)| *of == language).map(|(_, ranges)| ranges.as_slice())
    }

    /// Appends the packages of an ecosystem, as the table `h`, with the condition that the caller may read them.
    pub(super) fn from<'a>(&'a self, sql: &mut Sql<'a>, language: Language) {
        sql.push(" FROM (VALUES ");
        for (index, range) in self.ranges(language).unwrap_or_default().iter().enumerate() {
            sql.bind(if index == 0 { "(" } else { ", (" }, range.lower.as_str());
            sql.bind(", ", range.upper.as_str()).push(")");
        }
        // The ranges are disjoint, so no row comes twice.
        sql.push(") AS g JOIN hosted_packages h ON h.repository >= g.column1 AND h.repository < g.column2");
        sql.bind(" WHERE h.ecosystem = ", language.number());
    }

    /// How many packages the caller may read in each ecosystem.
    pub(super) async fn counts(&self, tx: &mut ReadTx) -> Result<Vec<(Language, i64)>> {
        let mut sql = Sql::default();
        for (index, (language, _)) in self.0.iter().enumerate() {
            sql.push(if index == 0 { "SELECT " } else { " UNION ALL SELECT " });
            sql.push(&format!("CAST({} AS BIGINT), count(*)", language.number()));
            self.from(&mut sql, *language);
        }
        if self.0.is_empty() {
            return Ok(Vec::new());
        }
        tx.query(&sql.text, &sql.params, |row| Ok((Language::of_number(row.int(0)?)?, row.int(1)?))).await
    }

    /// The package of this id, if the caller may read it.
    pub(super) async fn find(&self, tx: &mut ReadTx, id: &str) -> Result<Option<ArtifactRow>> {
        let sql = format!("SELECT {COLUMNS} FROM hosted_packages h WHERE h.id = $1");
        let row = tx.query_opt(&sql, &[Value::from(id)], ArtifactRow::read).await?;
        Ok(row.filter(|row| {
            let mut ranges = self.ranges(row.language).unwrap_or_default().iter();
            ranges.any(|range| range.contains(&row.repository))
        }))
    }
}

/// What reading packages of an ecosystem needs, as its protocol states it.
fn needed_to_read(contract: &Contract, language: Language) -> Result<CapabilitySet> {
    let operation = match language {
        Language::Java => java_host::ReadPackages::FULL_NAME,
        Language::Python => python_host::ReadPackages::FULL_NAME,
        Language::JavaScript => javascript_host::ReadPackages::FULL_NAME,
        Language::Go => go_host::ReadPackages::FULL_NAME,
        Language::Cargo | Language::Generic => {
            return Err(Error::internal("the lists of the contract leave crates and generic files out"));
        }
    };
    match contract.by_full_name(operation).map(|info| &info.auth) {
        Some(Auth::Capabilities { needed, .. }) if !needed.is_empty() => Ok(*needed),
        _ => Err(Error::internal(format!("{operation} states no capabilities"))),
    }
}
