//! What a provider says of a person, from the authorization request to the verified id token.

use std::collections::BTreeSet;

use bowline_authn::discovery::KEEP_FAILURE;
use bowline_authn::jwt::{LEEWAY, Presented, check_times, verify_signature};
use bowline_authn::relying::{self, Client, Metadata, RelyingError, Tokens};
use bowline_core::{Detail, Error, Micros, Reason, Result};
use serde_json::{Map, Value};

use super::{AuthorizationRequest, Parts, Provider, Redemption, Upstream};
use crate::oidc::issuing::seconds;
use crate::oidc::{parse_presented, refusals};

/// Groups of one person that are looked at.
const MAX_GROUPS: usize = 500;

pub(super) async fn authorization_url(
    parts: &Parts,
    provider: &Provider,
    request: &AuthorizationRequest<'_>,
) -> Result<String> {
    let metadata = discover(parts, provider).await?;
    let mut scope = vec!["openid"];
    scope.extend(provider.scopes.iter().map(String::as_str).filter(|scope| *scope != "openid"));
    let scope = scope.join(" ");
    let mut parameters = vec![
        ("response_type", "code"),
        ("client_id", provider.client_id.as_str()),
        ("redirect_uri", request.redirect_uri),
        ("scope", &scope),
        ("state", request.state),
        ("nonce", request.nonce),
        ("code_challenge", request.code_challenge),
        ("code_challenge_method", "S256"),
    ];
    parameters.extend(request.login_hint.map(|hint| ("login_hint", hint)));
    parameters.extend(request.screen_hint.map(|hint| ("screen_hint", hint)));
    metadata.authorization_url(&parts.client, &parameters).map_err(refusal)
}

async fn discover(parts: &Parts, provider: &Provider) -> Result<Metadata> {
    // Our own tokens prove themselves; they make no one else.
    if provider.issuer == parts.settings.auth_url {
        return Err(refusal(RelyingError::Issuer));
    }
    relying::discover(&parts.client, &provider.issuer).await.map_err(refusal)
}

pub(super) async fn redeem(
    parts: &Parts,
    provider: &Provider,
    redemption: &Redemption<'_>,
    now: Micros,
) -> Result<Upstream> {
    let metadata = discover(parts, provider).await?;
    // Before the code goes anywhere.
    metadata.validate_response(redemption.iss).map_err(refusal)?;
    let client = Client { id: &provider.client_id, secret: provider.client_secret.as_deref() };
    let tokens = metadata
        .redeem(&parts.client, client, redemption.code, redemption.redirect_uri, redemption.code_verifier)
        .await
        .map_err(refusal)?;
    let presented = parse_presented(&tokens.id_token)?;
    relying::validate_sign_in(&presented, &provider.issuer, redemption.nonce).map_err(refusal)?;
    relying::validate_audience(&presented, &[&provider.client_id]).map_err(refusal)?;
    verify(parts, &tokens.id_token, &presented, now).await?;
    let mut upstream = read(&presented, &tokens.id_token, &provider.client_id, &provider.groups_claim)?;
    if upstream.email.is_none() {
        ask_for_email(parts, &metadata, &tokens, &mut upstream).await?;
    }
    Ok(upstream)
}

async fn ask_for_email(parts: &Parts, metadata: &Metadata, tokens: &Tokens, upstream: &mut Upstream) -> Result<()> {
    let Some(access_token) = tokens.access_token.as_deref().filter(|_| metadata.has_userinfo()) else {
        return Ok(());
    };
    let claims = metadata.userinfo(&parts.client, access_token, &upstream.subject).await.map_err(refusal)?;
    upstream.email = email(&claims);
    upstream.email_verified = is_true(&claims, "email_verified");
    upstream.name = upstream.name.take().or_else(|| text(&claims, "name"));
    Ok(())
}

/// Verifies with the keys that the token's issuer publishes. Only for issuers that were found to be trusted.
pub(super) async fn verify(parts: &Parts, token: &str, presented: &Presented, now: Micros) -> Result<()> {
    let now = seconds(now);
    let kid = presented.header.kid.as_deref();
    let keys = parts.issuer_keys.keys_for(&presented.issuer, kid, now).await.map_err(refusals::keys)?;
    verify_signature(token, &keys).map_err(refusals::token)?;
    check_times(presented, now, LEEWAY).map_err(refusals::token)
}

/// What a token says of the person that was verified for this client of this server.
///
/// # Errors
/// A subject that could stand for another one.
pub(super) fn read(presented: &Presented, id_token: &str, client_id: &str, groups_claim: &str) -> Result<Upstream> {
    // The identity's UIDP is made of issuer and subject, one per line.
    if presented.subject.chars().any(char::is_control) || presented.subject.len() > 1024 {
        return Err(refusal(RelyingError::IdToken("its subject is not a plain text")));
    }
    let claims = &presented.claims;
    Ok(Upstream {
        issuer: presented.issuer.clone(),
        subject: presented.subject.clone(),
        client_id: client_id.into(),
        email: email(claims),
        email_verified: is_true(claims, "email_verified"),
        name: text(claims, "name"),
        given_name: text(claims, "given_name"),
        family_name: text(claims, "family_name"),
        picture: text(claims, "picture").filter(|picture| picture.starts_with("https://")),
        groups: groups(claims, groups_claim),
        oid: text(claims, "oid"),
        id_token: id_token.into(),
    })
}

/// A claim that is a text of sense: short, and without what could break a line or a table.
fn text(claims: &Map<String, Value>, name: &str) -> Option<String> {
    let text = claims.get(name)?.as_str()?.trim();
    let is_sane = !text.is_empty() && text.len() <= 1024 && !text.chars().any(char::is_control);
    is_sane.then(|| text.to_owned())
}

fn email(claims: &Map<String, Value>) -> Option<String> {
    text(claims, "email").filter(|email| email.len() <= 254 && email.contains('@') && !email.contains(' '))
}

/// Some providers write booleans as texts.
fn is_true(claims: &Map<String, Value>, name: &str) -> bool {
    matches!(claims.get(name), Some(Value::Bool(true))) || claims.get(name).and_then(Value::as_str) == Some("true")
}

fn groups(claims: &Map<String, Value>, name: &str) -> Vec<String> {
    let values: &[Value] = match claims.get(name).filter(|_| !name.is_empty()) {
        Some(Value::Array(many)) => many,
        Some(one) => std::slice::from_ref(one),
        None => &[],
    };
    let is_sane = |group: &&str| !group.is_empty() && group.len() <= 1024 && !group.contains('\0');
    let groups: BTreeSet<&str> = values.iter().filter_map(Value::as_str).filter(is_sane).take(MAX_GROUPS).collect();
    groups.into_iter().map(str::to_owned).collect()
}

/// The error that the person sees; the reason goes to the log as well.
pub(super) fn refusal(error: RelyingError) -> Error {
    tracing::info!(%error, "sign-in refused");
    match &error {
        RelyingError::Refused(_) | RelyingError::IdToken(_) | RelyingError::MixedUp => {
            Error::new(Reason::TokenInvalid, format!("Unauthenticated: {error}; sign in again"))
        }
        error if error.is_temporary() => {
            let wait = std::time::Duration::from_secs(KEEP_FAILURE.unsigned_abs());
            Error::new(Reason::Unavailable, format!("Unavailable: {error}; try again")).with(Detail::RetryAfter(wait))
        }
        error => Error::precondition(
            "IDENTITY_PROVIDER",
            "",
            format!("{error}; ask the administrator of the identity provider to correct it"),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn groups_are_a_text_or_a_list_and_never_too_many() {
        let many: Vec<String> = (0..600).map(|n| format!("{n:04}")).collect();
        let claims = claims(json!({
            "one": "a", "list": ["b", "a", 1, "", null, "b"], "many": many, "object": { "a": 1 }, "": ["x"],
        }));
        assert_eq!(groups(&claims, "one"), ["a"]);
        assert_eq!(groups(&claims, "list"), ["a", "b"]);
        assert_eq!(groups(&claims, "many").len(), MAX_GROUPS);
        for none in ["object", "absent", ""] {
            assert!(groups(&claims, none).is_empty(), "{none}");
        }
    }

    #[test]
    fn claims_of_no_sense_are_left_out() {
        let claims = claims(json!({
            "email": "me@example.com", "name": " Ada \n", "given_name": "a\u{0}b", "family_name": 7, "yes": "true", "no": 1,
        }));
        assert_eq!(email(&claims).as_deref(), Some("me@example.com"));
        assert_eq!(text(&claims, "name").as_deref(), Some("Ada"));
        assert_eq!((text(&claims, "given_name"), text(&claims, "family_name")), (None, None));
        assert!(is_true(&claims, "yes") && !is_true(&claims, "no") && !is_true(&claims, "absent"));
    }
}
