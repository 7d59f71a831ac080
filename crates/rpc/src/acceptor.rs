//! Accepts connections: HTTP/1.1 and HTTP/2, in clear or over TLS, within limits of number and silence.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline_pipeline::network;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::body::ReplyBody;
use crate::connection_counts::{ConnectionCounts, OpenConnection, Refusal};
use crate::peer::TrustedProxies;
use crate::pulse::{Pulse, RunningBody};
use bowline_pipeline::{Full, Quota};

/// How long a connection without a request under way stays after it was asked to close.
const FAREWELL: Duration = Duration::from_secs(1);
/// Shortest time between two log lines about refused connections.
const LOG_EVERY: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct ListenerOptions {
    /// Maximum number of open connections. Each needs a descriptor, and perhaps a second for a blob.
    pub connections: usize,
    /// Maximum number of open connections of one address; with IPv6, of one /64.
    pub connections_by_address: usize,
    /// Addresses that carry connections of many clients: only the total counts.
    pub proxies: TrustedProxies,
    /// Maximum bytes of a request's header list over HTTP/2.
    pub header_bytes: u32,
    /// Maximum number of streams that one connection runs at once.
    pub concurrent_streams: u32,
    /// Time from the connection to the end of its first request's head, with TLS handshake and version detection.
    pub first_request: Duration,
    /// How long a connection may have no request under way, and how long its client may take nothing of a response. Pings
    /// and half requests do not count.
    pub idle: Duration,
    /// How long running calls may continue after a shutdown began.
    pub drain: Duration,
}

/// A bound socket that takes connections within limits.
pub struct Acceptor {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    options: ListenerOptions,
    counts: Arc<ConnectionCounts>,
}

impl Acceptor {
    /// Binds an address.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
        options: ListenerOptions,
    ) -> std::io::Result<Acceptor> {
        let socket = TcpListener::bind(address).await?;
        Ok(Acceptor { socket, tls: tls.map(TlsAcceptor::from), options, counts: Arc::default() })
    }

    /// The bound address.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The connections of this listener, counted as they come and go.
    pub fn counts(&self) -> Arc<ConnectionCounts> {
        self.counts.clone()
    }

    /// Serves a router until `stop` resolves, then lets running calls end.
    pub async fn serve_router(self, router: axum::Router, stop: impl Future<Output = ()> + Send) {
        use tower_service::Service as _;
        let handler = move |request: Request<Incoming>, _| {
            let answer = router.clone().call(request.map(axum::body::Body::new));
            async move {
                match answer.await {
                    Ok(response) => response.map(ReplyBody::Other),
                    Err(never) => match never {},
                }
            }
        };
        self.serve(handler, stop).await;
    }

    /// Serves until `stop` resolves, then lets running calls end.
    pub(crate) async fn serve<H, F>(self, handler: H, stop: impl Future<Output = ()> + Send)
    where
        H: Fn(Request<Incoming>, IpAddr) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<ReplyBody>> + Send + 'static,
    {
        let Acceptor { socket, tls, options, counts } = self;
        let options = Arc::new(options);
        let open = Quota::new(options.connections, options.connections_by_address);
        let (stopping, _) = watch::channel(());
        let mut refusals = Refusals::default();
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = &mut stop => break,
            };
            let (stream, peer) = match accepted {
                Ok((stream, peer)) => (stream, peer.ip().to_canonical()),
                // Out of file descriptors, mostly: the next one may succeed.
                Err(error) => {
                    counts.refuse(Refusal::Accept);
                    refusals.count(&error);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let key = (!options.proxies.trusts(&peer)).then(|| network(peer));
            let lease = match open.take(key, 1) {
                Ok(lease) => lease,
                Err(full) => {
                    counts.refuse(match full {
                        Full::Total => Refusal::Limit,
                        Full::Key => Refusal::AddressLimit,
                    });
                    refusals.count(&format!("{full:?} limit of open connections reached by {peer}"));
                    continue;
                }
            };
            let connection =
                Connection { options: options.clone(), handler: handler.clone(), peer, pulse: Pulse::new() };
            let (tls, stopped) = (tls.clone(), stopping.subscribe());
            let counted = OpenConnection::new(counts.clone());
            tokio::spawn(async move {
                connection.run(tls, stream, stopped).await;
                drop((lease, counted));
            });
        }
        drop(socket);
        stopping.send_replace(());
        if tokio::time::timeout(options.drain, stopping.closed()).await.is_err() {
            tracing::warn!("calls still ran when the time to drain was over");
        }
    }
}

/// Refused connections since the last log line.
#[derive(Default)]
struct Refusals {
    count: u64,
    logged: Option<Instant>,
}

impl Refusals {
    fn count(&mut self, last: &dyn std::fmt::Display) {
        self.count += 1;
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            tracing::warn!(count = self.count, %last, "connections refused");
            *self = Refusals { count: 0, logged: Some(Instant::now()) };
        }
    }
}

struct Connection<H> {
    options: Arc<ListenerOptions>,
    handler: H,
    peer: IpAddr,
    pulse: Arc<Pulse>,
}

impl<H, F> Connection<H>
where
    H: Fn(Request<Incoming>, IpAddr) -> F + Send + Sync + 'static,
    F: Future<Output = Response<ReplyBody>> + Send + 'static,
{
    async fn run(self, tls: Option<TlsAcceptor>, stream: TcpStream, mut stopped: watch::Receiver<()>) {
        let _ = stream.set_nodelay(true);
        let Some(tls) = tls else {
            return self.talk(stream, stopped).await;
        };
        let peer = self.peer;
        tokio::select! {
            shaken = tls.accept(stream) => match shaken {
                Ok(stream) => self.talk(stream, stopped).await,
                Err(error) => tracing::debug!(%peer, %error, "TLS handshake failed"),
            },
            () = self.pulse.silence(self.options.first_request, self.options.idle) => {
                tracing::debug!(%peer, "TLS handshake timed out");
            }
            _ = stopped.changed() => {}
        }
    }

    async fn talk<S>(&self, stream: S, mut stopped: watch::Receiver<()>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (peer, pulse, options) = (self.peer, &self.pulse, &self.options);
        let service = hyper::service::service_fn(|request| {
            let running = pulse.begin();
            let answer = (self.handler)(request, peer);
            async move { Ok::<_, Infallible>(answer.await.map(|body| RunningBody::new(body, running))) }
        });
        let builder = builder(options);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let farewell = tokio::select! {
            ended = &mut connection => return log_end(peer, ended),
            () = pulse.silence(options.first_request, options.idle) => FAREWELL,
            () = pulse.stalled(options.idle) => return log_stalled(peer),
            _ = stopped.changed() => if pulse.has_served() { options.drain } else { return },
        };
        // A request that comes at this moment still gets its response.
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            ended = &mut connection => log_end(peer, ended),
            () = pulse.stalled(options.idle) => log_stalled(peer),
            () = pulse.quiet(farewell) => tracing::debug!(%peer, "silent connection closed"),
        }
    }
}

fn builder(options: &ListenerOptions) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(options.header_bytes)
        .max_concurrent_streams(options.concurrent_streams)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(Duration::from_mins(1))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
        .http1()
        .timer(TokioTimer::new())
        // Counts from the end of the request before, so that it is the limit of keep-alive as well.
        .header_read_timeout(options.idle)
        .max_buf_size(128 << 10)
        .max_headers(200);
    builder
}

fn log_stalled(peer: IpAddr) {
    tracing::debug!(%peer, "connection closed whose client takes nothing of a response");
}

fn log_end(peer: IpAddr, ended: Result<(), Box<dyn std::error::Error + Send + Sync>>) {
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "connection failed");
    }
}
