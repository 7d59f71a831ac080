use serde_json::json;

use super::*;
use crate::addresses::AddressPolicy;
use crate::jwt::{Alg, Header};

const ISSUER: &str = "https://idp.example";

fn metadata(more: &Value) -> Metadata {
    let mut document = json!({ "issuer": ISSUER, "authorization_endpoint": "https://idp.example/authorize?tenant=a" });
    document.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    Metadata::read(&document, ISSUER).unwrap()
}

fn token(typ: Option<&str>, claims: &Value) -> Presented {
    let Value::Object(claims) = claims.clone() else { panic!("an object") };
    let audiences = match &claims["aud"] {
        Value::Array(all) => all.iter().map(|one| one.as_str().unwrap().to_owned()).collect(),
        one => vec![one.as_str().unwrap().to_owned()],
    };
    Presented {
        header: Header { alg: Alg::Rs256, kid: None, typ: typ.map(str::to_owned) },
        issuer: ISSUER.into(),
        subject: "s".into(),
        audiences,
        expiry: 2,
        not_before: None,
        issued_at: claims.get("iat").and_then(Value::as_i64),
        claims,
    }
}

#[test]
fn the_document_is_of_the_configured_issuer_exactly() {
    for other in ["https://idp.example/", "https://IDP.example", "https://idp.example.evil", ""] {
        let read = Metadata::read(&json!({ "issuer": other }), ISSUER);
        assert_eq!(read, Err(RelyingError::OtherIssuer), "{other}");
    }
    assert_eq!(Metadata::read(&json!({}), ISSUER), Err(RelyingError::OtherIssuer));
}

#[test]
fn the_browser_is_sent_where_it_may_go_with_what_was_asked() {
    let client = GuardedClient::new(AddressPolicy::default()).unwrap();
    let url = metadata(&json!({})).authorization_url(&client, &[("state", "a b&c"), ("scope", "openid")]).unwrap();
    assert_eq!(url, "https://idp.example/authorize?tenant=a&state=a+b%26c&scope=openid");
    for bad in ["http://idp.example/a", "javascript:alert(1)", "https://10.0.0.1/a", "https://u:p@idp.example/", ""] {
        let metadata = metadata(&json!({ "authorization_endpoint": bad }));
        assert!(metadata.authorization_url(&client, &[]).is_err(), "{bad}");
    }
    for bad in ["https://idp.example/a#f", "https://idp.example/a?state=theirs"] {
        let metadata = metadata(&json!({ "authorization_endpoint": bad }));
        assert!(metadata.authorization_url(&client, &[("state", "ours")]).is_err(), "{bad}");
    }
}

#[test]
fn a_mixed_up_provider_is_noticed() {
    let silent = metadata(&json!({}));
    let named = metadata(&json!({ "authorization_response_iss_parameter_supported": true }));
    assert_eq!(silent.validate_response(None), Ok(()));
    assert_eq!(named.validate_response(None), Err(RelyingError::MixedUp));
    for metadata in [silent, named] {
        assert_eq!(metadata.validate_response(Some(ISSUER)), Ok(()));
        assert_eq!(metadata.validate_response(Some("https://other.example")), Err(RelyingError::MixedUp));
    }
}

#[test]
fn the_secret_goes_into_the_header_unless_only_the_form_is_taken() {
    let with = |methods: Value| metadata(&json!({ "token_endpoint_auth_methods_supported": methods }));
    assert!(!metadata(&json!({})).wants_secret_in_form());
    assert!(!with(json!(["client_secret_basic", "client_secret_post"])).wants_secret_in_form());
    assert!(!with(json!(["private_key_jwt"])).wants_secret_in_form());
    assert!(with(json!(["client_secret_post"])).wants_secret_in_form());
    let value = basic("my client", "a:b+c").unwrap();
    assert_eq!(value.to_str().unwrap(), format!("Basic {}", B64.encode("my+client:a%3Ab%2Bc")));
}

#[test]
fn an_id_token_is_for_this_client_only() {
    let validate = |typ, claims| validate_audience(&token(typ, &claims), &["us"]).is_ok();
    assert!(validate(Some("JWT"), json!({ "aud": "us" })));
    assert!(validate(None, json!({ "aud": ["us"], "azp": "us" })));
    assert!(validate(None, json!({ "aud": ["us", "them"], "azp": "us" })));
    assert!(!validate(None, json!({ "aud": "them" })));
    assert!(!validate(None, json!({ "aud": ["us", "them"] })), "several audiences need a party");
    assert!(!validate(None, json!({ "aud": "us", "azp": "them" })));
    assert!(!validate(None, json!({ "aud": "us", "azp": 1 })));
    assert!(!validate(Some("at+jwt"), json!({ "aud": "us" })));
    assert!(!validate(Some("application/AT+JWT"), json!({ "aud": "us" })));
}

#[test]
fn an_id_token_belongs_to_one_sign_in() {
    let validate = |claims, nonce| validate_sign_in(&token(None, &claims), ISSUER, nonce);
    assert_eq!(validate(json!({ "aud": "us", "iat": 1, "nonce": "n" }), "n"), Ok(()));
    for claims in [
        json!({ "aud": "us", "iat": 1, "nonce": "m" }),
        json!({ "aud": "us", "iat": 1, "nonce": 1 }),
        json!({ "aud": "us", "iat": 1 }),
        json!({ "aud": "us", "nonce": "n" }),
    ] {
        assert!(validate(claims, "n").is_err());
    }
    assert!(validate(json!({ "aud": "us", "iat": 1, "nonce": "" }), "").is_err(), "no nonce is no match");
    let other =
        validate_sign_in(&token(None, &json!({ "aud": "us", "iat": 1, "nonce": "n" })), "https://b.example", "n");
    assert!(other.is_err());
}

#[test]
fn only_known_oauth_errors_are_shown() {
    assert_eq!(refusal(400, br#"{"error":"invalid_grant"}"#), RelyingError::Refused("invalid_grant"));
    assert_eq!(refusal(400, br#"{"error":"<script>"}"#), RelyingError::Fetch(FetchError::Status(400)));
    assert_eq!(refusal(502, b"oops"), RelyingError::Fetch(FetchError::Status(502)));
    assert!(refusal(502, b"").is_temporary() && !refusal(400, b"").is_temporary());
}

#[test]
fn issuers_are_https_unless_they_are_here() {
    for good in ["https://idp.example", "https://idp.example/tenant", "http://127.0.0.1:9", "http://localhost:9"] {
        assert!(is_issuer(good), "{good}");
    }
    for bad in ["", "idp.example", "http://idp.example", "https://idp.example?a", "https://a:b@idp.example", "ftp://x"]
    {
        assert!(!is_issuer(bad), "{bad}");
    }
}
