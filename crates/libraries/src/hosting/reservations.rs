//! Names of packages that belong to an organization: listed, reserved, released.

use std::collections::BTreeSet;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::package_reservations::{
    CreateReservation, DeleteReservation, ListReservations,
};
use bowline_core::{Error, FieldViolation, Micros, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::PACKAGE_RESERVATION;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use crate::ecosystems::{Language, MUST_HAVE_UPSTREAMS};
use crate::require_organization;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListReservations>(handler!(list))
        .validate::<CreateReservation>(|request| violations(request.ecosystem, &request.pattern))
        .write::<CreateReservation>(handler!(create))
        .validate::<DeleteReservation>(|request| violations(request.ecosystem, &request.pattern))
        .write::<DeleteReservation>(handler!(delete))
}

/// Reservations that an organization may have.
const MAX_IN_ORGANIZATION: usize = 500;

/// A reservation as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReservationRow {
    language: Language,
    /// A normalized name, or the beginning of names and `*`.
    pattern: String,
    created_at: Micros,
}

impl ReservationRow {
    fn read(row: &Row<'_>) -> Result<ReservationRow> {
        Ok(ReservationRow {
            language: Language::of_number(row.int(0)?)?,
            pattern: row.text(1)?,
            created_at: row.int(2)?,
        })
    }

    fn shown(&self) -> own::PackageReservation {
        own::PackageReservation {
            ecosystem: self.language.own() as i32,
            pattern: self.pattern.clone(),
            create_time: timestamp(self.created_at),
        }
    }
}

/// Whether an organization has reserved one of some normalized names.
pub(super) async fn has(tx: &mut ReadTx, organization: &str, language: Language, names: &[&str]) -> Result<bool> {
    let reserved = of_organization(tx, organization).await?;
    let names: Vec<String> = names.iter().map(|name| language.owned(name)).collect();
    let is_meant = |pattern: &str| names.iter().any(|name| matches(pattern, name));
    Ok(reserved.iter().any(|row| row.language == language && is_meant(&row.pattern)))
}

/// Those of some names that an organization has reserved.
pub(super) async fn of_names<'a>(
    tx: &mut ReadTx,
    organization: &str,
    language: Language,
    names: &[&'a str],
) -> Result<BTreeSet<&'a str>> {
    let mut reserved = of_organization(tx, organization).await?;
    reserved.retain(|row| row.language == language);
    let is_reserved = |name: &&&str| {
        let name = language.owned(name);
        reserved.iter().any(|row| matches(&row.pattern, &name))
    };
    Ok(names.iter().filter(is_reserved).copied().collect())
}

/// Whether an organization has reserved a name of a group of Maven, such as `org.example`, or all of them.
pub(super) async fn has_in_group(tx: &mut ReadTx, organization: &str, group: &str) -> Result<bool> {
    let names = Language::Java.owned(&format!("{group}:"));
    let reserved = of_organization(tx, organization).await?;
    let is_in = |pattern: &str| matches(pattern, &names) || pattern.starts_with(&names);
    Ok(reserved.iter().any(|row| row.language == Language::Java && is_in(&row.pattern)))
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |beginning| {
        // Who reserves all below a directory means the directory, too.
        name.starts_with(beginning) || beginning.strip_suffix('/') == Some(name)
    })
}

/// The pattern as it is compared: `Acme_*` is `acme-*`.
fn normalized(language: Language, pattern: &str) -> String {
    match pattern.strip_suffix('*') {
        Some(beginning) => format!("{}*", language.owned(beginning)),
        None => language.owned(pattern),
    }
}

fn violations(ecosystem: i32, pattern: &str) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    let mut refuse =
        |field: &str, text: &str| violations.push(FieldViolation { field: field.into(), description: text.into() });
    let Ok(language) = Language::required_with_upstreams("ecosystem", ecosystem) else {
        refuse("ecosystem", MUST_HAVE_UPSTREAMS);
        return violations;
    };
    // What stands before a star is the beginning of a name, such as a scope with its slash.
    let name = match (language, pattern.strip_suffix('*')) {
        (_, None) => pattern.to_owned(),
        (Language::JavaScript, Some(beginning)) if beginning.len() > 1 => format!("{beginning}x"),
        (Language::Java, Some(beginning)) if beginning.contains(':') => format!("{beginning}x"),
        (Language::Java, Some(beginning)) => format!("{}:x", beginning.trim_end_matches(['.', '-', '_'])),
        (Language::Go, Some(beginning)) => format!("{beginning}x"),
        (Language::Cargo, Some(beginning)) => beginning.strip_suffix(['-', '_']).unwrap_or(beginning).to_owned(),
        (_, Some(beginning)) => beginning.strip_suffix(['-', '_', '.']).unwrap_or(beginning).to_owned(),
    };
    if language.validate_name(&name).is_err() {
        let text = "must be the name of a package, or the beginning of names and *, such as acme-*, @acme/*, com.acme.* or git.acme.example/*";
        refuse("pattern", text);
    }
    violations
}

async fn of_organization(tx: &mut ReadTx, organization: &str) -> Result<Vec<ReservationRow>> {
    let sql = "SELECT ecosystem, pattern, created_at FROM package_reservations WHERE parent = $1
               ORDER BY ecosystem, pattern";
    tx.query(sql, &[Value::from(organization)], ReservationRow::read).await
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListPackageReservationsRequest>,
) -> Result<own::ListPackageReservationsResponse> {
    let organization = require_organization(tx, call).await?;
    let rows = of_organization(tx, organization.as_str()).await?;
    Ok(own::ListPackageReservationsResponse { reservations: rows.iter().map(ReservationRow::shown).collect() })
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<own::CreatePackageReservationRequest>,
) -> Result<Changed<own::PackageReservation>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let language = Language::required_with_upstreams("ecosystem", request.ecosystem)?;
    let pattern = normalized(language, &request.pattern);
    let all = of_organization(tx, organization.as_str()).await?;
    if let Some(before) = all.iter().find(|row| row.language == language && row.pattern == pattern) {
        return Ok(Changed::nothing(before.shown()));
    }
    if all.len() >= MAX_IN_ORGANIZATION {
        let text =
            format!("an organization may have {MAX_IN_ORGANIZATION} reservations; delete some, or use a pattern");
        return Err(Error::quota(organization.as_str(), text));
    }
    let row = ReservationRow { language, pattern, created_at: call.now() };
    let sql = "INSERT INTO package_reservations (parent, ecosystem, pattern, created_at) VALUES ($1, $2, $3, $4)";
    let params = [
        Value::from(organization.as_str()),
        Value::Int(language.number()),
        Value::from(&row.pattern),
        Value::Int(row.created_at),
    ];
    tx.execute(sql, &params).await?;
    let shown = row.shown();
    let event = own::CreatePackageReservationRequest { pattern: row.pattern.clone(), ..request.clone() };
    let none = None::<&own::PackageReservation>;
    let changed = Changed::one(PACKAGE_RESERVATION, &organization, none, Some(&row.shown()), shown);
    Ok(changed.with_event(&organization, &event))
}

async fn delete(tx: &mut WriteTx, call: &Authorized<own::DeletePackageReservationRequest>) -> Result<Changed<()>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let language = Language::required_with_upstreams("ecosystem", request.ecosystem)?;
    let pattern = normalized(language, &request.pattern);
    let all = of_organization(tx, organization.as_str()).await?;
    let before = all.into_iter().find(|row| row.language == language && row.pattern == pattern);
    let before = before.ok_or_else(|| Error::not_found(PACKAGE_RESERVATION, &pattern))?;
    let sql = "DELETE FROM package_reservations WHERE parent = $1 AND ecosystem = $2 AND pattern = $3";
    let params = [Value::from(organization.as_str()), Value::Int(language.number()), Value::from(&pattern)];
    tx.execute(sql, &params).await?;
    let shown = before.shown();
    let changed = Changed::one(PACKAGE_RESERVATION, &organization, Some(&shown), None::<&own::PackageReservation>, ());
    let event = own::DeletePackageReservationRequest { pattern, ..request.clone() };
    Ok(changed.with_event(&organization, &event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_in_any_spelling() {
        let matched = |pattern: &str, name: &str| {
            let language = Language::Python;
            matches(&normalized(language, pattern), &language.normalized(name))
        };
        for (pattern, name) in [("Acme_Tool", "acme-tool"), ("acme-*", "Acme.Tool"), ("Acme_*", "acme-tool")] {
            assert!(matched(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("acme", "acme-tool"), ("acme-*", "acme"), ("acme-*", "acmetool")] {
            assert!(!matched(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_are_names_or_their_beginning() {
        let python = Language::Python.own() as i32;
        for good in ["acme", "acme-tool", "acme-*", "acme*", "a.*"] {
            assert_eq!(violations(python, good), [], "{good}");
        }
        for bad in ["", "*", "-*", "a*b", "*a", "acme-", "acme--*", "a b", "acme/*"] {
            assert!(!violations(python, bad).is_empty(), "{bad}");
        }
        let javascript = Language::JavaScript.own() as i32;
        for good in ["acme", "@acme/tool", "@acme/*", "@acme/tool-*", "acme-*"] {
            assert_eq!(violations(javascript, good), [], "{good}");
        }
        for bad in ["", "*", "@*", "@acme", "@acme/", "a b*", "../*", "@a/b/*"] {
            assert!(!violations(javascript, bad).is_empty(), "{bad}");
        }
        let java = Language::Java.own() as i32;
        for good in ["com.acme:tool", "com.acme:*", "com.acme.*", "com.acme:tool-*", "com*"] {
            assert_eq!(violations(java, good), [], "{good}");
        }
        for bad in ["", "*", "com.acme", "com.acme:", ":*", ".*", "a b:*", "a/b:*", "a:b:*"] {
            assert!(!violations(java, bad).is_empty(), "{bad}");
        }
        let go = Language::Go.own() as i32;
        for good in ["git.acme.example/tool", "git.acme.example/*", "github.com/acme/*", "acme.example*"] {
            assert_eq!(violations(go, good), [], "{good}");
        }
        for bad in ["", "*", "acme", "acme/*", "git.acme.example/", "git.acme.example//*", "../*"] {
            assert!(!violations(go, bad).is_empty(), "{bad}");
        }
        assert!(matches("git.acme.example/*", "git.acme.example") && !matches("acme-*", "acme"));
        assert!(!violations(0, "acme").is_empty());
        assert!(!violations(Language::Generic.own() as i32, "acme").is_empty(), "no upstream could have the name");
    }
}
