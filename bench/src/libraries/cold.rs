//! Pages of a catalogue that no cache of the machine holds.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use super::prepare::Artifact;
use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane};
use crate::sample::Sample;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const PAGES: usize = 500;

/// The file with the database of a data directory.
pub(super) fn database(directory: &Path) -> PathBuf {
    directory.join("bowline.db")
}

/// Pages with the versions of artifacts that lie far from each other, each read once, after the machine forgot the file.
pub(super) async fn pages(
    environment: &Environment,
    table: &mut Table,
    directory: &Path,
    artifacts: usize,
) -> Outcome<()> {
    let path = database(directory);
    std::fs::File::open(&path)?.sync_all()?;
    // A reader that asks for no caching and reads nothing: the pages of the file go.
    run(Command::new("dd").arg(format!("if={}", path.display())).args(["iflag=nocache", "count=0", "status=none"]))?;
    let resident = run(Command::new("fincore").args(["--bytes", "--noheadings", "--output", "RES"]).arg(&path))?;
    let resident: u64 = resident.trim().parse()?;
    if resident > path.metadata()?.len() / 100 {
        return Err(format!("{resident} bytes of the database stay in the page cache").into());
    }
    let server = Server::start(environment, directory).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, None).await?;
    let mut lane = Lane::rest(server.api).await?;
    let mut nanoseconds = Vec::with_capacity(PAGES);
    for page in 0..PAGES {
        let Artifact { id, .. } = Artifact::new(page * (artifacts / PAGES).max(1) % artifacts);
        let ask = Ask::get(format!("/libraries/v2/artifacts/{id}/versions"), &world.token)?;
        let begun = Instant::now();
        lane.send(ask).await?;
        nanoseconds.push(u64::try_from(begun.elapsed().as_nanos())?);
    }
    let sample = Sample::new(nanoseconds);
    table.row(
        "versions of an artifact, cold, p99",
        Unit::Milliseconds,
        Target::AtMost(10.0),
        sample.milliseconds(0.99),
    );
    note(&format!("{PAGES} pages, median {:.2} ms", sample.milliseconds(0.5)));
    Ok(())
}

/// What a command prints.
pub(super) fn run(command: &mut Command) -> Outcome<String> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
