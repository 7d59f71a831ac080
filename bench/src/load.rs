//! The load generator: REST over HTTP/1.1 or gRPC over HTTP/2, in a closed or an open loop.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::Outcome;
use crate::sample::Sample;

/// One request, without what the connection adds.
#[derive(Clone)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) token: HeaderValue,
    pub(crate) body: Bytes,
    /// Tag of the response that the caller has.
    pub(crate) known: Option<HeaderValue>,
}

impl Ask {
    pub(crate) fn get(path: impl Into<String>, token: &str) -> Outcome<Ask> {
        Ask::new(Method::GET, path, token, Bytes::new())
    }

    pub(crate) fn new(method: Method, path: impl Into<String>, token: &str, body: Bytes) -> Outcome<Ask> {
        Ok(Ask {
            method,
            path: path.into(),
            token: HeaderValue::from_str(&format!("Bearer {token}"))?,
            body,
            known: None,
        })
    }

    /// A gRPC request of this method.
    pub(crate) fn grpc<M: bowline_contract::Method>(request: &M::Request, token: &str) -> Outcome<Ask> {
        let (service, method) = M::FULL_NAME.rsplit_once('.').ok_or("a method without a service")?;
        let message = prost::Message::encode_to_vec(request);
        Ask::new(Method::POST, format!("/{service}/{method}"), token, frame(&message))
    }
}

/// A gRPC message with its prefix.
pub(crate) fn frame(message: &[u8]) -> Bytes {
    let mut framed = BytesMut::with_capacity(message.len() + 5);
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(message);
    framed.freeze()
}

/// The n-th request of a load.
pub(crate) type Asks = Arc<dyn Fn(u64) -> Ask + Send + Sync>;

/// The same request again and again.
pub(crate) fn always(ask: Ask) -> Asks {
    Arc::new(move |_| ask.clone())
}

/// How many connections, and how many requests at once on each.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Rest { connections: usize },
    Grpc { connections: usize, streams: usize },
}

impl Shape {
    fn lanes(self) -> usize {
        match self {
            Shape::Rest { connections } => connections,
            Shape::Grpc { connections, streams } => connections * streams,
        }
    }
}

/// A connection, or a share of one.
pub(crate) enum Lane {
    Rest(http1::SendRequest<Full<Bytes>>, HeaderValue),
    Grpc(http2::SendRequest<Full<Bytes>>, String),
}

impl Lane {
    pub(crate) async fn rest(address: SocketAddr) -> Outcome<Lane> {
        let (sender, connection) = http1::handshake(stream(address).await?).await?;
        tokio::spawn(connection);
        Ok(Lane::Rest(sender, HeaderValue::from_str(&address.to_string())?))
    }

    pub(crate) async fn grpc(address: SocketAddr) -> Outcome<Lane> {
        let shaken = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20)
            .handshake(stream(address).await?)
            .await;
        let (sender, connection) = shaken?;
        tokio::spawn(connection);
        Ok(Lane::Grpc(sender, format!("http://{address}")))
    }

    fn share(&self) -> Option<Lane> {
        match self {
            Lane::Rest(..) => None,
            Lane::Grpc(sender, origin) => Some(Lane::Grpc(sender.clone(), origin.clone())),
        }
    }

    /// Sends, and takes the whole response.
    pub(crate) async fn send(&mut self, ask: Ask) -> Outcome<Bytes> {
        Ok(self.answer(ask).await?.1)
    }

    /// The same with the headers of a response over REST.
    pub(crate) async fn answer(&mut self, ask: Ask) -> Outcome<(HeaderMap, Bytes)> {
        match self {
            Lane::Rest(sender, host) => {
                let mut request = Request::new(Full::new(ask.body));
                *request.method_mut() = ask.method;
                *request.uri_mut() = Uri::try_from(ask.path)?;
                let headers = request.headers_mut();
                headers.insert(http::header::HOST, host.clone());
                headers.insert(http::header::AUTHORIZATION, ask.token);
                headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
                if let Some(known) = ask.known {
                    headers.insert(http::header::IF_NONE_MATCH, known);
                }
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let (status, headers) = (response.status(), response.headers().clone());
                let body = collect(response.into_body()).await?.0;
                if status.is_success() || status == StatusCode::NOT_MODIFIED {
                    Ok((headers, body))
                } else {
                    Err(refusal(status.as_str(), &body))
                }
            }
            Lane::Grpc(sender, origin) => {
                let mut request = Request::new(Full::new(ask.body));
                *request.method_mut() = Method::POST;
                *request.uri_mut() = Uri::try_from(format!("{origin}{}", ask.path))?;
                let headers = request.headers_mut();
                headers.insert(http::header::AUTHORIZATION, ask.token);
                headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(http::header::TE, HeaderValue::from_static("trailers"));
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let early = status(response.headers());
                let (body, trailers) = collect(response.into_body()).await?;
                match early.or_else(|| trailers.as_ref().and_then(status)).as_deref() {
                    Some("0") => Ok((HeaderMap::new(), body)),
                    other => Err(refusal(other.unwrap_or("no status"), &body)),
                }
            }
        }
    }
}

fn refusal(status: &str, body: &[u8]) -> Box<dyn std::error::Error + Send + Sync> {
    format!("the server answered {status}: {}", String::from_utf8_lossy(body)).into()
}

fn status(headers: &HeaderMap) -> Option<String> {
    headers.get("grpc-status").map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

async fn collect(body: Incoming) -> Outcome<(Bytes, Option<HeaderMap>)> {
    let collected = body.collect().await?;
    let trailers = collected.trailers().cloned();
    Ok((collected.to_bytes(), trailers))
}

async fn stream(address: SocketAddr) -> Outcome<TokioIo<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(TokioIo::new(stream))
}

/// A set of open connections to one server, with what to ask.
pub(crate) struct Load {
    lanes: Vec<Lane>,
    asks: Asks,
    next: Arc<AtomicU64>,
}

impl Load {
    pub(crate) async fn open(address: SocketAddr, shape: Shape, asks: Asks) -> Outcome<Load> {
        let mut lanes = Vec::with_capacity(shape.lanes());
        match shape {
            Shape::Rest { connections } => {
                for _ in 0..connections {
                    lanes.push(Lane::rest(address).await?);
                }
            }
            Shape::Grpc { connections, streams } => {
                for _ in 0..connections {
                    let lane = Lane::grpc(address).await?;
                    lanes.extend((1..streams).filter_map(|_| lane.share()));
                    lanes.push(lane);
                }
            }
        }
        Ok(Load { lanes, asks, next: Arc::default() })
    }

    /// Every lane sends its next request as soon as it has its response: requests per second.
    pub(crate) async fn peak(&mut self, time: Duration) -> Outcome<f64> {
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        for mut lane in self.lanes.drain(..) {
            let (asks, next) = (self.asks.clone(), self.next.clone());
            tasks.spawn(async move {
                let mut done = 0_u64;
                while started.elapsed() < time {
                    lane.send(asks(next.fetch_add(1, Ordering::Relaxed))).await?;
                    done += 1;
                }
                Outcome::Ok((lane, done))
            });
        }
        let mut done = 0;
        while let Some(joined) = tasks.join_next().await {
            let (lane, count) = joined??;
            self.lanes.push(lane);
            done += count;
        }
        Ok(done as f64 / started.elapsed().as_secs_f64())
    }

    /// Requests leave at a fixed rate whether or not answers come; a latency counts from the moment at
    /// which its request was due, so that a stall is not hidden by requests that it kept from leaving.
    pub(crate) async fn latency(&mut self, per_second: f64, time: Duration) -> Outcome<Sample> {
        let started = Instant::now();
        let slot = Arc::new(AtomicU64::new(0));
        let mut tasks = JoinSet::new();
        for mut lane in self.lanes.drain(..) {
            let (asks, next, slot) = (self.asks.clone(), self.next.clone(), slot.clone());
            tasks.spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let due = Duration::from_secs_f64(slot.fetch_add(1, Ordering::Relaxed) as f64 / per_second);
                    if due >= time {
                        return Outcome::Ok((lane, latencies));
                    }
                    // The runtime's timer has steps of a millisecond: what is nearly due leaves at once.
                    if started.elapsed() + Duration::from_micros(500) < due {
                        tokio::time::sleep_until(started + due).await;
                    }
                    lane.send(asks(next.fetch_add(1, Ordering::Relaxed))).await?;
                    latencies.push(started.elapsed().saturating_sub(due).as_nanos() as u64);
                }
            });
        }
        let mut all = Vec::new();
        while let Some(joined) = tasks.join_next().await {
            let (lane, latencies) = joined??;
            self.lanes.push(lane);
            all.extend(latencies);
        }
        Ok(Sample::new(all))
    }

    /// One request at a time: how long each takes.
    pub(crate) async fn one_by_one(&mut self, times: usize) -> Outcome<Sample> {
        let lane = self.lanes.first_mut().ok_or("a load without a lane")?;
        let mut latencies = Vec::with_capacity(times);
        for _ in 0..times {
            let ask = (self.asks)(self.next.fetch_add(1, Ordering::Relaxed));
            let started = Instant::now();
            lane.send(ask).await?;
            latencies.push(started.elapsed().as_nanos() as u64);
        }
        Ok(Sample::new(latencies))
    }
}
