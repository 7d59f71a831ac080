//! The registry beside Debian's `docker-registry`: the same requests to both, on the same disk, in turn.

mod peer;
pub(crate) mod pulls;
pub(crate) mod sboms;
mod wire;

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bowline_contract::v1::oidc;
use bytes::Bytes;
use http::HeaderValue;
use serde_json::json;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::Outcome;
use crate::environment::Environment;
use crate::exchange::data_place;
use crate::issuer::Issuer;
use crate::sample::{Sample, median};
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::{World, call};
use peer::Peer;
use wire::{Content, Fresh, Side, Wire};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
const ROUNDS: usize = 3;
const TAGS: u64 = 100_000;
/// MiB of memory that are at hand when a turn begins.
const WARM: usize = 1024;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, &directory.path().join("data")).await?;
    let issuer = Issuer::start().await?;
    let ours = side(&server, &issuer).await?;
    let Some(peer) = Peer::start(directory.path()).await? else {
        note("the registry is not measured: install docker-registry, the peer");
        return Ok(());
    };
    let sides = [ours, peer.side()];
    let time = environment.measured;
    let numbers = Arc::new(AtomicU64::new(0));
    compare(table, "push 1 MiB blobs, 4 connections", 3.0, &sides, |side| small_blobs(side, time, numbers.clone()))
        .await?;
    compare(table, "push one blob of 100 MiB, MiB/s", 2.5, &sides, |side| large_blob(side, numbers.clone())).await?;
    compare(table, "push a small image, 7 requests, 4 connections", 5.0, &sides, |side| {
        images(side, time, numbers.clone())
    })
    .await?;
    compare(table, "pull 100 MiB, MiB/s", 0.6, &sides, pull_large).await?;
    compare(table, "pull 1 KiB, 16 connections", 10.0, &sides, |side| pull_small(side, time)).await?;
    compare(table, "manifest by tag, 16 connections", 10.0, &sides, |side| pull_manifest(side, time)).await?;
    note(&format!("resident after it all {:.1} MB", server.resident()? as f64 / 1e6));
    Ok(())
}

/// A layer far larger than memory may be: pushed and pulled, and what the server held at most.
pub(crate) async fn layer(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, &directory.path().join("data")).await?;
    let side = side(&server, &Issuer::start().await?).await?;
    let content = Content { chunk: Bytes::from(vec![6; MIB]), times: 10 << 10, end: Bytes::from_static(b"layer") };
    let digest = content.digest();
    let mut wire = Wire::open(&side).await?;
    let started = Instant::now();
    wire.push_blob(&digest, content).await?;
    let pushed = started.elapsed();
    let started = Instant::now();
    wire.pull(&format!("blobs/{digest}")).await?;
    let pulled = started.elapsed();
    let peak = server.peak()? as f64 / 1e6;
    table.row("memory at most, a layer of 10 GiB pushed and pulled", Unit::Megabytes, Target::AtMost(150.0), peak);
    note(&format!("pushed in {:.1} s, pulled in {:.1} s", pushed.as_secs_f64(), pulled.as_secs_f64()));
    Ok(())
}

/// A repository of this server, and a token for it.
async fn side(server: &Server, issuer: &Issuer) -> Outcome<Side> {
    side_of(&mut World::prepare(server, issuer, None).await?, server, issuer).await
}

async fn side_of(world: &mut World, server: &Server, issuer: &Issuer) -> Outcome<Side> {
    let presented = World::presented(server, issuer, 1)?;
    let host = server.api.to_string();
    let request = oidc::ExchangeRequest { aud: vec![host], identity: world.identity.clone(), ..Default::default() };
    let token = call::<oidc::rpc::security_token_service::Exchange>(&mut world.lane, &presented, &request).await?.token;
    let token = Some(HeaderValue::from_str(&format!("Bearer {token}"))?);
    Ok(Side { address: server.api, token, repo: format!("{}/bench/app", world.org) })
}

/// Ours against the peer's: the middle of some rounds of each, in turn.
async fn compare<F, R>(table: &mut Table, line: &str, least: f64, sides: &[Side; 2], measure: F) -> Outcome<()>
where
    F: Fn(Side) -> R,
    R: Future<Output = Outcome<f64>>,
{
    let mut figures = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (side, figures) in sides.iter().zip(&mut figures) {
            written().await?;
            tokio::task::spawn_blocking(warm).await??;
            let figure = measure(side.clone()).await?;
            // The first warms up.
            if round > 0 {
                figures.push(figure);
            }
        }
    }
    let [ours, theirs] = figures.map(median);
    table.row(&format!("{line}: of the peer's"), Unit::Times, Target::AtLeast(least), ours / theirs);
    note(&format!("{ours:.1} and {theirs:.1}"));
    Ok(())
}

/// Has everything written that waits for it: anyone who waits for the disk would wait for what the other left in memory.
async fn written() -> Outcome<()> {
    let status = Command::new("sync").status().await?;
    if status.success() { Ok(()) } else { Err(format!("sync: {status}").into()) }
}

/// Has memory at hand for what one turn writes. A host may have taken back what lay free; then every page that is used
/// for the first time costs a fault there, and a turn would show how fast the host is.
fn warm() -> Outcome<()> {
    let mut file = tempfile::tempfile_in("/dev/shm")?;
    let chunk = vec![1; MIB];
    for _ in 0..WARM {
        file.write_all(&chunk)?;
    }
    Ok(())
}

/// What many connections do again and again: how often in a second.
async fn repeat<F, R>(side: &Side, connections: usize, time: Duration, work: F) -> Outcome<f64>
where
    F: Fn(Wire) -> R + Clone + Send + 'static,
    R: Future<Output = Outcome<Wire>> + Send,
{
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..connections {
        let (mut wire, work) = (Wire::open(side).await?, work.clone());
        tasks.spawn(async move {
            let mut done = 0_u64;
            while started.elapsed() < time {
                wire = work(wire).await?;
                done += 1;
            }
            Outcome::Ok(done)
        });
    }
    let mut done = 0;
    while let Some(joined) = tasks.join_next().await {
        done += joined??;
    }
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

fn next(numbers: &AtomicU64) -> u64 {
    numbers.fetch_add(1, Ordering::Relaxed)
}

async fn small_blobs(side: Side, time: Duration, numbers: Arc<AtomicU64>) -> Outcome<f64> {
    let fresh = Fresh::new(MIB);
    let work = move |mut wire: Wire| {
        let (content, digest) = fresh.numbered(next(&numbers));
        async move {
            wire.push_blob(&digest, content).await?;
            Ok(wire)
        }
    };
    repeat(&side, 4, time, work).await
}

async fn large_blob(side: Side, numbers: Arc<AtomicU64>) -> Outcome<f64> {
    let (content, digest) = Fresh::new(100 * MIB).numbered(next(&numbers));
    let mut wire = Wire::open(&side).await?;
    let started = Instant::now();
    wire.push_blob(&digest, content).await?;
    Ok(100.0 / started.elapsed().as_secs_f64())
}

async fn images(side: Side, time: Duration, numbers: Arc<AtomicU64>) -> Outcome<f64> {
    let (config, layer) = (Fresh::new(KIB), Fresh::new(4 * KIB));
    let work = move |mut wire: Wire| {
        let blobs = [config.numbered(next(&numbers)), layer.numbered(next(&numbers))];
        let tag = format!("t{}", next(&numbers));
        async move {
            image(&mut wire, &tag, blobs).await?;
            Ok(wire)
        }
    };
    repeat(&side, 4, time, work).await
}

/// Seven requests: are they there, the two blobs with two each, and the manifest.
async fn image(wire: &mut Wire, tag: &str, blobs: [(Content, String); 2]) -> Outcome<()> {
    let [(_, config), (_, layer)] = &blobs;
    let manifest = manifest(config, KIB, &[(layer, 4 * KIB)]);
    for (content, digest) in blobs {
        if !wire.has_blob(&digest).await? {
            wire.push_blob(&digest, content).await?;
        }
    }
    wire.push_manifest(tag, manifest).await
}

/// The same content each time, and its digest.
fn known(byte: u8, length: usize) -> (Content, String) {
    let content = Content::whole(Bytes::from(vec![byte; length]));
    let digest = content.digest();
    (content, digest)
}

fn manifest(config: &str, size: usize, layers: &[(&str, usize)]) -> Bytes {
    let layers: Vec<_> = layers
        .iter()
        .map(|(digest, size)| json!({ "mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": digest, "size": size }))
        .collect();
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "layers": layers,
        "config": { "mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": size },
    });
    manifest.to_string().into()
}

async fn pull_large(side: Side) -> Outcome<f64> {
    let content = Content { chunk: Bytes::from(vec![1; MIB]), times: 100, end: Bytes::from_static(b"to pull") };
    let digest = content.digest();
    let mut wire = Wire::open(&side).await?;
    if !wire.has_blob(&digest).await? {
        wire.push_blob(&digest, content).await?;
    }
    let started = Instant::now();
    let length = wire.pull(&format!("blobs/{digest}")).await?;
    Ok(length as f64 / MIB as f64 / started.elapsed().as_secs_f64())
}

async fn pull_small(side: Side, time: Duration) -> Outcome<f64> {
    let content = Content::whole(Bytes::from(vec![2; KIB]));
    let digest = content.digest();
    let mut wire = Wire::open(&side).await?;
    if !wire.has_blob(&digest).await? {
        wire.push_blob(&digest, content).await?;
    }
    pulls(&side, time, format!("blobs/{digest}")).await
}

async fn pull_manifest(side: Side, time: Duration) -> Outcome<f64> {
    let mut wire = Wire::open(&side).await?;
    image(&mut wire, "pulled", [known(3, KIB), known(4, 4 * KIB)]).await?;
    pulls(&side, time, "manifests/pulled".into()).await
}

async fn pulls(side: &Side, time: Duration, what: String) -> Outcome<f64> {
    let work = move |mut wire: Wire| {
        let what = what.clone();
        async move {
            wire.pull(&what).await?;
            Ok(wire)
        }
    };
    repeat(side, 16, time, work).await
}

/// Many tags in one repository: pages of them, wherever they begin.
pub(crate) async fn tags(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(data_place(environment)?)?;
    let server = Server::start(environment, &directory.path().join("data")).await?;
    let side = side(&server, &Issuer::start().await?).await?;
    let mut wire = Wire::open(&side).await?;
    let blobs = [known(3, KIB), known(4, 4 * KIB)];
    let manifest = manifest(&blobs[0].1, KIB, &[(&blobs[1].1, 4 * KIB)]);
    image(&mut wire, "first", blobs).await?;
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..32 {
        let (mut wire, next, manifest) = (Wire::open(&side).await?, next.clone(), manifest.clone());
        tasks.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= TAGS {
                    return Outcome::Ok(());
                }
                wire.push_manifest(&format!("v{number:06}"), manifest.clone()).await?;
            }
        });
    }
    while let Some(joined) = tasks.join_next().await {
        joined??;
    }
    // The server does not keep a connection that was silent for so long.
    let mut wire = Wire::open(&side).await?;
    let started = Instant::now();
    let mut latencies = Vec::new();
    while started.elapsed() < environment.measured {
        let last = (latencies.len() as u64 * 7919) % TAGS;
        let asked = Instant::now();
        wire.pull(&format!("tags/list?n=100&last=v{last:06}")).await?;
        latencies.push(asked.elapsed().as_nanos() as u64);
    }
    let p99 = Sample::new(latencies).milliseconds(0.99);
    table.row("pages of 100 of 100,000 tags, p99", Unit::Milliseconds, Target::AtMost(20.0), p99);
    Ok(())
}
