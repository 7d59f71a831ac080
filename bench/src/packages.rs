//! A page of a Python package that comes from an upstream: read again and again, in whole and by its tag; and files that are
//! not here yet, beside the upstream itself.

use std::time::Instant;

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::package_upstreams::SetUpstream;
use bowline_contract::v1::libraries::Ecosystem;
use bytes::Bytes;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::Outcome;
use crate::environment::Environment;
use crate::get::bare_rate;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane, Load, Shape, always};
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const REST: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;
/// Versions of the package, with a wheel each: a page of some 100 KB.
const VERSIONS: usize = 280;
/// Files that are fetched, one after the other, and bytes of each.
const FILES: usize = 200;
const BYTES: usize = 256 << 10;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let server = Server::start(environment, directory.path()).await?;
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(&server, &issuer, None).await?;
    let index = index().await?;
    let upstream = own::PackageUpstream {
        name: "index".into(),
        ecosystem: Ecosystem::Python as i32,
        url: format!("http://{index}/simple/"),
        ..own::PackageUpstream::default()
    };
    let request = own::SetPackageUpstreamRequest { parent: world.org.clone(), upstream: Some(upstream) };
    world.call::<SetUpstream>(&request).await?;
    let token = world.installer(&server, &issuer).await?;
    pages(environment, table, &server, &token).await?;
    misses(table, &server, &token, index).await
}

async fn pages(environment: &Environment, table: &mut Table, server: &Server, token: &str) -> Outcome<()> {
    let ask = Ask::get("/libraries/python/simple/wide/", token)?;
    let (headers, page) = Lane::rest(server.api).await?.answer(ask.clone()).await?;
    let tag = headers.get(http::header::ETAG).cloned().ok_or("a page without a tag")?;
    let echo = bare_rate(environment, REST, &page, always(ask.clone())).await?;
    let mut whole = Load::open(server.api, REST, always(ask.clone())).await?;
    let mut known = Load::open(server.api, REST, always(Ask { known: Some(tag), ..ask })).await?;
    let (mut wholes, mut knowns) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        wholes.push(whole.peak(environment.measured).await?);
        knowns.push(known.peak(environment.measured).await?);
    }
    let (whole, known) = (median(wholes), median(knowns));
    table.row("page of a package, with a token", Unit::PerSecond, Target::None, whole);
    note(&format!("{} bytes; bare echo {echo:.0}/s", page.len()));
    table.row("  share of the bare echo", Unit::Percent, Target::AtLeast(35.0), whole / echo * 100.0);
    table.row("  304, to the whole page", Unit::Percent, Target::AtLeast(130.0), known / whole * 100.0);
    Ok(())
}

/// Files that are fetched when they are requested: what that adds to the time that the upstream takes itself.
async fn misses(table: &mut Table, server: &Server, token: &str, index: std::net::SocketAddr) -> Outcome<()> {
    let (mut ours, mut upstream) = (Lane::rest(server.api).await?, Lane::rest(index).await?);
    let (mut through, mut direct) = (Vec::new(), Vec::new());
    for number in 0..FILES {
        let path = format!("/files/{}", file(number));
        let begun = Instant::now();
        upstream.send(Ask::get(path, token)?).await?;
        direct.push(begun.elapsed().as_secs_f64() * 1000.0);
        let path = format!("/libraries/python/files/{}/{}", digest(&content(number)), file(number));
        let begun = Instant::now();
        ours.send(Ask::get(path, token)?).await?;
        through.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let (through, direct) = (median(through), median(direct));
    table.row("a file of 256 KiB that is not here", Unit::Milliseconds, Target::None, through);
    note(&format!("the upstream itself takes {direct:.2} ms; stored durably before the last 64 KiB are served"));
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    bowline_core::hex(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref())
}

fn content(number: usize) -> Vec<u8> {
    (0..BYTES).map(|at| (at.wrapping_mul(number + 7) >> 3) as u8).collect()
}

fn file(number: usize) -> String {
    format!("narrow-1.{number}-py3-none-any.whl")
}

/// An index with both packages.
async fn index() -> Outcome<std::net::SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let wide: Vec<Value> = (0..VERSIONS).map(|n| listed(&format!("wide-1.{n}-py3-none-any.whl"), &[])).collect();
    let files: Vec<Bytes> = (0..FILES).map(|number| content(number).into()).collect();
    let narrow: Vec<Value> = (0..FILES).map(|n| listed(&file(n), &files[n])).collect();
    let router = axum::Router::new().fallback(move |request: axum::extract::Request| {
        let path = request.uri().path();
        let body = match path.strip_prefix("/files/narrow-1.").and_then(|rest| rest.split('-').next()?.parse().ok()) {
            Some(number) => files.get::<usize>(number).cloned().unwrap_or_default(),
            None if path.ends_with("/wide/") => page(&wide),
            None => page(&narrow),
        };
        async move { ([(CONTENT_TYPE, HeaderValue::from_static("application/vnd.pypi.simple.v1+json"))], body) }
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address)
}

fn page(files: &[Value]) -> Bytes {
    json!({ "meta": { "api-version": "1.1" }, "files": files }).to_string().into()
}

fn listed(name: &str, bytes: &[u8]) -> Value {
    json!({
        "filename": name, "url": format!("/files/{name}"), "hashes": { "sha256": digest(bytes) }, "size": bytes.len(),
        "upload-time": "2020-01-01T00:00:00Z", "requires-python": ">=3.9", "yanked": false,
        "core-metadata": { "sha256": digest(name.as_bytes()) },
    })
}
