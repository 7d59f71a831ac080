use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

struct Fake(HashMap<&'static str, IpAddr>);

impl Resolver for Fake {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let answer = self.0.get(host.as_str()).copied();
        Box::pin(async move { answer.map(|ip| vec![ip]).ok_or_else(|| io::ErrorKind::NotFound.into()) })
    }
}

/// A TLS server for `tls.test`; returns its port.
async fn server() -> u16 {
    let certificate = CertificateDer::from(&include_bytes!("testdata/leaf.der")[..]);
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(&include_bytes!("testdata/leaf-key.der")[..]));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(mut stream) = acceptor.accept(stream).await else {
                continue;
            };
            let mut head = [0; 4096];
            let _ = stream.read(&mut head).await;
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 11\r\n\r\n{\"fine\": 1}").await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

fn client(extra_roots: &[u8]) -> GuardedClient {
    let here: IpAddr = "127.0.0.1".parse().unwrap();
    let policy = AddressPolicy { allow: vec!["127.0.0.1/32".parse().unwrap()], allow_loopback_and_http: false };
    let resolver = Arc::new(Fake([("tls.test", here), ("other.test", here)].into()));
    GuardedClient::with(Options { resolver, extra_roots: extra_roots.to_vec(), ..Options::new(policy) }).unwrap()
}

#[tokio::test]
async fn https_needs_a_certificate_of_a_known_authority_for_the_name() {
    let port = server().await;
    let trusting = client(include_bytes!("testdata/ca.pem"));
    assert_eq!(trusting.get_json(&format!("https://tls.test:{port}/")).await.unwrap()["fine"], 1);
    assert_eq!(trusting.get_json(&format!("https://other.test:{port}/")).await, Err(FetchError::Connect));
    assert_eq!(trusting.get_json(&format!("https://127.0.0.1:{port}/")).await, Err(FetchError::Connect));
    assert_eq!(client(b"").get_json(&format!("https://tls.test:{port}/")).await, Err(FetchError::Connect));
}
