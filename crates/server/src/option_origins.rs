//! Where the value of each option comes from.

use std::collections::BTreeMap;

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Origin of a value that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionOrigin {
    CommandLine,
    Environment,
    /// The configuration file that the server was started with.
    File,
}

/// The origins of the values that were given, by the name of the option.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptionOrigins(BTreeMap<String, OptionOrigin>);

impl OptionOrigins {
    /// Those of the arguments of a command.
    pub fn of(matches: &ArgMatches) -> OptionOrigins {
        let origin = |id: &clap::Id| {
            let origin = match matches.value_source(id.as_str())? {
                ValueSource::CommandLine => OptionOrigin::CommandLine,
                ValueSource::EnvVariable => OptionOrigin::Environment,
                _ => return None,
            };
            Some((id.as_str().replace('_', "-"), origin))
        };
        OptionOrigins(matches.ids().filter_map(origin).collect())
    }

    /// Adds the options of a configuration file, where nothing else gives them.
    pub(crate) fn add_file<'a>(&mut self, names: impl Iterator<Item = &'a String>) {
        for name in names {
            self.0.entry(name.clone()).or_insert(OptionOrigin::File);
        }
    }

    /// The origin of an option's value; absent for one that no one gave, or of which it is not known.
    pub(crate) fn get(&self, name: &str) -> Option<OptionOrigin> {
        self.0.get(name).copied()
    }
}
