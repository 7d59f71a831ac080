use std::collections::BTreeMap;

use super::*;

const NOW: Micros = 1_800_000_000_000_000;
const DAY: Micros = 24 * 3600 * 1_000_000;

fn claims() -> ClaimMatch {
    ClaimMatch {
        iss: Some(Iss::Issuer("https://accounts.google.com".into())),
        sub: Some(Sub::Subject("robot".into())),
        ..ClaimMatch::default()
    }
}

fn keys() -> StaticKeys {
    StaticKeys {
        issuer: "https://issuer.example.com".into(),
        subject: "robot".into(),
        issuer_keys: "keys".into(),
        ..StaticKeys::default()
    }
}

fn validate(relationship: Relationship) -> Result<Relationship> {
    settle(Some(relationship), None, NOW, &V2, Validation::BeforeTransaction)
}

/// The fields that are refused.
fn refused(relationship: Relationship) -> Vec<String> {
    fields(validate(relationship))
}

fn fields(result: Result<Relationship>) -> Vec<String> {
    let Err(error) = result else { return Vec::new() };
    let bowline_core::Detail::BadRequest(violations) = &error.details()[0] else { panic!("{error}") };
    violations.iter().map(|violation| violation.field.clone()).collect()
}

#[test]
fn one_is_required() {
    let error = settle(None, None, NOW, &V2, Validation::BeforeTransaction).unwrap_err();
    for name in ["claim_match", "static_keys", "aws_identity", "service_principal"] {
        assert!(error.message().contains(name), "{error}");
    }
}

#[test]
fn everything_wrong_is_said_at_once() {
    let all = ClaimMatch {
        iss: Some(Iss::IssuerPattern("https://.*".into())),
        sub: Some(Sub::SubjectPattern("(".into())),
        aud: Some(Aud::AudiencePattern("a".repeat(1025))),
        claims: [(String::new(), "x".into()), ("sub".into(), "x".into())].into(),
        claim_patterns: [("email".to_owned(), "[".to_owned())].into(),
    };
    assert_eq!(
        refused(Relationship::ClaimMatch(all)),
        [
            "claimMatch.issuerPattern",
            "claimMatch.subjectPattern",
            "claimMatch.audiencePattern",
            "claimMatch.claims",
            "claimMatch.claims.sub",
            "claimMatch.claimPatterns.email",
        ]
    );
    assert_eq!(refused(Relationship::ClaimMatch(ClaimMatch::default())), ["claimMatch.issuer", "claimMatch.subject"]);
}

#[test]
fn claim_matches_are_kept_as_given() {
    let patterns = ClaimMatch {
        iss: Some(Iss::IssuerPattern(r"^https://accounts\.google\.com$".into())),
        sub: Some(Sub::SubjectPattern(r"^robot@my-project\.iam$".into())),
        aud: Some(Aud::AudiencePattern("^something$".into())),
        claims: [("email".to_owned(), "me@example.com".to_owned())].into(),
        claim_patterns: [("email".to_owned(), ".*@example.com".to_owned())].into(),
    };
    for given in [Relationship::ClaimMatch(claims()), Relationship::ClaimMatch(patterns)] {
        let settled = validate(given.clone()).unwrap();
        assert_eq!(settled, given);
        assert_eq!(decode(&encode(&settled)).unwrap(), Some(given));
    }
    assert_eq!(exact(&Relationship::ClaimMatch(claims())), ("https://accounts.google.com", "robot"));
}

#[test]
fn issuers() {
    for good in [
        "https://accounts.google.com",
        "https://gitlab.example.com:8443/group/",
        "http://127.0.0.1:8080",
        "http://localhost:8080/realm",
        "http://[::1]:80",
        "https://[2001:db8::1]",
    ] {
        assert_eq!(issuer_problem(good), None, "{good}");
    }
    for bad in [
        "",
        "accounts.google.com",
        "ftp://a.example",
        "http://a.example",
        "http://localhost.example",
        "https://",
        "https:///path",
        "https://a.example?x",
        "https://a.example#x",
        "https://user@a.example",
        "http://localhost@a.example",
        "https://a.example:port",
        "https://a.example:99999",
        "https://a b",
        "https://[::1",
        "https://a\\b",
        "https://é.example",
    ] {
        assert!(issuer_problem(bad).is_some(), "{bad}");
    }
}

#[test]
fn static_keys_end() {
    let end = |result: Result<Relationship>| expires_at(&result.unwrap());
    assert_eq!(end(validate(Relationship::StaticKeys(keys()))), Some(NOW + 365 * DAY));
    let until = |at| Relationship::StaticKeys(StaticKeys { expiration_time: timestamp(at), ..keys() });
    assert_eq!(end(validate(until(NOW + 3 * DAY))), Some(NOW + 3 * DAY));
    assert_eq!(refused(until(NOW + 366 * DAY)), ["staticKeys.expirationTime"]);
    assert_eq!(
        fields(settle(Some(until(NOW + 366 * DAY)), None, NOW, &V1, Validation::BeforeTransaction)),
        ["static.expiration"]
    );

    // What was stored stays good, and stays when it is left out.
    let before = until(NOW + 400 * DAY);
    let kept = settle(
        Some(Relationship::StaticKeys(StaticKeys { subject: "other".into(), ..keys() })),
        Some(&before),
        NOW,
        &V2,
        Validation::BeforeTransaction,
    );
    assert_eq!(end(kept), Some(NOW + 400 * DAY));
    assert_eq!(settle(Some(before.clone()), Some(&before), NOW, &V2, Validation::BeforeTransaction).unwrap(), before);
}

#[test]
fn static_keys_need_their_parts() {
    let bare = StaticKeys { audiences: vec!["a".into(), String::new()], ..StaticKeys::default() };
    assert_eq!(
        refused(Relationship::StaticKeys(bare)),
        [
            "staticKeys.issuer",
            "staticKeys.subject",
            "staticKeys.issuerKeys",
            "staticKeys.audiences",
            "staticKeys.audiences"
        ]
    );
}

#[test]
fn aws_identities() {
    let aws = AwsIdentity {
        aws_account: "123456789012".into(),
        aws_arn: Some(AwsArn::Arn("bar".into())),
        aws_user_id: Some(AwsUserId::UserIdPattern("^x$".into())),
    };
    assert!(validate(Relationship::AwsIdentity(aws)).is_ok());
    let bare = AwsIdentity { aws_account: "12".into(), ..AwsIdentity::default() };
    assert_eq!(refused(Relationship::AwsIdentity(bare)), ["awsIdentity.awsAccount", "awsIdentity.arn"]);
}

#[test]
fn service_principals() {
    assert!(validate(Relationship::ServicePrincipal(2)).is_ok());
    for bad in [0, -1, 99] {
        assert_eq!(refused(Relationship::ServicePrincipal(bad)), ["servicePrincipal"]);
    }
}

#[test]
fn updates_choose() {
    let (claims, principal) = (Relationship::ClaimMatch(claims()), Relationship::ServicePrincipal(1));
    let mask = |path: &str| Mask::new(vec![path.into()]);
    let contract = bowline_contract::Contract::load();
    let choose =
        |mask: &Mask, given: Option<&Relationship>| chosen(Some(&claims), mask, given.cloned(), contract.pool());
    assert_eq!(choose(&mask("name"), Some(&principal)).unwrap(), None);
    assert_eq!(choose(&mask("service_principal"), Some(&principal)).unwrap(), Some(principal.clone()));
    assert_eq!(choose(&mask("claim_match.subject"), Some(&claims)).unwrap(), Some(claims.clone()));
    assert_eq!(choose(&Mask::whole(), Some(&principal)).unwrap(), Some(principal.clone()));
    assert_eq!(choose(&mask("static_keys"), None).unwrap(), None);
    assert!(choose(&mask("claim_match"), None).is_err());
    assert!(choose(&mask("claim_match"), Some(&principal)).is_err());
    assert!(choose(&Mask::whole(), None).is_err());

    // People have none and get none.
    assert_eq!(chosen(None, &Mask::whole(), None, contract.pool()).unwrap(), None);
    assert!(chosen(None, &Mask::whole(), Some(principal), contract.pool()).is_err());
}

#[test]
fn an_update_in_part_keeps_the_rest() {
    let contract = bowline_contract::Contract::load();
    let stored =
        ClaimMatch { claims: BTreeMap::from([("environment".to_owned(), "production".to_owned())]), ..claims() };
    let given = ClaimMatch { sub: Some(Sub::SubjectPattern("repo:.*".into())), ..ClaimMatch::default() };
    let merged = chosen(
        Some(&Relationship::ClaimMatch(stored.clone())),
        &Mask::new(vec!["claim_match.subject_pattern".into()]),
        Some(Relationship::ClaimMatch(given.clone())),
        contract.pool(),
    );
    let expected = ClaimMatch { sub: given.sub, ..stored };
    assert_eq!(merged.unwrap(), Some(Relationship::ClaimMatch(expected)));
}
