//! Which sequence of audit entries a caller may read, and which of its rows.

use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Authorized;

use super::scan::Row;

/// Audit entries that have numbers and a hash chain of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sequence {
    /// Of the whole server.
    Server,
    /// Of an organization or a person.
    Of(String),
}

impl Sequence {
    /// The name of its chain in the store.
    pub(super) fn chain(&self) -> &str {
        match self {
            Sequence::Server => "",
            Sequence::Of(root) => root,
        }
    }
}

/// The sequence that a request names, by its root or by resources in it.
///
/// # Errors
/// INVALID_ARGUMENT where it names none or several, PERMISSION_DENIED where the caller may see nothing of it.
pub(super) fn sequence<T>(call: &Authorized<T>, organization: &str, places: &[(&str, &str)]) -> Result<Sequence> {
    let root = |scope: &str| scope.split('/').next().unwrap_or_default().to_owned();
    let mut named = organization.to_owned();
    for (field, scope) in places.iter().filter(|(_, scope)| !scope.is_empty()) {
        if named.is_empty() {
            named = root(scope);
        } else if root(scope) != named {
            return Err(Error::invalid_field(*field, format!("is not in organization {named}")));
        }
    }
    if named.is_empty() {
        if call.reads_server() {
            return Ok(Sequence::Server);
        }
        let why = "organization is required: only the operator reads the whole server's sequence";
        return Err(Error::invalid_field("organization", why));
    }
    if !Uidp::parse(&named).is_ok_and(|uid| uid.is_root()) {
        return Err(Error::invalid_field(
            "organization",
            "must be the UIDP of an organization or a person, which is a root",
        ));
    }
    let mut validated: Vec<&str> = places.iter().map(|(_, scope)| *scope).filter(|scope| !scope.is_empty()).collect();
    if validated.is_empty() {
        validated.push(&named);
    }
    for scope in validated {
        require(call, scope)?;
    }
    Ok(Sequence::Of(named))
}

/// Rejects a caller who may see no entry at the resource or below.
fn require<T>(call: &Authorized<T>, scope: &str) -> Result<()> {
    if is_own(call, scope) || call.grants().sees_around(scope, call.needed()) {
        return Ok(());
    }
    call.require_all(scope, call.needed())?;
    // The capability is held there, so nothing but a narrowed scope can have hidden it.
    Err(Error::permission_denied("Permission denied: the token's scopes leave this place out"))
}

/// Rejects a caller who may not see the entries at the root itself.
pub(super) fn require_at<T>(call: &Authorized<T>, sequence: &Sequence) -> Result<()> {
    match sequence {
        Sequence::Of(root) if !is_own(call, root) => call.require_all(root, call.needed()),
        _ => Ok(()),
    }
}

/// Whether the caller may see the row: by the capabilities for bindings and for its kind, at its resource.
pub(super) fn sees<T>(call: &Authorized<T>, row: &Row) -> bool {
    if is_own(call, &row.resource) {
        return true;
    }
    let needed = match call.contract().listing_of_kind(&row.kind) {
        Some(listing) => call.needed().union(listing),
        None => *call.needed(),
    };
    call.grants().allows(&row.resource, &needed)
}

/// People see the entries about themselves, unless the token is narrowed.
pub(super) fn is_own<T>(call: &Authorized<T>, resource: &str) -> bool {
    let is_narrow = call.principal().token().is_none_or(|token| token.narrowing.is_narrow());
    !is_narrow && !resource.contains('/') && call.principal().subject() == resource
}
