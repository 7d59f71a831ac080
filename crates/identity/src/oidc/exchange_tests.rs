use super::*;

#[test]
fn the_actor_is_the_presented_token_with_the_validated_claims_only() {
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
