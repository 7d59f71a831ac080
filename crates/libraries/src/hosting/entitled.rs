//! Entitlements as a gate: where the operator requires them, an organization uses the ecosystems that it has one for.

use bowline_contract::v1::libraries::Policy;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::Settings;
use bowline_store::{ReadTx, Row, Value};

use crate::ecosystems::Language;

/// What an organization may use of an ecosystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entitled {
    Nothing,
    /// Packages of its groups.
    Own,
    /// Those of upstreams as well.
    Upstreams,
}

/// Refuses packages of an ecosystem to an organization that has no entitlement for it, if the operator requires one.
///
/// # Errors
/// PERMISSION_DENIED, which names what to do.
pub(super) async fn require(
    tx: &mut ReadTx,
    settings: &Settings,
    organization: &Uidp,
    language: Language,
) -> Result<()> {
    if !settings.entitlements_required || of(tx, organization, language).await? > Entitled::Nothing {
        return Ok(());
    }
    Err(refusal("packages", language, organization, ""))
}

/// The same of packages of upstreams.
///
/// # Errors
/// PERMISSION_DENIED, which names what to do.
pub(super) async fn require_upstreams(
    tx: &mut ReadTx,
    settings: &Settings,
    organization: &Uidp,
    language: Language,
) -> Result<()> {
    if has_upstreams(tx, settings, organization, language).await? {
        return Ok(());
    }
    Err(refusal("packages of upstreams", language, organization, " --upstream"))
}

/// Whether an organization may use packages of upstreams.
pub(super) async fn has_upstreams(
    tx: &mut ReadTx,
    settings: &Settings,
    organization: &Uidp,
    language: Language,
) -> Result<bool> {
    Ok(!settings.entitlements_required || of(tx, organization, language).await? == Entitled::Upstreams)
}

fn refusal(what: &str, language: Language, organization: &Uidp, option: &str) -> Error {
    let word = language.word();
    Error::permission_denied(format!(
        "Permission denied: the organization has no entitlement for {what} of {word}, which this server requires; who may \
         grant one does it with: bowline libraries entitlements create {organization} --ecosystem {word}{option}"
    ))
}

/// The most that the entitlements of an organization allow. The contract has none for crates and generic files,
/// which need none.
async fn of(tx: &mut ReadTx, organization: &Uidp, language: Language) -> Result<Entitled> {
    if !language.is_in_contract() {
        return Ok(Entitled::Upstreams);
    }
    let sql = "SELECT ecosystem, policy FROM library_entitlements WHERE parent = $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.int(1)?));
    let all = tx.query(sql, &[Value::from(organization.as_str())], read).await?;
    let is_of_it = |ecosystem: i64| {
        i32::try_from(ecosystem).ok().and_then(Language::of_wire).is_some_and(|(of, _)| of == language)
    };
    let upstreams = i64::from(Policy::ChainguardAndUpstream as i32);
    let entitled = all
        .into_iter()
        .filter(|(ecosystem, _)| is_of_it(*ecosystem))
        .map(|(_, policy)| if policy == upstreams { Entitled::Upstreams } else { Entitled::Own });
    Ok(entitled.max().unwrap_or(Entitled::Nothing))
}
