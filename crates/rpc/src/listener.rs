//! The public listener: gRPC and REST on one port, distinguished by content type.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::{HeaderValue, Request, Response, StatusCode, Uri};

use crate::acceptor::{Acceptor, ListenerOptions};
use crate::body::ReplyBody;
use crate::connection_counts::ConnectionCounts;
use crate::front::Front;
use crate::hosts::Admission;
use crate::request_body::RequestBody;
use crate::services::Services;
use crate::{grpc, request_body, rest};

/// A bound socket, ready to serve.
pub struct Listener {
    acceptor: Acceptor,
    services: Services,
}

impl Listener {
    /// Binds an address, with or without gRPC reflection.
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn bind(
        address: SocketAddr,
        tls: Option<Arc<tokio_rustls::rustls::ServerConfig>>,
        options: ListenerOptions,
        reflection: bool,
    ) -> std::io::Result<Listener> {
        let services = Services::new(reflection, options.idle).map_err(std::io::Error::other)?;
        let acceptor = Acceptor::bind(address, tls, options).await?;
        Ok(Listener { acceptor, services })
    }

    /// The bound address.
    ///
    /// # Errors
    /// The socket is gone.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.acceptor.address()
    }

    /// The connections of this listener, counted as they come and go.
    pub fn counts(&self) -> Arc<ConnectionCounts> {
        self.acceptor.counts()
    }

    /// Serves until `stop` resolves, then lets running calls end.
    pub async fn serve(self, front: Arc<Front>, stop: impl Future<Output = ()> + Send) {
        let shared = Arc::new(Shared { services: self.services, front });
        let handler = move |request, peer| {
            let shared = shared.clone();
            async move { request_body::handle(request, |request| shared.route(request, peer)).await }
        };
        self.acceptor.serve(handler, stop).await;
    }
}

struct Shared {
    front: Arc<Front>,
    services: Services,
}

impl Shared {
    async fn route(&self, mut request: Request<RequestBody>, peer: IpAddr) -> Response<ReplyBody> {
        let host = request
            .uri()
            .authority()
            .map(http::uri::Authority::as_str)
            .or_else(|| request.headers().get(http::header::HOST).and_then(|host| host.to_str().ok()))
            .unwrap_or("");
        match self.front.hosts.admit(host, request.uri().path()) {
            Admission::Served => {}
            Admission::Below(prefix) => match below(prefix, request.uri()) {
                Some(uri) => *request.uri_mut() = uri,
                None => return plain(StatusCode::NOT_FOUND, 5, "Not Found"),
            },
            Admission::OtherRole => return plain(StatusCode::NOT_FOUND, 5, "Not Found"),
            Admission::UnknownHost => {
                return plain(StatusCode::MISDIRECTED_REQUEST, 5, "this server does not serve that host");
            }
        }
        if !grpc::is_grpc(request.headers()) {
            return rest::serve(&self.front, request, peer).await;
        }
        if self.services.serves(request.uri().path()) {
            let address = self.front.peer(peer, request.headers());
            return self.services.serve(request, &self.front.pipeline.limits, address).await;
        }
        grpc::serve(&self.front, request, peer).await
    }
}

/// An address with a path in front of its own; absent if it has none, as that of CONNECT.
fn below(prefix: &str, uri: &Uri) -> Option<Uri> {
    let path = uri.path_and_query().filter(|path| path.as_str().starts_with('/'))?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("{prefix}{path}").parse().ok()?);
    Uri::from_parts(parts).ok()
}

fn plain(status: StatusCode, code: i32, message: &str) -> Response<ReplyBody> {
    let body = format!("{{\"code\":{code},\"message\":\"{message}\",\"details\":[]}}");
    let mut response = Response::new(ReplyBody::from(body));
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(http::header::CONTENT_TYPE, json);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_front_keeps_host_and_query() {
        let put = |uri: &str| below("/osv", &uri.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(put("/v1/query?a=%2f").as_deref(), Some("/osv/v1/query?a=%2f"));
        assert_eq!(put("https://osv.x/v1/vulns/A").as_deref(), Some("https://osv.x/osv/v1/vulns/A"));
        assert_eq!(put("https://osv.x").as_deref(), Some("https://osv.x/osv/"));
        assert_eq!((put("*"), put("osv.x:443")), (None, None));
    }
}
