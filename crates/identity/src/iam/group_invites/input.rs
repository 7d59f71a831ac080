//! What a caller may say of an invitation, checked alike for both versions.

use bowline_core::{Error, FieldViolation, Micros, Result};

/// What a caller may say of an invitation.
#[derive(Clone, Debug, Default)]
pub(crate) struct InviteInput {
    pub(crate) role: String,
    pub(crate) email: String,
    pub(crate) ttl: Option<prost_types::Duration>,
    pub(crate) single_use: bool,
}

/// How a version calls the fields.
pub(crate) struct Spelling {
    pub(crate) role: &'static str,
}

pub(crate) const V1: Spelling = Spelling { role: "role" };
pub(crate) const V2: Spelling = Spelling { role: "roleUid" };

const SECOND: Micros = 1_000_000;
/// How long an invitation may last.
const LONGEST_DAYS: i64 = 365;
const LONGEST: Micros = LONGEST_DAYS * 24 * 3600 * SECOND;

impl InviteInput {
    /// How long the invitation lasts.
    ///
    /// # Errors
    /// INVALID_ARGUMENT naming `ttl`.
    pub(crate) fn lasts(&self) -> Result<Micros> {
        let wrong = |what: &str| Error::invalid_field("ttl", format!("ttl {what}"));
        let ttl = self.ttl.as_ref().ok_or_else(|| wrong("is required"))?;
        let micros = ttl.seconds.checked_mul(SECOND).and_then(|whole| whole.checked_add(i64::from(ttl.nanos) / 1000));
        match micros {
            Some(micros) if micros > 0 && micros <= LONGEST => Ok(micros),
            _ => Err(wrong(&format!("must be more than 0s and at most {LONGEST_DAYS} days ({}s)", LONGEST / SECOND))),
        }
    }
}

/// Everything that is wrong with the input, as far as the input alone shows it.
pub(crate) fn violations(input: &InviteInput, spelling: &Spelling) -> Vec<FieldViolation> {
    let mut violations = Vec::new();
    let mut refuse = |field: &str, description: String| {
        violations.push(FieldViolation { field: field.into(), description });
    };
    if input.role.is_empty() {
        refuse(spelling.role, format!("{} is required", spelling.role));
    }
    if let Err(error) = input.lasts() {
        let described = error.details().iter().find_map(|detail| match detail {
            bowline_core::Detail::BadRequest(wrong) => wrong.first().map(|one| one.description.clone()),
            _ => None,
        });
        refuse("ttl", described.unwrap_or_default());
    }
    if !input.email.is_empty() && !is_plausible_email(&input.email) {
        refuse("email", "email must be an e-mail address such as name@example.com".into());
    }
    violations
}

/// Maximum bytes of an address that mail servers take.
const LONGEST_EMAIL: usize = 254;

/// Whether mail could be sent there. What no mail server takes is a typing error, and would lock everyone out.
fn is_plausible_email(text: &str) -> bool {
    let Some((name, domain)) = text.rsplit_once('@') else { return false };
    let is_clean = !text.chars().any(|c| c.is_whitespace() || c.is_control() || "<>,;:\"()[]\\".contains(c));
    let is_label = |label: &str| {
        let inner = |c: char| c.is_alphanumeric() || c == '-';
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.chars().all(inner)
    };
    is_clean
        && text.len() <= LONGEST_EMAIL
        && !name.is_empty()
        && !name.contains('@')
        && domain.contains('.')
        && domain.split('.').all(is_label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_plausible_or_refused() {
        for good in ["a@b.c", "First.Last+tag@sub.example.com", "o'neil@example.co.uk", "é@bücher.example"] {
            assert!(is_plausible_email(good), "{good}");
        }
        let long = format!("{}@example.com", "a".repeat(250));
        for bad in
            ["a", "@b.c", "a@", "a@b", "a@b..c", "a@.b", "a@-b.c", "a b@c.d", "a@b@c.d", "a@b.c ", "<a@b.c>", &long]
        {
            assert!(!is_plausible_email(bad), "{bad}");
        }
    }

    #[test]
    fn an_invitation_lasts_more_than_nothing_and_at_most_a_year() {
        let lasts = |seconds, nanos| {
            let ttl = Some(prost_types::Duration { seconds, nanos });
            InviteInput { ttl, ..InviteInput::default() }.lasts().ok()
        };
        assert_eq!(lasts(604_800, 0), Some(604_800_000_000));
        assert_eq!(lasts(0, 1000), Some(1));
        assert_eq!(lasts(365 * 24 * 3600, 0), Some(LONGEST));
        for (seconds, nanos) in
            [(0, 0), (0, 999), (-1, 0), (1, -1_000_000_000), (365 * 24 * 3600, 1000), (i64::MAX, 0), (i64::MIN, 0)]
        {
            assert_eq!(lasts(seconds, nanos), None, "{seconds}s {nanos}ns");
        }
        assert!(InviteInput::default().lasts().is_err());
    }
}
