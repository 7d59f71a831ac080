//! Narrowing: a token that may less than its identity. It is only ever made tighter.

use std::collections::BTreeMap;

use bowline_authn::{capset, claims};
use bowline_contract::Capabilities;
use bowline_core::{CapabilitySet, Error, FieldViolation, Result, Uidp, UidpError};
use bowline_pipeline::Narrowing;

/// A token names at most so many groups; it travels with every request.
const MAX_SCOPES: usize = 100;

/// What the caller asks the token to be narrowed to: capabilities by name, groups by UIDP.
///
/// # Errors
/// INVALID_ARGUMENT naming every unknown capability and malformed group.
pub(crate) fn requested(cap: &[String], scope: &str, scopes: &[String], known: &Capabilities) -> Result<Narrowing> {
    let mut violations = Vec::new();
    let mut refuse = |field: &str, description: String| {
        violations.push(FieldViolation { field: field.into(), description });
    };
    let mut capabilities = CapabilitySet::EMPTY;
    for name in cap {
        match known.by_name(name) {
            Some(facts) => capabilities.insert(facts.bit),
            None => refuse("cap", format!("{name:?} is not a capability")),
        }
    }
    let mut groups = Vec::new();
    let single = (!scope.is_empty()).then_some(("scope", scope));
    for (field, text) in single.into_iter().chain(scopes.iter().map(|text| ("scopes", text.as_str()))) {
        match Uidp::parse(text) {
            Ok(group) => groups.push(group),
            Err(UidpError) => refuse(field, format!("{text:?} {UidpError}")),
        }
    }
    let groups = outermost(groups);
    if groups.len() > MAX_SCOPES {
        refuse("scopes", format!("a token names at most {MAX_SCOPES} groups"));
    }
    if !violations.is_empty() {
        return Err(Error::invalid(violations));
    }
    Ok(Narrowing { capabilities: (!cap.is_empty()).then_some(capabilities), scopes: groups })
}

/// What both leave.
///
/// # Errors
/// PERMISSION_DENIED if no group is left: an empty list would mean all of them.
pub(crate) fn intersect(held: &Narrowing, given: &Narrowing) -> Result<Narrowing> {
    let capabilities = match (held.capabilities, given.capabilities) {
        (Some(held), Some(given)) => Some(held.intersection(&given)),
        (held, given) => held.or(given),
    };
    let scopes = match (&held.scopes[..], &given.scopes[..]) {
        ([], scopes) | (scopes, []) => scopes.to_vec(),
        (held, given) => common(held, given)?,
    };
    Ok(Narrowing { capabilities, scopes })
}

fn common(held: &[Uidp], given: &[Uidp]) -> Result<Vec<Uidp>> {
    let mut scopes = Vec::new();
    for held in held {
        for given in given {
            if held.contains(given.as_str()) {
                scopes.push(given.clone());
            } else if given.contains(held.as_str()) {
                scopes.push(held.clone());
            }
        }
    }
    if scopes.is_empty() {
        return Err(Error::permission_denied(
            "permission denied: the presented token is narrowed to other groups than scopes asks for",
        ));
    }
    Ok(outermost(scopes))
}

/// The groups without those that lie in another of them.
fn outermost(mut groups: Vec<Uidp>) -> Vec<Uidp> {
    groups.sort();
    let mut kept: Vec<Uidp> = Vec::with_capacity(groups.len());
    for group in groups {
        // What contains a group sorts before it, with nothing but its other descendants in between.
        if !kept.last().is_some_and(|last| last.contains(group.as_str())) {
            kept.push(group);
        }
    }
    kept
}

/// The organization of these groups; absent without groups, and for groups of several organizations.
pub(super) fn organization(scopes: &[Uidp]) -> Option<&str> {
    let (first, others) = scopes.split_first()?;
    others.iter().all(|scope| scope.root_str() == first.root_str()).then(|| first.root_str())
}

/// The claim that carries it; none if nothing is taken away.
pub(crate) fn to_claim(narrowing: &Narrowing) -> Option<claims::Narrowing> {
    narrowing.is_narrow().then(|| claims::Narrowing {
        cap: narrowing.capabilities.map(|set| capset::encode_bits(&set.words())),
        scopes: narrowing.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
    })
}

/// What such a claim says.
///
/// # Errors
/// INTERNAL: it is one of this server, so that it must make sense.
pub(crate) fn from_claim(claim: &claims::Narrowing) -> Result<Narrowing> {
    let damaged = || Error::internal("a stored narrowing makes no sense");
    let bits = claim.cap.as_deref().map(capset::decode_bits).transpose().map_err(|_| damaged())?;
    let scopes: std::result::Result<Vec<Uidp>, _> = claim.scopes.iter().map(|scope| Uidp::parse(scope)).collect();
    Ok(Narrowing {
        capabilities: bits.map(|words| CapabilitySet::from_words(&words)),
        scopes: scopes.map_err(|_| damaged())?,
    })
}

/// A narrowing as it is stored: the claim as JSON, `{}` if nothing is taken away.
pub(crate) fn to_text(narrowing: &Narrowing) -> String {
    serde_json::json!(to_claim(narrowing).unwrap_or_default()).to_string()
}

/// Reads what [`to_text`] wrote.
///
/// # Errors
/// INTERNAL: the text is damaged.
pub(crate) fn from_text(text: &str) -> Result<Narrowing> {
    let claim = serde_json::from_str(text);
    from_claim(&claim.map_err(|error| Error::internal(format!("a stored narrowing: {error}")))?)
}

/// What the narrowing leaves of direct bindings: groups inside of a scope, and scopes inside of a group.
pub(crate) fn groups_left(direct: &[(&str, CapabilitySet)], narrowing: &Narrowing) -> BTreeMap<String, CapabilitySet> {
    let mut left: BTreeMap<String, CapabilitySet> = BTreeMap::new();
    let mut add = |group: &str, set: CapabilitySet| {
        if !set.is_empty() {
            let held = left.entry(group.to_owned()).or_default();
            *held = held.union(&set);
        }
    };
    for (group, set) in direct {
        let set = narrowing.capabilities.map_or(*set, |only| set.intersection(&only));
        if narrowing.scopes.is_empty() || narrowing.scopes.iter().any(|scope| scope.contains(group)) {
            add(group, set);
            continue;
        }
        let Ok(group) = Uidp::parse(group) else { continue };
        for scope in narrowing.scopes.iter().filter(|scope| group.contains(scope.as_str())) {
            add(scope.as_str(), set);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_core::Reason;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn uidp(text: &str) -> Uidp {
        Uidp::parse(text).unwrap()
    }

    fn below(root: &str, n: u8) -> Uidp {
        uidp(root).child_from([n; 8])
    }

    fn bits(bits: &[u32]) -> CapabilitySet {
        bits.iter().copied().collect()
    }

    fn narrowing(capabilities: Option<&[u32]>, scopes: &[Uidp]) -> Narrowing {
        Narrowing { capabilities: capabilities.map(bits), scopes: scopes.to_vec() }
    }

    #[test]
    fn nothing_asked_leaves_what_was_held() {
        let held = narrowing(Some(&[1, 2]), &[below(A, 1)]);
        assert_eq!(intersect(&held, &Narrowing::default()).unwrap(), held);
        assert_eq!(intersect(&Narrowing::default(), &held).unwrap(), held);
    }

    #[test]
    fn capabilities_never_come_back() {
        let left = intersect(&narrowing(Some(&[1, 2]), &[]), &narrowing(Some(&[2, 3]), &[])).unwrap();
        assert_eq!(left.capabilities, Some(bits(&[2])));
        let none = intersect(&narrowing(Some(&[1]), &[]), &narrowing(Some(&[3]), &[])).unwrap();
        assert_eq!(none.capabilities, Some(CapabilitySet::EMPTY), "no capability, not all of them");
    }

    #[test]
    fn scopes_shrink_both_ways_and_never_to_all() {
        let cases = [(uidp(A), below(A, 1)), (below(A, 1), uidp(A))];
        for (held, given) in cases {
            let left = intersect(&narrowing(None, &[held]), &narrowing(None, &[given, uidp(B)])).unwrap();
            assert_eq!(left.scopes, [below(A, 1)]);
        }
        let refused = intersect(&narrowing(None, &[uidp(A)]), &narrowing(None, &[uidp(B)])).unwrap_err();
        assert_eq!(refused.reason(), Reason::PermissionDenied);
    }

    #[test]
    fn groups_within_groups_say_nothing_new() {
        let groups = vec![below(A, 2), uidp(B), uidp(A), below(A, 1), uidp(A)];
        assert_eq!(outermost(groups), [uidp(A), uidp(B)]);
        assert_eq!(outermost(vec![below(A, 2), below(A, 1)]), [below(A, 1), below(A, 2)]);
    }

    #[test]
    fn groups_name_one_organization_or_none() {
        assert_eq!(organization(&[]), None);
        assert_eq!(organization(&[below(A, 1)]), Some(A));
        assert_eq!(organization(&[uidp(B), below(B, 1), below(B, 2)]), Some(B));
        assert_eq!(organization(&[below(A, 1), uidp(B)]), None);
    }

    #[test]
    fn the_claim_survives_the_token() {
        assert_eq!(to_claim(&Narrowing::default()), None);
        let claim = to_claim(&narrowing(Some(&[]), &[])).unwrap();
        assert_eq!(capset::decode_bits(&claim.cap.unwrap()).unwrap(), Vec::<u64>::new());
        let claim = to_claim(&narrowing(None, &[uidp(A)])).unwrap();
        assert_eq!((claim.cap, claim.scopes), (None, vec![A.to_owned()]));
        for kept in [narrowing(Some(&[]), &[]), narrowing(Some(&[1, 70]), &[uidp(A)]), narrowing(None, &[])] {
            assert_eq!(from_claim(&to_claim(&kept).unwrap_or_default()).unwrap(), kept);
        }
    }

    #[test]
    fn bindings_shrink_to_the_scopes() {
        let inner = below(A, 1);
        let direct = [(A, bits(&[1, 2])), (B, bits(&[1]))];
        let left = groups_left(&direct, &narrowing(Some(&[2]), &[inner.clone(), uidp(B)]));
        assert_eq!(left.into_iter().collect::<Vec<_>>(), [(inner.as_str().to_owned(), bits(&[2]))]);
        assert_eq!(groups_left(&direct, &Narrowing::default()).len(), 2);
    }
}
