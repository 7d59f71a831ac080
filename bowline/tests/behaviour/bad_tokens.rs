//! Tokens that are not good, and issuers that are no help: refused by name, recorded nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bowline_contract::v2::iam::ListGroupsRequest;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;
use bowline_testkit::{Actor, RestReply, TestServer, each_engine};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{Refusal, call, exchange, inventory, machine, token_of, uid_of};

/// A token, what is wrong with it, the status that it gets, and a word of the answer.
type Bad = (&'static str, String, u16, &'static str);

fn with_header(server: &TestServer, member: &str, value: Value) -> String {
    let mut header = server.idp().header();
    header[member] = value;
    let now = server.clock().seconds();
    let claims =
        json!({ "iss": server.idp().issuer(), "sub": "robot", "aud": server.base(), "iat": now, "exp": now + 600 });
    server.idp().sign(header, &claims)
}

async fn bad_identity_tokens_are_refused_by_name(server: &TestServer) {
    let org = server.organization("acme").await;
    let identity = server.identity(&org, "robot").await;
    let (idp, base) = (server.idp(), server.base());
    let good = |extra: Value| idp.token("robot", base, extra);
    let now = server.clock().seconds();
    let signature = |token: &str| token.rsplit('.').next().unwrap_or_default().to_owned();
    let swapped = |token: String| {
        format!("{}{}", token.trim_end_matches(&signature(&token)), signature(&good(json!({ "jti": 1 }))))
    };
    let cases: Vec<Bad> = vec![
        ("nothing", String::new(), 401, "send the identity token"),
        ("no JWT", "abc".into(), 401, "malformed"),
        ("five parts", "a.b.c.d.e".into(), 401, "malformed"),
        ("expired", idp.expired("robot", base), 401, "expired"),
        ("just over the leeway", good(json!({ "exp": now - 61 })), 401, "expired"),
        ("not yet", idp.premature("robot", base), 401, "not valid yet"),
        ("no end", good(json!({ "exp": null })), 401, "required claim"),
        ("no subject", good(json!({ "sub": null })), 401, "required claim"),
        ("an empty subject", good(json!({ "sub": "" })), 401, "required claim"),
        ("a subject that is no text", good(json!({ "sub": 5 })), 401, "malformed"),
        ("an unknown key", idp.other_kid("robot", base), 401, "unknown key"),
        ("another key", idp.other_key("robot", base), 401, "signature"),
        ("the signature of another token", swapped(good(Value::Null)), 401, "signature"),
        ("alg none", idp.alg_none("robot", base), 401, "algorithm"),
        ("HS256 with the public key", idp.alg_hmac("robot", base), 401, "algorithm"),
        ("an unknown algorithm", with_header(server, "alg", json!("RS1")), 401, "algorithm"),
        ("jku", with_header(server, "jku", json!("https://evil.example/keys")), 401, "header"),
        ("x5u", with_header(server, "x5u", json!("https://evil.example/keys")), 401, "header"),
        ("jwk", with_header(server, "jwk", idp.jwks()["keys"][0].clone()), 401, "header"),
        ("crit", with_header(server, "crit", json!(["exp"])), 401, "header"),
        ("another audience", idp.token("robot", "https://elsewhere.example", Value::Null), 403, "invalid \"aud\""),
        ("no audience", good(json!({ "aud": null })), 403, "invalid \"aud\""),
        ("another subject", idp.token("somebody", base, Value::Null), 403, "invalid \"sub\""),
        ("another issuer", good(json!({ "iss": "https://elsewhere.example" })), 403, "does not match"),
    ];
    let before = inventory(server).await;
    for (label, token, status, word) in cases {
        let reply = server.exchange(&token, &[("aud", base), ("identity", &identity)]).await;
        assert_eq!(reply.status, status, "{label}: {}", reply.text());
        assert!(reply.text().replace("\\\"", "\"").contains(word), "{label}: {}", reply.text());
        if status == 401 {
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{label}");
        }
    }
    let reply =
        call(&server.anonymous(), &format!("GET /sts/exchange?aud={base}&identity={identity}"), Value::Null).await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    assert_eq!(inventory(server).await, before);
    // Clocks may differ by a minute.
    token_of(&server.exchange(&good(json!({ "exp": now - 59 })), &[("aud", base), ("identity", &identity)]).await);
}

async fn requests_of_the_exchange_are_validated(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let upstream = server.idp().token("robot", server.base(), Value::Null);
    let base = server.base();
    let (uid, slash) = (robot.uid.as_str(), format!("{base}/"));
    let before = inventory(server).await;
    for (parameters, field) in [
        (vec![("aud", "https://elsewhere.example"), ("identity", uid)], "aud"),
        (vec![("aud", slash.as_str()), ("identity", uid)], "aud"),
        (vec![("aud", base), ("identity", "nobody")], "identity"),
        (vec![("aud", base), ("identity", uid), ("cap", "repo.fly")], "cap"),
        (vec![("aud", base), ("identity", uid), ("scopes", "nowhere")], "scopes"),
        (vec![("aud", base), ("identity", uid), ("scope", "nowhere")], "scope"),
        (vec![("identity", uid)], "aud"),
    ] {
        let reply = server.exchange(&upstream, &parameters).await;
        assert_eq!(reply.status, 400, "{parameters:?}: {}", reply.text());
        assert_eq!(Refusal(reply.json()).fields(), [field], "{parameters:?}");
    }
    let reply = server.exchange(&upstream, &[("identity", uid)]).await;
    assert_eq!(reply.json()["message"], "Audience must be specified");
    // An identity that does not exist answers like one that does not trust the issuer.
    let missing = server.exchange(&upstream, &[("aud", base), ("identity", &crate::support::absent(&org))]).await;
    let stranger = server.idp().token("robot", base, json!({ "iss": "https://elsewhere.example" }));
    let untrusted = server.exchange(&stranger, &[("aud", base), ("identity", uid)]).await;
    assert_eq!((missing.status, missing.json()), (403, untrusted.json()));
    assert_eq!(inventory(server).await, before);
}

/// What a server that poses as an issuer does with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// Never answers.
    Slow,
    /// Answers with 100 MB.
    Endless,
    /// Answers with an error of its own.
    Broken,
    /// Answers with something else than JSON.
    Babbling,
    /// Names another issuer in its document.
    Impostor,
}

/// A socket that behaves in this manner; its URL, and how many connections it had.
async fn issuer(manner: Manner) -> (String, Arc<AtomicUsize>) {
    let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let url = format!("http://{}", socket.local_addr().expect("it is bound"));
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = connections.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = socket.accept().await {
            counted.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(answer(stream, manner));
        }
    });
    (url, connections)
}

async fn answer(mut stream: tokio::net::TcpStream, manner: Manner) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request).await;
    let head = |status: &str, length: usize| {
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        )
    };
    let whole = |status: &str, body: &str| format!("{}{body}", head(status, body.len()));
    match manner {
        Manner::Slow => tokio::time::sleep(Duration::from_secs(60)).await,
        Manner::Endless => {
            let _ = stream.write_all(head("200 OK", 100 << 20).as_bytes()).await;
            let chunk = vec![b' '; 1 << 16];
            for _ in 0..1600 {
                if stream.write_all(&chunk).await.is_err() {
                    break;
                }
            }
        }
        Manner::Broken => drop(stream.write_all(whole("500 Internal Server Error", "{}").as_bytes()).await),
        Manner::Babbling => drop(stream.write_all(whole("200 OK", "<html>").as_bytes()).await),
        Manner::Impostor => {
            let body = r#"{"issuer":"https://other.example","jwks_uri":"https://other.example/keys"}"#;
            let _ = stream.write_all(whole("200 OK", body).as_bytes()).await;
        }
    }
}

/// An identity that trusts this issuer, and what a token of that issuer gets.
async fn present(server: &TestServer, operator: &Actor, org: &str, url: &str) -> RestReply {
    let body = json!({ "name": "of an issuer", "claimMatch": { "issuer": url, "subject": "robot" } });
    let created = call(operator, &format!("POST /iam/v2/identities/{org}"), body).await;
    let identity = uid_of(&created.json());
    let token = server.idp().token("robot", server.base(), json!({ "iss": url }));
    server.exchange(&token, &[("aud", server.base()), ("identity", &identity)]).await
}

async fn failing_issuers_are_distinguished_and_bounded(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let closed = {
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        format!("http://{}", socket.local_addr().expect("it is bound"))
    };
    let reply = present(server, &operator, &org, &closed).await;
    assert_eq!(reply.status, 503, "unreachable: {}", reply.text());
    assert!(!Refusal(reply.json()).detail("RetryInfo").is_null(), "{}", reply.text());
    assert!(reply.header("retry-after").is_some());
    for (manner, status, word) in [
        (Manner::Broken, 503, "status 500"),
        (Manner::Endless, 401, "too large"),
        (Manner::Babbling, 401, "not JSON"),
        (Manner::Impostor, 401, "not valid"),
        (Manner::Slow, 503, "in time"),
    ] {
        let (url, _) = issuer(manner).await;
        let before = number_of_audits(server).await;
        let started = Instant::now();
        let reply = present(server, &operator, &org, &url).await;
        assert_eq!(reply.status, status, "{manner:?}: {}", reply.text());
        assert!(reply.text().contains(word), "{manner:?}: {}", reply.text());
        assert!(started.elapsed() < Duration::from_secs(30), "{manner:?}");
        assert_eq!(number_of_audits(server).await, before + 1, "{manner:?}: the identity alone is on record");
    }
}

async fn number_of_audits(server: &TestServer) -> i64 {
    crate::support::number(server, "SELECT count(*) FROM audit").await
}

async fn no_request_is_sent_to_an_untrusted_issuer(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let operator = server.operator().await;
    let (url, connections) = issuer(Manner::Impostor).await;
    let token = server.idp().token("robot", server.base(), json!({ "iss": url }));
    let keys = json!({ "issuer": url, "subject": "robot", "issuerKeys": server.idp().jwks().to_string() });
    let path = format!("POST /iam/v2/identities/{org}");
    let fixed = uid_of(&call(&operator, &path, json!({ "name": "fixed", "staticKeys": keys })).await.json());
    let pattern = json!({ "issuerPattern": "https://issuer\\.example/.*", "subject": "robot" });
    let pattern = uid_of(&call(&operator, &path, json!({ "name": "pattern", "claimMatch": pattern })).await.json());
    for identity in [robot.uid.as_str(), &pattern, &crate::support::absent(&org)] {
        let reply = server.exchange(&token, &[("aud", server.base()), ("identity", identity)]).await;
        assert_eq!(reply.status, 403, "{}", reply.text());
    }
    // Static keys trust their own keys alone, so that no request goes even to their issuer.
    token_of(&server.exchange(&token, &[("aud", server.base()), ("identity", &fixed)]).await);
    let reply = server.exchange(&token, &[("aud", server.base())]).await;
    assert_eq!((reply.status, reply.json()["message"].as_str()), (403, Some("no identity found; pass identity=<uid>")));
    assert_eq!(connections.load(Ordering::SeqCst), 0);
    // Refused shapes never come to a look-up either.
    let requests = server.idp().requests();
    for token in [server.idp().alg_none("x", server.base()), with_header(server, "crit", json!(["x"]))] {
        server.exchange(&token, &[("aud", server.base()), ("identity", &robot.uid)]).await;
    }
    assert_eq!(server.idp().requests(), requests);
}

async fn the_api_takes_our_own_good_tokens_only(server: &TestServer) {
    let org = server.organization("acme").await;
    let robot = machine(server, &org, "robot").await;
    let good = robot.actor.token.clone().expect("a token");
    let other_audience = server.server().parts().settings.registry_audience.clone();
    let upstream = server.idp().token("robot", server.base(), Value::Null);
    let parameters = [("aud", other_audience.as_str()), ("identity", robot.uid.as_str())];
    let registry = token_of(&server.exchange(&upstream, &parameters).await);
    let mut parts: Vec<&str> = good.split('.').collect();
    parts[2] = "";
    let unsigned = parts.join(".");
    let flipped = format!("{}{}", &good[..good.len() - 5], if good.ends_with("AAAAA") { "BBBBB" } else { "AAAAA" });
    let cases = [
        (registry, "TOKEN_INVALID", "audience"),
        (upstream, "TOKEN_INVALID", ""),
        (unsigned, "TOKEN_INVALID", ""),
        (flipped, "TOKEN_INVALID", "signature"),
        ("abc".into(), "TOKEN_INVALID", "malformed"),
    ];
    for (token, reason, word) in cases {
        let actor = robot.actor.with_token(&token);
        let reply = call(&actor, "GET /iam/v2/groups", Value::Null).await;
        let refusal = Refusal(reply.json());
        assert_eq!((reply.status, refusal.reason().as_str()), (401, reason), "{}", reply.text());
        assert!(refusal.message().contains(word), "{}", refusal.message());
        assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        let error = actor.grpc::<ListGroups>(ListGroupsRequest::default()).await.expect_err("no good token");
        assert_eq!(error.code, 16);
    }
    for path in ["/iam/v2/groups", "/iam/v1/groups", "/auth/v1/ok"] {
        let reply = call(&server.anonymous(), &format!("GET {path}"), Value::Null).await;
        assert_eq!(reply.status, 401, "{path}: {}", reply.text());
    }
    let reply = call(&server.anonymous(), "GET /iam/v2/groups", Value::Null).await;
    assert_eq!(Refusal(reply.json()).reason(), "UNAUTHENTICATED");
    assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
    server.clock().advance(Duration::from_secs(3599));
    assert_eq!(call(&robot.actor, "GET /iam/v2/groups", Value::Null).await.status, 200);
    server.clock().advance(Duration::from_secs(1));
    let reply = call(&robot.actor, "GET /iam/v2/groups", Value::Null).await;
    assert_eq!((reply.status, Refusal(reply.json()).reason().as_str()), (401, "TOKEN_EXPIRED"), "{}", reply.text());
    // Nor is it good for another one.
    let reply = server.exchange(&good, &[("aud", server.base())]).await;
    assert_eq!(reply.status, 401, "{}", reply.text());
    assert_eq!(exchange(server, &robot.uid, "robot", &[]).await.status, 200);
}

each_engine!(
    bad_identity_tokens_are_refused_by_name,
    requests_of_the_exchange_are_validated,
    failing_issuers_are_distinguished_and_bounded,
    no_request_is_sent_to_an_untrusted_issuer,
    the_api_takes_our_own_good_tokens_only
);
