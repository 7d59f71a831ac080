//! Whether an organization accepted what the operator wants accepted before anything in it is changed.

use std::collections::HashSet;

use bowline_core::{Error, Result, Uidp};
use bowline_store::{ReadTx, Value};

use crate::call::Authorized;

/// Requires that the scope's organization has accepted all terms, if terms are required. The pipeline calls
/// it for scoped methods; handlers of unscoped ones call it themselves. Sign-ins and directories are exempt:
/// a person who signs in could not accept for the organization, and a rejected directory would stop
/// deactivating people.
///
/// # Errors
/// FAILED_PRECONDITION with the missing documents.
pub async fn require_terms<T>(tx: &mut ReadTx, call: &Authorized<T>, scope: &Uidp) -> Result<()> {
    let settings = call.settings();
    if !settings.terms_required || call.method().terms_exempt || call.is_operator() {
        return Ok(());
    }
    let sql = call.context.access.accepted_terms;
    let accepted = tx.query(sql, &[Value::from(scope.root_str())], |row| row.text(0).map_err(Error::from)).await?;
    let accepted: HashSet<String> = accepted.into_iter().collect();
    let missing: Vec<_> = settings.terms.iter().filter(|document| !accepted.contains(&document.id)).cloned().collect();
    if missing.is_empty() { Ok(()) } else { Err(Error::terms_not_accepted(missing)) }
}
