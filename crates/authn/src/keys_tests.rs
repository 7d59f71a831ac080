use super::*;

#[test]
fn keys_survive_pkcs8() {
    for alg in [Algorithm::Es256, Algorithm::Rs256] {
        let key = SigningKey::generate(alg).unwrap();
        let again = SigningKey::from_pkcs8(alg, &key.to_pkcs8().unwrap()).unwrap();
        assert_eq!(key.kid(), again.kid());
        assert_eq!(key.public_jwk(), again.public_jwk());
        assert_eq!(key.algorithm(), alg);
        assert_eq!(Algorithm::parse(alg.as_str()), Some(alg));
        assert!(!format!("{key:?}").contains("Pair"));
    }
    let key = SigningKey::generate(Algorithm::Es256).unwrap().to_pkcs8().unwrap();
    assert_eq!(SigningKey::from_pkcs8(Algorithm::Rs256, &key).unwrap_err(), KeyError(Algorithm::Rs256));
    assert!(SigningKey::from_pkcs8(Algorithm::Es256, b"").is_err());
}

#[test]
fn kid_is_the_thumbprint() {
    for alg in [Algorithm::Es256, Algorithm::Rs256] {
        let key = SigningKey::generate(alg).unwrap();
        let jwk: jsonwebtoken::jwk::Jwk = serde_json::from_value(key.public_jwk()).unwrap();
        assert_eq!(jwk.thumbprint(jsonwebtoken::jwk::ThumbprintHash::SHA256).unwrap(), key.kid());
    }
}

#[test]
fn a_new_key_is_published_before_it_signs() {
    let kids = |ring: &KeyRing, now| -> usize { ring.jwks(now)["keys"].as_array().unwrap().len() };
    let mut ring = KeyRing::default();
    assert!(ring.signing_key(0).is_none());
    assert_eq!(ring.rotate(SigningKey::generate(Algorithm::Es256).unwrap(), 1000), 1000);
    let first = ring.signing_key(1000).unwrap().kid().to_owned();

    let second = SigningKey::generate(Algorithm::Es256).unwrap();
    let second_kid = second.kid().to_owned();
    assert_eq!(ring.rotate(second, 5000), 5600);
    assert_eq!(kids(&ring, 4999), 1);
    assert_eq!(kids(&ring, 5000), 2);
    assert_eq!(ring.signing_key(5599).unwrap().kid(), first);
    assert_eq!(ring.signing_key(5600).unwrap().kid(), second_kid);
    assert_eq!(kids(&ring, 5600 + 3600), 2);
    assert_eq!(kids(&ring, 5600 + 3601), 1);
    assert!(ring.prune(5600 + 3600).is_empty());
    assert_eq!(ring.prune(5600 + 3601), [first]);
    assert_eq!(ring.keys().len(), 1);
}

fn kid_of(ring: &KeyRing, at: usize) -> String {
    ring.keys()[at].key.kid().to_owned()
}

fn rotated(times: &[i64]) -> KeyRing {
    let mut ring = KeyRing::default();
    for at in times {
        ring.rotate(SigningKey::generate(Algorithm::Es256).unwrap(), *at);
    }
    ring
}

#[test]
fn a_revoked_key_is_gone_and_another_signs() {
    // The next key signs at once if the present one goes.
    let mut ring = rotated(&[0, 5000]);
    let (first, second) = (kid_of(&ring, 0), kid_of(&ring, 1));
    assert!(ring.revoke(std::slice::from_ref(&first), 5001));
    assert_eq!(ring.signing_key(5001).unwrap().kid(), second);
    assert_eq!(ring.jwks(5001)["keys"].as_array().unwrap().len(), 1);

    // The present key continues if the next one goes.
    let mut ring = rotated(&[0, 5000]);
    let (first, second) = (kid_of(&ring, 0), kid_of(&ring, 1));
    assert!(ring.revoke(&[second], 5001));
    assert_eq!(ring.signing_key(1_000_000).unwrap().kid(), first);

    // A retired key does not sign again, and continues verifying.
    let mut ring = rotated(&[0, 5000]);
    let (first, second) = (kid_of(&ring, 0), kid_of(&ring, 1));
    assert!(!ring.revoke(&[second], 6000));
    assert!(ring.signing_key(6000).is_none());
    assert!(ring.verification_keys(6000).has_kid(&first));
    assert_eq!(ring.rotate(SigningKey::generate(Algorithm::Es256).unwrap(), 6000), 6000);

    let mut ring = rotated(&[0, 5000]);
    let all: Vec<String> = ring.keys().iter().map(|key| key.key.kid().to_owned()).collect();
    assert!(!ring.revoke(&all, 5001) && ring.keys().is_empty());
}

#[test]
fn a_state_has_no_negative_time() {
    let ring = rotated(&[0, 5000]);
    let states = |now| ring.keys().iter().map(|key| ring.state(key, now)).collect::<Vec<_>>();
    assert_eq!(states(5000), [KeyState::Signs, KeyState::SignsIn(600)]);
    assert_eq!(states(5600), [KeyState::Accepted(Some(3600)), KeyState::Signs]);
    assert_eq!(states(9200), [KeyState::Accepted(Some(0)), KeyState::Signs]);
    assert_eq!(states(9201), [KeyState::Retired, KeyState::Signs]);
    // Two first keys of two servers: one signs, and the other verifies.
    let mut both = rotated(&[0]).keys().to_vec();
    both.extend(rotated(&[0]).keys().to_vec());
    let ring = KeyRing::new(both);
    let states: Vec<_> = ring.keys().iter().map(|key| ring.state(key, 50)).collect();
    assert!(states.contains(&KeyState::Signs) && states.contains(&KeyState::Accepted(None)), "{states:?}");
}

#[test]
fn two_rotations_in_a_row_always_leave_a_signer() {
    let mut ring = KeyRing::default();
    for at in [0, 100, 200, 900] {
        ring.rotate(SigningKey::generate(Algorithm::Es256).unwrap(), at);
    }
    let ends: Vec<_> = ring.keys().iter().map(|k| k.retired_at).collect();
    assert_eq!(ends, [Some(700), Some(800), Some(1500), None]);
    for now in 0..3000 {
        assert!(ring.signing_key(now).is_some(), "{now}");
    }
    assert_eq!(ring.signing_key(3000).unwrap().kid(), ring.keys()[3].key.kid());
}
