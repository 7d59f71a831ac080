use crate::TerminalError;

/// Seconds of `90s`, `15m`, `720h` or `30d`: at least one, at most `longest`.
///
/// # Errors
/// The text is not one of these, or exceeds `longest`.
pub fn seconds(flag: &str, text: &str, longest: i64) -> Result<i64, TerminalError> {
    let most = spelled(longest);
    let refuse = || TerminalError::Usage(format!("--{flag} {text}: a number with s, m, h or d, between 1s and {most}"));
    let split = text.len().checked_sub(1).ok_or_else(refuse)?;
    let (number, unit) = text.split_at_checked(split).ok_or_else(refuse)?;
    let factor = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(refuse()),
    };
    let number: i64 = number.parse().map_err(|_| refuse())?;
    let seconds = number.checked_mul(factor).ok_or_else(refuse)?;
    if (1..=longest).contains(&seconds) { Ok(seconds) } else { Err(refuse()) }
}

fn spelled(seconds: i64) -> String {
    match seconds {
        days if days % 86400 == 0 => format!("{}d", days / 86400),
        hours if hours % 3600 == 0 => format!("{}h", hours / 3600),
        other => format!("{other}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_every_unit() {
        for (text, expected) in [("1h", 3600), ("15m", 900), ("90s", 90), ("2d", 172_800)] {
            assert_eq!(seconds("ttl", text, 172_800).unwrap(), expected);
        }
        for wrong in ["", "h", "0s", "3d", "-1m", "5", "1w", "é", "99999999999999999999h"] {
            assert!(seconds("ttl", wrong, 172_800).is_err(), "{wrong}");
        }
        assert!(seconds("ttl", "2h", 3600).unwrap_err().to_string().ends_with("between 1s and 1h"));
    }
}
