//! Short codes that people read from one screen and compare with, or type into, another.

use bowline_authn::crypto::CODE_ALPHABET as ALPHABET;
pub use bowline_authn::crypto::check_code;
pub(crate) use bowline_authn::crypto::short_code as code;

/// Characters of a code; with 5 bits each they make 40.
const LENGTH: usize = 8;

/// A code as someone typed it, in the form of [`code`]; absent if it cannot be one.
///
/// Case, spaces and dashes do not count, and look-alikes are taken for what they look like.
pub(crate) fn typed(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(LENGTH + 1);
    for character in text.chars().filter(|character| !matches!(character, ' ' | '-')) {
        let character = match character.to_ascii_uppercase() {
            'O' => '0',
            'I' | 'L' => '1',
            other => other,
        };
        if !character.is_ascii() || !ALPHABET.contains(&(character as u8)) || plain.len() > LENGTH {
            return None;
        }
        if plain.len() == LENGTH / 2 {
            plain.push('-');
        }
        plain.push(character);
    }
    (plain.len() == LENGTH + 1).then_some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_forty_bits() {
        assert_eq!(code(&[0; 32]), "0000-0000");
        assert_eq!(code(&[0xff; 32]), "ZZZZ-ZZZZ");
        let mut one = [0; 32];
        one[4] = 1;
        assert_eq!(code(&one), "0000-0001");
        one[0] = 0x80;
        assert_eq!(code(&one), "G000-0001");
    }

    #[test]
    fn the_check_code_is_known() {
        // SHA-256 of 32 zero bytes begins 66687aadf8.
        assert_eq!(check_code(&[0; 32]), "CSM7-NBFR");
    }

    #[test]
    fn typing_is_forgiving_where_it_is_safe() {
        assert_eq!(typed("csm7-nbfr").as_deref(), Some("CSM7-NBFR"));
        assert_eq!(typed(" CSM7NBFR ").as_deref(), Some("CSM7-NBFR"));
        assert_eq!(typed("oil0-0000").as_deref(), Some("0110-0000"));
        for bad in ["", "CSM7-NBF", "CSM7-NBFRX", "CSM7-NBFU", "CSM7_NBFR", "CSM7-NBFé", "🦀🦀🦀🦀🦀🦀🦀🦀"]
        {
            assert_eq!(typed(bad), None, "{bad}");
        }
    }
}
