//! The token exchange for identities of AWS accounts, with a stand-in for AWS.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use bowline_core::Clock as _;
use bowline_testkit::{Engine, RestReply, TestServer, by_engine};
use serde_json::{Value, json};

use crate::support::{call, claims_of, log, number, ok, token_of, uid_of};

const ARN: &str = "arn:aws:sts::123456789012:assumed-role/deploy/session";

/// Accepts the signature of one key, and counts who asks.
struct Sts {
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Sts {
    async fn start() -> Sts {
        let asked = Arc::<AtomicUsize>::default();
        let router = axum::Router::new().fallback(answer).with_state(asked.clone());
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let url = format!("http://{}", socket.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(socket, router).await });
        Sts { url, asked }
    }
}

async fn answer(State(asked): State<Arc<AtomicUsize>>, request: Request) -> (StatusCode, String) {
    asked.fetch_add(1, Ordering::SeqCst);
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_asked = request.method() == "POST"
        && *request.uri() == "/?Action=GetCallerIdentity&Version=2011-06-15"
        && header("host") == "sts.amazonaws.com"
        && header("accept") == "application/json"
        && header("chainguard-audience").starts_with("http")
        && header("x-unsigned").is_empty();
    match header("authorization") {
        good if is_asked && good.contains("Credential=GOOD/") => {
            let result = json!({ "Account": "123456789012", "Arn": ARN, "UserId": "AROA:session" });
            let body = json!({ "GetCallerIdentityResponse": { "GetCallerIdentityResult": result } });
            (StatusCode::OK, body.to_string())
        }
        down if down.contains("Credential=DOWN/") => (StatusCode::SERVICE_UNAVAILABLE, String::new()),
        _ => (StatusCode::FORBIDDEN, json!({ "Error": { "Code": "InvalidClientTokenId" } }).to_string()),
    }
}

/// A request as a workload with that key would have signed it for the identity, now.
fn signed(server: &TestServer, key: &str, identity: &str) -> String {
    let time = prost_types::Timestamp { seconds: server.clock().now().div_euclid(1_000_000), nanos: 0 }.to_string();
    let date = time.replace(['-', ':'], "");
    let names = "accept;chainguard-audience;chainguard-identity;host;x-amz-date";
    let request = format!(
        "POST /?Action=GetCallerIdentity&Version=2011-06-15 HTTP/1.1\r\nHost: sts.amazonaws.com\r\n\
         Content-Length: 0\r\nAccept: application/json\r\nX-Unsigned: x\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential={key}/20240102/us-east-1/sts/aws4_request, \
         SignedHeaders={names}, Signature={}\r\n\
         Chainguard-Audience: {}\r\nChainguard-Identity: {identity}\r\nX-Amz-Date: {date}\r\n\r\n",
        "0123456789abcdef".repeat(4),
        server.base(),
    );
    URL_SAFE.encode(request)
}

async fn present(server: &TestServer, token: &str, identity: &str) -> RestReply {
    let mut parameters = vec![("aud", server.base())];
    if !identity.is_empty() {
        parameters.push(("identity", identity));
    }
    server.exchange(token, &parameters).await
}

#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn an_aws_identity_is_assumed_by_whom_aws_names(engine: Engine) {
    log();
    let sts = Sts::start().await;
    let url = sts.url.clone();
    let server = TestServer::start_with(engine, |options| options.aws_sts_url = Some(url)).await;
    let server = &server;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let create = async |aws: Value| {
        let body = json!({ "name": "deploy", "awsIdentity": aws });
        uid_of(&ok(&operator, &format!("POST /iam/v2/identities/{org}"), body).await)
    };
    let pattern = "arn:aws:sts::123456789012:assumed-role/deploy/.*";
    let good = create(json!({ "awsAccount": "123456789012", "arnPattern": pattern, "userIdPattern": "AROA:.*" })).await;
    server.bind(&good, &server.role("viewer"), &org).await;
    let audited = number(server, "SELECT count(*) FROM audit").await;
    let token = token_of(&present(server, &signed(server, "GOOD", &good), &good).await);
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audited + 1);
    let claims = claims_of(&token);
    let act = json!({
        "iss": sts.url, "sub": ARN, "aud": server.base(), "account": "123456789012", "arn": ARN,
        "user_id": "AROA:session",
    });
    assert_eq!((&claims["sub"], &claims["act"]), (&json!(good), &act));
    let actor = server.anonymous().with_token(&token);
    assert_eq!(call(&actor, &format!("GET /iam/v2/groups/{org}"), Value::Null).await.status, 200);

    // AWS accepts the signature, and the identity does not accept the signer.
    for (aws, member) in [
        (json!({ "awsAccount": "210987654321", "arn": ARN }), "account"),
        (json!({ "awsAccount": "123456789012", "arn": "arn" }), "arn"),
        (json!({ "awsAccount": "123456789012", "arn": ARN, "userId": "AROA" }), "user_id"),
    ] {
        let other = create(aws).await;
        let reply = present(server, &signed(server, "GOOD", &other), &other).await;
        assert_eq!(reply.status, 403, "{}", reply.text());
        assert!(reply.text().contains(member), "{}", reply.text());
    }
    let bad = present(server, &signed(server, "BAD", &good), &good).await;
    assert_eq!(bad.status, 401, "{}", bad.text());
    let down = present(server, &signed(server, "DOWN", &good), &good).await;
    assert_eq!((down.status, down.header("retry-after").is_some()), (503, true), "{}", down.text());

    // None of these is worth a question to AWS.
    let asked = sts.asked.load(Ordering::SeqCst);
    let robot = server.identity(&org, "robot").await;
    let absent = crate::support::absent(&org);
    let refusal = async |token: &str, identity: &str| {
        let reply = present(server, token, identity).await;
        (reply.status, reply.json()["message"].as_str().unwrap_or_default().to_owned())
    };
    let hidden = refusal(&signed(server, "GOOD", &absent), &absent).await;
    assert_eq!(hidden.0, 403);
    assert_eq!(refusal(&signed(server, "GOOD", &robot), &robot).await, hidden, "no AWS identity, or none at all");
    assert_eq!(refusal(&signed(server, "GOOD", &robot), &good).await.0, 401, "signed for another identity");
    assert_eq!(refusal(&signed(server, "GOOD", &good), "").await.0, 403, "no identity is named");
    let old = signed(server, "GOOD", &good);
    assert_eq!(refusal("bm8gcmVxdWVzdA==", &good).await, refusal("bm8gcmVxdWVzdA==", &absent).await);
    let jwt = server.idp().token("robot", server.base(), Value::Null);
    assert_eq!(refusal(&jwt, &good).await.0, 403, "a token is no signature of AWS");
    server.clock().advance(Duration::from_secs(901));
    assert_eq!(refusal(&old, &good).await.0, 401, "signed too long ago");
    crate::support::execute(server, "UPDATE identities SET deactivated = TRUE WHERE uid = $1", &[&good]).await;
    assert_eq!(refusal(&signed(server, "GOOD", &good), &good).await.0, 403);
    assert_eq!(sts.asked.load(Ordering::SeqCst), asked);
}

by_engine!(an_aws_identity_is_assumed_by_whom_aws_names);
