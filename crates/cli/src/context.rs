//! `bowline context`: the servers that the command line knows.

use bowline_client::{Context, Contexts};
use bowline_terminal::{Output, Table, note, public_url};
use clap::Subcommand;

use crate::error::CliError;
use crate::print;
use crate::session::contexts_file;

/// `bowline context`.
#[derive(Subcommand)]
pub enum ContextCommand {
    /// List contexts; the current one has a star
    List {
        #[command(flatten)]
        output: Output,
    },
    /// Store the address of a server under a name, and make it the current context
    Set {
        /// Name of the context
        name: String,
        /// Address of the API
        #[arg(long, value_name = "URL")]
        api: String,
        /// Address of the token exchange [default: the API's]
        #[arg(long, value_name = "URL")]
        issuer: Option<String>,
        /// Identity to assume with the environment' own token (CI)
        #[arg(long, value_name = "UIDP")]
        identity: Option<String>,
    },
    /// Change the current context
    Use {
        /// Name of the context
        name: String,
    },
    /// Remove a context; its tokens stay until `bowline auth logout`
    Remove {
        /// Name of the context
        name: String,
    },
}

/// Runs `bowline context`.
pub fn run(command: ContextCommand) -> Result<(), CliError> {
    let path = contexts_file()?;
    let mut known = Contexts::read(&path)?;
    match command {
        ContextCommand::List { output } => return print(&listed(&known, &output)?),
        ContextCommand::Set { name, api, issuer, identity } => {
            let api = public_url("api", &api)?;
            let issuer = issuer.map(|issuer| public_url("issuer", &issuer)).transpose()?;
            let registry =
                known.contexts.remove(&name).filter(|former| former.api == api).and_then(|former| former.registry);
            known.contexts.insert(name.clone(), Context { api, issuer, identity, registry });
            let former = known.current.replace(name.clone()).filter(|former| *former != name);
            let former = former.map(|former| format!(", in place of {former}")).unwrap_or_default();
            note(&format!("the context {name} is stored and is the current one now{former}\n"));
        }
        ContextCommand::Use { name } => {
            known.find(Some(&name))?;
            known.current = Some(name);
        }
        ContextCommand::Remove { name } => {
            known.find(Some(&name))?;
            known.contexts.remove(&name);
            known.current = known.current.filter(|current| *current != name);
        }
    }
    Ok(known.write(&path)?)
}

fn listed(known: &Contexts, output: &Output) -> Result<String, CliError> {
    let mut table = Table::new(&["current", "name", "api", "issuer", "identity", "registry"]);
    for (name, context) in &known.contexts {
        let star = if known.current.as_ref() == Some(name) { "*" } else { "" };
        let optional =
            [&context.issuer, &context.identity, &context.registry].map(|cell| cell.clone().unwrap_or_default());
        table.push([star.to_owned(), name.clone(), context.api.clone()].into_iter().chain(optional));
    }
    Ok(output.list(&table)?)
}
