//! An organization as files: `bowline export` writes them, `bowline diff` compares them with the server, and `bowline
//! apply` makes the server equal to them.
//!
//! A document is one object: a kind, a path of names, and a `spec` with the fields of the API's message. The way of the
//! documents: `files` and `spec` read them, `server` reads what there is, `matching` finds the object of each document,
//! `plan` compares, `show` prints the plan, and `execute` carries it out. To add a kind, see `kinds`.

mod addresses;
mod execute;
mod export;
mod files;
mod images;
mod kinds;
mod matching;
mod names;
mod ownership;
mod plan;
mod requests;
mod schema;
mod server;
mod show;
mod spec;
mod yaml;

use std::collections::BTreeSet;
use std::path::PathBuf;

use bowline_client::{Api, ClientError, LookupKind};
use bowline_contract::Contract;
use bowline_core::Uidp;
use bowline_terminal::{Form, Output, Work, confirm};
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::session::Access;
use files::Document;
use kinds::{GROUP, KINDS};
use names::Names;
use plan::{Manner, Plan};
use server::Reader;
pub(crate) use show::document_schema as plan_schema;

/// `bowline export`.
#[derive(Args)]
#[command(after_help = "Example:
  bowline export acme --directory acme")]
pub struct ExportCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group (path or UIDP)
    #[arg(value_name = "GROUP")]
    group: String,
    /// Directory for a file of each kind [default: standard output]
    #[arg(long, short, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Replace the files of an earlier export in the directory
    #[arg(long, requires = "directory")]
    overwrite: bool,
}

/// Which files, and what to do about objects of others.
#[derive(Args)]
struct Declared {
    #[command(flatten)]
    access: Access,
    /// File or directory of documents, or - for standard input; can be repeated
    #[arg(long = "file", short, value_name = "FILE|DIR", required = true)]
    files: Vec<PathBuf>,
    /// Name under which the files own objects
    #[arg(long, value_name = "NAME", default_value = "files")]
    owner: String,
    /// Delete objects that the owner has and the files do not
    #[arg(long)]
    prune: bool,
    /// Own and change objects that others own, or no one
    #[arg(long)]
    take_over: bool,
    /// Delete repositories with --prune even if they have images
    #[arg(long, requires = "prune")]
    delete_images: bool,
    /// Directory that `fromFile` may read besides that of the documents; can be repeated
    #[arg(long, value_name = "DIR")]
    from_directory: Vec<PathBuf>,
    /// Write secrets again: whether they differ is unknown
    #[arg(long)]
    write_secrets: bool,
    #[command(flatten)]
    output: Output,
}

/// `bowline diff`.
#[derive(Args)]
#[command(after_help = "Exit code 7 if anything differs, 0 if nothing does.

Example:
  bowline diff -f acme --prune")]
pub struct DiffCommand {
    #[command(flatten)]
    declared: Declared,
}

/// `bowline apply`.
#[derive(Args)]
#[command(after_help = "Exit code 8 if a change failed after others were made; run it again to continue.

Example:
  bowline apply -f acme --take-over --yes")]
pub struct ApplyCommand {
    #[command(flatten)]
    declared: Declared,
}

/// Runs `bowline export`.
pub fn export(command: ExportCommand) -> Work<CliError> {
    Box::pin(async move {
        let contract = Contract::load();
        let api = command.access.session()?.api().await?;
        let (organization, rest) = command.group.split_once('/').unwrap_or((&command.group, ""));
        let mut reader = Reader::new(&api, &contract);
        let all = KINDS.iter().map(|kind| kind.name).collect();
        let server = reader.read(&BTreeSet::from([organization.to_owned()]), &all).await?;
        let (name, uids) = server.organizations.iter().next().ok_or_else(|| absent(organization))?;
        if uids.len() > 1 {
            let why = format!("several organizations are called {name}; name one by its UIDP: {}", uids.join(", "));
            return Err(CliError::Option(why));
        }
        let names = Names::new(&contract, &server);
        let path = match rest {
            "" => name.clone(),
            _ if Uidp::is_valid(&command.group) => names.path(&command.group).to_owned(),
            rest => format!("{name}/{rest}"),
        };
        if path == command.group && !rest.is_empty() && Uidp::is_valid(&path) || names.uids(GROUP, &path).is_empty() {
            return Err(absent(&command.group));
        }
        let directory = command.directory.as_deref().map(|directory| (directory, command.overwrite));
        export::export(&contract, &server, &path, directory)
    })
}

fn absent(group: &str) -> CliError {
    ClientError::not_found(LookupKind::Group, format!("there is no group {group:?} that you may see")).into()
}

/// Runs `bowline diff`.
pub fn diff(command: DiffCommand) -> Work<CliError> {
    Box::pin(async move {
        let contract = Contract::load();
        let declared = &command.declared;
        let documents = declared.documents(&contract)?;
        let api = declared.access.session()?.api().await?;
        let plan = declared.plan(&contract, &api, &documents).await?;
        if plan.has_changes() { Err(CliError::Differs) } else { Ok(()) }
    })
}

/// Runs `bowline apply`.
pub fn apply(command: ApplyCommand) -> Work<CliError> {
    Box::pin(async move {
        let contract = Contract::load();
        let declared = &command.declared;
        let documents = declared.documents(&contract)?;
        let api = declared.access.session()?.api().await?;
        let plan = declared.plan(&contract, &api, &documents).await?;
        let blocked: Vec<String> =
            plan.changes.iter().filter(|change| change.blocked.is_some()).map(plan::Change::shown_label).collect();
        if !blocked.is_empty() {
            return Err(CliError::NotOwned(blocked.join(", ")));
        }
        if !plan.has_changes() {
            // What an earlier run did not record needs no question: no object changes.
            return if plan.has_stale_inventory() { execute::execute(&api, &contract, &plan).await } else { Ok(()) };
        }
        let organizations: BTreeSet<&str> = documents.iter().map(Document::organization).collect();
        let names = organizations.into_iter().collect::<Vec<_>>().join(", ");
        let count = plan.changes.iter().filter(|change| change.action != plan::Action::Unknown).count();
        confirm(&format!("Make {count} changes to {names}"))?;
        execute::execute(&api, &contract, &plan).await
    })
}

impl Declared {
    fn documents(&self, contract: &Contract) -> Result<Vec<Document>, CliError> {
        ownership::validate_owner(&self.owner)?;
        files::read(contract, &self.files, &self.from_directory)
    }

    /// Makes the plan, and prints it.
    async fn plan(&self, contract: &Contract, api: &Api, documents: &[Document]) -> Result<Plan, CliError> {
        let mut reader = Reader::new(api, contract);
        let kinds = documents.iter().map(|document| document.kind.name).collect();
        let server = reader.read(&organizations(contract, documents)?, &kinds).await?;
        let mut names = Names::new(contract, &server);
        let items = matching::items(contract, documents, &server, &mut names, &self.owner)?;
        let manner = Manner {
            owner: self.owner.clone(),
            prune: self.prune,
            take_over: self.take_over,
            write_secrets: self.write_secrets,
        };
        let mut plan = plan::plan(contract, &items, &server, &names, &manner)?;
        if !self.delete_images {
            images::block_deletions(api, &mut plan).await?;
        }
        match self.output.form() {
            Form::Table | Form::Wide | Form::Csv => print(&show::lines(contract, &plan, &names)?)?,
            Form::Name => {
                let labels: Vec<String> = plan.changes.iter().map(plan::Change::shown_label).collect();
                print(&labels.iter().flat_map(|label| [label.as_str(), "\n"]).collect::<String>())?;
            }
            form => print(&form.document(&show::document(contract, &plan, &names)?)?)?,
        }
        Ok(plan)
    }
}

/// Names of the organizations that documents are in or refer to.
fn organizations(contract: &Contract, documents: &[Document]) -> Result<BTreeSet<String>, CliError> {
    let mut names = BTreeSet::new();
    for document in documents {
        names.insert(document.organization().to_owned());
        let message = schema::message(contract, document.kind)?;
        schema::each_reference(&message, &mut document.spec.members.clone(), "", &mut |kind, _, text| {
            // Built-in roles and people are in no organization; addresses of other registries have a dot.
            match text.split_once('/') {
                Some((first, _)) if !first.contains(['.', ':']) => drop(names.insert(first.to_owned())),
                None if kind == GROUP => drop(names.insert(text.clone())),
                _ => {}
            }
            Ok::<_, CliError>(())
        })?;
    }
    Ok(names)
}
