//! What a caller may do where, read from the store in the same snapshot as the decision.

mod decision;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex};

use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{CapabilitySet, Error, Micros, Reason, Result, UidRange, intersect, merge};
use bowline_store::{BoxFuture, Engine, ReadTx, Row, Value};

use crate::principal::{Narrowing, OPERATOR, Principal};

pub use decision::{Cause, Decision};

/// The capabilities of one caller by group, with what the token leaves of them.
#[derive(Clone, Debug)]
pub struct Grants {
    direct: Arc<Direct>,
    narrowing: Narrowing,
}

/// What the store says of an identity: the part that does not depend on the token.
#[derive(Debug, Default)]
struct Direct {
    operator: bool,
    by_group: HashMap<Box<str>, CapabilitySet, BuildHasherDefault<LastSegment>>,
    /// When the identity ends, if it does.
    expires_at: Option<Micros>,
}

/// Hashes a UIDP by the end of its last segment, which the server drew at random. A decision looks at every
/// place above the one asked for, and reading all of each would cost more than finding it.
#[derive(Default)]
struct LastSegment(u64);

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

    /// The same grants with what a token leaves of them.
    #[must_use]
    pub fn narrowed_to(self, narrowing: Narrowing) -> Grants {
        Grants { narrowing, ..self }
    }

    /// The capabilities at a place of the hierarchy: those of its bindings and of all bindings above.
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
        if self.direct.operator {
            return CapabilitySet::ALL;
        }
        let mut held = CapabilitySet::EMPTY;
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
        let everywhere = if self.direct.operator {
            let held = self.narrow(CapabilitySet::ALL);
            if held.contains(needed) { vec![UidRange::all()] } else { Vec::new() }
        } else {
            let groups = self.direct.by_group.keys().filter(|group| self.narrow(self.held_at(group)).contains(needed));
            merge(groups.map(|group| UidRange::subtree(group)).collect())
        };
        if self.narrowing.scopes.is_empty() { everywhere } else { intersect(&everywhere, &self.left_by_token()) }
    }

    /// Whether the caller holds all of these at the place, above it or anywhere below it.
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

    /// Whether the operator calls.
    pub fn is_operator(&self) -> bool {
        self.direct.operator
    }

    /// Whether the identity has come to its end.
    pub fn has_ended(&self, now: Micros) -> bool {
        self.direct.expires_at.is_some_and(|end| now >= end)
    }
}

impl Direct {
    fn add_rows(&mut self, rows: &[BindingRow], subject: &str) -> Result<()> {
        for row in rows {
            if let (Some(group), Some(bytes)) = (&row.group, &row.capabilities) {
                let set = CapabilitySet::from_bytes(bytes)
                    .ok_or_else(|| Error::internal(format!("a role of {subject} has damaged capabilities")))?;
                self.add(group, &set);
            }
        }
        Ok(())
    }

    fn add(&mut self, group: &str, capabilities: &CapabilitySet) {
        let held = self.by_group.entry(group.into()).or_default();
        *held = held.union(capabilities);
    }
}

/// Grants of callers, remembered per revision of the permissions. Never trusted beyond the revision
/// that the same snapshot shows.
pub struct GrantsCache {
    access: &'static Access,
    entries: Mutex<HashMap<String, (i64, Arc<Direct>)>>,
}

/// Callers remembered at once; past it the cache starts again.
const CACHED_CALLERS: usize = 20_000;

impl GrantsCache {
    /// An empty cache of what these statements read.
    pub fn new(access: &'static Access) -> GrantsCache {
        GrantsCache { access, entries: Mutex::default() }
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
            return Ok(Grants { direct: Arc::new(Direct { operator: true, ..Direct::default() }), narrowing });
        }
        let (subject, session) = (principal.subject(), token.session.as_deref());
        let direct = match tx.engine() {
            Engine::Sqlite => self.validated(tx, subject, session).await?,
            // Reading a revision there costs the round trip that the bindings cost.
            Engine::Postgres => self.access.read_direct(tx, subject, session).await?.map(Arc::new),
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

    async fn validated(&self, tx: &mut ReadTx, subject: &str, session: Option<&str>) -> Result<Option<Arc<Direct>>> {
        let revision =
            tx.query_opt(self.access.revision, &[], |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0);
        // Session ids are drawn at random, so that they name their subject too.
        let key = session.unwrap_or(subject);
        if let Some((known, direct)) = self.lock().get(key)
            && *known == revision
        {
            return Ok(Some(direct.clone()));
        }
        let Some(direct) = self.access.read_direct(tx, subject, session).await?.map(Arc::new) else {
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

/// A role at a group, and facts of what it hangs on.
struct BindingRow {
    expires_at: Option<Micros>,
    deactivated: bool,
    group: Option<String>,
    capabilities: Option<Vec<u8>>,
}

/// How the gate reads identities, roles and groups: statements that the crate of identities writes, because their tables
/// are its own. Parameters are named by what they take.
#[derive(Debug)]
pub struct Access {
    /// The revision of all permissions, which every change of one raises. Read on SQLite alone.
    pub revision: &'static str,
    /// By identity: when it ends, whether it is deactivated, and its groups with the capabilities it has there.
    pub bindings: &'static str,
    /// By session and identity: when it ends, and groups with the capabilities that the session adds.
    pub session: &'static str,
    /// By name: the UIDP of the verified organization.
    pub organization_by_name: &'static str,
    /// The capability that shows an organization's name.
    pub shows_organizations: Capability,
    /// By organization: the ids of the documents that it accepted.
    pub accepted_terms: &'static str,
}

impl Access {
    /// The grants of an identity as the store has them, without a token's narrowing; absent if it or the session is gone
    /// or deactivated.
    pub async fn load_grants(&self, tx: &mut ReadTx, subject: &str, session: Option<&str>) -> Result<Option<Grants>> {
        if subject == OPERATOR {
            let direct = Direct { operator: true, ..Direct::default() };
            return Ok(Some(Grants { direct: Arc::new(direct), narrowing: Narrowing::default() }));
        }
        let direct = self.read_direct(tx, subject, session).await?;
        Ok(direct.map(|direct| Grants { direct: Arc::new(direct), narrowing: Narrowing::default() }))
    }

    fn read_direct<'a>(
        &'a self,
        tx: &'a mut ReadTx,
        subject: &'a str,
        session: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Direct>>> {
        Box::pin(async move {
            let row = |row: &Row<'_>| {
                Ok::<_, Error>(BindingRow {
                    expires_at: row.opt_int(0)?,
                    deactivated: row.bool(1)?,
                    group: row.opt_text(2)?,
                    capabilities: row.opt_bytes(3)?,
                })
            };
            let rows = tx.query(self.bindings, &[Value::from(subject)], row).await?;
            let Some(first) = rows.first().filter(|first| !first.deactivated) else { return Ok(None) };
            let mut direct = Direct { expires_at: first.expires_at, ..Direct::default() };
            direct.add_rows(&rows, subject)?;
            let Some(session) = session else { return Ok(Some(direct)) };
            let row = |row: &Row<'_>| {
                Ok::<_, Error>(BindingRow {
                    expires_at: Some(row.int(0)?),
                    deactivated: false,
                    group: row.opt_text(1)?,
                    capabilities: row.opt_bytes(2)?,
                })
            };
            let rows = tx.query(self.session, &[Value::from(session), Value::from(subject)], row).await?;
            // Without its row the session has ended.
            let Some(ends) = rows.first().and_then(|first| first.expires_at) else { return Ok(None) };
            direct.expires_at = Some(direct.expires_at.map_or(ends, |end| end.min(ends)));
            direct.add_rows(&rows, subject)?;
            Ok(Some(direct))
        })
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
            let inside = scopes.is_empty() || scopes.iter().any(|scope| scope.contains(&asked));
            prop_assert_eq!(grants.allows(&asked, &needed), inside && left.contains(&needed));

            let decision = grants.decide(&asked, &needed);
            prop_assert_eq!(decision.missing.is_empty(), grants.allows(&asked, &needed));
            let cause = match (inside, held.contains(&needed), left.contains(&needed)) {
                (false, _, _) => Cause::NarrowedScopes,
                (true, false, _) => Cause::NotHeld,
                (true, true, false) => Cause::NarrowedCapabilities,
                (true, true, true) => Cause::Held,
            };
            prop_assert_eq!(decision.cause, cause);
        }
    }
}
