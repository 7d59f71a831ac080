//! Names of packages that are an organization's own: never requested from an upstream, and published by its groups alone.

use bowline_core::{Error, Reason, Result, UidRange, Uidp};
use bowline_store::{ReadTx, Sql, Value};

use super::{documents, reservations, upstream_files, upstreams};
use crate::ecosystems::Language;

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
    let mut sql = Sql::new("SELECT 1 FROM hosted_files");
    sql.bind(" WHERE repository >= ", &lower).bind(" AND repository < ", &upper);
    sql.bind_list(" AND lower(package) IN ", folded.iter().map(Value::from));
    sql.bind(" AND (deleted_at IS NULL OR lower(package) = ", folded.first().map_or("", String::as_str))
        .push(") LIMIT 1");
    let found = tx.query_opt(&sql.text, &sql.params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(found.is_some())
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
        let document = documents::find(tx, &row.uid, name).await?;
        let is_known = document.is_some_and(|document| document.has_files())
            || upstream_files::count(tx, &row.uid, name).await? > 0
            || language == Language::Go && has_in_directory(tx, &row.uid, name).await?;
        if is_known {
            let text = format!(
                "the upstream {} has a package {name}{}, which the organization installs: publish under another name, or \
                 have an owner reserve this one",
                row.name,
                if language == Language::Go { " or one below" } else { "" },
            );
            return Err(Error::new(Reason::AlreadyExists, text));
        }
    }
    Ok(())
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
