//! A plain http server on loopback that misbehaves on request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) enum Reply {
    Json(Value),
    Raw(String),
    Slow,
    /// Zeros without a stated length.
    Endless,
    /// Less than was stated.
    CutOff,
}

impl Reply {
    pub(crate) fn status(status: u16, headers: &str) -> Self {
        Self::Raw(format!("HTTP/1.1 {status} X\r\n{headers}content-length: 2\r\nconnection: close\r\n\r\n{{}}"))
    }

    pub(crate) fn text(body: &str) -> Self {
        Self::Raw(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len()))
    }
}

type Handler = dyn Fn(&str) -> Reply + Send + Sync;

pub(crate) struct TestServer {
    pub(crate) url: String,
    pub(crate) port: u16,
    hits: Arc<Mutex<Vec<String>>>,
}

impl TestServer {
    /// The handler gets the server's own URL and the request's path.
    pub(crate) async fn start(handler: impl Fn(&str, &str) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let url = format!("http://127.0.0.1:{port}");
        let hits = Arc::<Mutex<Vec<String>>>::default();
        let (own, seen) = (url.clone(), Arc::clone(&hits));
        let handler: Arc<Handler> = Arc::new(move |path: &str| handler(&own, path));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&handler), Arc::clone(&seen)));
            }
        });
        Self { url, port, hits }
    }

    /// The paths of the requests so far.
    pub(crate) fn hits(&self) -> Vec<String> {
        self.hits.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, handler: Arc<Handler>, hits: Arc<Mutex<Vec<String>>>) {
    let mut head = Vec::new();
    while !head.windows(4).any(|w| w == b"\r\n\r\n") {
        let mut buffer = [0; 1024];
        match stream.read(&mut buffer).await {
            // A TLS ClientHello gets no response.
            Ok(n) if n > 0 && buffer[0] != 0x16 => head.extend_from_slice(&buffer[..n]),
            _ => {
                hits.lock().unwrap().push("(nothing)".to_owned());
                return;
            }
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    hits.lock().unwrap().push(path.clone());
    match handler(&path) {
        Reply::Json(value) => {
            let Reply::Raw(text) = Reply::text(&value.to_string()) else {
                return;
            };
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Reply::Raw(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
        }
        Reply::Slow => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{").await;
            tokio::time::sleep(Duration::from_mins(1)).await;
        }
        Reply::Endless => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n").await;
            let zeros = vec![b'0'; 1 << 20];
            for _ in 0..100 {
                if stream.write_all(&zeros).await.is_err() {
                    return;
                }
            }
        }
        Reply::CutOff => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}").await;
        }
    }
}
