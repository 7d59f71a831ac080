//! HTTP/1.1 as plain clients speak it: connections that last, HEAD, and verbs that are not there.

use std::collections::BTreeMap;

use bowline_server::Options;
use bowline_testkit::{Engine, TestServer, by_engine, each_engine, on_engine_with};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::send;

/// A connection that is used until a response says that it closes.
struct Plain {
    stream: BufReader<TcpStream>,
}

/// A response as it came over the connection.
#[derive(Debug)]
struct Reply {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    fn closes(&self) -> bool {
        self.header("connection").eq_ignore_ascii_case("close")
    }
}

impl Plain {
    async fn open(server: &TestServer) -> Plain {
        let stream = TcpStream::connect(server.server().address()).await.expect("a connection");
        stream.set_nodelay(true).expect("an option of the socket");
        Plain { stream: BufReader::new(stream) }
    }

    /// Sends the head, then the body, and reads the response. Absent if the connection ended without one.
    async fn call(&mut self, what: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Reply> {
        let mut head = format!("{what} HTTP/1.1\r\nhost: localhost\r\n");
        let is_chunked = headers.iter().any(|(name, _)| *name == "transfer-encoding");
        if !body.is_empty() && !is_chunked {
            head += &format!("content-length: {}\r\n", body.len());
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head += "\r\n";
        self.stream.write_all(head.as_bytes()).await.ok()?;
        let _ = self.stream.flush().await;
        // A server that refuses and closes may do so before all of it is written.
        let _ = self.stream.write_all(body).await;
        self.read(what.starts_with("HEAD ")).await
    }

    async fn read(&mut self, is_head: bool) -> Option<Reply> {
        let status = self.line().await?.split(' ').nth(1)?.parse().ok()?;
        let mut headers = BTreeMap::new();
        loop {
            let line = self.line().await?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; if is_head { 0 } else { length }];
        self.stream.read_exact(&mut body).await.ok()?;
        Some(Reply { status, headers, body })
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.stream.read_line(&mut line).await.ok()?;
        (read > 0).then(|| line.trim_end().to_owned())
    }
}

/// Calls that are refused before their body was read.
const REFUSED: &[&str] = &[
    "POST /iam/v2/groups",
    "PATCH /registry/v2/repos/0123456789012345678901234567890123456789",
    "POST /auth/v1/ok",
    "POST /nothing/here",
    "PUT /v2/0123456789012345678901234567890123456789/app/manifests/latest",
    "POST /scim/v2/0123456789012345678901234567890123456789/Users",
    "POST /.well-known/openid-configuration",
    "PUT /oauth",
];

async fn refused_calls_with_small_bodies_keep_their_connection(server: &TestServer) {
    let json = ("content-type", "application/json");
    let mut plain = Plain::open(server).await;
    for round in 0..25 {
        for what in REFUSED {
            // The second size takes more than one read.
            let body = vec![b' '; if round % 2 == 0 { 4096 } else { 48 << 10 }];
            let reply = plain.call(what, &[json], &body).await;
            let reply = reply.unwrap_or_else(|| panic!("{what}: round {round} found the connection closed"));
            assert!((400..500).contains(&reply.status) && !reply.closes(), "{what}: {reply:?}");
        }
        let chunked = [b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n0\r\n\r\n"].concat();
        let reply = plain.call(REFUSED[0], &[json, ("transfer-encoding", "chunked")], &chunked).await;
        assert_eq!(reply.map(|reply| (reply.status, reply.closes())), Some((401, false)), "round {round}");
    }
}

async fn refused_calls_whose_body_is_not_read_say_that_the_connection_closes(server: &TestServer) {
    let json = ("content-type", "application/json");
    for what in REFUSED {
        let reply = Plain::open(server).await.call(what, &[json], &vec![b' '; 300 << 10]).await;
        let reply = reply.unwrap_or_else(|| panic!("{what} has no response"));
        assert!((400..500).contains(&reply.status) && reply.closes(), "{what}: {reply:?}");
    }
    // A client that waits for 100 (Continue) gets the refusal alone.
    let expects = [json, ("expect", "100-continue"), ("content-length", "10")];
    let reply = Plain::open(server).await.call(REFUSED[0], &expects, b"").await.expect("a response");
    assert_eq!((reply.status, reply.closes()), (401, true), "{reply:?}");
    // So does one whose body never comes.
    let reply = Plain::open(server).await.call(REFUSED[0], &[json, ("content-length", "10")], b"").await;
    assert_eq!(reply.map(|reply| (reply.status, reply.closes())), Some((401, true)));
    // A body that was read whole closes nothing.
    let operator = format!("Bearer {}", server.operator().await.token.unwrap_or_default());
    let mut plain = Plain::open(server).await;
    for _ in 0..3 {
        let whole = [json, ("authorization", &*operator)];
        let reply = plain.call("POST /iam/v2/groups", &whole, &vec![b' '; 100 << 10]).await.expect("a response");
        assert_eq!((reply.status, reply.closes()), (400, false), "{reply:?}");
    }
}

async fn head_is_get_without_a_body(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let authorization = format!("Bearer {}", server.operator().await.token.unwrap_or_default());
    let headers = [("authorization", authorization.as_str())];
    let mut plain = Plain::open(server).await;
    for path in [
        "/iam/v2/groups".to_owned(),
        format!("/iam/v2/groups/{org}"),
        format!("/iam/v2/groups/{}", crate::support::absent(&org)),
        "/iam/v2/groups?page_size=x".into(),
        format!("/registry/v2/repos/{repo}"),
        "/registry/v1/repos".into(),
        "/auth/v1/ok".into(),
        "/advisory/v1/documents".into(),
        "/.well-known/openid-configuration".into(),
        "/.well-known/oauth-authorization-server".into(),
        "/.well-known/jwks.json".into(),
        "/openapi/v1.json".into(),
        "/openapi/v2.json".into(),
        "/oauth/assets/style.css".into(),
        "/orgcheck?name=acme".into(),
        "/v2/".into(),
        "/nothing".into(),
    ] {
        let get = plain.call(&format!("GET {path}"), &headers, b"").await.expect("a response to GET");
        let head = plain.call(&format!("HEAD {path}"), &headers, b"").await.expect("a response to HEAD");
        let same = |reply: &Reply| {
            let mut headers = reply.headers.clone();
            headers.retain(|name, _| !matches!(name.as_str(), "date" | "x-request-id"));
            (reply.status, headers)
        };
        assert_eq!(same(&head), same(&get), "{path}");
        assert!(!get.body.is_empty(), "{path}");
    }
}

async fn exchange_streams_and_sign_in_name_the_verbs_that_they_take(server: &TestServer) {
    let mut plain = Plain::open(server).await;
    for (what, allowed) in [
        ("HEAD /sts/exchange", "GET, POST"),
        ("PUT /sts/exchange", "GET, POST"),
        ("DELETE /sts/exchange", "GET, POST"),
        ("HEAD /sts/exchange_refresh_token", "POST"),
        ("HEAD /sts/headless_sessions", "GET"),
        ("HEAD /audit/v1/entries:watch", "GET"),
        ("POST /audit/v1/entries:watch", "GET"),
        ("DELETE /audit/v1/entries:watch", "GET"),
        ("HEAD /oauth", "GET"),
        ("PUT /oauth", "GET"),
        ("HEAD /oauth/callback", "GET"),
        ("POST /oauth/callback", "GET"),
        ("HEAD /oauth/operator", "GET, POST"),
        ("HEAD /oauth/token", "POST"),
        ("GET /oauth/token", "POST"),
        ("GET /oauth/confirm", "POST"),
        ("GET /oauth/organization", "POST"),
        ("GET /oauth/device_authorization", "POST"),
        ("DELETE /oauth/revoke", "POST"),
        ("HEAD /activate", "GET, POST"),
        ("HEAD /signout", "GET, POST"),
        ("PUT /orgcheck", "GET, HEAD"),
        ("PUT /iam/v2/roles", "DELETE, GET, HEAD, PATCH, POST"),
    ] {
        let reply = plain.call(what, &[], b"").await.expect("a response");
        assert_eq!(reply.status, 405, "{what}: {reply:?}");
        let mut verbs: Vec<&str> = reply.header("allow").split(',').map(str::trim).collect();
        verbs.sort_unstable();
        assert_eq!(verbs.join(", "), allowed, "{what}");
    }
}

const SITE: &str = "https://console.example.com";

fn preflight(origin: &'static str) -> [(&'static str, &'static str); 2] {
    [("origin", origin), ("access-control-request-method", "PATCH")]
}

async fn pages_of_the_sites_that_the_operator_names_may_read_responses(engine: Engine) {
    let sites = |options: &mut Options| options.cors_origins = vec![SITE.into(), "http://localhost:3000".into()];
    on_engine_with(engine, sites, async |server| {
        let operator = server.operator().await;
        let reply = send(&server.anonymous(), "OPTIONS /iam/v2/groups", &preflight(SITE), "").await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (204, Some(SITE)));
        let lists =
            |name: &str, member: &str| reply.header(name).unwrap_or_default().split(", ").any(|one| one == member);
        assert!(lists("access-control-allow-methods", "PATCH"), "{:?}", reply.headers);
        assert!(lists("access-control-allow-headers", "authorization"), "{:?}", reply.headers);
        for (actor, what, status) in [
            (&operator, "GET /iam/v2/groups", 200),
            (&server.anonymous(), "GET /iam/v2/groups", 401),
            (&server.anonymous(), "GET /.well-known/openid-configuration", 200),
            (&server.anonymous(), "GET /nothing", 404),
        ] {
            for (origin, allowed) in [
                (SITE, Some(SITE)),
                ("http://localhost:3000", Some("http://localhost:3000")),
                ("https://evil.example", None),
                ("https://console.example.com.evil.example", None),
                ("null", None),
            ] {
                let reply = send(actor, what, &[("origin", origin)], "").await;
                assert_eq!((reply.status, reply.header("access-control-allow-origin")), (status, allowed), "{what}");
                assert!(reply.headers.get_all("vary").iter().any(|vary| vary == "origin"), "{:?}", reply.headers);
                assert_eq!(reply.header("access-control-allow-credentials"), None);
            }
        }
        let reply = send(&server.anonymous(), "OPTIONS /iam/v2/groups", &preflight("https://evil.example"), "").await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (405, None));
    })
    .await;
}

async fn pages_of_every_site_may_read_responses_where_the_operator_says_so(engine: Engine) {
    let any = |options: &mut Options| options.cors_origins = vec!["*".into()];
    on_engine_with(engine, any, async |server| {
        for what in ["OPTIONS /iam/v2/groups", "GET /iam/v2/groups"] {
            let reply = send(&server.anonymous(), what, &preflight("https://any.example"), "").await;
            assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{what}");
            assert_eq!(reply.header("access-control-allow-credentials"), None, "{what}");
        }
    })
    .await;
}

async fn pages_of_other_sites_may_not_by_default(server: &TestServer) {
    for what in ["OPTIONS /iam/v2/groups", "GET /iam/v2/groups", "GET /"] {
        let reply = send(&server.anonymous(), what, &preflight(SITE), "").await;
        assert!(!reply.headers.keys().any(|name| name.as_str().starts_with("access-control")), "{what}");
    }
}

by_engine!(
    pages_of_the_sites_that_the_operator_names_may_read_responses,
    pages_of_every_site_may_read_responses_where_the_operator_says_so
);

each_engine!(
    pages_of_other_sites_may_not_by_default,
    refused_calls_with_small_bodies_keep_their_connection,
    refused_calls_whose_body_is_not_read_say_that_the_connection_closes,
    head_is_get_without_a_body,
    exchange_streams_and_sign_in_name_the_verbs_that_they_take
);
