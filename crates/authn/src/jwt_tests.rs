use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm as Oracle, EncodingKey};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::crypto::hmac_sha256;
use crate::keys::{Algorithm, SigningKey};

fn es256() -> &'static SigningKey {
    static KEY: std::sync::LazyLock<SigningKey> =
        std::sync::LazyLock::new(|| SigningKey::generate(Algorithm::Es256).unwrap());
    &KEY
}

fn rs256() -> &'static SigningKey {
    static KEY: std::sync::LazyLock<SigningKey> =
        std::sync::LazyLock::new(|| SigningKey::generate(Algorithm::Rs256).unwrap());
    &KEY
}

fn set(keys: &[Value]) -> Jwks {
    Jwks::parse(&json!({ "keys": keys })).unwrap()
}

fn claims() -> Value {
    json!({"iss": "https://issuer.test", "sub": "me", "aud": "you", "exp": 2000, "iat": 1000})
}

fn token(header: &Value, claims: &Value, key: &SigningKey) -> String {
    let message = format!("{}.{}", B64.encode(header.to_string()), B64.encode(claims.to_string()));
    let signature = B64.encode(key.sign(message.as_bytes()));
    format!("{message}.{signature}")
}

fn with(change: impl Fn(&mut Value)) -> String {
    let mut claims = claims();
    change(&mut claims);
    token(&json!({"alg": "ES256"}), &claims, es256())
}

fn error(token: &str) -> &'static str {
    parse_unverified(token).unwrap_err().reason()
}

#[test]
fn reads_what_a_token_says() {
    let header = json!({"alg": "ES256", "kid": "k", "typ": "JWT", "x5t": "thumb"});
    let read = parse_unverified(&token(&header, &claims(), es256())).unwrap();
    assert_eq!(read.header, Header { alg: Alg::Es256, kid: Some("k".into()), typ: Some("JWT".into()) });
    assert_eq!((read.issuer.as_str(), read.subject.as_str()), ("https://issuer.test", "me"));
    assert_eq!((read.expiry, read.issued_at, read.not_before), (2000, Some(1000), None));
    assert_eq!(read.audiences, ["you"]);
    assert_eq!(read.claims["aud"], "you");
    let many = parse_unverified(&with(|c| c["aud"] = json!(["a", "b"]))).unwrap();
    assert_eq!(many.audiences, ["a", "b"]);
    let none = parse_unverified(&with(|c| _ = c.as_object_mut().unwrap().remove("aud"))).unwrap();
    assert!(none.audiences.is_empty());
    assert_eq!(parse_unverified(&with(|c| c["exp"] = json!(2000.9))).unwrap().expiry, 2000);
    assert_eq!(parse_unverified(&with(|c| c["exp"] = json!(1e300))).unwrap().expiry, i64::MAX);
}

#[test]
fn refuses_what_could_never_be_accepted() {
    let of = |header: Value| token(&header, &claims(), es256());
    for alg in
        ["none", "None", "NONE", "nOnE", "", "HS256", "HS384", "HS512", "es256", "ES512", "ES256K", "RSA-OAEP", "dir"]
    {
        assert_eq!(error(&of(json!({ "alg": alg }))), "algorithm_refused", "{alg}");
    }
    for name in ["jwk", "jku", "x5u", "x5c", "crit"] {
        for value in [json!({}), json!([]), json!(["exp"]), json!(null), json!("https://evil.test/keys")] {
            assert_eq!(error(&of(json!({"alg": "ES256", name: value}))), "header_refused", "{name}");
        }
    }
    for header in [
        json!({}),
        json!([]),
        json!({"alg": 1}),
        json!({"alg": null}),
        json!({"alg": "ES256", "kid": 7}),
        json!({"alg": "ES256", "typ": []}),
    ] {
        assert_eq!(error(&of(header.clone())), "malformed", "{header}");
    }
    for name in ["iss", "sub", "exp"] {
        assert_eq!(error(&with(|c| _ = c.as_object_mut().unwrap().remove(name))), "missing_claim", "{name}");
        assert_eq!(error(&with(|c| c[name] = json!({}))), "malformed", "{name}");
        assert_eq!(error(&with(|c| c[name] = json!(null))), "malformed", "{name}");
    }
    assert_eq!(error(&with(|c| c["iss"] = json!(""))), "missing_claim");
    assert_eq!(error(&with(|c| c["exp"] = json!("2000"))), "malformed");
    assert_eq!(error(&with(|c| c["nbf"] = json!("0"))), "malformed");
    assert_eq!(error(&with(|c| c["aud"] = json!(["a", 1]))), "malformed");
    assert_eq!(error(&with(|c| c["aud"] = json!({"a": 1}))), "malformed");
}

#[test]
fn refuses_damaged_forms() {
    let good = token(&json!({"alg": "ES256"}), &claims(), es256());
    let (message, signature) = good.rsplit_once('.').unwrap();
    let (header, payload) = message.split_once('.').unwrap();
    for bad in [
        String::new(),
        ".".into(),
        "..".into(),
        "...".into(),
        message.into(),
        header.into(),
        format!("{good}."),
        format!(".{good}"),
        format!("{good}.x"),
        format!("{good}\n"),
        format!("{good} "),
        format!("{good}="),
        good.replacen('.', "\n.", 1),
        format!("{header}.{payload}é.{signature}"),
        format!("Bearer {good}"),
        format!("{payload}.{header}.{signature}"),
        format!("{header}.{}.{signature}", B64.encode("[]")),
        format!("{header}.{}.{signature}", B64.encode("{\"a\":1} x")),
        format!("{header}.{}.{signature}", B64.encode("[".repeat(10_000))),
    ] {
        assert_eq!(error(&bad), "malformed", "{bad}");
    }
    assert_eq!(error(&"a".repeat(MAX_TOKEN + 1)), "too_large");
    let large = with(|c| c["pad"] = json!("x".repeat(MAX_TOKEN)));
    assert_eq!(error(&large), "too_large");
    assert_eq!(verify_signature(&large, &Jwks::default()), Err(TokenError::TooLarge));
}

#[test]
fn the_public_key_is_not_a_shared_secret() {
    let key = es256().public_jwk();
    let message = format!(
        "{}.{}",
        B64.encode(json!({"alg": "HS256", "kid": es256().kid()}).to_string()),
        B64.encode(claims().to_string())
    );
    for secret in [
        key.to_string().into_bytes(),
        key["x"].to_string().into_bytes(),
        B64.decode(key["x"].as_str().unwrap()).unwrap(),
    ] {
        let forged = format!("{message}.{}", B64.encode(hmac_sha256(&secret, message.as_bytes())));
        assert_eq!(verify_signature(&forged, &set(std::slice::from_ref(&key))), Err(TokenError::AlgorithmRefused));
        assert_eq!(error(&forged), "algorithm_refused");
    }
    // A symmetric key in a set is no key.
    assert!(set(&[json!({"kty": "oct", "k": "c2VjcmV0", "kid": "s"})]).keys().is_empty());
}

#[test]
fn keys_are_chosen_by_id() {
    let (a, b) = (es256(), SigningKey::generate(Algorithm::Es256).unwrap());
    let both = set(&[a.public_jwk(), b.public_jwk(), rs256().public_jwk()]);
    let of = |header: Value, key| token(&header, &claims(), key);
    assert_eq!(verify_signature(&of(json!({"alg": "ES256", "kid": a.kid()}), a), &both), Ok(()));
    assert_eq!(verify_signature(&of(json!({"alg": "ES256", "kid": b.kid()}), a), &both), Err(TokenError::BadSignature));
    assert_eq!(verify_signature(&of(json!({"alg": "ES256", "kid": "other"}), a), &both), Err(TokenError::UnknownKid));
    // Without an id only one fitting key will do.
    assert_eq!(verify_signature(&of(json!({"alg": "ES256"}), a), &both), Err(TokenError::UnknownKid));
    assert_eq!(verify_signature(&of(json!({"alg": "RS256"}), rs256()), &both), Ok(()));
    assert_eq!(verify_signature(&of(json!({"alg": "ES256"}), a), &set(&[a.public_jwk()])), Ok(()));
    assert_eq!(verify_signature(&of(json!({"alg": "ES256"}), a), &Jwks::default()), Err(TokenError::UnknownKid));
    // The key's type and its own alg have to fit.
    assert_eq!(
        verify_signature(&of(json!({"alg": "RS256", "kid": a.kid()}), a), &both),
        Err(TokenError::AlgorithmRefused)
    );
    assert_eq!(
        verify_signature(&of(json!({"alg": "PS256", "kid": rs256().kid()}), rs256()), &both),
        Err(TokenError::AlgorithmRefused)
    );
    assert_eq!(
        verify_signature(&of(json!({"alg": "ES384", "kid": a.kid()}), a), &both),
        Err(TokenError::AlgorithmRefused)
    );
}

#[test]
fn unusable_keys_are_left_out() {
    let change = |name: &str, value: Value| {
        let mut key = es256().public_jwk();
        key[name] = value;
        key
    };
    for bad in [
        change("use", json!("enc")),
        change("key_ops", json!(["sign"])),
        change("alg", json!("HS256")),
        change("alg", json!("none")),
        change("crv", json!("P-521")),
        change("kty", json!("OKP")),
        change("kty", json!(7)),
        change("x", json!("AAAA")),
        change("y", json!("!")),
        json!({"kty": "RSA", "n": "", "e": "AQAB"}),
        json!({"kty": "OKP", "crv": "X25519", "x": "AAAA"}),
        json!("key"),
    ] {
        assert!(set(std::slice::from_ref(&bad)).keys().is_empty(), "{bad}");
    }
    assert_eq!(set(&[change("key_ops", json!(["verify"]))]).keys().len(), 1);
    for bad in [json!({}), json!([]), json!({"keys": {}}), json!({"keys": vec![es256().public_jwk(); 101]})] {
        assert_eq!(Jwks::parse(&bad), Err(TokenError::Keys));
    }
    assert_eq!(set(&vec![es256().public_jwk(); 100]).keys().len(), 100);
    for text in ["", "placeholder", "{}", "{\"keys\":[]}", "null"] {
        assert_eq!(Jwks::parse_str(text), Err(TokenError::Keys), "{text}");
    }
    assert!(Jwks::parse_str(&json!({"keys": [es256().public_jwk()]}).to_string()).unwrap().has_kid(es256().kid()));
    // A point off the curve and a short RSA key parse and verify nothing.
    let header = json!({"alg": "ES256"});
    let off = set(&[change("x", es256().public_jwk()["y"].clone())]);
    assert_eq!(verify_signature(&token(&header, &claims(), es256()), &off), Err(TokenError::BadSignature));
}

#[test]
fn every_algorithm_verifies_what_another_implementation_signed() {
    use aws_lc_rs::signature as sig;
    let rsa = EncodingKey::from_rsa_der(&rs256().to_pkcs8().unwrap()[26..]); // PKCS#1 within PKCS#8
    let p384 = sig::EcdsaKeyPair::generate(&sig::ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
    let p384 = EncodingKey::from_ec_der(p384.to_pkcs8v1().unwrap().as_ref());
    let p256 = EncodingKey::from_ec_der(&es256().to_pkcs8().unwrap());
    let ed = sig::Ed25519KeyPair::generate_pkcs8(&aws_lc_rs::rand::SystemRandom::new()).unwrap();
    let pair = sig::Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap();
    let x = B64.encode(sig::KeyPair::public_key(&pair));
    let ed = EncodingKey::from_ed_der(ed.as_ref());
    for (alg, key) in [
        (Oracle::RS256, &rsa),
        (Oracle::RS384, &rsa),
        (Oracle::RS512, &rsa),
        (Oracle::PS256, &rsa),
        (Oracle::PS384, &rsa),
        (Oracle::PS512, &rsa),
        (Oracle::ES256, &p256),
        (Oracle::ES384, &p384),
        (Oracle::EdDSA, &ed),
    ] {
        let signed = jsonwebtoken::encode(&jsonwebtoken::Header::new(alg), &claims(), key).unwrap();
        let mut jwk = match alg {
            Oracle::EdDSA => json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x}),
            _ => serde_json::to_value(Jwk::from_encoding_key(key, alg).unwrap()).unwrap(),
        };
        for named in [true, false] {
            if !named {
                jwk.as_object_mut().unwrap().remove("alg");
            }
            let keys = set(std::slice::from_ref(&jwk));
            assert_eq!(keys.keys().len(), 1, "{jwk}");
            assert_eq!(verify_signature(&signed, &keys), Ok(()), "{alg:?}");
            let read = parse_unverified(&signed).unwrap();
            assert_eq!(read.header.alg.as_str(), format!("{alg:?}"));
            let forged = signed.replacen('.', &format!(".{}", B64.encode("x")), 1);
            assert!(verify_signature(&forged, &keys).is_err());
        }
    }
}

#[test]
fn times_have_a_leeway() {
    let at = |change: &dyn Fn(&mut Value), now, leeway| {
        check_times(&parse_unverified(&with(change)).unwrap(), now, leeway).map_err(TokenError::reason)
    };
    let same = |_: &mut Value| ();
    assert_eq!(at(&same, 1999, 0), Ok(()));
    assert_eq!(at(&same, 2000, 0), Err("expired"));
    assert_eq!(at(&same, 2059, LEEWAY), Ok(()));
    assert_eq!(at(&same, 2060, LEEWAY), Err("expired"));
    assert_eq!(at(&same, 940, LEEWAY), Ok(()));
    assert_eq!(at(&same, 939, LEEWAY), Err("not_yet_valid"), "issued in the future");
    let later = |c: &mut Value| c["nbf"] = json!(1500);
    assert_eq!(at(&later, 1440, LEEWAY), Ok(()));
    assert_eq!(at(&later, 1439, LEEWAY), Err("not_yet_valid"));
    for extreme in [i64::MIN, i64::MAX, 0] {
        let _ = at(&|c| c["exp"] = json!(extreme), i64::MAX, LEEWAY);
        let _ = at(&|c| c["nbf"] = json!(extreme), i64::MIN, LEEWAY);
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", parts in prop::collection::vec("[-_a-zA-Z0-9]{0,60}", 0..5)) {
        let keys = set(&[es256().public_jwk(), rs256().public_jwk()]);
        for token in [text, parts.join(".")] {
            prop_assert!(parse_unverified(&token).is_err());
            prop_assert!(verify_signature(&token, &keys).is_err());
        }
    }

    #[test]
    fn no_json_panics(header in "\\{(\"(alg|kid|typ|crit)\":(\"(ES256|none)\"|1|null|\\[\\])){0,1}\\}", body in "\\{(\"(exp|aud|iss)\":(-?[0-9]{1,25}(\\.5)?(e[0-9]{1,3})?|\"x\"|\\[1\\])){0,1}\\}") {
        let _ = parse_unverified(&format!("{}.{}.AA", B64.encode(header), B64.encode(body)));
    }

    #[test]
    fn a_changed_character_never_verifies(at in any::<prop::sample::Index>(), to in "[-_a-zA-Z0-9.]", rsa in any::<bool>()) {
        let key = if rsa { rs256() } else { es256() };
        let good = token(&json!({"alg": key.algorithm().as_str(), "kid": key.kid()}), &claims(), key);
        let keys = set(&[key.public_jwk()]);
        prop_assert_eq!(verify_signature(&good, &keys), Ok(()));
        let at = at.index(good.len());
        let mut bad = good.clone();
        bad.replace_range(at..=at, &to);
        prop_assume!(bad != good);
        prop_assert!(verify_signature(&bad, &keys).is_err());
        prop_assert!(verify_signature(&good[..at], &keys).is_err());
    }
}
