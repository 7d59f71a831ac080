//! What holds for downloads of an organization: the policy that is bound, with exceptions and freezes.

use bowline_core::{Micros, Result, Uidp};
use bowline_store::ReadTx;

use super::ecosystems::Language;
use super::policies::{self, Mode};
use super::policy::decide::{Exemption, Overrides, Policy};
use super::policy::purl::Pattern;
use super::{exceptions, freezes};

/// What decides about downloads in one mode.
pub(super) struct InForce {
    /// UIDP of the policy; absent where a freeze holds without one.
    pub(super) policy_uid: Option<Uidp>,
    /// Name of the policy.
    pub(super) name: String,
    pub(super) policy: Policy,
}

/// Exceptions and freezes of an organization, of one package or of all.
pub(super) async fn overrides(
    tx: &mut ReadTx,
    organization: &Uidp,
    package: Option<(Language, &str)>,
    now: Micros,
) -> Result<Overrides> {
    let rows = match package {
        Some(package) => exceptions::of_package(tx, organization, package, now).await?,
        None => exceptions::in_force(tx, organization, now).await?,
    };
    let exceptions = rows.iter().map(exceptions::ExceptionRow::ready).collect::<Result<_>>()?;
    Ok(Overrides { exceptions, freezes: freezes::in_force(tx, organization).await? })
}

/// What an ecosystem without a policy is like: nothing is refused, whatever is reported of it.
fn without_rules(language: Language) -> Policy {
    let everything = Exemption { pattern: Pattern::everything(language), bypass_cooldown: true, bypass_malware: true };
    Policy { allowed: vec![everything], ..Policy::default() }
}

/// What decides about downloads of an ecosystem, with these overrides; absent if nothing does. Freezes are never only logged.
pub(super) async fn find(
    tx: &mut ReadTx,
    organization: &Uidp,
    language: Language,
    mode: Mode,
    overrides: &Overrides,
) -> Result<Option<InForce>> {
    let mut overrides = overrides.clone();
    overrides.freezes.retain(|freeze| mode == Mode::Enforced && freeze.language == language);
    if let Some((uid, name, policy)) = policies::named_in_force(tx, organization, language, mode).await? {
        return Ok(Some(InForce { policy_uid: Some(uid), name, policy: Policy { overrides, ..policy } }));
    }
    if overrides.freezes.is_empty() {
        return Ok(None);
    }
    Ok(Some(InForce { policy_uid: None, name: String::new(), policy: Policy { overrides, ..without_rules(language) } }))
}
