//! The certificate of the listener is read again when its files change.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bowline_testkit::{Engine, TestServer};
use futures_util::future::join_all;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::io::AsyncWriteExt as _;

use crate::connections::ended;
use crate::deliveries::until;
use crate::metrics::value;

const ONE: [&str; 2] = [include_str!("../testdata/tls/one.pem"), include_str!("../testdata/tls/one-key.pem")];
const TWO: [&str; 2] = [include_str!("../testdata/tls/two.pem"), include_str!("../testdata/tls/two-key.pem")];
const FAILURES: &str = "bowline_tls_reload_failures_total";
const NOT_AFTER: &str = "bowline_tls_certificate_not_after_seconds";

type Connection = StreamOwned<ClientConnection, TcpStream>;

/// A new connection of a client that trusts that certificate alone; absent if another one is served.
async fn connect(address: SocketAddr, certificate: &'static str) -> Option<Connection> {
    let shaken = tokio::task::spawn_blocking(move || {
        let mut roots = RootCertStore::empty();
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).expect("a certificate");
        roots.add(certificate).expect("an authority");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
        let name = "localhost".try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut socket = TcpStream::connect(address).expect("a connection");
        client.complete_io(&mut socket).ok().map(|_| StreamOwned::new(client, socket))
    });
    shaken.await.expect("the handshake ends")
}

/// Makes a request; whether it was answered.
async fn is_served(mut connection: Connection) -> (bool, Connection) {
    let served = tokio::task::spawn_blocking(move || {
        let request = b"HEAD / HTTP/1.1\r\nhost: localhost\r\n\r\n";
        let mut head = [0; 4096];
        let sent = connection.write_all(request).is_ok();
        let read = connection.read(&mut head).unwrap_or(0);
        (sent && head[..read].starts_with(b"HTTP/1.1 200"), connection)
    });
    served.await.expect("the request ends")
}

/// Replaces a file as a renewal does: at once.
fn replace(path: &Path, text: &str) {
    let beside = path.with_extension("new");
    std::fs::write(&beside, text).expect("a file");
    std::fs::rename(beside, path).expect("the file is replaced");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_renewed_pair_is_served_to_new_connections_and_a_bad_one_changes_nothing() {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let (certificate, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    replace(&certificate, ONE[0]);
    replace(&key, ONE[1]);
    let server = TestServer::start_with(Engine::Sqlite, |options| {
        options.tls_cert = Some(certificate.clone());
        options.tls_key = Some(key.clone());
        options.tls_look_every = Some(Duration::from_millis(50));
    })
    .await;
    let address = server.server().address();
    let failures = async || value(&server.metrics().await, FAILURES);
    let fails_again = async || {
        let before = failures().await;
        until("the pair is refused", async || failures().await > before).await;
    };
    let open = connect(address, ONE[0]).await.expect("the first certificate is served");
    assert!(connect(address, TWO[0]).await.is_none());
    let (served, open) = is_served(open).await;
    assert!(served);
    let page = server.metrics().await;
    assert_eq!((value(&page, FAILURES), value(&page, NOT_AFTER)), (0, 4_949_017_141));

    // The key comes first: until its certificate is there, the pair does not match.
    replace(&key, TWO[1]);
    fails_again().await;
    assert!(connect(address, ONE[0]).await.is_some(), "the pair from before is served");
    replace(&certificate, TWO[0]);
    until("the new certificate is served", async || connect(address, TWO[0]).await.is_some()).await;
    assert!(connect(address, ONE[0]).await.is_none());
    assert_eq!(value(&server.metrics().await, NOT_AFTER), 4_905_817_141);
    let (served, _) = is_served(open).await;
    assert!(served, "connections that are open go on");

    let half = &ONE[0][..ONE[0].len() / 2];
    for (path, text) in [(&certificate, ""), (&certificate, half), (&certificate, ONE[0]), (&key, "no key")] {
        replace(path, text);
        fails_again().await;
        assert!(connect(address, TWO[0]).await.is_some(), "{text}");
    }
    std::fs::remove_file(&key).expect("the key is there");
    fails_again().await;
    assert!(connect(address, TWO[0]).await.is_some());
    replace(&key, ONE[1]);
    until("the first pair is served again", async || connect(address, ONE[0]).await.is_some()).await;
    server.stop().await;
}

#[tokio::test]
async fn silent_handshakes_end() {
    let directory = tempfile::tempdir().expect("a scratch directory is made");
    let (certificate, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    replace(&certificate, ONE[0]);
    replace(&key, ONE[1]);
    let server = TestServer::start_with(Engine::Sqlite, |options| {
        options.tls_cert = Some(certificate.clone());
        options.tls_key = Some(key.clone());
        options.first_request_timeout = Some("2s".into());
    })
    .await;
    let address = server.server().address();
    // Nothing, the head of a record, and one that promises more than comes.
    let mut silent = Vec::new();
    for said in [&b""[..], &[22, 3, 1, 2, 0], &[22, 3, 1, 0, 5, 1, 0, 0, 200, 3]] {
        let mut stream = tokio::net::TcpStream::connect(address).await.expect("a connection");
        stream.write_all(said).await.expect("the server reads");
        silent.push(stream);
    }
    assert!(connect(address, ONE[0]).await.is_some(), "others shake hands");
    join_all(silent.iter_mut().map(ended)).await;
    server.stop().await;
}
