//! One statement text for both engines.

/// Rewrites `$1` to `?1` outside string literals, quoted identifiers and comments.
///
/// SQLite reads `$1` as a *name*, numbered by first appearance, so
/// `n = $2 AND uid = $1` would silently bind the wrong way round.
pub fn rewrite_placeholders(sql: &str) -> String {
    let bytes = sql.as_bytes();
    let mut out = String::with_capacity(sql.len());
    // Everything up to `copied` is in `out`. Only ASCII bytes are looked at, so
    // slicing at them never splits a character.
    let (mut copied, mut i) = (0, 0);
    while i < bytes.len() {
        match bytes[i] {
            quote @ (b'\'' | b'"') => i = past_quoted(bytes, i, quote),
            b'-' if bytes.get(i + 1) == Some(&b'-') => {
                i = find(bytes, i, b"\n").unwrap_or(bytes.len());
            }
            b'/' if bytes.get(i + 1) == Some(&b'*') => {
                i = find(bytes, i + 2, b"*/").map_or(bytes.len(), |end| end + 2);
            }
            b'$' if bytes.get(i + 1).is_some_and(u8::is_ascii_digit)
                && !i.checked_sub(1).is_some_and(|before| is_word(bytes[before])) =>
            {
                out.push_str(&sql[copied..i]);
                out.push('?');
                i += 1;
                copied = i;
            }
            _ => i += 1,
        }
    }
    out.push_str(&sql[copied..]);
    out
}

/// `a$1` is an identifier on both engines.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// The position after the literal that opens at `start`; a doubled quote opens
/// the next literal at once, which comes to the same.
fn past_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    find(bytes, start + 1, &[quote]).map_or(bytes.len(), |end| end + 1)
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    bytes.get(from..)?.windows(needle.len()).position(|window| window == needle).map(|at| at + from)
}

#[cfg(test)]
mod tests {
    use super::rewrite_placeholders;

    #[test]
    fn rewrites_outside_literals_only() {
        for (sql, wanted) in [
            ("a = $2 AND b = $1", "a = ?2 AND b = ?1"),
            ("$1$10", "?1$10"),
            ("'$1' || $1 || 'it''s $2'", "'$1' || ?1 || 'it''s $2'"),
            ("\"$1\" = $3", "\"$1\" = ?3"),
            ("-- $1\n$1 /* $2 */ $2", "-- $1\n?1 /* $2 */ ?2"),
            ("a$1 = $", "a$1 = $"),
            ("'ü$1' = $1 -- 'open $2", "'ü$1' = ?1 -- 'open $2"),
            ("'open $1", "'open $1"),
            ("", ""),
        ] {
            assert_eq!(rewrite_placeholders(sql), wanted, "{sql}");
        }
    }
}
