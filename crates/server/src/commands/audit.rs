use bowline_terminal::Work;
use std::io::{IsTerminal as _, Write as _};

use bowline_authn::crypto::random_bytes;
use bowline_core::{Clock as _, Uidp};
use bowline_pipeline::audit::{Findings, erase_snapshots, verify};
use bowline_pipeline::{Actor, OPERATOR};
use clap::{Args, Subcommand};

use crate::background::number_once;
use crate::commands::print;
use crate::error::StartError;
use crate::storage::Storage;
use crate::storage_options::StorageOptions;

/// `bowline audit`.
#[derive(Subcommand)]
pub enum AuditCommand {
    /// Recompute all numbers and hashes, and name the first wrong row
    Verify(Box<VerifyCommand>),
    /// Erase the stored states of one resource; the hash chains stay valid
    Erase(Box<EraseCommand>),
}

/// `bowline audit verify`.
#[derive(Args)]
pub struct VerifyCommand {
    /// Only the chain of this organization
    #[arg(long, value_name = "UID")]
    organization: Option<String>,
    #[command(flatten)]
    options: StorageOptions,
}

/// `bowline audit erase`.
#[derive(Args)]
pub struct EraseCommand {
    /// The resource whose images go
    #[arg(long, value_name = "UID")]
    resource: String,
    #[command(flatten)]
    options: StorageOptions,
}

/// Longest time that a row waits for its number beside a running server.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(15);

/// Runs `bowline audit`.
pub fn run(command: AuditCommand) -> Work<StartError> {
    Box::pin(execute(command))
}

async fn execute(command: AuditCommand) -> Result<(), StartError> {
    match command {
        AuditCommand::Verify(command) => check(*command).await,
        AuditCommand::Erase(command) => erase(*command).await,
    }
}

async fn check(command: VerifyCommand) -> Result<(), StartError> {
    let organization = command.organization;
    if let Some(uid) = &organization
        && !Uidp::parse(uid).is_ok_and(|uid| uid.is_root())
    {
        return Err(StartError::Option(format!("--organization {uid}: must be the UIDP of a root group")));
    }
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let is_watched = std::io::stderr().is_terminal();
    let progress = |rows: i64| {
        if is_watched {
            let _ = write!(std::io::stderr(), "\r{rows} rows");
        }
    };
    let findings = verify(&storage.db, organization.as_deref(), progress).await;
    storage.db.close().await;
    if is_watched {
        let _ = writeln!(std::io::stderr());
    }
    report(&findings?)
}

fn report(findings: &Findings) -> Result<(), StartError> {
    let Findings { rows, first, last, head, erased, waiting, wrong } = findings;
    if let Some(wrong) = wrong {
        return Err(StartError::Audit(wrong.clone()));
    }
    print(&format!(
        "{rows} rows verified, {first} to {last}\nhead {head}\n{erased} images erased, {waiting} rows without a number yet\n"
    ))
}

async fn erase(command: EraseCommand) -> Result<(), StartError> {
    let resource = command.resource;
    if !Uidp::is_valid(&resource) {
        return Err(StartError::Option(format!("--resource {resource}: must be a UIDP")));
    }
    let storage = Storage::open_existing(&command.options.with_file()?).await?;
    let erased = erase_all(&storage, &resource).await;
    storage.db.close().await;
    print(&format!("{} rows lost their images\n", erased?))
}

/// Erases until nothing of the resource waits for its number: an image without one must stay.
async fn erase_all(storage: &Storage, resource: &str) -> Result<u64, StartError> {
    let holder: String = bowline_core::hex(&random_bytes::<8>());
    let id: String = bowline_core::hex(&random_bytes::<16>());
    let begun = tokio::time::Instant::now();
    let mut rows = 0;
    loop {
        let now = bowline_core::SystemClock.now();
        while number_once(&storage.db, &holder, now).await? > 0 {}
        let (uid, request_id) = (resource.to_owned(), id.clone());
        let erased = storage.db.write(move |tx| {
            let (uid, request_id) = (uid.clone(), request_id.clone());
            Box::pin(async move {
                let actor = Actor { subject: OPERATOR, request_id: &request_id, method: "bowline audit erase" };
                erase_snapshots(tx, &uid, &actor, now).await
            })
        });
        let erased = erased.await?;
        rows += erased.rows;
        if erased.waiting == 0 {
            return Ok(rows);
        }
        if begun.elapsed() > PATIENCE {
            return Err(StartError::Audit(format!(
                "{} newer rows of the resource wait for their numbers, which the server gives; run this again",
                erased.waiting
            )));
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}
