//! Names of packages that are an organization's own: never requested from an upstream, and published by its groups alone.

use std::collections::BTreeSet;

use bowline_core::{Error, Reason, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::{documents, reservations, upstream_files, upstreams};
use crate::ecosystems::Language;

/// Names that one statement looks up.
const AT_ONCE: usize = 64;

/// Whether a name is the organization's: reserved, or published by any group of it, if only once before it was deleted.
/// A name in another case is one too, and of Go one below an own module that is there, as which its packages are looked for: the
/// question alone would tell others what it is.
pub(super) async fn is_own(tx: &mut ReadTx, organization: &Uidp, language: Language, name: &str) -> Result<bool> {
    let names = language.with_those_above(name);
    Ok(is_published(tx, organization, language, &names).await?
        || reservations::has(tx, organization.as_str(), language, &names).await?)
}

/// Whether a group of the organization published the first of some names, or has one of the others, in any case.
async fn is_published(tx: &mut ReadTx, organization: &Uidp, language: Language, names: &[&str]) -> Result<bool> {
    let UidRange { lower, upper } = UidRange::below(organization.as_str());
    let folded: Vec<String> = names.iter().map(|name| language.owned(name)).collect();
    let column = folded_column(language);
    let mut sql = Sql::new("SELECT 1 FROM hosted_files JOIN package_repositories r ON r.uid = repository");
    sql.bind(" WHERE repository >= ", &lower).bind(" AND repository < ", &upper);
    sql.bind(" AND r.ecosystem = ", language.number());
    sql.bind_list(&format!(" AND {column} IN "), folded.iter().map(Value::from));
    let first = folded.first().map_or("", String::as_str);
    sql.bind(&format!(" AND (deleted_at IS NULL OR {column} = "), first).push(") LIMIT 1");
    let found = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.is_some())
}

/// Those of some names of an ecosystem whose packages do not lie in each other, which is any but Go.
pub(super) async fn of_names<'a>(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    names: &[&'a str],
) -> Result<BTreeSet<&'a str>> {
    let UidRange { lower, upper } = UidRange::below(organization.as_str());
    let mut own: BTreeSet<&str> = reservations::of_names(tx, organization.as_str(), language, names).await?;
    let column = folded_column(language);
    for chunk in names.chunks(AT_ONCE) {
        let folded: Vec<String> = chunk.iter().map(|name| language.owned(name)).collect();
        let mut sql = Sql::new(format!(
            "SELECT DISTINCT {column} FROM hosted_files JOIN package_repositories r ON r.uid = repository"
        ));
        sql.bind(" WHERE repository >= ", &lower).bind(" AND repository < ", &upper);
        sql.bind(" AND r.ecosystem = ", language.number());
        sql.bind_list(&format!(" AND {column} IN "), folded.iter().map(Value::from));
        let found = tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await?;
        own.extend(chunk.iter().zip(&folded).filter(|(_, folded)| found.contains(folded)).map(|(name, _)| *name));
    }
    Ok(own)
}

/// A name in a row as `Language::owned` folds it; both have an index.
fn folded_column(language: Language) -> &'static str {
    if language == Language::Cargo { "replace(lower(package), '_', '-')" } else { "lower(package)" }
}

/// Refuses a crate whose name differs in `-` and `_` alone from that of another one that a group of the organization has or had:
/// people take them for one.
pub(super) async fn require_spelling(tx: &mut ReadTx, group: &Uidp, language: Language, name: &str) -> Result<()> {
    if language != Language::Cargo {
        return Ok(());
    }
    let sql = format!(
        "SELECT package, r.parent FROM hosted_files JOIN package_repositories r ON r.uid = repository
         WHERE repository >= $1 AND repository < $2 AND r.ecosystem = $3 AND {} = $4 AND package <> $5 LIMIT 1",
        folded_column(language)
    );
    let (folded, UidRange { lower, upper }) = (language.owned(name), UidRange::below(group.root_str()));
    let params = [
        Value::from(&lower),
        Value::from(&upper),
        Value::Int(language.number()),
        Value::from(&folded),
        Value::from(name),
    ];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let text = match tx.query_opt(&sql, &params, read).await? {
        None => return Ok(()),
        Some((other, parent)) if parent == group.as_str() => {
            format!("{name} is too close to {other}, which exists: publish it under that name, or another one")
        }
        // Those who publish here may not know what others have.
        Some(_) => format!("{name} is too close to the name of a crate of another group: publish under another name"),
    };
    Err(Error::new(Reason::AlreadyExists, text))
}

/// Refuses to publish the first file of a package whose name an upstream is known to have: it would take the upstream's
/// package from the whole organization, and of Go all that is below. The upstream is not asked, which would tell others the name.
pub(super) async fn require_name(tx: &mut ReadTx, group: &Uidp, language: Language, name: &str) -> Result<()> {
    let organization = group.root();
    let reserved = reservations::has(tx, organization.as_str(), language, &language.with_those_above(name)).await?;
    if reserved || is_published(tx, &organization, language, &[name]).await? {
        return Ok(());
    }
    for row in upstreams::of_organization(tx, organization.as_str()).await? {
        if row.language != language {
            continue;
        }
        let mut known = None;
        for spelling in spellings(tx, &row.uid, language, name).await? {
            let document = documents::find(tx, &row.uid, &spelling).await?;
            let is_known = document.is_some_and(|document| document.has_files())
                || upstream_files::count(tx, &row.uid, &spelling).await? > 0
                || language == Language::Go && has_in_directory(tx, &row.uid, &spelling).await?;
            known = known.or(Some(spelling).filter(|_| is_known));
        }
        if let Some(known) = known {
            let text = format!(
                "the upstream {} has a package {known}{}, which the organization installs: publish under another name, or \
                 have an owner reserve this one",
                row.name,
                if language == Language::Go { " or one below" } else { "" },
            );
            return Err(Error::new(Reason::AlreadyExists, text));
        }
    }
    Ok(())
}

/// The names under which an upstream may be known to have a package: of Cargo, those that differ in `-` and `_` alone.
async fn spellings(tx: &mut ReadTx, upstream: &Uidp, language: Language, name: &str) -> Result<Vec<String>> {
    let mut names = vec![name.to_owned()];
    if language == Language::Cargo {
        let folded = language.owned(name);
        for table in ["upstream_documents", "upstream_files"] {
            let sql = format!(
                "SELECT DISTINCT package FROM {table}
                 WHERE upstream = $1 AND replace(package, '_', '-') = $2 AND package <> $3"
            );
            let params = [Value::from(upstream.as_str()), Value::from(&folded), Value::from(name)];
            names.extend(tx.query(&sql, &params, |row| row.text(0).map_err(Error::from)).await?);
        }
    }
    Ok(names)
}

/// Whether anything is known of versions of a module of Go at an upstream, or of modules below it.
async fn has_in_directory(tx: &mut ReadTx, upstream: &Uidp, module: &str) -> Result<bool> {
    // Of each pair, the second begins with the next sign.
    for (lower, upper) in [(format!("{module}/"), format!("{module}0")), (format!("{module}@"), format!("{module}A"))] {
        for table in ["upstream_documents", "upstream_files"] {
            let sql = format!("SELECT 1 FROM {table} WHERE upstream = $1 AND package >= $2 AND package < $3 LIMIT 1");
            let params = [Value::from(upstream.as_str()), Value::from(&lower), Value::from(&upper)];
            if tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}
