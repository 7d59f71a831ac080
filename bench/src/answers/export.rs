//! An audit log of a million entries, exported whole: the memory of the server meanwhile.

use std::path::{Path, PathBuf};

use bowline_core::Uidp;
use bowline_pipeline::audit::number_rows;
use bowline_pipeline::{Actor, Change, ResourceSnapshot, record_audit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::Outcome;
use crate::environment::Environment;
use crate::seed::{self, sample_repo, spread};
use crate::server::Server;
use crate::table::{Table, Target, Unit, complain, note};

const ENTRIES: u64 = 1_000_000;
/// Rows of one transaction.
const BATCH: u64 = 20_000;
const SAMPLED_EVERY: std::time::Duration = std::time::Duration::from_millis(20);
/// What one export may add to the memory of a server, in megabytes: a page and its encoded lines.
const MAX_MEGABYTES: f64 = 32.0;

pub(super) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = prepared(environment).await?;
    let server = Server::start(environment, &directory).await?;
    let token = server.operator_token()?;
    // What a first call allocates once is not the export's.
    export(&server, &token, "after=999000").await?;
    let before = server.anonymous()?;
    let started = std::time::Instant::now();
    let ((lines, bytes), most) = measured(&server, &token).await?;
    let seconds = started.elapsed().as_secs_f64();
    let line = "memory that the export of a million audit entries adds, at most";
    table.row(line, Unit::Megabytes, Target::AtMost(MAX_MEGABYTES), most.saturating_sub(before) as f64 / 1e6);
    note(&format!(
        "{lines} lines, {:.0} MB in {seconds:.1} s, {:.0} lines per second",
        bytes as f64 / 1e6,
        lines as f64 / seconds
    ));
    if lines < ENTRIES {
        return Err(format!("the export has only {lines} lines").into());
    }
    Ok(())
}

/// The whole export, and the most memory of its own that the server had meanwhile.
async fn measured(server: &Server, token: &str) -> Outcome<((u64, u64), u64)> {
    let mut most = 0;
    let mut export = std::pin::pin!(export(server, token, ""));
    loop {
        most = most.max(server.anonymous()?);
        tokio::select! {
            exported = &mut export => return Ok((exported?, most)),
            () = tokio::time::sleep(SAMPLED_EVERY) => {}
        }
    }
}

/// Reads an export to its end, and discards it: lines and bytes.
async fn export(server: &Server, token: &str, query: &str) -> Outcome<(u64, u64)> {
    let mut stream = TcpStream::connect(server.api).await?;
    let head = format!(
        "GET /audit/v1/entries:export?{query} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {token}\r\n\
         connection: close\r\n\r\n",
        server.api
    );
    stream.write_all(head.as_bytes()).await?;
    let (mut lines, mut bytes, mut part) = (0, 0, vec![0; 1 << 16]);
    let mut last = 0;
    loop {
        let read = stream.read(&mut part).await?;
        let Some(part) = part.get(..read).filter(|part| !part.is_empty()) else { return Ok((lines, bytes)) };
        if bytes == 0 && !part.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(part).into_owned().into());
        }
        bytes += read as u64;
        // The head of the response has line breaks too, but none after a brace.
        lines += u64::from(last == b'}' && part.first() == Some(&b'\n'));
        lines += part.windows(2).filter(|pair| pair == b"}\n").count() as u64;
        last = part.last().copied().unwrap_or_default();
    }
}

/// A directory with so many entries, as creations of repositories leave them.
async fn prepared(environment: &Environment) -> Outcome<PathBuf> {
    let directory = environment.cache.join(format!("audit-{ENTRIES}-{}", seed::schema()));
    if directory.exists() {
        return Ok(directory);
    }
    complain(&format!("preparing {ENTRIES} audit entries, once"));
    let draft = directory.with_extension("draft");
    write(&draft).await?;
    std::fs::rename(&draft, &directory)?;
    Ok(directory)
}

async fn write(draft: &Path) -> Outcome<()> {
    let db = seed::create(draft).await?;
    let org = Uidp::root_from([0x0c; 20]);
    for batch in 0..ENTRIES / BATCH {
        let org = org.clone();
        db.write::<_, bowline_core::Error>(move |tx| {
            let org = org.clone();
            Box::pin(async move {
                for n in batch * BATCH..(batch + 1) * BATCH {
                    record_audit(tx, n as i64, &actor(), &creation(&org, n)).await?;
                }
                Ok(())
            })
        })
        .await?;
        while number(&db).await? > 0 {}
    }
    db.close().await;
    Ok(())
}

/// Numbers some of the rows that wait: how many.
async fn number(db: &bowline_store::Db) -> Outcome<u64> {
    Ok(db.write::<_, bowline_core::Error>(|tx| Box::pin(number_rows(tx))).await?)
}

fn actor() -> Actor<'static> {
    Actor { subject: "bench", request_id: "bench", method: "chainguard.platform.registry.v2.ReposService.CreateRepo" }
}

fn creation(org: &Uidp, n: u64) -> Change {
    let repo = sample_repo(format!("repository-{n}"));
    Change {
        kind: "repo",
        uid: org.child_from(spread(n)).as_str().into(),
        before: None,
        after: Some(ResourceSnapshot::of(&repo)),
    }
}
