//! The `cap` claim: what clients show of a token. It decides nothing; the live grants do.

use std::collections::BTreeMap;

use bowline_authn::capset;
use bowline_core::CapabilitySet;
use bowline_pipeline::Narrowing;

use super::narrowing::groups_left;

/// Groups that the claim lists at most.
const MAX_GROUPS: usize = 100;

/// The claim of these direct bindings under that narrowing.
pub(super) fn cap_claim(direct: &[(&str, CapabilitySet)], narrowing: &Narrowing) -> BTreeMap<String, String> {
    let left = groups_left(direct, narrowing).into_iter().take(MAX_GROUPS);
    left.map(|(group, set)| (group, capset::encode_bits(&set.words()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_a_hundred_groups_and_no_more() {
        let groups: Vec<String> = (0..150).map(|n| format!("{n:040x}")).collect();
        let direct: Vec<_> = groups.iter().map(|group| (group.as_str(), CapabilitySet::of_bit(3))).collect();
        let claim = cap_claim(&direct, &Narrowing::default());
        assert_eq!(claim.len(), 100);
        assert_eq!(claim.values().next().map(String::as_str), Some(capset::encode_bits(&[8]).as_str()));
    }
}
