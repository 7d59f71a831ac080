//! `bowline serve --demo`: a directory with the generated data of an organization that does not exist.
//!
//! [`prepare`] fills a directory that is empty, with a server of its own on loopback: every resource, image and report is
//! made by a call of its API, as people and machines would make it, with a clock that begins 90 days ago and moves
//! forward between calls. Only the names and contents are generated; the server's checks, audit log and events are
//! those of any other. The data is the same in every run, apart from what a server draws by itself (UIDPs, keys, codes).
//!
//! - `world`: the server, its clock, and the people who call it.
//! - `organization`, `history`, `advisories`, `packages`, `deliveries`: what they do.
//! - `catalog`: repositories, packages and vulnerabilities; `image`: images of them.
//!
//! To add data: a function that calls methods through `World::call`, and a line in `fill`.

mod advisories;
mod catalog;
mod clock;
mod deliveries;
mod gate;
mod history;
mod image;
mod organization;
mod packages;
mod people;
mod random;
mod records;
mod registry;
mod world;

use std::io::IsTerminal as _;

use bowline_core::{Clock, Micros, SystemClock};
use bowline_server::commands::serve;
use bowline_server::demo_directory::{self, DemoDirectory};
use bowline_server::{Options, StartError};
use bowline_terminal::{Work, note};

use crate::clock::DAY;
use crate::world::World;

/// Days of history before the time at which a directory is filled.
const DAYS: i64 = 90;

/// Runs `bowline serve`, with `--demo` after making the data.
pub fn serve(mut options: Options) -> Work<StartError> {
    Box::pin(async move {
        if options.demo {
            prepare(&mut options, &SystemClock).await?;
        }
        serve::run(options).await
    })
}

/// Fills the directory of the options, unless an earlier run has filled it; the options then serve it.
///
/// # Errors
/// The options name another database or bucket, or a directory with something else in it, or the filling fails.
pub async fn prepare(options: &mut Options, clock: &dyn Clock) -> Result<(), StartError> {
    let directory = demo_directory::require_own(options)?;
    match demo_directory::state(&directory)? {
        DemoDirectory::Filled => return Ok(()),
        DemoDirectory::Interrupted => return Err(demo_directory::interrupted(&directory)),
        DemoDirectory::Foreign => return Err(demo_directory::foreign(&directory)),
        DemoDirectory::Empty => {}
    }
    require_free(options)?;
    demo_directory::begin(&directory)?;
    fill(options, clock.now()).await?;
    demo_directory::complete(&directory)
}

/// Refuses addresses that the server could not listen on afterwards, before anything is made.
fn require_free(options: &Options) -> Result<(), StartError> {
    for (address, flag) in [(options.listen(), "listen"), (options.admin_listen(), "admin-listen")] {
        let bound = std::net::TcpListener::bind(address);
        bound.map_err(|source| StartError::Listen { address: address.to_string(), flag, source })?;
    }
    Ok(())
}

/// Fills an empty directory with the history that ends at that time.
async fn fill(options: &Options, now: Micros) -> Result<(), StartError> {
    // The days of the history are days of UTC, as those of charts are.
    let first = now.div_euclid(DAY) * DAY - DAYS * DAY;
    let mut world = World::start(options, first).await?;
    let filled = fill_world(&mut world, now).await;
    world.stop().await;
    filled
}

async fn fill_world(world: &mut World, now: Micros) -> Result<(), StartError> {
    report("people, groups, roles and workloads");
    let organization = organization::create(world).await?;
    report("packages of libraries and their policies");
    packages::create(world, &organization).await?;
    report("images, scans and pulls of 90 days");
    let mut pending = advisories::Advisories::new(&organization);
    history::create(world, &organization, &mut pending).await?;
    report("subscriptions and deliveries");
    world.clock().move_to(now - DAY / 24);
    deliveries::create(world, &organization).await?;
    world.clock().move_to(now);
    Ok(())
}

/// A line for each part on a terminal, since filling takes some seconds.
fn report(part: &str) {
    if std::io::stderr().is_terminal() {
        note(&format!("making demonstration data: {part}\n"));
    }
}
