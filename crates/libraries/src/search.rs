//! Search for artifacts by ecosystem, part of the name and CUDA version: pages and totals.
//!
//! Substrings of three characters and more are looked up by their rarest trigram, whose rows are ordered by
//! name: the cost of a page is proportional to its size, on both engines. Shorter ones are compared along the
//! index of names.

use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Sql, Value, like};

use super::ecosystems::Language;
use super::hosted::{self, Readable};

/// An artifact as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ArtifactRow {
    pub(super) id: String,
    pub(super) language: Language,
    pub(super) name: String,
    pub(super) folded: String,
    pub(super) description: String,
    pub(super) license: String,
    pub(super) latest: String,
    pub(super) latest_built: String,
    pub(super) version_count: i64,
    pub(super) built_count: i64,
    pub(super) upstream_count: i64,
    pub(super) is_remediated: bool,
    pub(super) created_at: Micros,
    pub(super) updated_at: Micros,
    /// UIDP of the repository of packages that has it; empty for those of the catalogue.
    pub(super) repository: String,
}

pub(super) const COLUMNS: &str = "a.id, a.ecosystem, a.name, a.folded, a.description, a.license, a.latest, a.latest_built, \
     a.version_count, a.built_count, a.upstream_count, a.is_remediated, a.created_at, a.updated_at, '' AS repository";

impl ArtifactRow {
    pub(super) fn read(row: &Row<'_>) -> Result<ArtifactRow> {
        Ok(ArtifactRow {
            id: row.text(0)?,
            language: Language::of_number(row.int(1)?)?,
            name: row.text(2)?,
            folded: row.text(3)?,
            description: row.text(4)?,
            license: row.text(5)?,
            latest: row.text(6)?,
            latest_built: row.text(7)?,
            version_count: row.int(8)?,
            built_count: row.int(9)?,
            upstream_count: row.int(10)?,
            is_remediated: row.bool(11)?,
            created_at: row.int(12)?,
            updated_at: row.int(13)?,
            repository: row.text(14)?,
        })
    }

    /// Whether a group published it.
    pub(super) fn is_hosted(&self) -> bool {
        !self.repository.is_empty()
    }
}

/// The artifact of this id.
pub(super) async fn find(tx: &mut ReadTx, id: &str) -> Result<Option<ArtifactRow>> {
    let sql = format!("SELECT {COLUMNS} FROM library_artifacts a WHERE a.id = $1");
    tx.query_opt(&sql, &[Value::from(id)], ArtifactRow::read).await
}

/// Which versions an artifact must have to be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum With {
    Any,
    Built,
    Remediated,
    Upstream,
}

impl With {
    pub(super) fn condition(self) -> &'static str {
        match self {
            With::Any => "",
            With::Built => " AND a.is_built = TRUE",
            With::Remediated => " AND a.is_remediated = TRUE",
            With::Upstream => " AND a.upstream_count > 0",
        }
    }

    fn counted(self) -> &'static str {
        match self {
            With::Any => "total",
            With::Built => "built",
            With::Remediated => "remediated",
            With::Upstream => "upstream",
        }
    }
}

/// The parameters of a search.
pub(super) struct Search {
    /// Ecosystems, each once, and which versions count in it.
    pub(super) ecosystems: Vec<(Language, With)>,
    /// Part of the name in lower case.
    pub(super) part: String,
    pub(super) cuda_version: String,
    /// Packages of groups that are listed beside the catalogue.
    pub(super) hosted: Readable,
}

/// Fields that artifacts sort by.
pub(super) const ORDERS: &[&[&str]] = &[
    &["name"],
    &["create_time", "created_at", "createTime", "createdAt"],
    &["update_time", "updated_at", "updateTime", "updatedAt"],
];
const ORDER_COLUMNS: [&str; 3] = ["folded", "created_at", "updated_at"];

/// A page of artifacts.
pub(super) struct ArtifactPage {
    pub(super) items: Vec<ArtifactRow>,
    pub(super) next_page_token: String,
    pub(super) total: i64,
    pub(super) skipped: i32,
}

impl ArtifactPage {
    pub(super) fn nothing() -> ArtifactPage {
        ArtifactPage { items: Vec::new(), next_page_token: String::new(), total: 0, skipped: 0 }
    }
}

impl Search {
    pub(super) async fn page<T>(
        &self,
        tx: &mut ReadTx,
        call: &Authorized<T>,
        request: &PageRequest,
    ) -> Result<ArtifactPage> {
        let page = Page::validate(call, request, ORDERS, (0, Direction::Ascending))?;
        if self.ecosystems.is_empty() {
            return Ok(ArtifactPage::nothing());
        }
        let trigram = rarest(tx, &self.part).await?;
        let total = self.total(tx, trigram.as_deref()).await?;
        let mut items = self.rows(tx, trigram.as_deref(), &page).await?;
        let mut next_page_token = String::new();
        if items.len() > page.size {
            items.truncate(page.size);
            if let Some(last) = items.last() {
                let key = match page.order {
                    0 => SortKey::Text(last.folded.clone()),
                    1 => SortKey::Int(last.created_at),
                    _ => SortKey::Int(last.updated_at),
                };
                next_page_token = page.next_token(call, Some(key), last.id.clone());
            }
        }
        let skipped = i32::try_from(page.skipped()).unwrap_or(i32::MAX);
        Ok(ArtifactPage { items, next_page_token, total, skipped })
    }

    async fn rows(&self, tx: &mut ReadTx, trigram: Option<&str>, page: &Page) -> Result<Vec<ArtifactRow>> {
        let wanted = page.size as i64 + 1;
        let column = ORDER_COLUMNS[page.order];
        let direction = if page.direction == Direction::Ascending { "ASC" } else { "DESC" };
        let pattern = like(&self.part, false);
        let mut sql = Sql::default();
        let catalogue = self.ecosystems.iter().map(|place| (*place, false));
        let of_groups = self.of_groups().map(|language| ((language, With::Built), true));
        // Each ecosystem is read along its index, a page at most; the results are merged.
        for (index, (place, is_hosted)) in catalogue.chain(of_groups).enumerate() {
            sql.push(if index == 0 { "SELECT * FROM (" } else { " UNION ALL SELECT * FROM (" });
            sql.push("SELECT ").push(if is_hosted { hosted::COLUMNS } else { COLUMNS });
            let names = if is_hosted {
                self.push_groups(&mut sql, place.0, &pattern)
            } else {
                self.from(&mut sql, place, trigram, &pattern)
            };
            let (key, id) = match (page.order, names) {
                (0, "t") => ("t.folded".to_owned(), "t.artifact"),
                (_, "h") => (format!("h.{column}"), "h.id"),
                _ => (format!("a.{column}"), "a.id"),
            };
            if let Some(Cursor { key: after, uid, .. }) = &page.cursor {
                let after = match after {
                    Some(SortKey::Text(text)) => Value::Text(text),
                    Some(SortKey::Int(int)) => Value::Int(*int),
                    None => return Err(Error::internal("a page token of artifacts has no key")),
                };
                let comparison = if page.direction == Direction::Ascending { ">" } else { "<" };
                sql.push(&format!(" AND ({key}, {id}) {comparison} "));
                sql.bind("(", after).bind(", ", uid).push(")");
            }
            sql.push(&format!(" ORDER BY {key} {direction}, {id} {direction}"));
            sql.bind(" LIMIT ", wanted + page.skip).push(&format!(") place{index}"));
        }
        sql.push(&format!(" ORDER BY {column} {direction}, id {direction}"));
        sql.bind(" LIMIT ", wanted).bind(" OFFSET ", page.skip);
        tx.query(&sql.text, &sql.params, ArtifactRow::read).await
    }

    /// Appends tables and conditions of one ecosystem; returns the alias of the table that is ordered by
    /// name.
    fn from<'a>(
        &'a self,
        sql: &mut Sql<'a>,
        (language, with): (Language, With),
        trigram: Option<&'a str>,
        pattern: &'a str,
    ) -> &'static str {
        let names = if let Some(trigram) = trigram {
            sql.push(" FROM library_trigrams t JOIN library_artifacts a ON a.id = t.artifact");
            sql.bind(" WHERE t.trigram = ", trigram).bind(" AND t.ecosystem = ", language.number());
            "t"
        } else {
            sql.bind(" FROM library_artifacts a WHERE a.ecosystem = ", language.number());
            "a"
        };
        // Whether an artifact was built stands in the trigram's row too.
        sql.push(if names == "t" && with == With::Built { " AND t.is_built = TRUE" } else { with.condition() });
        if !self.part.is_empty() {
            sql.bind(&format!(" AND {names}.folded LIKE "), pattern).push(" ESCAPE '\\'");
        }
        if !self.cuda_version.is_empty() {
            let artifact = if names == "t" { "t.artifact" } else { "a.id" };
            sql.push(&format!(" AND EXISTS (SELECT 1 FROM library_cuda c WHERE c.artifact = {artifact}"));
            sql.bind(" AND c.cuda_version = ", &self.cuda_version).push(")");
        }
        names
    }

    /// The ecosystems whose packages of groups match: none of these is remediated, or built for a version of CUDA.
    fn of_groups(&self) -> impl Iterator<Item = Language> {
        let is_shown = |(language, with): &&(Language, With)| {
            matches!(with, With::Any | With::Built) && self.cuda_version.is_empty() && self.hosted.has(*language)
        };
        self.ecosystems.iter().filter(is_shown).map(|(language, _)| *language)
    }

    /// The same of packages of groups, as the table `h`.
    fn push_groups<'a>(&'a self, sql: &mut Sql<'a>, language: Language, pattern: &'a str) -> &'static str {
        self.hosted.from(sql, language);
        if !self.part.is_empty() {
            sql.bind(" AND h.folded LIKE ", pattern).push(" ESCAPE '\\'");
        }
        "h"
    }

    /// How many there are, in the catalogue and of groups.
    pub(super) async fn total(&self, tx: &mut ReadTx, trigram: Option<&str>) -> Result<i64> {
        Ok(self.total_of_catalogue(tx, trigram).await? + self.total_of_groups(tx).await?)
    }

    async fn total_of_groups(&self, tx: &mut ReadTx) -> Result<i64> {
        let pattern = like(&self.part, false);
        let mut sql = Sql::new("SELECT CAST(sum(n) AS BIGINT) FROM (SELECT 0 AS n");
        for language in self.of_groups() {
            sql.push(" UNION ALL SELECT count(*) AS n");
            self.push_groups(&mut sql, language, &pattern);
        }
        sql.push(") counted");
        let total = tx.query_opt(&sql.text, &sql.params, |row| row.opt_int(0).map_err(Error::from)).await?;
        Ok(total.flatten().unwrap_or(0))
    }

    async fn total_of_catalogue(&self, tx: &mut ReadTx, trigram: Option<&str>) -> Result<i64> {
        if self.part.is_empty() && self.cuda_version.is_empty() {
            let counts = counts(tx).await?;
            let of = |(language, with): &(Language, With)| {
                counts.iter().find(|row| row.0 == *language).map_or(0, |row| row.1[*with as usize])
            };
            return Ok(self.ecosystems.iter().map(of).sum());
        }
        let pattern = like(&self.part, false);
        let mut sql = Sql::new("SELECT CAST(sum(n) AS BIGINT) FROM (");
        for (index, place) in self.ecosystems.iter().enumerate() {
            sql.push(if index == 0 { "SELECT count(*) AS n" } else { " UNION ALL SELECT count(*) AS n" });
            // Whether an artifact was built stands in the trigram's row too: most counts need no other.
            if let (Some(trigram), With::Any | With::Built) = (trigram, place.1) {
                sql.bind(" FROM library_trigrams t WHERE t.trigram = ", trigram);
                sql.bind(" AND t.ecosystem = ", place.0.number());
                if place.1 == With::Built {
                    sql.push(" AND t.is_built = TRUE");
                }
                sql.bind(" AND t.folded LIKE ", &pattern).push(" ESCAPE '\\'");
                if !self.cuda_version.is_empty() {
                    sql.push(" AND EXISTS (SELECT 1 FROM library_cuda c WHERE c.artifact = t.artifact");
                    sql.bind(" AND c.cuda_version = ", &self.cuda_version).push(")");
                }
            } else {
                self.from(&mut sql, *place, trigram, &pattern);
            }
        }
        sql.push(") counted");
        let total = tx.query_opt(&sql.text, &sql.params, |row| row.opt_int(0).map_err(Error::from)).await?;
        Ok(total.flatten().unwrap_or(0))
    }
}

/// How many artifacts each ecosystem has, in the order of [`With`].
pub(super) async fn counts(tx: &mut ReadTx) -> Result<Vec<(Language, [i64; 4])>> {
    let columns = [With::Any, With::Built, With::Remediated, With::Upstream].map(With::counted).join(", ");
    let sql = format!("SELECT ecosystem, {columns} FROM library_artifact_counts");
    tx.query(&sql, &[], |row| {
        Ok((Language::of_number(row.int(0)?)?, [row.int(1)?, row.int(2)?, row.int(3)?, row.int(4)?]))
    })
    .await
}

/// The different trigrams of a text.
pub(super) fn trigrams(folded: &str) -> Vec<String> {
    let characters: Vec<char> = folded.chars().collect();
    let mut trigrams: Vec<String> = characters.windows(3).map(|window| window.iter().collect()).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

/// Rows of a trigram that are counted before it is called frequent.
const FREQUENT: i64 = 1000;
/// Maximum number of trigrams of a text that are compared.
const WEIGHED: usize = 24;

/// The trigram of a text that the fewest names have; none if the text is too short.
pub(super) async fn rarest(tx: &mut ReadTx, part: &str) -> Result<Option<String>> {
    let mut trigrams = trigrams(part);
    trigrams.truncate(WEIGHED);
    if trigrams.len() < 2 {
        return Ok(trigrams.pop());
    }
    let mut sql = Sql::default();
    for (index, trigram) in trigrams.iter().enumerate() {
        sql.push(if index == 0 { "" } else { " UNION ALL " });
        sql.push(&format!("SELECT {index} AS place, (SELECT count(*) FROM (SELECT 1 FROM library_trigrams"));
        sql.bind(" WHERE trigram = ", trigram).bind(" LIMIT ", FREQUENT).push(") seen) AS n");
    }
    let sql_text = format!("SELECT CAST(place AS BIGINT) FROM ({}) weighed ORDER BY n, place LIMIT 1", sql.text);
    let place = tx.query_opt(&sql_text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(place.and_then(|place| trigrams.into_iter().nth(place as usize)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trigrams_are_unique() {
        assert_eq!(trigrams("aaaab"), ["aaa", "aab"]);
        assert_eq!(trigrams("äöü"), ["äöü"]);
        assert!(trigrams("ab").is_empty());
    }
}
