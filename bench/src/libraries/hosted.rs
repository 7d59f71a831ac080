//! Bytes of the database for each hosted version and each hosted file, with what is written beside them: audit entries, events.

use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use http::Method;

use super::cold::{database, run};
use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane};
use crate::server::Server;
use crate::table::{Table, Target, Unit};
use crate::world::World;

/// Versions with one file each, and then files of one version.
const VERSIONS: usize = 2000;
const FILES: usize = 900;

pub(super) async fn room(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let server = Server::start(environment, directory.path()).await?;
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(&server, &issuer, None).await?;
    let token = world.publisher(&server, &issuer).await?;
    let mut lane = Lane::rest(server.api).await?;
    let group = world.org.clone();
    let mut put = async |version: usize, file: usize| -> Outcome<()> {
        let path = format!("/libraries/files/{group}/tool/1.{version}.0/file-{file}.bin");
        let body = Bytes::from(format!("the bytes of {version} {file}"));
        lane.send(Ask::new(Method::PUT, path, &token, body)?).await.map(drop)
    };
    let before = used(directory.path())?;
    for version in 0..VERSIONS {
        put(version, 0).await?;
    }
    let with_versions = used(directory.path())?;
    for file in 1..=FILES {
        put(0, file).await?;
    }
    let with_files = used(directory.path())?;
    let version = (with_versions - before) / VERSIONS as f64;
    table.row("database for each hosted version of one file", Unit::Bytes, Target::None, version);
    let file = (with_files - with_versions) / FILES as f64;
    table.row("database for each further hosted file", Unit::Bytes, Target::None, file);
    Ok(())
}

/// Bytes that the pages of a database take, those in its log included.
fn used(directory: &Path) -> Outcome<f64> {
    let sql = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
    let text = run(Command::new("sqlite3").arg("-readonly").arg(database(directory)).arg(sql))?;
    Ok(text.trim().parse()?)
}
