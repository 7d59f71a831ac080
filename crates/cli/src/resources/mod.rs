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
mod run;
mod table;
mod table_access;
mod table_audit;
mod table_iam;
mod table_iam_people;
mod table_registry;
mod uidp_names;

use std::marker::PhantomData;

use bowline_terminal::Work;
use clap::{ArgMatches, Command, FromArgMatches, Subcommand};

use crate::error::CliError;
use crate::schema::Shape;
pub(crate) use list::elements;
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
    Registry => [table_registry::REGISTRY];
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

/// What the commands of all families print as JSON, by their names without `bowline`.
pub(crate) fn shapes() -> impl Iterator<Item = (String, Shape)> {
    let families = [
        ("iam", Iam::tables()),
        ("access", Access::tables()),
        ("events", Events::tables()),
        ("audit", Audit::tables()),
        ("registry", Registry::tables()),
    ];
    families.into_iter().flat_map(|(family, tables)| {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use bowline_contract::Contract;

    use super::*;

    /// Methods without a command of their own, and why.
    const OTHERS: &[(&str, &str)] = &[
        ("GroupsService.LookupGroup", "for a vendor's console"),
        ("GroupsService.RequestGroupAccess", "for a vendor's console"),
        ("GroupsService.CheckEligibility", "for a vendor's console"),
        ("IdentitiesService.LookupIdentity", "list by name instead"),
        ("IdentitiesService.UpdateIdentityMetadata", "a person's own, in the console"),
        ("IdentityProvidersService.RegenerateScimToken", "needs the etag of a response before"),
        ("IdentityProvidersService.SetScimEnabled", "needs the etag of a response before"),
        ("RoleBindingsService.BatchCreateRoleBindings", "create, as often as needed"),
        ("ExternalGroupRoleMappingsService.BatchDeleteExternalGroupRoleMappings", "delete, as often as needed"),
        ("Names.ResolveNames", "tables show names"),
        ("Matchers.TestIssuer", "by `bowline api`"),
    ];

    /// Packages whose methods have generated commands.
    const PACKAGES: [&str; 6] = [
        "chainguard.platform.iam.v2.",
        "chainguard.platform.events.v2.",
        "bowline.events.v1.",
        "bowline.audit.v1.",
        "bowline.iam.v1.",
        "bowline.people.v1.",
    ];

    fn families() -> impl Iterator<Item = &'static Resource> {
        let tables = [Iam::tables(), Access::tables(), Events::tables(), Audit::tables(), Registry::tables()];
        tables.into_iter().flatten().copied().flatten()
    }

    #[test]
    fn every_method_has_its_command_or_a_reason() {
        let contract = Contract::load();
        let called: BTreeSet<&str> = families().flat_map(|resource| resource.verbs).map(|verb| verb.method).collect();
        for name in &called {
            assert!(contract.by_full_name(name).is_some(), "{name} is in a table and not in the contract");
        }
        let missing = contract.methods().iter().filter(|method| {
            PACKAGES.iter().any(|package| method.full_name.starts_with(package))
                && !called.contains(method.full_name.as_str())
                && !OTHERS.iter().any(|(name, _)| *name == method.short_name())
        });
        let missing: Vec<&str> = missing.map(|method| method.full_name.as_str()).collect();
        assert!(missing.is_empty(), "no command and no reason: {missing:?}");
        for (name, why) in OTHERS {
            let is_method = contract.methods().iter().any(|method| method.short_name() == *name);
            assert!(is_method && !why.is_empty(), "{name} is no method");
        }
    }

    #[test]
    fn commands_are_well_formed_and_have_an_example() {
        for (name, add) in [
            ("iam", Iam::add as fn(Command) -> Command),
            ("access", Access::add),
            ("events", Events::add),
            ("audit", Audit::add),
            ("registry", Registry::add),
        ] {
            // Doubled flags and the like panic here.
            let mut family = add(Command::new(name));
            family.clone().debug_assert();
            family.build();
            let about = |command: &Command| command.get_about().map(ToString::to_string).unwrap_or_default();
            let leaves = family.get_subcommands().flat_map(|group| group.get_subcommands().chain([group]));
            for command in leaves {
                assert!(
                    !about(command).is_empty() && !about(command).starts_with('`'),
                    "{name} {}",
                    command.get_name()
                );
            }
        }
        for verb in families().flat_map(|resource| resource.verbs) {
            assert!(verb.example.contains(verb.name), "{}: {}", verb.method, verb.example);
        }
    }
}
