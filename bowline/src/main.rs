//! The `bowline` command: the server's commands and the client's in one binary.
//!
//! Without the feature `server` it is a client alone, without a database engine.

mod cli;
mod completion;
mod error;
mod examples;
mod reference;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run(std::env::args_os())
}
