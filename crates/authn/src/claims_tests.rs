use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{DecodingKey, Validation};
use proptest::prelude::*;

use super::*;
use crate::keys::{Algorithm, KeyRing};

const ISSUER: &str = "https://auth.example.test";

fn claims() -> AccessClaims {
    AccessClaims {
        iss: ISSUER.into(),
        sub: "0123456789012345678901234567890123456789".into(),
        aud: vec!["https://api.example.test".into()],
        exp: 5600,
        iat: 2000,
        jti: "one".into(),
        cap: [("group".to_owned(), "AAAAAAAAAHxEQgBAgIBESAiIGDBAiqlk".to_owned())].into(),
        ..Default::default()
    }
}

fn ring(alg: Algorithm) -> KeyRing {
    let mut ring = KeyRing::default();
    ring.rotate(SigningKey::generate(alg).unwrap(), 0);
    ring
}

#[test]
fn minted_tokens_come_back_and_others_can_verify_them() {
    for alg in [Algorithm::Es256, Algorithm::Rs256] {
        let ring = ring(alg);
        let key = ring.signing_key(2000).unwrap();
        let full = AccessClaims {
            aud: vec!["a".into(), "https://api.example.test".into()],
            email: Some("me@example.test".into()),
            email_verified: Some(true),
            act: Some(json!({"iss": "x"})),
            narrow: Some(Narrowing { cap: Some("AAAAAAAAAAA=".into()), scopes: vec!["g".into()] }),
            idp: Some("idp".into()),
            internal: Some(json!({"debug": true})),
            upstream: Some(json!({"name": "Me"})),
            ..claims()
        };
        for claims in [claims(), full] {
            let token = mint(TokenClass::Access, &claims, key);
            let keys = ring.verification_keys(2000);
            let back = verify_own(&token, TokenClass::Access, &keys, ISSUER, &["https://api.example.test", "x"], 2000);
            assert_eq!(back.unwrap(), claims);

            let jwk: Jwk = serde_json::from_value(ring.jwks(2000)["keys"][0].clone()).unwrap();
            let name = alg.as_str().parse().unwrap();
            let mut rules = Validation::new(name);
            rules.validate_exp = false;
            rules.set_audience(&["https://api.example.test"]);
            rules.set_issuer(&[ISSUER]);
            let other =
                jsonwebtoken::decode::<AccessClaims>(&token, &DecodingKey::from_jwk(&jwk).unwrap(), &rules).unwrap();
            assert_eq!(other.claims, claims);
            assert_eq!((other.header.typ.as_deref(), other.header.kid.as_deref()), (Some("at+jwt"), Some(key.kid())));
        }
    }
}

#[test]
fn one_audience_is_a_string_and_empty_members_are_left_out() {
    let one = json!(claims());
    assert_eq!(one["aud"], "https://api.example.test");
    let names: Vec<&str> = one.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["aud", "cap", "exp", "iat", "iss", "jti", "sub"]);
    let many = json!(AccessClaims { aud: vec!["a".into(), "b".into()], ..claims() });
    assert_eq!(many["aud"], json!(["a", "b"]));
    assert_eq!(serde_json::from_value::<AccessClaims>(many).unwrap().aud, ["a", "b"]);
}

#[test]
fn a_front_requires_class_issuer_audience_and_time() {
    let ring = ring(Algorithm::Es256);
    let key = ring.signing_key(2000).unwrap();
    let keys = ring.verification_keys(2000);
    let api: &[&str] = &["https://api.example.test"];
    let validate = |token: &str, class, issuer: &str, audiences: &[&str], now| {
        verify_own(token, class, &keys, issuer, audiences, now).map(|_| ()).map_err(TokenError::reason)
    };
    let good = mint(TokenClass::Access, &claims(), key);
    let access = TokenClass::Access;
    assert_eq!(validate(&good, access, ISSUER, api, 2000), Ok(()));

    for (minted, asked) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
        let classes = [TokenClass::Access, TokenClass::Id, TokenClass::Webhook];
        let token = mint(classes[minted], &claims(), key);
        assert_eq!(validate(&token, classes[asked], ISSUER, api, 2000), Err("class"));
        assert_eq!(validate(&token, classes[minted], ISSUER, api, 2000), Ok(()));
    }
    for issuer in ["https://auth.example.test/", "https://AUTH.example.test", "http://auth.example.test", ""] {
        assert_eq!(validate(&good, access, issuer, api, 2000), Err("issuer"), "{issuer}");
    }
    for audience in [
        "https://api.example.test/",
        "api.example.test",
        "https://API.example.test",
        "https://api.example.test.evil",
        "",
    ] {
        assert_eq!(validate(&good, access, ISSUER, &[audience], 2000), Err("audience"), "{audience}");
    }
    assert_eq!(validate(&good, access, ISSUER, &[], 2000), Err("audience"));
    let without_audience = mint(access, &AccessClaims { aud: vec![], ..claims() }, key);
    assert_eq!(validate(&without_audience, access, ISSUER, api, 2000), Err("audience"));

    assert_eq!(validate(&good, access, ISSUER, api, 5599), Ok(()));
    assert_eq!(validate(&good, access, ISSUER, api, 5600), Err("expired"));
    assert_eq!(validate(&good, access, ISSUER, api, 1940), Ok(()));
    assert_eq!(validate(&good, access, ISSUER, api, 1939), Err("not_yet_valid"));

    let long = AccessClaims { exp: 5601, ..claims() };
    assert_eq!(validate(&mint(access, &long, key), access, ISSUER, api, 2000), Err("lifetime"));
    assert_eq!(validate(&mint(TokenClass::Webhook, &long, key), TokenClass::Webhook, ISSUER, api, 2000), Ok(()));
}

#[test]
fn keys_of_others_and_of_earlier_times_do_not_count() {
    let mut ours = ring(Algorithm::Es256);
    let stranger = SigningKey::generate(Algorithm::Es256).unwrap();
    let api: &[&str] = &["https://api.example.test"];
    let forged = mint(TokenClass::Access, &claims(), &stranger);
    let refused = verify_own(&forged, TokenClass::Access, &ours.verification_keys(2000), ISSUER, api, 2000);
    assert_eq!(refused, Err(TokenError::UnknownKid));

    // The other's signature under our key's id.
    let kid = ours.signing_key(2000).unwrap().kid().to_owned();
    let header = json!({"alg": "ES256", "kid": kid, "typ": "at+jwt"});
    let message = format!("{}.{}", B64.encode(header.to_string()), B64.encode(json!(claims()).to_string()));
    let forged = format!("{message}.{}", B64.encode(stranger.sign(message.as_bytes())));
    let refused = verify_own(&forged, TokenClass::Access, &ours.verification_keys(2000), ISSUER, api, 2000);
    assert_eq!(refused, Err(TokenError::BadSignature));

    // Ours, without an id.
    let message =
        format!("{}.{}", B64.encode(r#"{"alg":"ES256","typ":"at+jwt"}"#), B64.encode(json!(claims()).to_string()));
    let own = format!("{message}.{}", B64.encode(ours.signing_key(2000).unwrap().sign(message.as_bytes())));
    let refused = verify_own(&own, TokenClass::Access, &ours.verification_keys(2000), ISSUER, api, 2000);
    assert_eq!(refused, Err(TokenError::UnknownKid));

    // A token signed just before its key retired is good until it expires.
    let old =
        mint(TokenClass::Access, &AccessClaims { iat: 2599, exp: 6199, ..claims() }, ours.signing_key(2599).unwrap());
    ours.rotate(stranger, 2000);
    for now in [2600, 6198] {
        assert!(verify_own(&old, TokenClass::Access, &ours.verification_keys(now), ISSUER, api, now).is_ok(), "{now}");
    }
    assert_eq!(
        verify_own(&old, TokenClass::Access, &ours.verification_keys(6201), ISSUER, api, 6201),
        Err(TokenError::UnknownKid)
    );
}

proptest! {
    #[test]
    fn a_damaged_token_is_never_accepted(at in any::<prop::sample::Index>(), to in any::<char>(), cut in any::<bool>()) {
        static RING: std::sync::LazyLock<KeyRing> = std::sync::LazyLock::new(|| ring(Algorithm::Es256));
        let good = mint(TokenClass::Access, &claims(), RING.signing_key(2000).unwrap());
        let at = at.index(good.len());
        let mut bad = good.clone();
        if cut {
            bad.truncate(at);
        } else {
            bad.replace_range(at..=at, &to.to_string());
        }
        prop_assume!(bad != good);
        let keys = RING.verification_keys(2000);
        prop_assert!(verify_own(&bad, TokenClass::Access, &keys, ISSUER, &["https://api.example.test"], 2000).is_err());
    }
}
