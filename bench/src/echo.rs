//! The bare echo: axum for REST and tonic for gRPC, answering every request with one payload.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::process::Stdio;
use std::task::{Context, Poll};

use axum::http::header::CONTENT_TYPE;
use bowline_contract::v2::registry as v2;
use bytes::{Buf, Bytes};
use http::{Request, Response};
use prost::Message;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, UnaryService};

use crate::Outcome;

/// A running echo in a process of its own; it ends with this value.
pub(crate) struct Echo {
    _process: Child,
    pub(crate) rest: SocketAddr,
    pub(crate) grpc: SocketAddr,
}

impl Echo {
    /// Echoes `json` over REST and `repo` over gRPC.
    pub(crate) async fn start(json: &[u8], repo: &v2::Repo) -> Outcome<Echo> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("echo")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let mut input = process.stdin.take().ok_or("the echo has no input")?;
        let repo = repo.encode_to_vec();
        for part in [json, &repo] {
            input.write_u64(part.len() as u64).await?;
            input.write_all(part).await?;
        }
        input.shutdown().await?;
        let output = process.stdout.take().ok_or("the echo has no output")?;
        let mut lines = BufReader::new(output).lines();
        let mut address = async || Outcome::Ok(lines.next_line().await?.ok_or("the echo ended")?.parse()?);
        let (rest, grpc) = (address().await?, address().await?);
        Ok(Echo { _process: process, rest, grpc })
    }
}

/// `bowline-bench echo`: payloads from stdin, addresses to stdout.
pub(crate) async fn run() -> Outcome<()> {
    let mut input = tokio::io::stdin();
    let (json, repo) = (payload(&mut input).await?, payload(&mut input).await?);
    let repo = v2::Repo::decode(repo)?;
    let rest = TcpListener::bind("127.0.0.1:0").await?;
    let grpc = TcpListener::bind("127.0.0.1:0").await?;
    let addresses = format!("{}\n{}\n", rest.local_addr()?, grpc.local_addr()?);
    let mut output = tokio::io::stdout();
    output.write_all(addresses.as_bytes()).await?;
    output.flush().await?;
    let router = axum::Router::new().fallback(move |body: Bytes| {
        let json = json.clone();
        async move {
            drop(body);
            ([(CONTENT_TYPE, "application/json")], json)
        }
    });
    let (rest, grpc) =
        tokio::join!(async move { axum::serve(NoDelay(rest), router).await }, serve_grpc(grpc, Answer(repo)));
    rest?;
    grpc
}

async fn payload(input: &mut tokio::io::Stdin) -> Outcome<Bytes> {
    let length = input.read_u64().await?;
    let mut bytes = vec![0; length as usize];
    input.read_exact(&mut bytes).await?;
    Ok(bytes.into())
}

/// A listener whose connections send at once, as the server's do.
struct NoDelay(TcpListener);

impl axum::serve::Listener for NoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        let _ = stream.set_nodelay(true);
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

async fn serve_grpc(listener: TcpListener, answer: Answer) -> Outcome<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = hyper_util::service::TowerToHyperService::new(Service(answer.clone()));
        tokio::spawn(async move {
            let io = hyper_util::rt::TokioIo::new(stream);
            let builder = hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
            // A client that is done resets its connection.
            let _ = builder.serve_connection(io, service).await;
        });
    }
}

/// What a generated service does for one method.
#[derive(Clone)]
struct Service(Answer);

impl tower_service::Service<Request<hyper::body::Incoming>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<hyper::body::Incoming>) -> Self::Future {
        let answer = self.0.clone();
        Box::pin(async move { Ok(Grpc::new(Messages).unary(answer, request).await) })
    }
}

#[derive(Clone)]
struct Answer(v2::Repo);

impl UnaryService<v2::GetRepoRequest> for Answer {
    type Response = v2::Repo;
    type Future = std::future::Ready<Result<tonic::Response<v2::Repo>, tonic::Status>>;

    fn call(&mut self, _: tonic::Request<v2::GetRepoRequest>) -> Self::Future {
        std::future::ready(Ok(tonic::Response::new(self.0.clone())))
    }
}

/// Messages as generated services read and write them.
struct Messages;

impl Codec for Messages {
    type Encode = v2::Repo;
    type Decode = v2::GetRepoRequest;
    type Encoder = Messages;
    type Decoder = Messages;

    fn encoder(&mut self) -> Messages {
        Messages
    }

    fn decoder(&mut self) -> Messages {
        Messages
    }
}

impl Encoder for Messages {
    type Item = v2::Repo;
    type Error = tonic::Status;

    fn encode(&mut self, item: v2::Repo, buffer: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|error| tonic::Status::internal(error.to_string()))
    }
}

impl Decoder for Messages {
    type Item = v2::GetRepoRequest;
    type Error = tonic::Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<v2::GetRepoRequest>, tonic::Status> {
        let message = v2::GetRepoRequest::decode(buffer.copy_to_bytes(buffer.remaining()));
        message.map(Some).map_err(|error| tonic::Status::invalid_argument(error.to_string()))
    }
}
