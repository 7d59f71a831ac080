//! Query strings and forms: `name=value` pairs, percent-encoded, `+` for a space.

/// The decoded pairs, in order. Broken escapes and bytes that are no UTF-8 are errors.
pub(crate) fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    text.split('&')
        .filter(|part| !part.is_empty())
        .map(|part| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            Ok((decode(name)?, decode(value)?))
        })
        .collect()
}

fn decode(text: &str) -> Result<String, String> {
    let broken = || format!("the query has a broken escape in {text:?}");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = after.get(..2).ok_or_else(broken)?;
                let value =
                    digits.iter().try_fold(0, |value, digit| Some(value * 16 + char::from(*digit).to_digit(16)?));
                bytes.push(value.ok_or_else(broken)? as u8);
                rest = &after[2..];
            }
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| broken())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes() {
        let got = pairs("a=1&b.c=x%2Fy+z&d&&e=%C3%A9").unwrap();
        let expected = [("a", "1"), ("b.c", "x/y z"), ("d", ""), ("e", "é")];
        assert_eq!(got, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        for broken in ["a=%", "a=%zz", "a=%ff"] {
            assert!(pairs(broken).is_err(), "{broken}");
        }
    }
}
