/// Numbers that look random and are the same in every run (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The numbers that belong to a text, such as the name of an image.
    pub(crate) fn of(text: &str) -> Random {
        // FNV-1a: the standard library's hashes may differ between its versions.
        let seed = text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    /// One of a list, which has some.
    pub(crate) fn one_of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.next() as usize % list.len()]
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_gives_the_same_numbers() {
        let (mut one, mut other) = (Random::of("web/storefront"), Random::of("web/storefront"));
        assert_eq!(one.bytes(16), other.bytes(16));
        assert_ne!(one.bytes(16), Random::of("web/checkout").bytes(16));
        assert!((0..100).all(|_| (3..=5).contains(&one.between(3, 5))));
    }
}
