use bowline_contract::bowline::registry::v1 as ours;
use bowline_terminal::{Output, Table};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::registry::targets::RepoOrGroup;
use crate::session::Access;

/// `bowline registry retention`.
#[derive(Subcommand)]
pub enum RetentionCommand {
    /// Show which images stay
    Get(GetCommand),
    /// Say which images stay: those that any of the rules keeps; what was set before is replaced
    Set(SetCommand),
    /// Keep every image again
    Clear(GetCommand),
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    place: RepoOrGroup,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct SetCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    place: RepoOrGroup,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Rules {
    /// Keep the most recently pushed images of a repository, this many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    keep_last: Option<i32>,
    /// Keep what was pushed or pulled within as many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(1..))]
    keep_days: Option<i32>,
    /// Keep images with a tag that one of these patterns matches as a whole, comma-separated
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    keep_tags: Vec<String>,
}

const FIELD: &str = "retention";

pub(crate) async fn run(command: RetentionCommand) -> Result<(), CliError> {
    let (access, place, output, rules) = match command {
        RetentionCommand::Get(command) => {
            let session = command.access.session()?;
            let policy = command.place.policy(&session, &session.api().await?).await?;
            return shown(&policy, command.output);
        }
        RetentionCommand::Set(command) => (command.access, command.place, command.output, Some(command.rules)),
        RetentionCommand::Clear(command) => (command.access, command.place, command.output, None),
    };
    let session = access.session()?;
    let api = session.api().await?;
    let retention = rules.map(|rules| ours::Retention {
        keep_last: rules.keep_last.unwrap_or_default(),
        keep_days: rules.keep_days.unwrap_or_default(),
        keep_patterns: rules.keep_tags,
    });
    let policy = ours::RegistryPolicy { retention, ..ours::RegistryPolicy::default() };
    shown(&place.change(&session, &api, policy, &[FIELD]).await?, output)
}

fn shown(policy: &ours::RegistryPolicy, output: Output) -> Result<(), CliError> {
    let retention = policy.retention.clone().unwrap_or_default();
    let number = |number: i32| if number == 0 { String::new() } else { number.to_string() };
    let mut table = Table::new(&["field", "value"]);
    for (field, value) in [
        ("uidp", policy.uid.clone()),
        ("keep last", number(retention.keep_last)),
        ("keep days", number(retention.keep_days)),
        ("keep tags", retention.keep_patterns.join(",")),
        ("otherwise", if policy.retention.is_some() { "deleted" } else { "everything stays" }.to_owned()),
    ] {
        table.push([field.to_owned(), value]);
    }
    print(&output.message(&table, policy)?)
}
