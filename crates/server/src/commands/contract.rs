use std::fmt::Write as _;
use std::path::PathBuf;

use bowline_contract::{Contract, print_capabilities, print_packages};
use clap::Subcommand;

use crate::commands::print;
use crate::error::StartError;

/// `bowline contract`.
#[derive(Subcommand)]
pub enum ContractCommand {
    /// Write the contract as text, one file per package
    Print {
        /// Directory to write to; made if it is not there
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// List all methods, implemented or not, and count them
    Status,
    /// List all capabilities
    Capabilities,
}

/// Runs `bowline contract`.
pub fn run(command: ContractCommand) -> Result<(), StartError> {
    match command {
        ContractCommand::Print { out } => write(&out),
        ContractCommand::Status => print(&status()),
        ContractCommand::Capabilities => print(&print_capabilities(&Contract::load())),
    }
}

fn write(out: &std::path::Path) -> Result<(), StartError> {
    let contract = Contract::load();
    let failed = |path: PathBuf| move |source| StartError::File { path, source };
    std::fs::create_dir_all(out).map_err(failed(out.into()))?;
    let mut files = print_packages(&contract);
    files.insert("capabilities.tsv".into(), print_capabilities(&contract));
    for (name, text) in files {
        let path = out.join(name);
        std::fs::write(&path, text).map_err(failed(path))?;
    }
    Ok(())
}

fn status() -> String {
    let contract = Contract::load();
    let implemented = bowline_services::implemented(&contract);
    let mut text = String::new();
    for method in contract.methods() {
        let word = if implemented.contains(&method.index) { "implemented" } else { "unimplemented" };
        let _ = writeln!(text, "{word}\t{}", method.full_name);
    }
    let done = implemented.len();
    let _ = writeln!(text, "{done} implemented, {} unimplemented", contract.methods().len() - done);
    text
}
