//! Names of packages for the search over everything: first those that begin with the text, then those that have it
//! elsewhere, both in the order of names.

use bowline_core::Result;
use bowline_formats::purl::PackageUrl;
use bowline_store::{ReadTx, Sql, like};

use super::ecosystems::{LANGUAGES, Language};
use super::search::{self, ArtifactRow, COLUMNS, rarest};

/// A package of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageName {
    pub id: String,
    pub name: String,
    /// Its ecosystem in one word.
    pub ecosystem: &'static str,
    /// Its name in lower case, by which packages are ordered.
    pub folded: String,
}

impl PackageName {
    fn of(row: ArtifactRow) -> PackageName {
        PackageName { id: row.id, name: row.name, ecosystem: row.language.word(), folded: row.folded }
    }
}

/// Packages whose names begin with a text in lower case, after a name and id.
///
/// # Errors
/// Those of the statements.
pub async fn beginning(tx: &mut ReadTx, text: &str, after: (&str, &str), most: usize) -> Result<Vec<PackageName>> {
    let end = format!("{text}{}", char::MAX);
    let mut sql = Sql::default();
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        sql.push(if index == 0 { "SELECT * FROM (SELECT " } else { " UNION ALL SELECT * FROM (SELECT " }).push(COLUMNS);
        sql.bind(" FROM library_artifacts a WHERE a.ecosystem = ", language.number());
        sql.bind(" AND a.folded >= ", text).bind(" AND a.folded < ", &end);
        sql.bind(" AND (a.folded, a.id) > (", after.0).bind(", ", after.1).push(") ORDER BY a.folded, a.id");
        sql.bind(" LIMIT ", most as i64).push(&format!(") part{index}"));
    }
    sorted(tx, sql, most).await
}

/// Packages that have a text of three characters or more elsewhere in their names, after a name and id.
///
/// # Errors
/// Those of the statements.
pub async fn within(tx: &mut ReadTx, text: &str, after: (&str, &str), most: usize) -> Result<Vec<PackageName>> {
    let Some(trigram) = rarest(tx, text).await? else { return Ok(Vec::new()) };
    let (pattern, begins) = (like(text, false), like(text, true));
    let mut sql = Sql::default();
    for (index, language) in LANGUAGES.into_iter().enumerate() {
        sql.push(if index == 0 { "SELECT * FROM (SELECT " } else { " UNION ALL SELECT * FROM (SELECT " }).push(COLUMNS);
        sql.push(" FROM library_trigrams t JOIN library_artifacts a ON a.id = t.artifact");
        sql.bind(" WHERE t.trigram = ", &trigram).bind(" AND t.ecosystem = ", language.number());
        sql.bind(" AND t.folded LIKE ", &pattern).bind(" ESCAPE '\\' AND t.folded NOT LIKE ", &begins);
        sql.bind(" ESCAPE '\\' AND (t.folded, t.artifact) > (", after.0).bind(", ", after.1);
        sql.push(") ORDER BY t.folded, t.artifact");
        sql.bind(" LIMIT ", most as i64).push(&format!(") part{index}"));
    }
    sorted(tx, sql, most).await
}

async fn sorted(tx: &mut ReadTx, mut sql: Sql<'_>, most: usize) -> Result<Vec<PackageName>> {
    sql.push(" ORDER BY folded, id").bind(" LIMIT ", most as i64);
    let rows = tx.query(&sql.text, &sql.params, ArtifactRow::read).await?;
    Ok(rows.into_iter().map(PackageName::of).collect())
}

/// The name that a package URL has, as advisories write it; absent if the text is not a package URL.
pub fn name_of_purl(text: &str) -> Option<String> {
    PackageUrl::parse(text).ok().map(|purl| purl.name)
}

/// The package of the catalogue that a package URL names, whatever its version.
///
/// # Errors
/// Those of the statements.
pub async fn of_purl(tx: &mut ReadTx, text: &str) -> Result<Option<PackageName>> {
    let Ok(purl) = PackageUrl::parse(text) else { return Ok(None) };
    let Some(language) = Language::of_purl_type(&purl.kind) else { return Ok(None) };
    let separator = if language == Language::Java { ":" } else { "/" };
    let parts: Vec<&str> = purl.namespace.iter().map(String::as_str).chain([purl.name.as_str()]).collect();
    let name = language.normalized(&parts.join(separator));
    Ok(search::find(tx, &language.artifact_id(&name)).await?.map(PackageName::of))
}
