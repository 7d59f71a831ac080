/// A set of capabilities, as the bits that the contract gives them.
///
/// 256 bits hold every bit the contract uses; a test in the contract crate keeps that true.
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash, Debug)]
pub struct CapabilitySet([u64; 4]);

impl CapabilitySet {
    pub const EMPTY: CapabilitySet = CapabilitySet([0; 4]);
    /// Every bit: what the operator holds.
    pub const ALL: CapabilitySet = CapabilitySet([u64::MAX; 4]);

    /// The set of one bit; bits above 255 are not in the contract and give the empty set.
    pub fn of_bit(bit: u32) -> CapabilitySet {
        let mut set = CapabilitySet::EMPTY;
        set.insert(bit);
        set
    }

    pub fn insert(&mut self, bit: u32) {
        if let Some(word) = self.0.get_mut(bit as usize / 64) {
            *word |= 1 << (bit % 64);
        }
    }

    /// Whether the bit is in the set.
    pub fn has(&self, bit: u32) -> bool {
        self.0.get(bit as usize / 64).is_some_and(|word| word & (1 << (bit % 64)) != 0)
    }

    /// Whether every capability of the other set is in this one.
    pub fn contains(&self, other: &CapabilitySet) -> bool {
        self.0.iter().zip(other.0).all(|(mine, theirs)| theirs & !mine == 0)
    }

    pub fn union(&self, other: &CapabilitySet) -> CapabilitySet {
        CapabilitySet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    pub fn intersection(&self, other: &CapabilitySet) -> CapabilitySet {
        CapabilitySet(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }

    /// What this set has and the other lacks.
    pub fn difference(&self, other: &CapabilitySet) -> CapabilitySet {
        CapabilitySet(std::array::from_fn(|i| self.0[i] & !other.0[i]))
    }

    /// Whether there is no capability in it.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; 4]
    }

    /// The numbers of its bits, ascending.
    pub fn bits(&self) -> impl Iterator<Item = u32> + '_ {
        (0..256).filter(|bit| self.has(*bit))
    }

    /// The set as 64-bit words, lowest bits first.
    pub fn words(&self) -> [u64; 4] {
        self.0
    }

    /// A set from 64-bit words, lowest bits first; words past the fourth carry no bit the contract has.
    pub fn from_words(words: &[u64]) -> CapabilitySet {
        CapabilitySet(std::array::from_fn(|i| words.get(i).copied().unwrap_or(0)))
    }

    /// The stored form: four big-endian words.
    pub fn to_bytes(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (chunk, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            chunk.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Reads the stored form; absent if the length is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Option<CapabilitySet> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        Some(CapabilitySet(std::array::from_fn(|i| u64::from_be_bytes(std::array::from_fn(|j| bytes[i * 8 + j])))))
    }
}

impl FromIterator<u32> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = u32>>(bits: I) -> CapabilitySet {
        let mut set = CapabilitySet::EMPTY;
        for bit in bits {
            set.insert(bit);
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn behaves_like_a_set(a: BTreeSet<u8>, b: BTreeSet<u8>) {
            let set = |bits: &BTreeSet<u8>| bits.iter().map(|bit| u32::from(*bit)).collect::<CapabilitySet>();
            let (sa, sb) = (set(&a), set(&b));
            prop_assert_eq!(sa.contains(&sb), b.is_subset(&a));
            prop_assert_eq!(sa.union(&sb), set(&a.union(&b).copied().collect()));
            prop_assert_eq!(sa.intersection(&sb), set(&a.intersection(&b).copied().collect()));
            prop_assert_eq!(sa.difference(&sb), set(&a.difference(&b).copied().collect()));
            prop_assert_eq!(CapabilitySet::from_bytes(&sa.to_bytes()), Some(sa));
            prop_assert_eq!(sa.bits().count(), a.len());
        }
    }
}
