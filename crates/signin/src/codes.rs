//! Short codes that people read from one screen and compare with, or type into, another.

use bowline_authn::wrap::sha256;

/// Crockford's alphabet: 32 characters, none of which is taken for another.
const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Characters of a code; with 5 bits each they make 40.
const LENGTH: usize = 8;

/// The code of these bytes, as `XXXX-XXXX`.
pub(crate) fn code(bytes: &[u8; 32]) -> String {
    let bits = bytes[..5].iter().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let mut text = String::with_capacity(LENGTH + 1);
    for position in 0..LENGTH {
        if position == LENGTH / 2 {
            text.push('-');
        }
        let shift = 5 * (LENGTH - 1 - position);
        text.push(char::from(ALPHABET[(bits >> shift & 31) as usize]));
    }
    text
}

/// The check code of a headless sign-in: of the SHA-256 of the client's raw public key.
///
/// A command line shows the same code beside the address, so that people see whose sign-in they confirm.
pub fn check_code(public_key: &[u8; 32]) -> String {
    code(&sha256(public_key))
}

/// A code as somebody typed it, in the form of [`code`]; absent if it cannot be one.
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
