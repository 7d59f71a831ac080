//! What a caller may do where, read from the store in the same snapshot as the decision.

mod decision;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};

use bowline_contract::Contract;
use bowline_core::{CapabilitySet, Error, Micros, Reason, Result, UidRange, intersect, merge};
use bowline_store::{Engine, ReadTx};

use crate::access::Access;
use crate::principal::{Narrowing, Principal};
use crate::settings::Settings;

pub use decision::{Cause, Decision};

/// The capabilities of one caller by group, with what the token leaves of them.
#[derive(Clone, Debug)]
pub struct Grants {
    direct: Arc<Direct>,
    narrowing: Narrowing,
}

/// What the store says of an identity: the part that does not depend on the token.
#[derive(Debug, Default)]
pub(crate) struct Direct {
    pub(crate) operator: Option<OperatorStanding>,
    /// What an operator holds everywhere.
    pub(crate) everywhere: CapabilitySet,
    pub(crate) by_group: HashMap<Box<str>, CapabilitySet, BuildHasherDefault<LastSegment>>,
    /// When the identity ends, if it does.
    pub(crate) expires_at: Option<Micros>,
}

/// What an operator may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperatorStanding {
    /// The holder of the data directory: everything.
    Local,
    /// A person with `operator.admin`: the same, named in the audit log.
    Admin,
    /// A person with `operator.viewer`: reads.
    Viewer,
}

/// What makes a person a named operator, besides the row that says so.
#[derive(Clone, Debug, Default)]
pub struct NamedOperators {
    /// Issuers of the operator's providers in the configuration file; those in the database are read there.
    pub issuers: Vec<String>,
    /// What a viewer holds everywhere.
    pub viewer: CapabilitySet,
}

impl NamedOperators {
    /// As the contract and the operator's settings have them.
    pub fn of(contract: &Contract, settings: &Settings) -> NamedOperators {
        let viewer = contract.operator_roles().iter().find(|role| role.name == "operator.viewer");
        NamedOperators {
            issuers: settings.operator_issuers.clone(),
            viewer: viewer.map_or(CapabilitySet::EMPTY, |role| role.capabilities),
        }
    }
}

/// Hashes a UIDP by the end of its last segment, which the server drew at random. A decision looks up every
/// scope above the requested one, and hashing all of each would cost more than finding it.
#[derive(Default)]
pub(crate) struct LastSegment(u64);

impl Hasher for LastSegment {
    fn write(&mut self, text: &[u8]) {
        // Hexadecimal characters carry half of their bits: both halves of the segment count.
        if let Some(end) = text.last_chunk::<16>() {
            let [low, high] = [0, 8].map(|at| u64::from_le_bytes(std::array::from_fn(|i| end[at + i])));
            self.0 ^= low.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ high;
        }
        self.0 = (self.0 ^ text.len() as u64).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        self.0 ^= self.0 >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Grants {
    /// No one's: no capability anywhere.
    pub fn none() -> Grants {
        Grants { direct: Arc::default(), narrowing: Narrowing::default() }
    }

    /// Grants from bindings; what tests and benchmarks build.
    pub fn from_bindings(bindings: impl IntoIterator<Item = (String, CapabilitySet)>, narrowing: Narrowing) -> Grants {
        let mut direct = Direct::default();
        for (group, capabilities) in bindings {
            direct.add(&group, &capabilities);
        }
        Grants { direct: Arc::new(direct), narrowing }
    }

    /// Those of the store, without a token's narrowing.
    pub(crate) fn of(direct: Direct) -> Grants {
        Grants { direct: Arc::new(direct), narrowing: Narrowing::default() }
    }

    /// The same grants with what a token leaves of them.
    #[must_use]
    pub fn narrowed_to(self, narrowing: Narrowing) -> Grants {
        Grants { narrowing, ..self }
    }

    /// The capabilities at a scope of the hierarchy: those of its bindings and of all bindings above.
    pub fn at(&self, scope: &str) -> CapabilitySet {
        if self.reaches(scope) { self.narrow(self.held_at(scope)) } else { CapabilitySet::EMPTY }
    }

    /// Whether the token's scopes leave this one.
    fn reaches(&self, scope: &str) -> bool {
        let scopes = &self.narrowing.scopes;
        scopes.is_empty() || scopes.iter().any(|allowed| allowed.contains(scope))
    }

    /// The parts of the hierarchy that the token leaves; sorted and disjoint.
    pub fn left_by_token(&self) -> Vec<UidRange> {
        if self.narrowing.scopes.is_empty() {
            return vec![UidRange::all()];
        }
        merge(self.narrowing.scopes.iter().map(UidRange::of).collect())
    }

    /// Whether the caller holds all of these there.
    pub fn allows(&self, scope: &str, needed: &CapabilitySet) -> bool {
        self.at(scope).contains(needed)
    }

    /// When the identity or the session ends, whichever is first; absent if neither does.
    pub fn ends_at(&self) -> Option<Micros> {
        self.direct.expires_at
    }

    fn held_at(&self, scope: &str) -> CapabilitySet {
        let mut held = self.direct.everywhere;
        if held == CapabilitySet::ALL {
            return held;
        }
        let mut place = Some(scope);
        while let Some(uid) = place {
            if let Some(capabilities) = self.direct.by_group.get(uid) {
                held = held.union(capabilities);
            }
            place = uid.rsplit_once('/').map(|(parent, _)| parent);
        }
        held
    }

    fn narrow(&self, held: CapabilitySet) -> CapabilitySet {
        self.narrowing.capabilities.map_or(held, |left| held.intersection(&left))
    }

    /// The parts of the hierarchy where the caller holds all of these; sorted and disjoint.
    pub fn visible(&self, needed: &CapabilitySet) -> Vec<UidRange> {
        let everywhere = if self.narrow(self.direct.everywhere).contains(needed) && self.direct.operator.is_some() {
            vec![UidRange::all()]
        } else {
            let groups = self.direct.by_group.keys().filter(|group| self.narrow(self.held_at(group)).contains(needed));
            merge(groups.map(|group| UidRange::subtree(group)).collect())
        };
        if self.narrowing.scopes.is_empty() { everywhere } else { intersect(&everywhere, &self.left_by_token()) }
    }

    /// Whether the caller holds all of these at the scope, above it or anywhere below it.
    pub fn sees_around(&self, scope: &str, needed: &CapabilitySet) -> bool {
        let around = [UidRange::subtree(scope)];
        self.allows(scope, needed) || !intersect(&self.visible(needed), &around).is_empty()
    }

    /// Groups with a binding of the caller's own, with what the binding gives; at most `limit`, in order.
    pub fn direct(&self, limit: usize) -> Vec<(&str, CapabilitySet)> {
        let mut groups: Vec<_> =
            self.direct.by_group.iter().map(|(group, set)| (&**group, self.narrow(*set))).collect();
        groups.sort_by_key(|(group, _)| *group);
        groups.truncate(limit);
        groups
    }

    /// Whether the operator calls: the local one, or a named one with `operator.admin` and a token that is not narrowed.
    pub fn is_operator(&self) -> bool {
        matches!(self.operator(), Some(OperatorStanding::Local | OperatorStanding::Admin))
    }

    /// Whether an operator calls who may use a method for operators: a viewer those that only read.
    pub fn may_operate(&self, only_reads: bool) -> bool {
        self.operator().is_some_and(|standing| standing != OperatorStanding::Viewer || only_reads)
    }

    /// Which operator calls, if one does. A named operator with a narrowed token does not count.
    pub fn operator(&self) -> Option<OperatorStanding> {
        let is_narrow = self.narrowing.is_narrow();
        self.direct.operator.filter(|standing| *standing == OperatorStanding::Local || !is_narrow)
    }

    /// Whether the identity has come to its end.
    pub fn has_ended(&self, now: Micros) -> bool {
        self.direct.expires_at.is_some_and(|end| now >= end)
    }
}

/// Grants of callers, cached per revision of the permissions. An entry is used only for the revision that the
/// same snapshot shows.
pub struct GrantsCache {
    access: &'static Access,
    named: NamedOperators,
    entries: Mutex<HashMap<String, (i64, Arc<Direct>)>>,
}

/// Maximum number of callers in the cache; above it the cache is cleared.
const CACHED_CALLERS: usize = 20_000;

impl GrantsCache {
    /// An empty cache of what these statements read.
    pub fn new(access: &'static Access) -> GrantsCache {
        GrantsCache { access, named: NamedOperators::default(), entries: Mutex::default() }
    }

    /// The same, which knows named operators.
    #[must_use]
    pub fn with_operators(self, named: NamedOperators) -> GrantsCache {
        GrantsCache { named, ..self }
    }

    /// The grants of the caller in this snapshot.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the identity is gone, deactivated or past its end.
    pub async fn load(&self, tx: &mut ReadTx, principal: &Principal, now: Micros) -> Result<Grants> {
        let Some(token) = principal.token() else {
            return Ok(Grants::none());
        };
        let narrowing = token.narrowing.clone();
        if principal.is_operator() {
            return Ok(Grants { direct: Arc::new(Direct::of_operator()), narrowing });
        }
        let (subject, session) = (principal.subject(), token.session.as_deref());
        // A provider of an organization's can sign in as anyone of its issuer: it makes no operators.
        let named = token.provider.is_none().then_some(&self.named);
        let direct = match tx.engine() {
            Engine::Sqlite => self.validated(tx, subject, session, named).await?,
            // Reading a revision there costs the round trip that the bindings cost.
            Engine::Postgres => self.access.read_direct(tx, subject, session, named).await?.map(Arc::new),
        };
        let alive = direct.filter(|direct| direct.expires_at.is_none_or(|end| now < end));
        let direct = alive.ok_or_else(|| {
            Error::new(
                Reason::Unauthenticated,
                "Unauthenticated: the token's identity or session does not exist, has expired or is deactivated; sign in again",
            )
        })?;
        Ok(Grants { direct, narrowing })
    }

    async fn validated(
        &self,
        tx: &mut ReadTx,
        subject: &str,
        session: Option<&str>,
        named: Option<&NamedOperators>,
    ) -> Result<Option<Arc<Direct>>> {
        let revision =
            tx.query_opt(self.access.revision, &[], |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0);
        // Session ids are drawn at random, so that they name their subject too.
        let key = session.unwrap_or(subject);
        if let Some((known, direct)) = self.lock().get(key)
            && *known == revision
        {
            return Ok(Some(direct.clone()));
        }
        let Some(direct) = self.access.read_direct(tx, subject, session, named).await?.map(Arc::new) else {
            return Ok(None);
        };
        // The state of a write may never be committed, and its revision may come again with another state.
        if tx.is_writable() {
            return Ok(Some(direct));
        }
        let mut entries = self.lock();
        if entries.len() >= CACHED_CALLERS {
            entries.clear();
        }
        entries.insert(key.into(), (revision, direct.clone()));
        Ok(Some(direct))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (i64, Arc<Direct>)>> {
        self.entries.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_core::Uidp;
    use proptest::prelude::*;

    const ROOT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn place(levels: &[u8]) -> String {
        let mut uidp = Uidp::parse(ROOT).unwrap();
        for level in levels {
            uidp = uidp.child_from([*level; 8]);
        }
        uidp.as_str().into()
    }

    fn places() -> impl Strategy<Value = String> {
        proptest::collection::vec(0u8..3, 0..4).prop_map(|levels| place(&levels))
    }

    fn sets() -> impl Strategy<Value = CapabilitySet> {
        proptest::collection::vec(0u32..4, 0..3).prop_map(|bits| bits.into_iter().collect())
    }

    proptest! {
        /// The visible ranges hold exactly the places where the decision is yes.
        #[test]
        fn visible_agrees_with_allows(
            bindings in proptest::collection::vec((places(), sets()), 0..6),
            capabilities in proptest::option::of(sets()),
            scopes in proptest::collection::vec(places(), 0..3),
            needed in sets().prop_filter("something is needed", |set| !set.is_empty()),
            asked in places(),
        ) {
            let scopes: Vec<_> = scopes.iter().map(|scope| Uidp::parse(scope).unwrap()).collect();
            let grants = Grants::from_bindings(bindings.clone(), Narrowing { capabilities, scopes: scopes.clone() });
            let ranges = grants.visible(&needed);
            let visible = ranges.iter().any(|range| range.contains(&asked));
            prop_assert_eq!(visible, grants.allows(&asked, &needed));

            let held = bindings.iter()
                .filter(|(group, _)| Uidp::parse(group).unwrap().contains(&asked))
                .fold(CapabilitySet::EMPTY, |held, (_, set)| held.union(set));
            let left = capabilities.map_or(held, |set| held.intersection(&set));
            let is_in_scope = scopes.is_empty() || scopes.iter().any(|scope| scope.contains(&asked));
            prop_assert_eq!(grants.allows(&asked, &needed), is_in_scope && left.contains(&needed));

            let decision = grants.decide(&asked, &needed);
            prop_assert_eq!(decision.missing.is_empty(), grants.allows(&asked, &needed));
            let cause = match (is_in_scope, held.contains(&needed), left.contains(&needed)) {
                (false, _, _) => Cause::NarrowedScopes,
                (true, false, _) => Cause::NotHeld,
                (true, true, false) => Cause::NarrowedCapabilities,
                (true, true, true) => Cause::Held,
            };
            prop_assert_eq!(decision.cause, cause);
        }
    }
}
