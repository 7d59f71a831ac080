use super::*;

const SECOND: Micros = 1_000_000;

#[test]
fn a_token_ends_with_whatever_ends_first() {
    let now = 1_000 * SECOND + 999_999;
    assert_eq!(ends(now, i64::MAX, None), 4_600);
    assert_eq!(ends(now, 1_200, None), 1_200);
    assert_eq!(ends(now, i64::MAX, Some(1_300 * SECOND + 5)), 1_300);
    assert_eq!(ends(now, 1_200, Some(1_300 * SECOND)), 1_200);
}

#[test]
fn the_actor_is_the_presented_token_with_the_judged_claims_only() {
    let claims = json!({"iss": "i", "sub": "s", "aud": ["a"], "exp": 1, "repo": "r", "secret": "x"});
    let Value::Object(claims) = claims else { unreachable!("an object") };
    let presented = Presented {
        header: bowline_authn::jwt::Header { alg: bowline_authn::jwt::Alg::Es256, kid: None, typ: None },
        issuer: "i".into(),
        subject: "s".into(),
        audiences: vec!["a".into()],
        expiry: 1,
        not_before: None,
        issued_at: None,
        claims,
    };
    let expected = ClaimMatch {
        issuer: bowline_authn::matching::Expect::Exact("i".into()),
        subject: bowline_authn::matching::Expect::Exact("s".into()),
        audience: None,
        claims: [("repo".to_owned(), "r".to_owned())].into(),
        claim_patterns: Default::default(),
    };
    assert_eq!(actor(&presented, &expected), json!({"iss": "i", "sub": "s", "aud": "a", "repo": "r"}));
}
