//! The bindings that a decision depends on, as far as the caller may list them.

use bowline_contract::bowline::iam::v1::{AccessOutcome, AccessStep};
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Row, Value};

use super::Subject;
use crate::access::{EXPLAINED_BINDINGS, EXPLAINED_SESSION};
use crate::iam::role_bindings::may_read_role;

/// Bindings at and above the scope that are read, and those below it.
const ABOVE: usize = 200;
const BELOW: usize = 20;

/// The steps of an explanation.
#[derive(Default)]
pub(super) struct Steps {
    pub(super) shown: Vec<AccessStep>,
    /// Whether there are more bindings than were read.
    pub(super) more: bool,
    /// Whether the reader may list one of the bindings, and so knows of the identity.
    pub(super) shows_identity: bool,
}

/// A role at a group, by a binding or by a session.
struct LookedAt {
    binding: String,
    group: String,
    group_name: Option<String>,
    role: String,
    role_name: Option<String>,
    capabilities: CapabilitySet,
    /// A directory has deactivated the person there.
    suspended: bool,
}

impl LookedAt {
    fn read(row: &Row<'_>) -> Result<LookedAt> {
        let bytes = row.opt_bytes(5)?;
        let capabilities = bytes.map_or(Some(CapabilitySet::EMPTY), |bytes| CapabilitySet::from_bytes(&bytes));
        Ok(LookedAt {
            binding: row.text(0)?,
            group: row.text(1)?,
            group_name: row.opt_text(2)?,
            role: row.text(3)?,
            role_name: row.opt_text(4)?,
            capabilities: capabilities.ok_or_else(|| Error::internal("a role has damaged capabilities"))?,
            suspended: row.bool(6)?,
        })
    }
}

impl Steps {
    /// Reads the bindings at, above and below the checked scope, and what the caller's own session adds.
    pub(super) async fn read<T>(
        tx: &mut ReadTx,
        call: &Authorized<T>,
        subject: &Subject,
        needed: &CapabilitySet,
    ) -> Result<Steps> {
        let scope = call.require_scope()?;
        let mut above = at_and_above(tx, &subject.uid, scope).await?;
        let mut below = below(tx, &subject.uid, scope).await?;
        let more = above.len() > ABOVE || below.len() > BELOW;
        above.truncate(ABOVE);
        below.truncate(BELOW);
        let session = of_session(tx, call, subject).await?;
        let mut builder = Builder { call, subject, scope, needed, steps: Steps::default(), hidden: None };
        builder.steps.more = more;
        for (rows, by_session) in [(above, false), (session, true), (below, false)] {
            for row in rows {
                builder.add(row, by_session);
            }
        }
        Ok(builder.finish())
    }
}

async fn at_and_above(tx: &mut ReadTx, identity: &str, scope: &Uidp) -> Result<Vec<LookedAt>> {
    let mut params = vec![Value::from(identity)];
    params.extend(scope.self_and_ancestors().map(Value::from));
    let groups: Vec<String> = (2..=params.len()).map(|n| format!("${n}")).collect();
    let limit = ABOVE + 1;
    let sql =
        format!("{EXPLAINED_BINDINGS} b.parent IN ({}) ORDER BY b.parent, b.uid LIMIT {limit}", groups.join(", "));
    tx.query(&sql, &params, LookedAt::read).await
}

async fn below(tx: &mut ReadTx, identity: &str, scope: &Uidp) -> Result<Vec<LookedAt>> {
    // Everything below begins with the scope and a slash, which `0` follows.
    let (lower, upper) = (format!("{scope}/"), format!("{scope}0"));
    let limit = BELOW + 1;
    let sql = format!("{EXPLAINED_BINDINGS} b.parent >= $2 AND b.parent < $3 ORDER BY b.parent, b.uid LIMIT {limit}");
    tx.query(&sql, &[Value::from(identity), Value::from(&lower), Value::from(&upper)], LookedAt::read).await
}

/// What membership in groups of its provider adds to the caller's own session.
async fn of_session<T>(tx: &mut ReadTx, call: &Authorized<T>, subject: &Subject) -> Result<Vec<LookedAt>> {
    let session = call.principal().token().filter(|_| subject.is_caller).and_then(|token| token.session.as_deref());
    let Some(session) = session else { return Ok(Vec::new()) };
    let params = [Value::from(session), Value::from(&subject.uid)];
    tx.query(EXPLAINED_SESSION, &params, LookedAt::read).await
}

/// Turns rows into steps.
struct Builder<'a, T> {
    call: &'a Authorized<T>,
    subject: &'a Subject,
    scope: &'a Uidp,
    needed: &'a CapabilitySet,
    steps: Steps,
    /// What bindings give that the reader may not list, all together.
    hidden: Option<CapabilitySet>,
}

impl<T> Builder<'_, T> {
    fn add(&mut self, row: LookedAt, by_session: bool) {
        let gives = row.capabilities.intersection(self.needed);
        let reaches = Uidp::parse(&row.group).is_ok_and(|group| group.contains(self.scope.as_str()));
        let outcome = if !reaches {
            AccessOutcome::BelowScope
        } else if row.suspended {
            AccessOutcome::DirectoryDeactivated
        } else if gives.is_empty() {
            AccessOutcome::RoleLacks
        } else {
            AccessOutcome::Gives
        };
        let lists_binding = self.call.holds(&row.group, Capability::CapIamRoleBindingsList);
        if !self.subject.is_caller && !lists_binding {
            if outcome == AccessOutcome::Gives {
                self.hidden = Some(self.hidden.unwrap_or_default().union(&gives));
            }
            return;
        }
        self.steps.shows_identity = true;
        let (reads_group, reads_role) =
            (self.call.holds(&row.group, Capability::CapIamGroupsList), may_read_role(self.call, &row.role));
        let shown = |text: String, may_be_read: bool| if may_be_read { text } else { String::new() };
        self.steps.shown.push(AccessStep {
            outcome: outcome.into(),
            binding: shown(row.binding, lists_binding),
            group_name: shown(row.group_name.unwrap_or_default(), reads_group),
            group: row.group,
            role: shown(row.role, reads_role),
            role_name: shown(row.role_name.unwrap_or_default(), reads_role),
            gives: self.names(&gives),
            by_session,
        });
    }

    /// Bindings that the reader may not list are one step without a name, and only if they decide something.
    fn finish(mut self) -> Steps {
        if let Some(gives) = self.hidden {
            let gives = self.names(&gives);
            self.steps
                .shown
                .insert(0, AccessStep { outcome: AccessOutcome::Gives.into(), gives, ..Default::default() });
        }
        self.steps
    }

    fn names(&self, set: &CapabilitySet) -> Vec<String> {
        self.call.contract().capabilities().names(set).into_iter().map(String::from).collect()
    }
}
