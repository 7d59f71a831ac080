//! The `authorization` header: a token, or a user name and a password.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// What the `authorization` header holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presented {
    /// No header, or an empty user name with an empty password.
    Nothing,
    /// A token alone: `Bearer <token>`.
    Bearer(String),
    /// `Basic <base64 of user:password>`.
    Basic { user: String, password: String },
}

/// The header is of neither form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the authorization header is neither \"Bearer <token>\" nor \"Basic <base64 of user:password>\"")]
pub struct UnreadableAuthorization;

/// Reads the `authorization` header.
///
/// # Errors
/// It is of neither form.
pub fn presented(headers: &HeaderMap) -> Result<Presented, UnreadableAuthorization> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(Presented::Nothing) };
    let parts = value.to_str().ok().and_then(|text| text.split_once(' '));
    let (scheme, rest) = parts.ok_or(UnreadableAuthorization)?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
        return Ok(Presented::Bearer(rest.into()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(UnreadableAuthorization);
    }
    let bytes = STANDARD.decode(rest).or_else(|_| STANDARD_NO_PAD.decode(rest));
    let text = String::from_utf8(bytes.map_err(|_| UnreadableAuthorization)?).map_err(|_| UnreadableAuthorization)?;
    let (user, password) = text.split_once(':').ok_or(UnreadableAuthorization)?;
    if user.contains('\0') {
        return Err(UnreadableAuthorization);
    }
    if user.is_empty() && password.is_empty() {
        return Ok(Presented::Nothing);
    }
    Ok(Presented::Basic { user: user.into(), password: password.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Result<Presented, UnreadableAuthorization> {
        presented(&HeaderMap::from_iter([(header::AUTHORIZATION, value.parse().unwrap())]))
    }

    #[test]
    fn both_forms_are_read_and_others_are_not() {
        let basic = |user: &str, password: &str| Presented::Basic { user: user.into(), password: password.into() };
        assert_eq!(presented(&HeaderMap::new()), Ok(Presented::Nothing));
        assert_eq!(read("bearer  a.b"), Ok(Presented::Bearer("a.b".into())));
        assert_eq!(read("Basic YTpiOmM="), Ok(basic("a", "b:c")));
        assert_eq!(read("BASIC YTpiOmM"), Ok(basic("a", "b:c")), "without padding");
        assert_eq!(read("Basic Og=="), Ok(Presented::Nothing), "neither a name nor a password");
        for wrong in ["Bearer", "Bearer ", "Digest a", "Basic !", "Basic YQ==", "Basic AGE6Yg=="] {
            assert_eq!(read(wrong), Err(UnreadableAuthorization), "{wrong}");
        }
    }
}
