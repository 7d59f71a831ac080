//! Query strings and forms: `name=value` pairs, percent-encoded, `+` for a space.

/// What is wrong with a parameter of one value that comes again.
pub(crate) const GIVEN_TWICE: &str = "is given more than once, and takes one value";

/// A parameter of the query or of a form.
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Fields of a form must be known; parameters of the query may be meant for others.
    pub(crate) of_form: bool,
}

/// The parameters of a query or of a form, in order.
pub(crate) fn parameters(text: &str, of_form: bool) -> Result<Vec<Parameter>, String> {
    let pairs = pairs(text)?.into_iter();
    Ok(pairs.map(|(name, value)| Parameter { name, value, of_form }).collect())
}

/// The decoded pairs, in order. Broken escapes and bytes that are no UTF-8 are errors.
fn pairs(text: &str) -> Result<Vec<(String, String)>, String> {
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
