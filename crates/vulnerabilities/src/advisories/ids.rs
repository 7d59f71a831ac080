//! Public identifiers of advisories: a prefix and three groups of four symbols that are hard to confuse.

/// No vowels, so that no words come out, and nothing that looks like something else.
const SYMBOLS: &[u8; 20] = b"23456789cfghjmpqrvwx";
const GROUPS: usize = 3;
const GROUP_LENGTH: usize = 4;

/// An identifier made of random bytes. 20 to the power of 12 are possible.
pub(crate) fn mint(prefix: &str, draw: [u8; 32]) -> String {
    let mut number = u128::from_be_bytes(std::array::from_fn(|i| draw[i]));
    let mut id = prefix.to_owned();
    for _ in 0..GROUPS {
        id.push('-');
        for _ in 0..GROUP_LENGTH {
            id.push(char::from(SYMBOLS[(number % SYMBOLS.len() as u128) as usize]));
            number /= SYMBOLS.len() as u128;
        }
    }
    id
}

/// Whether identifiers may begin with this: two to ten capital letters and digits, a letter first.
pub fn is_prefix(prefix: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    (2..=10).contains(&prefix.len())
        && prefix.starts_with(|c: char| c.is_ascii_uppercase())
        && prefix.bytes().all(is_known)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether the text is such an identifier, with whatever prefix: those of others keep theirs.
    fn is_valid(id: &str) -> bool {
        let mut parts = id.split('-');
        let is_group = |part: &str| part.len() == GROUP_LENGTH && part.bytes().all(|byte| SYMBOLS.contains(&byte));
        parts.next().is_some_and(is_prefix) && parts.clone().count() == GROUPS && parts.all(is_group)
    }

    proptest! {
        #[test]
        fn minted_ones_are_valid(draw: [u8; 32]) {
            prop_assert!(is_valid(&mint("BWL", draw)));
        }
    }

    #[test]
    fn any_prefix_counts_and_no_other_shape() {
        for good in ["BWL-2345-6789-cfgh", "CGA-hjmp-qrvw-x222", "V2-2222-2222-2222"] {
            assert!(is_valid(good), "{good}");
        }
        for bad in [
            "",
            "BWL",
            "BWL-2345-6789",
            "BWL-2345-6789-cfgh-2222",
            "bwl-2345-6789-cfgh",
            "BWL-abcd-1234-wxyz",
            "-2345-6789-cfgh",
        ] {
            assert!(!is_valid(bad), "{bad}");
        }
    }
}
