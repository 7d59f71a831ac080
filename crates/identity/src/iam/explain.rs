//! Explanations of authorization decisions, and lists of identities with access.
//!
//! The decision itself is [`Grants::decide`], which also authorizes calls. The rest of the response has only resources
//! that the caller may list.

mod entries;
mod grantors;
mod requirement;
mod steps;

use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::AccessCause;
use bowline_contract::bowline::iam::v1::rpc::access_explainer::{ExplainAccess, ListAccessOf, ListEffectiveAccess};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Micros, Result};
use bowline_pipeline::{Authorized, Cause, Decision, Grants, Handlers, NamedOperators, OPERATOR, handler};
use bowline_resources::kinds::IDENTITY;
use bowline_store::{ReadTx, Row, Value};

use self::requirement::Requirement;
use self::steps::Steps;
use crate::access::{ACCESS, load_grants};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ExplainAccess>(handler!(explain))
        .read::<ListEffectiveAccess>(handler!(entries::list_effective))
        .read::<ListAccessOf>(handler!(entries::list_of))
}

/// What a summary adds where a role of an operator may decide otherwise.
const HIDDEN_OPERATORS: &str = " Role bindings alone were considered: only operators see who is an operator.";

/// Whose access is explained.
struct Subject {
    uid: String,
    /// Whether it is the caller, with what the token leaves.
    is_caller: bool,
    /// What the identity may do; nothing for one that cannot act.
    grants: Grants,
    /// Why the identity cannot act at all, if it cannot.
    inactive: Option<AccessCause>,
    /// Whether a role of an operator may be missing from the grants, because the reader may not list operators.
    hides_operator: bool,
}

async fn explain(tx: &mut ReadTx, call: &Authorized<own::ExplainAccessRequest>) -> Result<own::AccessExplanation> {
    let request = call.request();
    let scope = call.require_scope()?;
    let requirement = Requirement::of(call.contract(), request)?;
    let subject = subject(tx, call).await?;
    let needed = requirement.capabilities(scope.as_str(), &subject.uid);
    let decision = subject.grants.decide(scope.as_str(), &needed);
    let cause = cause(call, &subject, &requirement, &needed, decision);
    // A token that is narrowed to groups reveals nothing about others.
    let steps = if subject.is_caller && decision.cause == Cause::NarrowedScopes {
        Steps::default()
    } else {
        Steps::read(tx, call, &subject, &needed).await?
    };
    if !subject.is_caller && !steps.shows_identity && !is_listed(tx, call, &subject.uid).await? {
        return Err(Error::not_found(IDENTITY, subject.uid));
    }
    let grantors = match cause {
        AccessCause::NotGiven => grantors::find(tx, call, scope, &decision.missing).await?,
        _ => Vec::new(),
    };
    let allowed = allows(cause);
    let names = |set: &CapabilitySet| call.contract().capabilities().names(set).into_iter().map(String::from).collect();
    let missing: Vec<String> = if allowed { Vec::new() } else { names(&decision.missing) };
    let operator_roles_hidden =
        subject.hides_operator && matches!(cause, AccessCause::NotGiven | AccessCause::OperatorOnly);
    let mut summary = summary(cause, &missing, scope.as_str());
    if operator_roles_hidden {
        summary += HIDDEN_OPERATORS;
    }
    Ok(own::AccessExplanation {
        allowed,
        cause: cause.into(),
        summary,
        operator_roles_hidden,
        identity: subject.uid,
        scope: scope.as_str().into(),
        method: request.method.clone(),
        capabilities: names(&needed),
        missing,
        steps: steps.shown,
        more_steps: steps.more,
        grantors,
    })
}

/// The identity that the request names, else the caller.
async fn subject(tx: &mut ReadTx, call: &Authorized<own::ExplainAccessRequest>) -> Result<Subject> {
    let caller = call.principal().subject();
    let named = &call.request().identity;
    if named.is_empty() || named == caller {
        let grants = call.grants().clone();
        return Ok(Subject { uid: caller.into(), is_caller: true, grants, inactive: None, hides_operator: false });
    }
    let inactive = inactivity(tx, named, call.now()).await?;
    // The bindings of an identity that cannot act are explained, and decide nothing.
    let lists_operators = call.grants().may_operate(true);
    let grants = match inactive {
        Some(_) => None,
        None if lists_operators && named != OPERATOR => {
            ACCESS.load_with_operator(tx, named, &NamedOperators::of(call.contract(), call.settings())).await?
        }
        None => load_grants(tx, named, None).await?,
    };
    let grants = grants.unwrap_or_else(Grants::none);
    // Of every person alike: whether one has such a role is what the reader may not see.
    let hides_operator = !lists_operators && !named.contains('/');
    Ok(Subject { uid: named.clone(), is_caller: false, grants, inactive, hides_operator })
}

/// Why an identity cannot act, if it cannot.
async fn inactivity(tx: &mut ReadTx, uid: &str, now: Micros) -> Result<Option<AccessCause>> {
    let sql = "SELECT expires_at, deactivated FROM identities WHERE uid = $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.opt_int(0)?, row.bool(1)?));
    let state: Option<(Option<Micros>, bool)> = tx.query_opt(sql, &[Value::from(uid)], read).await?;
    Ok(match state {
        None => Some(AccessCause::NeverSignedIn),
        Some((_, true)) => Some(AccessCause::Deactivated),
        Some((Some(end), false)) if now >= end => Some(AccessCause::Expired),
        Some(_) => None,
    })
}

/// What decided. Where the identity can act, it is what the pipeline decides by.
fn cause<T>(
    call: &Authorized<T>,
    subject: &Subject,
    requirement: &Requirement,
    needed: &CapabilitySet,
    decision: Decision,
) -> AccessCause {
    if let Some(inactive) = subject.inactive {
        return inactive;
    }
    if requirement.operator_only && !subject.grants.may_operate(requirement.only_reads) {
        return AccessCause::OperatorOnly;
    }
    if needed.is_empty() {
        return AccessCause::NothingNeeded;
    }
    match decision.cause {
        Cause::Operator => AccessCause::Operator,
        Cause::Held => AccessCause::Given,
        Cause::NotHeld => AccessCause::NotGiven,
        Cause::NarrowedCapabilities => AccessCause::TokenCapabilities,
        Cause::NarrowedScopes if is_outside_provider(call) => AccessCause::ProviderOrganization,
        Cause::NarrowedScopes => AccessCause::TokenScopes,
    }
}

/// Whether the provider that the caller's session began with does not reach the scope.
fn is_outside_provider<T>(call: &Authorized<T>) -> bool {
    let provider = call.principal().token().and_then(|token| token.provider.as_deref());
    let group = provider.and_then(|uid| bowline_core::Uidp::parse(uid).ok()?.parent());
    let scope = call.scope().map_or("", bowline_core::Uidp::as_str);
    group.is_some_and(|group| !group.contains(scope))
}

fn allows(cause: AccessCause) -> bool {
    matches!(cause, AccessCause::Operator | AccessCause::NothingNeeded | AccessCause::Given)
}

/// Whether the reader may know of the identity at all: because they may list it, or a binding of it.
async fn is_listed<T>(tx: &mut ReadTx, call: &Authorized<T>, uid: &str) -> Result<bool> {
    if call.holds(uid, Capability::CapIamIdentityList) {
        let sql = "SELECT uid FROM identities WHERE uid = $1";
        let known = tx.query_opt(sql, &[Value::from(uid)], |row| row.text(0).map_err(Error::from)).await?;
        if known.is_some() {
            return Ok(true);
        }
    }
    let sql = "SELECT DISTINCT parent FROM role_bindings WHERE identity = $1 ORDER BY parent LIMIT 1000";
    let groups: Vec<String> = tx.query(sql, &[Value::from(uid)], |row| row.text(0).map_err(Error::from)).await?;
    Ok(groups.iter().any(|group| call.holds(group, Capability::CapIamRoleBindingsList)))
}

fn summary(cause: AccessCause, missing: &[String], scope: &str) -> String {
    let missing = missing.join(", ");
    match cause {
        AccessCause::Operator => "Allowed: the operator may do everything.".into(),
        AccessCause::NothingNeeded => "Allowed: no capability is needed.".into(),
        AccessCause::Given => format!("Allowed: role bindings at or above {scope} give all that is needed."),
        AccessCause::OperatorOnly => "Denied: only the operator may call this method.".into(),
        AccessCause::NotGiven => {
            format!(
                "Denied: no role binding at or above {scope} gives {missing}; an owner there can grant a role that does."
            )
        }
        AccessCause::TokenCapabilities => {
            format!("Denied: the token was narrowed to capabilities without {missing}; exchange one that has them.")
        }
        AccessCause::TokenScopes => {
            format!("Denied: the token was narrowed to groups that {scope} is not in; exchange one without that limit.")
        }
        AccessCause::ProviderOrganization => {
            format!(
                "Denied: the session's provider belongs to an organization that {scope} is not in; sign in at another."
            )
        }
        AccessCause::Expired => "Denied: the identity has expired.".into(),
        AccessCause::Deactivated => "Denied: the identity is deactivated.".into(),
        AccessCause::NeverSignedIn => "Denied: the person has never signed in; bindings count from then on.".into(),
        AccessCause::Unspecified => String::new(),
    }
}
