//! A receiver of events that records what it gets and responds as configured.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

const UNSHARED: &str = "no thread panics with the lock";

/// What came.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Delivery {
    /// A header's value; empty if it is not there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// The bearer token.
    pub(crate) fn token(&self) -> &str {
        self.header("authorization").strip_prefix("Bearer ").expect("a bearer token")
    }

    /// The token's header, and its claims.
    pub(crate) fn token_parts(&self) -> (Value, Value) {
        let part = |at: usize| {
            let part = self.token().split('.').nth(at).expect("a token has three parts");
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
        };
        (part(0), part(1))
    }
}

/// How to answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Status(u16),
    /// A redirect to this place.
    Redirect(String),
    /// A success after so long.
    Slow(Duration),
    /// A success with a body of so many bytes.
    Large(usize),
    /// A success with this body.
    Body(&'static [u8]),
}

type Answers = dyn Fn(&Delivery) -> Answer + Send + Sync;

/// A sink on loopback.
pub(crate) struct Sink {
    pub(crate) url: String,
    received: Arc<Mutex<Vec<Delivery>>>,
    answers: Arc<Mutex<Arc<Answers>>>,
}

impl Sink {
    /// A sink that takes everything.
    pub(crate) async fn start() -> Sink {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let received: Arc<Mutex<Vec<Delivery>>> = Arc::default();
        let all: Arc<Answers> = Arc::new(|_: &Delivery| Answer::Status(200));
        let answers = Arc::new(Mutex::new(all));
        let (noted, told) = (received.clone(), answers.clone());
        let take = async move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let delivery = Delivery { path: uri.to_string(), headers, body: body.to_vec() };
            let answer = told.lock().expect(UNSHARED).clone()(&delivery);
            noted.lock().expect(UNSHARED).push(delivery);
            respond(answer).await
        };
        let router = axum::Router::new().fallback(take);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Sink { url, received, answers }
    }

    /// Answers otherwise from now on.
    pub(crate) fn answer(&self, answer: impl Fn(&Delivery) -> Answer + Send + Sync + 'static) {
        *self.answers.lock().expect(UNSHARED) = Arc::new(answer);
    }

    /// Answers every delivery with this status from now on.
    pub(crate) fn answer_status(&self, status: u16) {
        self.answer(move |_| Answer::Status(status));
    }

    /// What came so far.
    pub(crate) fn received(&self) -> Vec<Delivery> {
        self.received.lock().expect(UNSHARED).clone()
    }

    /// What came, once it is as many.
    pub(crate) async fn wait_for(&self, count: usize) -> Vec<Delivery> {
        let started = Instant::now();
        loop {
            let received = self.received();
            if received.len() >= count {
                return received;
            }
            assert!(started.elapsed() < Duration::from_secs(20), "{} of {count} deliveries came", received.len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

async fn respond(answer: Answer) -> Response<Body> {
    let response = Response::builder();
    let response = match answer {
        Answer::Status(status) => response.status(status).body(Body::from("thanks")),
        Answer::Redirect(to) => response.status(StatusCode::FOUND).header("location", to).body(Body::empty()),
        Answer::Slow(time) => {
            tokio::time::sleep(time).await;
            response.body(Body::empty())
        }
        Answer::Body(bytes) => response.body(Body::from(bytes)),
        Answer::Large(bytes) => response.body(Body::from(vec![b'x'; bytes])),
    };
    response.expect("an answer")
}
