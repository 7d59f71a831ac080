//! Measures what the server promises, each line against a bare echo of the same payload in the same run.
//!
//! `bench/README.md` says what every line means; `bench/run` builds and runs this.

mod advisories;
mod answers;
mod authorize;
mod create;
mod echo;
mod environment;
mod exchange;
mod footprint;
mod get;
mod images;
mod issuer;
mod libraries;
mod list;
mod load;
mod moves;
mod packages;
mod postgres;
mod records;
mod registry;
mod sample;
mod seed;
mod server;
mod table;
mod transcode;
mod world;

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use environment::Environment;
use table::Table;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

const LINES: [&str; 20] = [
    "footprint",
    "transcode",
    "authorize",
    "get",
    "list",
    "advisories",
    "libraries",
    "packages",
    "exchange",
    "create",
    "registry",
    "tags",
    "layer",
    "images",
    "feed",
    "sboms",
    "records",
    "moves",
    "answers",
    "pulls",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error),
    };
    let work = async {
        match arguments.first().map(String::as_str) {
            // A process of its own that echoes: started by the lines.
            Some("echo") => echo::run().await,
            _ => measure(&arguments).await,
        }
    };
    match runtime.block_on(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(error.as_ref()),
    }
}

fn failed(error: &(dyn Error + Send + Sync)) -> ExitCode {
    table::complain(&format!("bowline-bench: {error}"));
    ExitCode::FAILURE
}

async fn measure(arguments: &[String]) -> Outcome<()> {
    let mut environment = Environment::read()?;
    let mut wanted: Vec<&str> = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--seconds" => {
                let seconds = rest.next().ok_or("--seconds needs a number")?.parse()?;
                environment.measured = Duration::from_secs_f64(seconds);
            }
            "--advisories" => {
                environment.advisories = rest.next().ok_or("--advisories needs a number")?.parse()?;
            }
            line if LINES.contains(&line) => wanted.push(line),
            other => return Err(format!("{other}: no such line; there are {}", LINES.join(", ")).into()),
        }
    }
    let mut table = Table::start(&environment)?;
    for line in LINES.iter().filter(|line| wanted.is_empty() || wanted.contains(line)) {
        match *line {
            "footprint" => footprint::run(&environment, &mut table).await?,
            "transcode" => transcode::run(&mut table)?,
            "authorize" => authorize::run(&environment, &mut table).await?,
            "get" => get::run(&environment, &mut table).await?,
            "list" => list::run(&environment, &mut table).await?,
            "advisories" => advisories::run(&environment, &mut table).await?,
            "libraries" => libraries::run(&environment, &mut table).await?,
            "packages" => packages::run(&environment, &mut table).await?,
            "exchange" => exchange::run(&environment, &mut table).await?,
            "create" => create::run(&environment, &mut table).await?,
            "registry" => registry::run(&environment, &mut table).await?,
            "images" => images::run(&environment, &mut table).await?,
            "feed" => images::feed::run(&environment, &mut table).await?,
            "records" => records::run(&environment, &mut table).await?,
            "moves" => moves::run(&environment, &mut table).await?,
            "answers" => answers::run(&environment, &mut table).await?,
            "pulls" => registry::pulls::run(&environment, &mut table).await?,
            "sboms" => registry::sboms::run(&environment, &mut table).await?,
            "tags" => registry::tags(&environment, &mut table).await?,
            _ => registry::layer(&environment, &mut table).await?,
        }
    }
    table.finish();
    Ok(())
}
