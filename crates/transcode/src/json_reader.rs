//! A pull tokenizer over JSON text. It owns the grammar and the position; what
//! the values mean is the parser's business.

use std::borrow::Cow;

use crate::scan::MAX_DEPTH;
use crate::text::first_special;

/// Why parsing a value stopped.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The text is not JSON; nothing after this point can be trusted.
    Syntax { at: usize, what: Cow<'static, str> },
    /// JSON, but not what the field takes; the value can be skipped.
    Bad(String),
    /// Enough errors were collected.
    Enough,
}

pub(crate) type Parse<T = ()> = Result<T, Fault>;

pub(crate) struct Reader<'a> {
    text: &'a str,
    pub(crate) pos: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, pos: 0 }
    }

    #[cold]
    pub(crate) fn syntax<T>(&self, what: impl Into<Cow<'static, str>>) -> Parse<T> {
        Err(Fault::Syntax { at: self.pos, what: what.into() })
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    /// First byte of the next token, white space skipped.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        while let Some(byte) = self.byte() {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(byte);
            }
            self.pos += 1;
        }
        None
    }

    /// Consumes the token `wanted` if it is next.
    pub(crate) fn take(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.pos += usize::from(found);
        found
    }

    /// What the next value is, as an error message calls it.
    fn describe(&mut self) -> Option<&'static str> {
        Some(match self.peek()? {
            b'{' => "an object",
            b'[' => "a list",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            b'n' => "null",
            b'-' | b'0'..=b'9' => "a number",
            _ => return None,
        })
    }

    /// The value is of another type than `expected`, or no value at all.
    #[cold]
    pub(crate) fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        match self.describe() {
            Some(found) => Err(Fault::Bad(format!("expected {expected}, got {found}"))),
            None => self.syntax("expected a value"),
        }
    }

    /// Opens an object or list.
    pub(crate) fn open(&mut self, bracket: u8) -> Parse {
        if self.take(bracket) {
            return Ok(());
        }
        self.unexpected(if bracket == b'{' { "an object" } else { "a list" })
    }

    /// Moves to the next item of an open object or list; false at its end.
    pub(crate) fn next(&mut self, close: u8, first: &mut bool) -> Parse<bool> {
        if self.take(close) {
            return Ok(false);
        }
        if !std::mem::take(first) {
            if !self.take(b',') {
                return self.syntax(format!("expected ',' or '{}'", char::from(close)));
            }
            if self.peek() == Some(close) {
                return self.syntax("trailing comma");
            }
        }
        Ok(true)
    }

    /// An object key with its colon.
    pub(crate) fn key(&mut self) -> Parse<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return self.syntax("expected a quoted key");
        }
        let key = self.string()?;
        if !self.take(b':') {
            return self.syntax("expected ':'");
        }
        Ok(key)
    }

    /// A string; borrowed unless it has escapes.
    pub(crate) fn string(&mut self) -> Parse<Cow<'a, str>> {
        if !self.take(b'"') {
            return self.unexpected("a string");
        }
        let plain = self.run();
        if self.byte() == Some(b'"') {
            self.pos += 1;
            return Ok(Cow::Borrowed(plain));
        }
        let mut text = plain.to_owned();
        loop {
            match self.byte() {
                Some(b'"') => {
                    self.pos += 1;
                    return Ok(Cow::Owned(text));
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return self.syntax("control character in a string"),
                None => return self.syntax("the string does not end"),
            }
            text.push_str(self.run());
        }
    }

    /// Characters up to the next quote, backslash or control character. Those
    /// are ASCII, so the cut is on a character boundary.
    fn run(&mut self) -> &'a str {
        let rest = self.text.get(self.pos..).unwrap_or_default();
        let length = first_special(rest.as_bytes());
        self.pos += length;
        rest.get(..length).unwrap_or_default()
    }

    fn escape(&mut self) -> Parse<char> {
        self.pos += 1;
        let Some(byte) = self.byte() else {
            return self.syntax("the string does not end");
        };
        let plain = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return self.unicode_escape(),
            _ => return self.syntax("invalid escape"),
        };
        self.pos += 1;
        Ok(plain)
    }

    /// `\uXXXX`, or two of them for a character outside the basic plane.
    fn unicode_escape(&mut self) -> Parse<char> {
        self.pos += 1;
        let first = self.hex4()?;
        if (0xd800..0xdc00).contains(&first) {
            let rest = self.text.as_bytes().get(self.pos..).unwrap_or_default();
            if rest.starts_with(b"\\u") {
                self.pos += 2;
                let second = self.hex4()?;
                if (0xdc00..0xe000).contains(&second) {
                    let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                    return char::from_u32(code).map_or_else(|| self.syntax("invalid escape"), Ok);
                }
            }
        }
        char::from_u32(first).map_or_else(|| self.syntax("unpaired surrogate in a string"), Ok)
    }

    fn hex4(&mut self) -> Parse<u32> {
        let digits = self.text.as_bytes().get(self.pos..self.pos + 4);
        let mut code = 0;
        for &digit in digits.unwrap_or_default() {
            match char::from(digit).to_digit(16) {
                Some(value) => code = code << 4 | value,
                None => return self.syntax("invalid \\u escape"),
            }
        }
        if digits.is_none() {
            return self.syntax("invalid \\u escape");
        }
        self.pos += 4;
        Ok(code)
    }

    /// A number's text, as written.
    pub(crate) fn number(&mut self) -> Parse<&'a str> {
        self.peek();
        let rest = self.text.get(self.pos..).unwrap_or_default();
        match number_length(rest.as_bytes()) {
            Some(length) => {
                self.pos += length;
                Ok(rest.get(..length).unwrap_or_default())
            }
            None => self.syntax("invalid number"),
        }
    }

    /// Consumes `true`, `false` or `null`.
    pub(crate) fn literal(&mut self, word: &str) -> Parse {
        self.peek();
        let rest = self.text.get(self.pos..).unwrap_or_default();
        if !rest.starts_with(word) {
            return self.syntax("invalid literal");
        }
        self.pos += word.len();
        Ok(())
    }

    /// Passes over any value, checking its grammar. The brackets still open
    /// are kept in a list, so depth costs no stack.
    pub(crate) fn skip_value(&mut self) -> Parse {
        let mut open: Vec<u8> = Vec::new();
        loop {
            let opened = self.skip_token(&mut open)?;
            let mut first = opened;
            loop {
                let Some(&close) = open.last() else {
                    return Ok(());
                };
                if self.next(close, &mut first)? {
                    break;
                }
                open.pop();
                first = false;
            }
            if open.last() == Some(&b'}') {
                self.key()?;
            }
        }
    }

    /// One scalar, or the start of a container, whose closing bracket is noted.
    fn skip_token(&mut self, open: &mut Vec<u8>) -> Parse<bool> {
        match self.peek() {
            Some(bracket @ (b'{' | b'[')) => {
                if open.len() >= MAX_DEPTH as usize {
                    return self.syntax(format!("nested more than {MAX_DEPTH} levels deep"));
                }
                self.pos += 1;
                open.push(bracket + 2);
                return Ok(true);
            }
            Some(b'"') => drop(self.string()?),
            Some(b't') => self.literal("true")?,
            Some(b'f') => self.literal("false")?,
            Some(b'n') => self.literal("null")?,
            Some(b'-' | b'0'..=b'9') => drop(self.number()?),
            _ => return self.syntax("expected a value"),
        }
        Ok(false)
    }
}

/// Length of the JSON number `bytes` begins with.
pub(crate) fn number_length(bytes: &[u8]) -> Option<usize> {
    let digits = |from: usize| {
        let rest = bytes.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        (count > 0).then_some(from + count)
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = if bytes.get(start) == Some(&b'0') { start + 1 } else { digits(start)? };
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = matches!(bytes.get(end + 1), Some(b'+' | b'-'));
        end = digits(end + 1 + usize::from(sign))?;
    }
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn accepts(text: &str) -> bool {
        let mut reader = Reader::new(text);
        reader.skip_value().is_ok() && reader.peek().is_none()
    }

    proptest! {
        #[test]
        fn grammar_equals_serde_json(text in "[\\[\\]{}:,\"\\\\a0-9.eE+\\- tu]{0,12}|\\[(1,|\\{\"a\":|\\]|\\}|null|true|-?[0-9.eE]{1,4}|\"\\\\?[un\"]?\"){0,6}") {
            // serde_json also limits numbers to what a float can hold.
            let theirs = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(accepts(&text), theirs, "{}", text);
        }
    }

    #[test]
    fn escapes() {
        let read = |text| Reader::new(text).string().map(Cow::into_owned);
        assert_eq!(read(r#""\ud83d\ude00\u0041\/""#).unwrap(), "😀A/");
        for bad in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\u12""#, "\"\u{1}\"", "\"", "\"\\"] {
            assert!(matches!(read(bad), Err(Fault::Syntax { .. })), "{bad}");
        }
    }

    #[test]
    fn depth_is_capped() {
        let nest = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(accepts(&nest(100)));
        assert!(!accepts(&nest(101)));
        assert!(!accepts(&"[{\"a\":".repeat(100_000)));
    }
}
