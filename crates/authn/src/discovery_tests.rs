use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::addresses::AddressPolicy;
use crate::keys::{Algorithm, SigningKey};
use crate::test_server::{Reply, TestServer};

const DOCUMENT: &str = "/.well-known/openid-configuration";

fn cache() -> IssuerKeys {
    let policy = AddressPolicy { allow: Vec::new(), allow_loopback_and_http: true };
    IssuerKeys::new(GuardedClient::new(policy).unwrap())
}

fn document(issuer: &str) -> Reply {
    Reply::Json(json!({"issuer": issuer, "jwks_uri": format!("{issuer}/keys")}))
}

fn keys_of(keys: &[SigningKey]) -> Value {
    json!({"keys": keys.iter().map(SigningKey::public_jwk).collect::<Vec<_>>()})
}

fn new_keys(n: usize) -> Vec<SigningKey> {
    (0..n).map(|_| SigningKey::generate(Algorithm::Es256).unwrap()).collect()
}

/// An issuer with one key at first and two once `more` is set.
async fn issuer(more: Arc<AtomicBool>) -> (TestServer, Vec<String>) {
    let keys = new_keys(2);
    let kids = keys.iter().map(|k| k.kid().to_owned()).collect();
    let server = TestServer::start(move |own, path| match path {
        DOCUMENT => document(own),
        "/keys" => Reply::Json(keys_of(if more.load(Ordering::SeqCst) { &keys } else { &keys[..1] })),
        _ => Reply::status(404, ""),
    })
    .await;
    (server, kids)
}

#[tokio::test]
async fn keys_are_kept_for_ten_minutes() {
    let (server, kids) = issuer(Arc::default()).await;
    let cache = cache();
    assert!(!cache.is_cached(&server.url, 1000) && cache.is_empty(), "looking caches nothing");
    for now in [1000, 1001, 1599] {
        let keys = cache.keys_for(&server.url, Some(&kids[0]), now).await.unwrap();
        assert!(keys.has_kid(&kids[0]));
        assert!(cache.keys_for(&server.url, None, now).await.is_ok());
    }
    assert_eq!(server.hits(), [DOCUMENT, "/keys"]);
    assert_eq!([1599, 1600].map(|now| cache.is_cached(&server.url, now)), [true, false]);
    cache.keys_for(&server.url, None, 1600).await.unwrap();
    assert_eq!(server.hits().len(), 4);
    cache.forget(&server.url);
    cache.keys_for(&server.url, None, 1601).await.unwrap();
    assert_eq!(server.hits().len(), 6);
}

#[tokio::test]
async fn an_unknown_key_id_refreshes_once_in_thirty_seconds() {
    let more = Arc::new(AtomicBool::new(false));
    let (server, kids) = issuer(Arc::clone(&more)).await;
    let cache = cache();
    let unknown = Err(KeysError::Token(TokenError::UnknownKid));
    let ask = async |kid: &str, now| cache.keys_for(&server.url, Some(kid), now).await.map(|_| ());
    assert_eq!(ask("nobody", 1000).await, unknown, "fetched for this very question");
    assert_eq!(server.hits().len(), 2);
    assert_eq!(ask("nobody", 1001).await, unknown);
    assert_eq!(server.hits().len(), 4, "the one refresh");
    for now in 1001..1031 {
        assert_eq!(ask(&format!("nobody{now}"), now).await, unknown);
    }
    assert_eq!(server.hits().len(), 4);
    assert_eq!(ask(&kids[0], 1010).await, Ok(()), "known ones are not concerned");
    more.store(true, Ordering::SeqCst);
    assert_eq!(ask(&kids[1], 1030).await, unknown, "not yet");
    assert_eq!(ask(&kids[1], 1031).await, Ok(()), "the rotated key is found");
    assert_eq!(server.hits().len(), 6);
}

#[tokio::test]
async fn a_rotated_key_is_found_at_once() {
    let more = Arc::new(AtomicBool::new(false));
    let (server, kids) = issuer(Arc::clone(&more)).await;
    let cache = cache();
    cache.keys_for(&server.url, Some(&kids[0]), 1000).await.unwrap();
    more.store(true, Ordering::SeqCst);
    cache.keys_for(&server.url, Some(&kids[1]), 1001).await.unwrap();
}

#[tokio::test]
async fn many_questions_at_once_are_one_fetch() {
    let (server, kids) = issuer(Arc::default()).await;
    let cache = cache();
    let all = (0..50).map(|n| {
        let kid = if n % 2 == 0 { Some(kids[0].as_str()) } else { None };
        cache.keys_for(&server.url, kid, 1000)
    });
    for got in futures_util::future::join_all(all).await {
        got.unwrap();
    }
    assert_eq!(server.hits().len(), 2);
    let all = (0..50).map(|_| cache.keys_for(&server.url, Some("nobody"), 1005));
    for got in futures_util::future::join_all(all).await {
        assert_eq!(got.unwrap_err(), KeysError::Token(TokenError::UnknownKid));
    }
    assert_eq!(server.hits().len(), 4);
    cache.forget(&server.url);
    let all = (0..50).map(|_| cache.keys_for(&server.url, Some("nobody"), 1010));
    for got in futures_util::future::join_all(all).await {
        assert_eq!(got.unwrap_err(), KeysError::Token(TokenError::UnknownKid));
    }
    assert_eq!(server.hits().len(), 6, "those who waited do not ask again");
}

#[tokio::test]
async fn a_failure_is_kept_for_ten_seconds() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = TestServer::start(move |own, path| match path {
        DOCUMENT if counted.fetch_add(1, Ordering::SeqCst) == 0 => Reply::status(503, ""),
        DOCUMENT => document(own),
        _ => Reply::Json(keys_of(&new_keys(1))),
    })
    .await;
    let cache = cache();
    let failed = KeysError::Fetch(FetchError::Status(503));
    let all = (0..20).map(|_| cache.keys_for(&server.url, None, 1000));
    for got in futures_util::future::join_all(all).await {
        assert_eq!(got.unwrap_err(), failed);
    }
    assert_eq!(cache.keys_for(&server.url, None, 1009).await.unwrap_err(), failed);
    assert!(failed.is_temporary());
    assert_eq!(server.hits().len(), 1);
    assert!(cache.keys_for(&server.url, None, 1010).await.is_ok());
}

#[tokio::test]
async fn kept_keys_survive_a_failed_refresh() {
    let down = Arc::new(AtomicBool::new(false));
    let is_down = Arc::clone(&down);
    let key = new_keys(1);
    let kid = key[0].kid().to_owned();
    let server = TestServer::start(move |own, path| match path {
        _ if is_down.load(Ordering::SeqCst) => Reply::status(500, ""),
        DOCUMENT => document(own),
        _ => Reply::Json(keys_of(&key)),
    })
    .await;
    let cache = cache();
    cache.keys_for(&server.url, None, 1000).await.unwrap();
    down.store(true, Ordering::SeqCst);
    assert_eq!(
        cache.keys_for(&server.url, Some("new"), 1001).await.unwrap_err(),
        KeysError::Fetch(FetchError::Status(500))
    );
    assert!(cache.keys_for(&server.url, Some(&kid), 1002).await.is_ok());
    // Not beyond their time.
    assert!(cache.keys_for(&server.url, Some(&kid), 1600).await.is_err());
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "cases, one after the other")]
async fn bad_issuers_are_refused() {
    let server = TestServer::start(move |own, path| {
        let (case, rest) = path[1..].split_once('/').unwrap();
        let issuer = format!("{own}/{case}");
        match (case, &rest[..rest.len().min(4)]) {
            ("wrong", ".wel") => document(&format!("{issuer}/")),
            ("absent", ".wel") => Reply::Json(json!({"jwks_uri": format!("{issuer}/keys")})),
            ("nokeys", ".wel") => Reply::Json(json!({"issuer": issuer})),
            ("redirect", ".wel") => {
                Reply::status(302, &format!("location: {own}/good/.well-known/openid-configuration\r\n"))
            }
            ("slow", ".wel") => Reply::CutOff,
            ("large", ".wel") => Reply::Endless,
            ("html", ".wel") => Reply::text("<html>"),
            ("inside", ".wel") => Reply::Json(json!({"issuer": issuer, "jwks_uri": "http://169.254.169.254/latest"})),
            ("file", ".wel") => Reply::Json(json!({"issuer": issuer, "jwks_uri": "file:///etc/passwd"})),
            (_, ".wel") => document(&issuer),
            ("many", _) => Reply::Json(json!({"keys": vec![json!({"kty": "EC"}); 101]})),
            ("large-keys", _) => Reply::Endless,
            ("moved-keys", _) => Reply::status(307, "location: /good/keys\r\n"),
            ("text", _) => Reply::Json(json!("keys")),
            _ => Reply::Json(keys_of(&new_keys(1))),
        }
    })
    .await;
    let cache = cache();
    for (case, error) in [
        ("wrong", KeysError::Document),
        ("absent", KeysError::Document),
        ("nokeys", KeysError::Document),
        ("redirect", KeysError::Fetch(FetchError::Status(302))),
        ("slow", KeysError::Fetch(FetchError::Interrupted)),
        ("large", KeysError::Fetch(FetchError::TooLarge)),
        ("html", KeysError::Fetch(FetchError::NotJson)),
        ("inside", KeysError::Fetch(FetchError::RefusedAddress)),
        ("file", KeysError::Fetch(FetchError::NotHttps)),
        ("many", KeysError::Token(TokenError::Keys)),
        ("large-keys", KeysError::Fetch(FetchError::TooLarge)),
        ("moved-keys", KeysError::Fetch(FetchError::Status(307))),
        ("text", KeysError::Token(TokenError::Keys)),
    ] {
        let got = cache.keys_for(&format!("{}/{case}", server.url), None, 1000).await;
        assert_eq!(got.unwrap_err(), error, "{case}");
        assert!(!error.public_message().contains("169.254"));
    }
    assert!(cache.keys_for(&format!("{}/good", server.url), None, 1000).await.is_ok());
    let before = server.hits().len();
    let own = &server.url;
    for issuer in [
        "",
        "issuer",
        "mailto:me@test",
        &format!("{own}?x"),
        &format!("{own}#x"),
        &format!(" {own}"),
        &format!("{own}/a b"),
        &format!("http://me@127.0.0.1:{}/", server.port),
        &format!("{own}\\x"),
        &format!("{own}/\n"),
    ] {
        assert_eq!(cache.keys_for(issuer, None, 1000).await.unwrap_err(), KeysError::Issuer, "{issuer}");
    }
    assert_eq!(server.hits().len(), before);
}

#[tokio::test]
async fn a_slow_issuer_delays_no_other() {
    let slow = TestServer::start(|_, _| Reply::Slow).await;
    let (fast, _) = issuer(Arc::default()).await;
    let cache = cache();
    let waiting = cache.keys_for(&slow.url, None, 1000);
    let other = cache.keys_for(&fast.url, None, 1000);
    tokio::select! {
        biased;
        _ = waiting => panic!("the slow one answered first"),
        got = other => assert!(got.is_ok()),
    }
}

#[tokio::test]
async fn the_issuer_unused_for_longest_is_forgotten() {
    let server = TestServer::start(|own, path| {
        let issuer = format!("{own}{}", path.strip_suffix(DOCUMENT).or(path.strip_suffix("/keys")).unwrap());
        if path.ends_with("/keys") { Reply::Json(keys_of(&new_keys(1))) } else { document(&issuer) }
    })
    .await;
    let policy = AddressPolicy { allow: Vec::new(), allow_loopback_and_http: true };
    let cache = IssuerKeys::with_capacity(GuardedClient::new(policy).unwrap(), 2);
    for name in ["a", "b", "a", "c", "a"] {
        cache.keys_for(&format!("{}/{name}", server.url), None, 1000).await.unwrap();
    }
    assert_eq!(cache.len(), 2);
    assert_eq!(server.hits().len(), 6, "a stayed");
    cache.keys_for(&format!("{}/b", server.url), None, 1000).await.unwrap();
    assert_eq!(server.hits().len(), 8);
}
