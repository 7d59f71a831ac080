//! How the parts of a version are written into a key.
//!
//! Whatever ends a part must sort below whatever may continue it. Texts end with a zero byte, which none holds; a number
//! begins with its length, so that no digit decides before all are counted.

/// A key while it grows.
#[derive(Debug, Default)]
pub(crate) struct Key(Vec<u8>);

impl Key {
    pub(crate) fn byte(&mut self, byte: u8) -> &mut Self {
        self.0.push(byte);
        self
    }

    /// A run of decimal digits by its value, however long: its length without leading zeros, then the digits.
    pub(crate) fn number(&mut self, digits: &str) -> &mut Self {
        let digits = digits.trim_start_matches('0').as_bytes();
        match u8::try_from(digits.len()) {
            Ok(length) if length < u8::MAX => self.0.push(length),
            _ => {
                self.0.push(u8::MAX);
                self.0.extend_from_slice(&(digits.len() as u64).to_be_bytes());
            }
        }
        self.0.extend_from_slice(digits);
        self
    }

    /// A text without zero bytes; a text that begins another sorts before it.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.0.extend(text.bytes().filter(|byte| *byte != 0));
        self.byte(0)
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Whether a text is one run of ASCII digits.
pub(crate) fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A text cut where its leading digits end.
pub(crate) fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len()))
}
