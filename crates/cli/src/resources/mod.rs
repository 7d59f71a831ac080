//! Commands that are made from the contract: one line of a table for each method, flags from the fields of its message.
//!
//! To add a command, add a line to a table in [`table`]; the flags, the help, the resolution of names and the output
//! follow from the method's messages. A command with a form of its own is written by hand beside them, as
//! [`presets`] is.

mod audit_export;
mod command;
mod field_args;
mod group_names;
mod list;
mod names;
mod presets;
mod run;
mod table;
mod table_iam;

use std::marker::PhantomData;

use bowline_terminal::Work;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};

use crate::error::CliError;
use table::Resource;

/// Resources whose commands stand together, such as those of `bowline iam`.
pub trait Family: 'static {
    /// The resources of the family.
    #[doc(hidden)]
    fn resources() -> &'static [Resource];

    /// Adds the commands; they are made when one of them is parsed or shown.
    fn add(command: Command) -> Command {
        Self::resources().iter().fold(command, |command, resource| command::add(command, resource))
    }
}

macro_rules! families {
    ($($(#[$doc:meta])* $name:ident => $resources:expr;)*) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl Family for $name {
            fn resources() -> &'static [Resource] {
                $resources
            }
        }
    )*};
}

families! {
    /// Commands of `bowline iam`.
    Iam => table_iam::RESOURCES;
    /// Commands of `bowline events`.
    Events => table::EVENTS;
    /// Commands of `bowline audit` that call a server.
    Audit => table::AUDIT;
    /// Commands of `bowline registry` that are made from the contract.
    Registry => table::REGISTRY;
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
        F::resources().iter().any(|resource| resource.name == name)
    }
}

/// Runs a command of a family.
pub fn run<F: Family>(command: Generated<F>) -> Work<CliError> {
    Box::pin(async move {
        let resource = F::resources().iter().find(|resource| resource.name == command.name);
        let unknown = || CliError::Defect(format!("the command {} has no line in its table", command.name));
        run::run(resource.ok_or_else(unknown)?, &command.matches).await
    })
}
