//! Accepts connections: HTTP/1.1 and HTTP/2, in clear or over TLS, gRPC and REST told apart by content type.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::{HeaderValue, Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::body::ReplyBody;
use crate::front::Front;
use crate::hosts::Admission;
use crate::request_body::RequestBody;
use crate::{grpc, request_body, rest};

/// Limits of connections.
#[derive(Clone, Copy, Debug)]
pub struct ListenerOptions {
    /// Most bytes of a request's header list over HTTP/2.
    pub header_bytes: u32,
    /// Most streams that one connection runs at once.
    pub concurrent_streams: u32,
    /// How long a client may take to say its first bytes, or to shake hands.
    pub first_bytes: Duration,
    /// How long running calls may go on after a shutdown began.
    pub drain: Duration,
}

impl Default for ListenerOptions {
    fn default() -> ListenerOptions {
        ListenerOptions {
            header_bytes: 64 << 10,
            concurrent_streams: 1000,
            first_bytes: Duration::from_secs(10),
            drain: Duration::from_secs(30),
        }
    }
}

/// A bound socket, ready to serve.
pub struct Listener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    services: Services,
    options: ListenerOptions,
}

impl Listener {
    /// Binds an address.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
        options: ListenerOptions,
    ) -> std::io::Result<Listener> {
        let socket = TcpListener::bind(address).await?;
        let services = Services::new().map_err(std::io::Error::other)?;
        Ok(Listener { socket, tls: tls.map(TlsAcceptor::from), services, options })
    }

    /// The bound address.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Serves until `stop` resolves, then lets running calls end.
    pub async fn serve(self, front: Arc<Front>, stop: impl Future<Output = ()> + Send) {
        let shared = Arc::new(Shared { services: self.services, front, options: self.options });
        let graceful = GracefulShutdown::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            let accepted = tokio::select! {
                accepted = self.socket.accept() => accepted,
                () = &mut stop => break,
            };
            match accepted {
                Ok((stream, peer)) => {
                    connection(shared.clone(), self.tls.clone(), stream, peer.ip(), graceful.watcher());
                }
                // Out of file descriptors, mostly: the next one may succeed.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(self.socket);
        if tokio::time::timeout(self.options.drain, graceful.shutdown()).await.is_err() {
            tracing::warn!("calls still ran when the time to drain was over");
        }
    }
}

struct Shared {
    front: Arc<Front>,
    services: Services,
    options: ListenerOptions,
}

fn connection(
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: IpAddr,
    watcher: hyper_util::server::graceful::Watcher,
) {
    tokio::spawn(async move {
        let _ = stream.set_nodelay(true);
        let limit = shared.options.first_bytes;
        match tls {
            None => {
                // A client that connects and says nothing must not hold a task for ever.
                if matches!(tokio::time::timeout(limit, stream.readable()).await, Ok(Ok(()))) {
                    talk(shared, stream, peer, watcher).await;
                }
            }
            Some(tls) => match tokio::time::timeout(limit, tls.accept(stream)).await {
                Ok(Ok(stream)) => talk(shared, stream, peer, watcher).await,
                Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
                Err(_) => tracing::debug!(%peer, "a TLS handshake took too long"),
            },
        }
    });
}

async fn talk<S>(shared: Arc<Shared>, stream: S, peer: IpAddr, watcher: hyper_util::server::graceful::Watcher)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(shared.options.header_bytes)
        .max_concurrent_streams(shared.options.concurrent_streams)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(Duration::from_mins(1))
        .keep_alive_timeout(Duration::from_secs(20));
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(Duration::from_secs(30))
        .max_buf_size(128 << 10)
        .max_headers(200);
    let service = hyper::service::service_fn(move |request| {
        let shared = shared.clone();
        async move {
            let response = request_body::handle(request, |request| shared.route(request, peer)).await;
            Ok::<_, Infallible>(response)
        }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%peer, %error, "a connection ended badly");
    }
}

impl Shared {
    async fn route(&self, request: Request<RequestBody>, peer: IpAddr) -> Response<ReplyBody> {
        let host = request
            .uri()
            .authority()
            .map(http::uri::Authority::as_str)
            .or_else(|| request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok()))
            .unwrap_or("");
        match self.front.hosts.admit(host, request.uri().path()) {
            Admission::Served => {}
            Admission::OtherRole => return plain(StatusCode::NOT_FOUND, 5, "Not Found"),
            Admission::UnknownHost => {
                return plain(StatusCode::MISDIRECTED_REQUEST, 5, "this server does not serve that host");
            }
        }
        if !grpc::is_grpc(request.headers()) {
            return rest::serve(&self.front, request, peer).await;
        }
        match self.services.of(request.uri().path()) {
            Some(service) => service(request).await,
            None => grpc::serve(&self.front, request, peer).await,
        }
    }
}

fn plain(status: StatusCode, code: i32, message: &str) -> Response<ReplyBody> {
    let body = format!("{{\"code\":{code},\"message\":\"{message}\",\"details\":[]}}");
    let mut response = Response::new(ReplyBody::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

/// Health and reflection, which libraries bring, by the beginning of their paths.
struct Services(Vec<(&'static str, Box<Service>)>);

type Service = dyn Fn(Request<RequestBody>) -> BoxFuture<'static, Response<ReplyBody>> + Send + Sync;

impl Services {
    fn new() -> Result<Services, tonic_reflection::server::Error> {
        let builder = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(bowline_contract::SERVED_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let (_, health) = tonic_health::server::health_reporter();
        Ok(Services(vec![
            ("/grpc.health.v1.Health/", boxed(health)),
            ("/grpc.reflection.v1.ServerReflection/", boxed(builder().build_v1()?)),
            ("/grpc.reflection.v1alpha.ServerReflection/", boxed(builder().build_v1alpha()?)),
        ]))
    }

    fn of(&self, path: &str) -> Option<&Service> {
        self.0.iter().find(|(prefix, _)| path.starts_with(prefix)).map(|(_, service)| &**service)
    }
}

fn boxed<S>(service: S) -> Box<Service>
where
    S: tower_service::Service<Request<RequestBody>, Response = Response<tonic::body::Body>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
{
    Box::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            match service.call(request).await {
                Ok(response) => response.map(ReplyBody::Grpc),
                Err(never) => match never {},
            }
        })
    })
}
