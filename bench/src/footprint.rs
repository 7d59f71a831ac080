//! Memory of an idle server, and how soon it is ready.

use std::time::Duration;

use crate::Outcome;
use crate::environment::Environment;
use crate::seed;
use crate::server::Server;
use crate::table::{Table, Target, Unit};

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir()?;
    let server = Server::start(environment, directory.path()).await?;
    table.row("ready, empty directory", Unit::Seconds, Target::AtMost(0.5), server.ready_after.as_secs_f64());
    tokio::time::sleep(Duration::from_secs(2)).await;
    table.row("resident when idle", Unit::Megabytes, Target::AtMost(60.0), server.resident()? as f64 / 1e6);
    drop(server);
    let million = seed::repositories(environment, 1000, 1_000_000).await?;
    let server = Server::start(environment, &million.directory).await?;
    table.row("ready, a million repositories", Unit::Seconds, Target::AtMost(2.0), server.ready_after.as_secs_f64());
    Ok(())
}
