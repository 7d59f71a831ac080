use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::jwt::{Alg, Header};

fn presented(claims: Value) -> Presented {
    let audiences = match &claims["aud"] {
        Value::String(one) => vec![one.clone()],
        Value::Array(many) => many.iter().map(|a| a.as_str().unwrap().to_owned()).collect(),
        _ => vec![],
    };
    let Value::Object(map) = claims else { panic!("an object") };
    Presented {
        header: Header { alg: Alg::Es256, kid: None, typ: None },
        issuer: map["iss"].as_str().unwrap().to_owned(),
        subject: map["sub"].as_str().unwrap().to_owned(),
        audiences,
        expiry: 0,
        not_before: None,
        issued_at: None,
        claims: map,
    }
}

fn token() -> Presented {
    presented(json!({
        "iss": "https://token.actions.githubusercontent.com", "sub": "repo:org/app:ref:refs/heads/main", "aud": "https://auth.test",
        "repository": "org/app", "run": 17, "float": 1.5, "protected": true, "nothing": null, "list": ["a"], "map": {},
    }))
}

fn exact(text: &str) -> Expect {
    Expect::Exact(text.into())
}

fn pattern(text: &str) -> Expect {
    Expect::Pattern(text.into())
}

fn base() -> ClaimMatch {
    ClaimMatch {
        issuer: exact("https://token.actions.githubusercontent.com"),
        subject: exact("repo:org/app:ref:refs/heads/main"),
        audience: None,
        claims: BTreeMap::new(),
        claim_patterns: BTreeMap::new(),
    }
}

fn validate(rule: &ClaimMatch, token: &Presented) -> Result<(), String> {
    let defaults = ["https://auth.test", "auth.test", "auth.test:8443"].map(str::to_owned);
    rule.compile().unwrap().matches(token, &defaults).map_err(|m| m.claim)
}

#[test]
fn exact_values_match_exactly() {
    assert_eq!(validate(&base(), &token()), Ok(()));
    for issuer in ["https://token.actions.githubusercontent.com/", "https://TOKEN.actions.githubusercontent.com", ""] {
        assert_eq!(validate(&ClaimMatch { issuer: exact(issuer), ..base() }, &token()), Err("iss".into()));
    }
    assert_eq!(validate(&ClaimMatch { subject: exact("repo:org/app"), ..base() }, &token()), Err("sub".into()));
    // An exact value is no pattern.
    assert_eq!(validate(&ClaimMatch { subject: exact(".*"), ..base() }, &token()), Err("sub".into()));
}

#[test]
fn patterns_match_whole_and_case_sensitively() {
    for (text, good) in [
        ("repo:org/app:.*", true),
        ("^repo:org/app:.*$", true),
        ("repo:org/[^:]+:ref:refs/heads/main", true),
        ("repo:org/app", false),
        ("org/app:.*", false),
        ("REPO:.*", false),
        ("repo:org/app:ref:refs/heads/main|x", true),
        ("x|repo", false),
        ("(?m)^repo:org/app:ref:refs/heads/main$", true),
    ] {
        let got = validate(&ClaimMatch { subject: pattern(text), ..base() }, &token());
        assert_eq!(got.is_ok(), good, "{text}");
    }
    let mut lines = token();
    lines.subject = "repo:x\nrepo:org/app:ref:refs/heads/main".into();
    for text in ["(?m)^repo:org/app.*$", "repo:.*", ".*main"] {
        assert!(validate(&ClaimMatch { subject: pattern(text), ..base() }, &lines).is_err(), "{text}");
    }
    // No one can step out of the anchors.
    for text in ["a)|(.*", "a)|(?:.*", "(?x)a #", "[", "(", "a{9999999}", "(?<n", "\\"] {
        assert!(ClaimMatch { subject: pattern(text), ..base() }.compile().is_err(), "{text}");
    }
}

#[test]
fn patterns_have_limits() {
    assert!(whole(&"a".repeat(1024)).is_ok());
    assert!(whole(&"a".repeat(1025)).unwrap_err().contains("1024"));
    assert!(whole(r"\w{1000}{1000}").unwrap_err().contains("too large"));
    assert!(whole(&"(".repeat(500)).is_err());
    assert!(whole(&format!("{}a{}", "(".repeat(400), ")".repeat(400))).is_err());
    // Back references and look-around are not in the engine; the classic exponential one is linear.
    assert!(whole(r"(a)\1").is_err() && whole(r"(?=a)").is_err());
    let started = std::time::Instant::now();
    assert!(!whole("(a+)+$").unwrap().is_match(&format!("{}b", "a".repeat(50_000))));
    assert!(started.elapsed() < std::time::Duration::from_secs(2));
    let named = ClaimMatch { claim_patterns: [("env".to_owned(), "(".to_owned())].into(), ..base() };
    assert!(named.compile().unwrap_err().starts_with("env: "));
}

#[test]
fn audiences() {
    let with = |aud: Value| {
        let mut token = token();
        token.audiences = serde_json::from_value(aud.clone()).unwrap();
        token.claims.insert("aud".into(), aud);
        token
    };
    // Defaults, exactly.
    for good in ["https://auth.test", "auth.test", "auth.test:8443"] {
        assert_eq!(validate(&base(), &with(json!([good]))), Ok(()), "{good}");
    }
    for bad in ["https://auth.test/", "AUTH.test", "http://auth.test", "auth.test:443", "xauth.test", ""] {
        assert_eq!(validate(&base(), &with(json!([bad]))), Err("aud".into()), "{bad}");
    }
    assert_eq!(validate(&base(), &with(json!([]))), Err("aud".into()));
    assert_eq!(validate(&base(), &with(json!(["x", "auth.test"]))), Ok(()));
    // An own audience replaces them.
    let own = ClaimMatch { audience: Some(exact("mine")), ..base() };
    assert_eq!(validate(&own, &with(json!(["mine"]))), Ok(()));
    assert_eq!(validate(&own, &with(json!(["auth.test"]))), Err("aud".into()));
    let own = ClaimMatch { audience: Some(pattern("m[i]ne")), ..base() };
    assert_eq!(validate(&own, &with(json!(["x", "mine"]))), Ok(()));
    assert_eq!(validate(&own, &with(json!(["mine2"]))), Err("aud".into()));
    // As a custom claim: any element of the array.
    let custom = ClaimMatch { claims: [("aud".to_owned(), "x".to_owned())].into(), ..base() };
    assert_eq!(validate(&custom, &with(json!(["x", "auth.test"]))), Ok(()));
    assert_eq!(validate(&custom, &with(json!(["auth.test"]))), Err("aud".into()));
}

#[test]
fn custom_claims_match_as_json_text() {
    for (name, value, good) in [
        ("repository", "org/app", true),
        ("repository", "org/ap", false),
        ("run", "17", true),
        ("run", "17.0", false),
        ("float", "1.5", true),
        ("protected", "true", true),
        ("protected", "True", false),
        ("nothing", "null", false),
        ("nothing", "", false),
        ("list", "a", false),
        ("list", "[\"a\"]", false),
        ("map", "{}", false),
        ("absent", "", false),
    ] {
        let wanted = if good { Ok(()) } else { Err(name.to_owned()) };
        let one = || [(name.to_owned(), value.to_owned())].into();
        assert_eq!(validate(&ClaimMatch { claims: one(), ..base() }, &token()), wanted, "{name}={value}");
        let escaped = [(name.to_owned(), regex::escape(value))].into();
        assert_eq!(validate(&ClaimMatch { claim_patterns: escaped, ..base() }, &token()), wanted, "{name}~{value}");
    }
    // Every one of them counts.
    let all = ClaimMatch {
        claims: [("repository".to_owned(), "org/app".to_owned())].into(),
        claim_patterns: [("run".to_owned(), "[0-9]".to_owned())].into(),
        ..base()
    };
    assert_eq!(validate(&all, &token()), Err("run".into()));
    assert_eq!(Mismatch { claim: "run".into() }.to_string(), "invalid \"run\"");
}

#[test]
fn issuer_patterns_are_literal_up_to_the_end_of_the_host() {
    for good in [
        r"https://gitlab\.example\.com/.*",
        r"^https://gitlab\.example\.com/.*$",
        r"https:\/\/gitlab\.example\.com\/.*",
        r"https://gitlab\.example\.com",
        r"^https://gitlab\.example\.com$",
        r"\Ahttps://host\z",
        r"https://container\.googleapis\.com/v1/projects/(a|b)/[|]+",
        r"https://host:8443/x",
        r"http://127\.0\.0\.1:80/.*",
        r"https://a-b\-c/.*",
    ] {
        assert!(issuer_host_is_literal(good), "{good}");
    }
    for bad in [
        "",
        ".*",
        "https://.*",
        "https://.*/x",
        "https?://host/",
        "https://host.*",
        "https://gitlab.example.com/",
        r"https://host\.",
        r"https://host\d/",
        r"https://(a|b)/",
        "https://[a]/",
        r"https://host/?.*",
        "https://host/*evil",
        "https://host/{0}.evil",
        "https://host+/",
        "https://host?/",
        r"https://host/.*|https://evil/.*",
        "https://a|https://b",
        r"https://host:84\d\d/",
        "https://host:.*",
        "https://host:/",
        r"(?i)https://host/",
        "https:///x",
        "host/",
        r"https://good@evil/",
        r"https://host$|x",
        "https://höst/",
        r"https://\x41/",
        "^^https://host/",
        "https://host(/.*)?",
        "https://user:pw@host/",
        "https://host:1:2/",
    ] {
        // "https://host\." ends in a literal dot: a host of its own, so literal.
        assert_eq!(issuer_host_is_literal(bad), bad == r"https://host\.", "{bad}");
    }
}

#[test]
fn an_issuer_pattern_trusts_no_other_host() {
    let trusts = |text: &str, issuer: &str| {
        ClaimMatch { issuer: pattern(text), ..base() }.compile().unwrap().trusts_issuer(issuer)
    };
    assert!(trusts(r"https://host\.test/.*", "https://host.test/a"));
    assert!(trusts(r"https://host\.test", "https://host.test"));
    assert!(!trusts(r"https://host\.test/.*", "https://host.test"));
    assert!(!trusts(r"https://host\.test/.*", "https://hostxtest/a"));
    assert!(!trusts(r"https://host\.test/.*", "https://host.test.evil/a"));
    // Compiles, is stored, and matches nothing.
    assert!(!trusts(".*", "https://host.test/a"));
    assert!(!trusts("https://.*", "https://host.test/a"));
    // What the scan of alternatives might overlook still begins with the literal host.
    for text in [
        r"https://host\.test/a|https://evil/a",
        r"https://host\.test/[(]|https://evil/a",
        r"https://host\.test/[^]a(]|https://evil/a",
        r"https://host\.test/[]|x]|https://evil/a",
    ] {
        assert!(!trusts(text, "https://evil/a"), "{text}");
    }
    let mismatch = validate(&ClaimMatch { issuer: pattern("https://.*"), ..base() }, &token());
    assert_eq!(mismatch, Err("iss".into()));
}

proptest! {
    #[test]
    fn a_usable_pattern_matches_only_its_own_host(tail in "[a-z/|()\\[\\].*?+{}0-9^$\\\\]{0,20}", issuer in "https://(evil|host)[a-z/@:.]{0,10}") {
        let text = format!(r"https://host\.test{tail}");
        let rule = ClaimMatch { issuer: pattern(&text), ..base() };
        if let Ok(compiled) = rule.compile()
            && compiled.trusts_issuer(&issuer)
        {
            let host = url::Url::parse(&issuer).unwrap().host_str().unwrap().to_owned();
            let own = text[8..].find(['/', '$', ':']).map_or(text.as_str(), |at| &text[..8 + at]);
            prop_assert_eq!(host, own[8..].replace('\\', ""));
        }
    }

    #[test]
    fn no_pattern_panics(text in "\\PC{0,200}", value in "\\PC{0,50}") {
        let _ = issuer_host_is_literal(&text);
        if let Ok(regex) = whole(&text) {
            let _ = regex.is_match(&value);
        }
    }
}
