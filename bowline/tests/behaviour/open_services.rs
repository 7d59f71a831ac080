//! Health and reflection, which ask no caller for a token.

use std::convert::Infallible;
use std::time::Duration;

use bowline_testkit::{TestServer, engines};
use bytes::Bytes;
use futures_util::stream::pending;
use http::{Request, Response};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;

const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
const PATIENCE: Duration = Duration::from_secs(30);

/// A request's body that never ends.
type Endless = StreamBody<futures_util::stream::Pending<Result<Frame<Bytes>, Infallible>>>;

async fn client(server: &TestServer) -> SendRequest<Endless> {
    let stream = TcpStream::connect(server.server().address()).await.expect("a connection");
    let (client, connection) = handshake(TokioExecutor::new(), TokioIo::new(stream)).await.expect("HTTP/2");
    tokio::spawn(connection);
    client
}

async fn open(client: &mut SendRequest<Endless>, path: &str) -> Response<Incoming> {
    let request = Request::post(format!("http://a{path}")).header("content-type", "application/grpc");
    let request = request.body(StreamBody::new(pending())).expect("a request");
    let answer = tokio::time::timeout(PATIENCE, client.send_request(request)).await.expect("the call opens or not");
    answer.expect("a response")
}

fn status(response: &Response<Incoming>) -> Option<&str> {
    response.headers().get("grpc-status").map(|value| value.to_str().expect("a number"))
}

#[tokio::test]
async fn open_calls_of_an_address_are_few_and_end_when_idle() {
    let server = TestServer::start_with(engines()[0], |options| options.idle_timeout = Some("2s".into())).await;
    let mut open_calls = Vec::new();
    let mut refused = 0;
    for _ in 0..3 {
        let mut client = client(&server).await;
        for _ in 0..20 {
            let response = open(&mut client, REFLECTION).await;
            match status(&response) {
                None => open_calls.push(response),
                Some("8") => refused += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!((open_calls.len(), refused), (16, 44));
    for call in open_calls {
        let end = tokio::time::timeout(PATIENCE, call.into_body().collect()).await.expect("an idle call ends");
        let trailers = end.expect("a whole response").trailers().cloned().expect("trailers");
        assert_eq!(trailers["grpc-status"], "14");
    }
    let mut client = client(&server).await;
    assert_eq!(status(&open(&mut client, REFLECTION).await), None, "there is room again");
    server.stop().await;
}

#[tokio::test]
async fn calls_count_for_the_rate_limit_of_their_address() {
    let server = TestServer::start_with(engines()[0], |options| options.rate_limit_address = Some(1)).await;
    let mut client = client(&server).await;
    // Ten at once, and one a second.
    for _ in 0..200 {
        let response = open(&mut client, REFLECTION).await;
        if response.headers().get("grpc-message").is_some_and(|text| text.as_bytes().starts_with(b"Rate")) {
            server.stop().await;
            return;
        }
    }
    panic!("two hundred calls within their limit");
}

#[tokio::test]
async fn reflection_is_an_option_and_health_is_not() {
    let server = TestServer::start_with(engines()[0], |options| options.grpc_reflection = Some(false)).await;
    let mut client = client(&server).await;
    assert_eq!(status(&open(&mut client, REFLECTION).await), Some("12"));
    let caller = server.anonymous();
    let health = caller.grpc_raw("/grpc.health.v1.Health/Check", Vec::new()).await;
    assert!(health.is_ok(), "{health:?}");
    server.stop().await;
}
