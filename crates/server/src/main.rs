//! The `bowline` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    bowline_server::run(std::env::args_os())
}
