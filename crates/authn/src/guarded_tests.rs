use std::collections::HashMap;
use std::io;
use std::time::Instant;

use futures_util::future::BoxFuture;

use super::*;
use crate::refused_hosts::{NAMES, REFUSED_HOSTS};
use crate::test_server::{Reply, TestServer};

/// Names with made-up addresses.
struct Fake(HashMap<String, Vec<IpAddr>>);

impl Resolver for Fake {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let answer = self.0.get(host.trim_end_matches('.')).cloned();
        Box::pin(async move { answer.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound)) })
    }
}

fn client(policy: AddressPolicy, names: &[(&str, &[&str])]) -> GuardedClient {
    let names =
        names.iter().map(|(name, ips)| ((*name).to_owned(), ips.iter().map(|ip| ip.parse().unwrap()).collect()));
    let resolver: Arc<dyn Resolver> = Arc::new(Fake(names.collect()));
    GuardedClient::with(Options { resolver, ..Options::new(policy) }).unwrap()
}

fn loopback() -> AddressPolicy {
    AddressPolicy { allow: Vec::new(), allow_loopback_and_http: true }
}

fn allow(net: &str) -> AddressPolicy {
    AddressPolicy { allow: vec![net.parse().unwrap()], allow_loopback_and_http: false }
}

/// What a delivery of an event does.
async fn post(client: &GuardedClient, url: &str) -> Result<StatusCode, FetchError> {
    let body = Bytes::from_static(b"{}");
    let request = Request { method: Method::POST, url: url.to_owned(), headers: HeaderMap::new(), body };
    let limits = Limits { total: Duration::from_secs(2), body: 64 * 1024 };
    client.send(request, limits, 1024).await.map(|sent| sent.status)
}

#[tokio::test]
async fn no_spelling_of_a_private_address_is_connected_to() {
    let server = TestServer::start(|_, _| Reply::Json(serde_json::json!({}))).await;
    let strict = client(AddressPolicy::default(), NAMES);
    let named = client(allow("11.0.0.0/8"), NAMES);
    assert!(REFUSED_HOSTS.len() > 100);
    for host in REFUSED_HOSTS {
        for client in [&strict, &named] {
            let url = format!("https://{host}:{}/latest/meta-data", server.port);
            let started = Instant::now();
            let got = client.get_json(&url).await;
            assert_eq!(got.unwrap_err(), FetchError::RefusedAddress, "{host}");
            assert_eq!(post(client, &url).await, Err(FetchError::RefusedAddress), "{host}");
            assert!(started.elapsed() < Duration::from_secs(2), "{host} was tried");
            let plain = client.get_json(&url.replace("https:", "http:")).await;
            assert_eq!(plain.unwrap_err(), FetchError::NotHttps, "{host}");
        }
    }
    assert!(server.hits().is_empty());
}

#[tokio::test]
async fn the_loopback_policy_allows_loopback_and_nothing_else() {
    let server = TestServer::start(|_, _| Reply::Json(serde_json::json!({"ok": true}))).await;
    let client = client(loopback(), NAMES);
    for host in ["127.0.0.1", "loop.test", "2130706433"] {
        assert!(client.get_json(&format!("http://{host}:{}/", server.port)).await.is_ok(), "{host}");
    }
    for host in [
        "10.0.0.1",
        "private.test",
        "169.254.169.254",
        "meta.test",
        "mixed.test",
        "mapped.test",
        "8.8.8.8",
        "[::]",
        "0.0.0.0",
    ] {
        let got = client.get_json(&format!("http://{host}:{}/", server.port)).await;
        assert_eq!(got.unwrap_err(), FetchError::RefusedAddress, "{host}");
    }
    assert_eq!(server.hits().len(), 3);
}

#[tokio::test]
async fn an_allowed_network_is_reached_by_https_only() {
    let server = TestServer::start(|_, _| Reply::Json(serde_json::json!({}))).await;
    let client = client(allow("127.0.0.0/8"), NAMES);
    // The server speaks no TLS: the connection is made and fails.
    for host in ["127.0.0.1", "loop.test"] {
        assert_eq!(
            client.get_json(&format!("https://{host}:{}/", server.port)).await.unwrap_err(),
            FetchError::Connect
        );
        assert_eq!(
            client.get_json(&format!("http://{host}:{}/", server.port)).await.unwrap_err(),
            FetchError::NotHttps
        );
    }
    // The network stands for itself, not for other spellings of it in IPv6, nor for its neighbours.
    for host in ["mapped.test", "[::ffff:127.0.0.1]", "[::1]", "10.0.0.1"] {
        let got = client.get_json(&format!("https://{host}:{}/", server.port)).await;
        assert_eq!(got.unwrap_err(), FetchError::RefusedAddress, "{host}");
    }
}

#[test]
fn addresses_of_the_internet_are_public() {
    for ip in [
        "8.8.8.8",
        "1.1.1.1",
        "172.15.255.255",
        "172.32.0.1",
        "100.63.255.255",
        "100.128.0.1",
        "223.255.255.255",
        "192.0.1.1",
        "2606:4700::1111",
        "2a00:1450:4001::200e",
        "2001:200::1",
        "2001:4860:4860::8888",
        "64:ff9b::8.8.8.8",
    ] {
        assert!(crate::addresses::is_public(ip.parse().unwrap()), "{ip}");
    }
}

#[tokio::test]
async fn what_is_no_https_url_is_refused() {
    let client = client(AddressPolicy::default(), &[]);
    for (url, error) in [
        ("", FetchError::InvalidUrl),
        ("example.com", FetchError::InvalidUrl),
        ("https://", FetchError::InvalidUrl),
        ("https://user@example.com/", FetchError::InvalidUrl),
        ("https://user:pw@example.com/", FetchError::InvalidUrl),
        ("https://[fe80::1%25eth0]/", FetchError::InvalidUrl),
        ("https://[::1", FetchError::InvalidUrl),
        ("https://256.256.256.256/", FetchError::InvalidUrl),
        ("ftp://example.com/", FetchError::NotHttps),
        ("file:///etc/passwd", FetchError::NotHttps),
        ("gopher://127.0.0.1/", FetchError::NotHttps),
        ("http://example.com/", FetchError::NotHttps),
        ("https://unknown.test/", FetchError::Connect),
    ] {
        assert_eq!(client.get_json(url).await.unwrap_err(), error, "{url}");
    }
    assert!(client.check_url("https://example.com/x").is_ok());
    assert_eq!(client.check_url("https://10.0.0.1/"), Err(FetchError::RefusedAddress));
}

#[tokio::test]
async fn responses_are_bounded() {
    let server = TestServer::start(|own, path| match path {
        "/slow" => Reply::Slow,
        "/endless" => Reply::Endless,
        "/cut" => Reply::CutOff,
        "/stated" => Reply::Raw("HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n".to_owned()),
        "/text" => Reply::text("<html>"),
        "/redirect" => Reply::status(302, &format!("location: {own}/fine\r\n")),
        "/500" => Reply::status(500, ""),
        "/garbage" => Reply::Raw("garbage".to_owned()),
        _ => Reply::Json(serde_json::json!({"fine": 1})),
    })
    .await;
    let client = client(loopback(), &[]);
    let limits = Limits { total: Duration::from_secs(2), body: 1024 * 1024 };
    let get = async |path: &str| client.get_json_within(&format!("{}{path}", server.url), limits).await;
    assert_eq!(get("/fine").await.unwrap()["fine"], 1);
    assert_eq!(get("/endless").await, Err(FetchError::TooLarge));
    assert_eq!(get("/stated").await, Err(FetchError::TooLarge));
    assert_eq!(get("/cut").await, Err(FetchError::Interrupted));
    assert_eq!(get("/text").await, Err(FetchError::NotJson));
    assert_eq!(get("/redirect").await, Err(FetchError::Status(302)));
    assert_eq!(get("/500").await, Err(FetchError::Status(500)));
    assert_eq!(get("/garbage").await, Err(FetchError::Connect));
    assert_eq!(server.hits().iter().filter(|p| *p == "/fine").count(), 1, "no redirect was followed");
    let started = Instant::now();
    assert_eq!(get("/slow").await, Err(FetchError::Timeout));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_status_request_does_not_wait_for_the_body() {
    let server = TestServer::start(|own, path| match path {
        "/slow" => Reply::Slow,
        "/endless" => Reply::Endless,
        "/cut" => Reply::CutOff,
        "/redirect" => Reply::status(302, &format!("location: {own}/fine\r\n")),
        "/500" => Reply::status(500, ""),
        "/garbage" => Reply::Raw("garbage".to_owned()),
        _ => Reply::Json(serde_json::json!({})),
    })
    .await;
    let client = client(loopback(), &[]);
    let status = async |path: &str| post(&client, &format!("{}{path}", server.url)).await.map(|status| status.as_u16());
    let started = Instant::now();
    for path in ["/fine", "/slow", "/endless", "/cut"] {
        assert_eq!(status(path).await, Ok(200), "{path}");
    }
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(status("/redirect").await, Ok(302));
    assert_eq!(status("/500").await, Ok(500));
    assert_eq!(status("/garbage").await, Err(FetchError::Connect));
    assert_eq!(server.hits().iter().filter(|path| *path == "/fine").count(), 1, "no redirect was followed");
}

#[tokio::test]
async fn a_name_is_resolved_once_per_connection_and_checked_each_time() {
    /// Allowed at first, a neighbour from then on: rebinding.
    struct Rebinding(std::sync::atomic::AtomicUsize);
    impl Resolver for Rebinding {
        fn resolve(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
            let first = self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0;
            // No one listens at 127.0.0.2.
            let ip: IpAddr = if first { "127.0.0.2" } else { "127.0.0.1" }.parse().unwrap();
            Box::pin(async move { Ok(vec![ip]) })
        }
    }
    let server = TestServer::start(|_, _| Reply::Json(serde_json::json!({}))).await;
    let resolver = Arc::new(Rebinding(Default::default()));
    let options = Options {
        resolver: Arc::clone(&resolver) as Arc<dyn Resolver>,
        connect: Duration::from_millis(300),
        ..Options::new(allow("127.0.0.2/32"))
    };
    let client = GuardedClient::with(options).unwrap();
    let url = format!("https://rebind.test:{}/", server.port);
    let first = client.get_json(&url).await.unwrap_err();
    assert!(matches!(first, FetchError::Timeout | FetchError::Connect), "{first:?}");
    assert_eq!(resolver.0.load(std::sync::atomic::Ordering::SeqCst), 1);
    assert_eq!(client.get_json(&url).await.unwrap_err(), FetchError::RefusedAddress);
    assert_eq!(post(&client, &url).await, Err(FetchError::RefusedAddress));
    assert!(server.hits().is_empty());
}

#[test]
fn a_refused_address_reads_like_no_connection() {
    use crate::discovery::KeysError;
    use crate::relying::RelyingError;
    let (refused, absent) = (FetchError::RefusedAddress, FetchError::Connect);
    assert_eq!(refused.public_message(), absent.public_message());
    assert_ne!(refused.reason(), absent.reason(), "the log tells them apart");
    for error in [refused, absent] {
        assert!(KeysError::from(error).is_temporary() && RelyingError::from(error).is_temporary(), "one code for both");
    }
}

#[test]
fn messages_name_no_address() {
    let all = [
        FetchError::InvalidUrl,
        FetchError::NotHttps,
        FetchError::RefusedAddress,
        FetchError::Connect,
        FetchError::Timeout,
        FetchError::TooLarge,
        FetchError::Status(404),
        FetchError::NotJson,
        FetchError::Interrupted,
    ];
    for error in all {
        assert!(!error.public_message().contains("127.") && !error.reason().contains(' '));
    }
}
