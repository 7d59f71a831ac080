//! The effective configuration as the operator reads it: every option, without its secrets.

use bowline_contract::bowline::operator::v1;
use bowline_pipeline::Settings;
use clap::Args as _;
use serde_json::Value;

use crate::error::StartError;
use crate::option_origins::OptionOrigin;
use crate::options::Options;

/// What stands for a secret that is set.
const SET: &str = "set";

/// Options that only the configuration file has, with their help.
const OF_THE_FILE: [(&str, &str); 2] = [("operator-providers", "none"), ("terms", "none")];

/// All options by name, with what holds in this server.
///
/// # Errors
/// A defect: the options cannot be written as JSON.
pub(crate) fn of(options: &Options, settings: &Settings) -> Result<Vec<v1::ConfiguredOption>, StartError> {
    let values = serde_json::to_value(options).map_err(|error| StartError::Defect(error.to_string()))?;
    let command = Options::augment_args(clap::Command::new("serve"));
    let arguments = command.get_arguments().filter_map(|argument| {
        let name = argument.get_long()?;
        let given = match name {
            "config" => options.config.as_ref().map(|path| path.display().to_string()),
            // A flag that is not there is no value.
            _ if matches!(argument.get_action(), clap::ArgAction::SetTrue) => {
                values.get(name).and_then(Value::as_bool).filter(|is_set| *is_set).map(|is_set| is_set.to_string())
            }
            _ => text(values.get(name)),
        };
        // What no help shows of the environment is a secret, and so is an address with a user, a password or a query.
        let secret = argument.is_hide_env_values_set() || given.as_deref().is_some_and(has_credentials);
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        Some(option(options, name, given, secret, default_of(&help)))
    });
    let providers = options.operator_providers.iter().map(|provider| provider.id.as_str());
    let terms = options.terms.iter().map(|document| document.id.as_str());
    let lists = [providers.collect::<Vec<_>>().join(","), terms.collect::<Vec<_>>().join(",")];
    let of_the_file = OF_THE_FILE.iter().zip(lists).map(|((name, default), ids)| {
        option(options, name, Some(ids).filter(|ids| !ids.is_empty()), false, (*default).to_owned())
    });
    let mut all: Vec<v1::ConfiguredOption> = arguments.chain(of_the_file).collect();
    // These follow from others where they are not given.
    for (name, value) in [
        ("base-url", &settings.base_url),
        ("auth-url", &settings.auth_url),
        ("registry-host", &settings.registry_audience),
        ("libraries-url", &settings.libraries_audience),
    ] {
        if let Some(option) = all.iter_mut().find(|option| option.name == name && !option.secret) {
            option.value.clone_from(value);
        }
    }
    all.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(all)
}

fn option(
    options: &Options,
    name: &str,
    given: Option<String>,
    secret: bool,
    default_value: String,
) -> v1::ConfiguredOption {
    let origin = match (&given, options.origins.get(name)) {
        (None, _) => v1::OptionOrigin::Default,
        (Some(_), Some(OptionOrigin::CommandLine)) => v1::OptionOrigin::CommandLine,
        (Some(_), Some(OptionOrigin::Environment)) => v1::OptionOrigin::Environment,
        (Some(_), Some(OptionOrigin::File)) => v1::OptionOrigin::File,
        // A program that embeds the server gave it.
        (Some(_), None) => v1::OptionOrigin::Unspecified,
    };
    let value = given.map(|given| if secret { SET.to_owned() } else { given }).unwrap_or_default();
    v1::ConfiguredOption { name: name.into(), value, secret, origin: origin.into(), default_value }
}

/// A value as it is written on the command line; absent if it was not given.
fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), String::from));
            Some(items.collect::<Vec<_>>().join(","))
        }
        other => Some(other.to_string()),
    }
}

/// Whether a value may have an address with more than a host and a path, or a connection string with a password. A password
/// may have a comma, a slash or whatever else ends a part of an address, so the whole value is tested.
fn has_credentials(value: &str) -> bool {
    let has_more = |address: &str| address.contains(['@', '?', '#']);
    value.split_once("://").is_some_and(|(_, address)| has_more(address))
        || value.to_ascii_lowercase().contains("password=")
}

/// What the help says of an option that is not given.
fn default_of(help: &str) -> String {
    let default = help.split_once("[default: ").and_then(|(_, rest)| rest.split_once(']'));
    default.map_or_else(|| "none".to_owned(), |(default, _)| default.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches as _;

    use super::*;
    use crate::option_origins::OptionOrigins;

    fn configured(arguments: &[&str]) -> Vec<v1::ConfiguredOption> {
        let command = Options::augment_args(clap::Command::new("serve").no_binary_name(true));
        let matches = command.try_get_matches_from(arguments).unwrap();
        let mut options = Options::from_arg_matches(&matches).unwrap();
        options.origins = OptionOrigins::of(&matches);
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 8080));
        let settings = crate::settings::of(&options, "http", address).unwrap();
        of(&options, &settings).unwrap()
    }

    fn find<'a>(all: &'a [v1::ConfiguredOption], name: &str) -> &'a v1::ConfiguredOption {
        all.iter().find(|option| option.name == name).unwrap_or_else(|| panic!("no option {name}"))
    }

    #[test]
    fn every_option_is_there_with_its_value_and_where_it_is_from() {
        let all =
            configured(&["--gc-every", "2h", "--grpc-reflection", "false", "--cors-origins", "https://a.example"]);
        assert!(all.len() > 60 && all.is_sorted_by(|one, other| one.name < other.name), "{}", all.len());
        let gc = find(&all, "gc-every");
        assert_eq!(
            (gc.value.as_str(), gc.origin(), gc.default_value.as_str()),
            ("2h", v1::OptionOrigin::CommandLine, "1h")
        );
        assert_eq!(find(&all, "grpc-reflection").value, "false");
        assert_eq!(find(&all, "terms-required").value, "");
        let listen = find(&all, "listen");
        let seen = (listen.value.as_str(), listen.origin(), listen.default_value.as_str());
        assert_eq!(seen, ("", v1::OptionOrigin::Default, "127.0.0.1:8080"));
        assert_eq!(find(&all, "cors-origins").value, "https://a.example");
        let base = find(&all, "base-url");
        assert_eq!((base.value.as_str(), base.origin()), ("http://127.0.0.1:8080", v1::OptionOrigin::Default));
    }

    #[test]
    fn addresses_with_credentials_are_secrets_whatever_is_in_a_password() {
        for secret in [
            "postgres://user:hush@db/bowline",
            "postgres://user:hu,sh@db/bowline",
            "postgres://user:hu/sh@db/bowline",
            "postgres://user:hu sh@db/bowline",
            "smtps://:hush@mail.example",
            "https://a.example,https://user:hush@b.example",
            "s3://bucket/prefix?token=hush",
            "https://a.example/#hush",
            "user:hush@proxy://x@y",
            "host=db user=bowline Password=hush",
        ] {
            assert!(has_credentials(secret), "{secret}");
        }
        for plain in
            ["https://a.example,https://b.example/c", "bowline@acme.example", "10.0.0.0/8", "s3://bucket/a", ""]
        {
            assert!(!has_credentials(plain), "{plain}");
        }
        let all = configured(&["--cors-origins", "https://user:hu,sh@a.example"]);
        assert_eq!((find(&all, "cors-origins").value.as_str(), find(&all, "cors-origins").secret), (SET, true));
    }

    #[test]
    fn no_secret_is_shown() {
        let all = configured(&[
            "--database-url",
            "postgres://user:hush@db/bowline",
            "--smtp-url",
            "smtps://user:hush@mail.example",
            "--blob-url",
            "s3://bucket/prefix",
            "--backup-to",
            "s3://hush:hush@bucket/prefix",
        ]);
        assert!(all.iter().all(|option| !option.value.contains("hush")), "{all:?}");
        for name in ["database-url", "smtp-url", "blob-url", "backup-to"] {
            assert_eq!((find(&all, name).value.as_str(), find(&all, name).secret), (SET, true), "{name}");
        }
        for option in &all {
            let is_named_like_one = ["password", "secret", "token-file"].iter().any(|word| option.name.contains(word));
            assert!(!is_named_like_one || option.secret, "{} shows its value", option.name);
        }
    }
}
