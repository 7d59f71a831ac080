//! Everything moved, backed up and restored, beside `cp` of the same bytes; and a client while a backup is made.

use std::path::{Path, PathBuf};
use std::time::Instant;

use aws_lc_rs::digest::{SHA256, digest};
use bowline_store::{Db, SqliteOptions, Value, WriteTx};
use tokio::process::Command;

use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Load, Shape, always};
use crate::seed;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

/// Bytes of each blob, and how many there are.
const BLOB: usize = 64 << 20;
const BLOBS: u8 = 32;
/// What is allowed: half of the rate of `cp`, and besides the time that so many rows take.
const SHARE_OF_CP: f64 = 0.5;
const ROWS_PER_SECOND: f64 = 50_000.0;
/// Requests per second of a client that would not load the server by itself.
const RATE: f64 = 300.0;
const CLIENT: Shape = Shape::Rest { connections: 8 };

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let million = seed::repositories(environment, 1000, 1_000_000).await?;
    let work = tempfile::tempdir_in(&environment.cache)?;
    let source = work.path().join("source");
    copy(&million.directory, &source).await?;
    // A server gives its database what belongs to it.
    drop(Server::start(environment, &source).await?);
    add_blobs(&source).await?;
    let rows = rows(&source).await?;
    let bare = copy(&source, &work.path().join("cp")).await?;
    note(&format!("{rows} rows, {BLOBS} blobs of {} MiB; cp {bare:.1} s", BLOB >> 20));
    let allowed = bare / SHARE_OF_CP + rows as f64 / ROWS_PER_SECOND;

    let moved = work.path().join("moved");
    let took = timed(environment, &["migrate", "--from", &text(&source), "--to", &text(&moved)]).await?;
    table.row("move to another directory", Unit::Seconds, Target::AtMost(allowed), took);
    std::fs::remove_dir_all(&moved)?;
    std::fs::remove_dir_all(work.path().join("cp"))?;

    let (archive, identity) = (work.path().join("archive"), work.path().join("identity"));
    let keygen = Command::new(&environment.server).args(["backup", "keygen", &text(&identity)]).output().await?;
    let recipient = String::from_utf8(keygen.stdout)?.trim().to_owned();
    let backup = ["backup", "create", "--to", &text(&archive), "--recipient", &recipient, "--data-dir", &text(&source)];
    beside_a_client(environment, table, &source, million.org, &backup).await?;

    let (key, restored) = (source.join("key"), work.path().join("restored"));
    let from = ["--from", &text(&archive), "--identity", &text(&identity), "--key-file", &text(&key)];
    let place = ["--work-dir", &text(work.path()), "--to", &text(&restored)];
    let took = timed(environment, &[&["restore"][..], &from, &place].concat()).await?;
    table.row("restore a backup", Unit::Seconds, Target::AtMost(allowed), took);
    Ok(())
}

/// A backup, and the 99th percentile of a client before it and while it is made.
async fn beside_a_client(
    environment: &Environment,
    table: &mut Table,
    source: &Path,
    org: String,
    backup: &[&str],
) -> Outcome<()> {
    let server = Server::start(environment, source).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, Some(org)).await?;
    let ask = Ask::get(format!("/iam/v2/groups/{}", world.org), &world.token)?;
    let mut client = Load::open(server.api, CLIENT, always(ask)).await?;
    client.peak(environment.warm_up).await?;
    let before = client.latency(RATE, environment.measured * 3).await?.milliseconds(0.99);
    let started = Instant::now();
    let mut running = Command::new(&environment.server).args(backup).stdout(std::process::Stdio::null()).spawn()?;
    let mut worst = 0.0_f64;
    let mut rounds = 0;
    while running.try_wait()?.is_none() {
        worst = worst.max(client.latency(RATE, environment.measured * 3).await?.milliseconds(0.99));
        rounds += 1;
    }
    if !running.wait().await?.success() {
        return Err("the backup failed".into());
    }
    table.row(
        "back up, with a server and its client beside it",
        Unit::Seconds,
        Target::None,
        started.elapsed().as_secs_f64(),
    );
    table.row("  p99 of the client meanwhile, against before", Unit::Times, Target::AtMost(1.5), worst / before);
    note(&format!("{RATE} requests per second; {before:.2} ms before, at most {worst:.2} ms in {rounds} rounds"));
    Ok(())
}

async fn timed(environment: &Environment, arguments: &[&str]) -> Outcome<f64> {
    let started = Instant::now();
    let output = Command::new(&environment.server).args(arguments).output().await?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(started.elapsed().as_secs_f64())
}

/// Copies a directory, durably; the seconds that took.
async fn copy(from: &Path, to: &Path) -> Outcome<f64> {
    let started = Instant::now();
    let copied =
        Command::new("cp").args(["-r", "--reflink=never", "--preserve=mode"]).arg(from).arg(to).status().await?;
    let synced = Command::new("sync").arg("-f").arg(to).status().await?;
    if copied.success() && synced.success() { Ok(started.elapsed().as_secs_f64()) } else { Err("cp failed".into()) }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Blobs with their rows, as pushes would have left them.
async fn add_blobs(data: &Path) -> Outcome<()> {
    let db = open(data).await?;
    for n in 0..BLOBS {
        let bytes: Vec<u8> =
            (0..BLOB).map(|at| (at as u8).wrapping_mul(31).wrapping_add(n) ^ (at >> 11) as u8).collect();
        let hex: String = bowline_core::hex(digest(&SHA256, &bytes).as_ref());
        let directory: PathBuf = data.join("blobs/sha256").join(&hex[..2]);
        std::fs::create_dir_all(&directory)?;
        std::fs::write(directory.join(&hex), &bytes)?;
        let added = db.write(move |tx: &mut WriteTx| {
            let digest = format!("sha256:{hex}");
            Box::pin(async move {
                let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, $2, 1, '')";
                tx.execute(sql, &[Value::from(&digest), Value::Int(BLOB as i64)]).await
            })
        });
        let _: u64 = added.await?;
    }
    db.close().await;
    Ok(())
}

async fn rows(data: &Path) -> Outcome<u64> {
    let db = open(data).await?;
    let mut snapshot = db.snapshot().await?;
    let mut rows = 0;
    for table in bowline_store::transfer_tables()? {
        rows += snapshot.count(&table).await?;
    }
    drop(snapshot);
    db.close().await;
    Ok(rows)
}

async fn open(data: &Path) -> Outcome<Db> {
    Ok(Db::open_sqlite(&data.join("bowline.db"), SqliteOptions::default()).await?)
}
