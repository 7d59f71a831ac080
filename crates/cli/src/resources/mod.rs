//! Commands that are made from the contract: one line of a table for each method, flags from the fields of its message.
//!
//! To add a command, add a line to a table in `table.rs`; the flags, the help, the resolution of names and the output
//! follow from the method's messages. A command with a form of its own is written by hand beside them, as
//! `presets.rs` is.

mod audit_export;
mod command;
mod explanation;
mod field_args;
mod kubernetes;
mod list;
mod names;
mod presets;
mod preview;
mod run;
mod table;
mod table_access;
mod table_audit;
mod table_hosted_packages;
mod table_iam;
mod table_iam_people;
mod table_image_policy;
mod table_libraries;
mod table_library_policies;
mod table_registry;
mod table_server;
mod table_vulnerabilities;
#[cfg(test)]
mod tests;
mod uidp_names;

use std::marker::PhantomData;

use bowline_terminal::Work;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};

use crate::error::CliError;
use crate::schema::Shape;
pub(crate) use preview::DryRun;
pub use preview::{AccessCommand, run as run_access};
use table::Resource;

/// Resources whose commands stand together, such as those of `bowline iam`.
pub trait Family: Sized + 'static {
    /// The tables of the family's resources.
    #[doc(hidden)]
    fn tables() -> &'static [&'static [Resource]];

    /// The resources of all its tables.
    #[doc(hidden)]
    fn resources() -> impl Iterator<Item = &'static Resource> {
        Self::tables().iter().copied().flatten()
    }

    /// Adds the commands; they are made when one of them is parsed or shown.
    fn add(command: Command) -> Command {
        Self::resources().fold(command, command::add::<Self>)
    }
}

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident => $tables:expr;)*) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl Family for $name {
            fn tables() -> &'static [&'static [Resource]] {
                &$tables
            }
        }
    )*};
}

families! {
    /// Commands of `bowline iam`.
    Iam => [table_iam::RESOURCES, table_iam_people::RESOURCES];
    /// Commands of `bowline access`.
    Access => [table_access::RESOURCES];
    /// Commands of `bowline events`.
    Events => [table::EVENTS];
    /// Commands of `bowline audit` that call a server.
    Audit => [table_audit::AUDIT];
    /// Commands of `bowline registry` that are made from the contract.
    Registry => [table_registry::REGISTRY, table_image_policy::IMAGE_POLICY];
    /// Commands of `bowline registry repos` that are made from the contract.
    Repos => [table_registry::REPOS];
    /// Commands of `bowline registry retention` that are made from the contract.
    Retention => [table_registry::RETENTION];
    /// Commands of `bowline registry policy` that are made from the contract.
    Policy => [table_registry::POLICY];
    /// Commands of `bowline libraries` that are made from the contract.
    Libraries => [table_libraries::RESOURCES, table_hosted_packages::RESOURCES, table_library_policies::RESOURCES];
    /// Commands of `bowline vulns` that are made from the contract.
    Vulns => [table_vulnerabilities::VULNS];
    /// Commands of `bowline advisories` that are made from the contract.
    Advisories => [table_vulnerabilities::ADVISORIES];
    /// Commands of `bowline server`.
    Server => [table_server::RESOURCES];
}

/// A command of a family, as it was parsed.
pub struct Generated<F> {
    name: String,
    matches: ArgMatches,
    family: PhantomData<F>,
}

impl<F: Family> FromArgMatches for Generated<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Generated<F>, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, matches) = matches.subcommand().ok_or_else(missing)?;
        Ok(Generated { name: name.to_owned(), matches: matches.clone(), family: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Generated::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<F: Family> Subcommand for Generated<F> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(F::add)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(F::add)
    }

    fn has_subcommand(name: &str) -> bool {
        F::resources().any(|resource| resource.name == name)
    }
}

/// The tables of all families, by the command that they are below.
fn families() -> [(&'static str, &'static [&'static [Resource]]); 12] {
    [
        ("iam", Iam::tables()),
        ("access", Access::tables()),
        ("events", Events::tables()),
        ("audit", Audit::tables()),
        ("registry", Registry::tables()),
        ("registry repos", Repos::tables()),
        ("registry retention", Retention::tables()),
        ("registry policy", Policy::tables()),
        ("libraries", Libraries::tables()),
        ("vulns", Vulns::tables()),
        ("advisories", Advisories::tables()),
        ("server", Server::tables()),
    ]
}

/// What the commands of all families print as JSON, by their names without `bowline`.
pub(crate) fn shapes() -> impl Iterator<Item = (String, Shape)> {
    families().into_iter().flat_map(|(family, tables)| {
        let resources = tables.iter().copied().flatten();
        resources.flat_map(move |resource| {
            resource.verbs.iter().filter_map(move |verb| {
                let own = if verb.name == resource.name { String::new() } else { format!("{} ", resource.name) };
                Some((format!("{family} {own}{}", verb.name), verb.shape()?))
            })
        })
    })
}

/// Runs a command of a family.
pub fn run<F: Family>(command: Generated<F>) -> Work<CliError> {
    Box::pin(async move {
        let resource = F::resources().find(|resource| resource.name == command.name);
        let unknown = || CliError::Defect(format!("the command {} has no line in its table", command.name));
        run::run(resource.ok_or_else(unknown)?, &command.matches).await
    })
}
