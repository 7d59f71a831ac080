use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::registry_policies as policies;
use bowline_terminal::{Output, Table, confirm, note, time};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::registry::targets::{self, RepoOrGroup};
use crate::resources::{self, DryRun, Generated, Retention};
use crate::session::Access;

/// `bowline registry retention`.
#[derive(Subcommand)]
pub enum RetentionCommand {
    /// Show the retention rules
    Get(GetCommand),
    /// Replace the retention rules; an image stays if any rule keeps it
    Set(SetCommand),
    /// Delete the retention rules
    Clear(ClearCommand),
    /// List the images that the rules, or other rules, remove from a repository
    #[command(after_help = "Example:\n  bowline registry retention preview acme/nginx --keep-last 10")]
    Preview(PreviewCommand),
    /// Apply the retention rules now instead of within the hour
    #[command(after_help = "Example:\n  bowline registry retention apply acme/nginx --yes")]
    Apply(ApplyCommand),
    #[command(flatten)]
    Generated(Generated<Retention>),
}

#[derive(Args)]
pub struct PreviewCommand {
    #[command(flatten)]
    repo: ApplyCommand,
    #[command(flatten)]
    rules: OtherRules,
}

#[derive(Args)]
pub struct ApplyCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    #[command(flatten)]
    output: Output,
}

/// Rules to try in place of those that are set.
#[derive(Args)]
#[group(multiple = true)]
struct OtherRules {
    /// Keep the most recently pushed images, this many [default: the rules that are set]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..))]
    keep_last: Option<i32>,
    /// Keep what was pushed or pulled within as many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i32).range(1..))]
    keep_days: Option<i32>,
    /// Keep images with a tag that one of these patterns matches as a whole, comma-separated
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    keep_tags: Vec<String>,
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    target: RepoOrGroup,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct ClearCommand {
    #[command(flatten)]
    rules: GetCommand,
    #[command(flatten)]
    dry_run: DryRun,
}

#[derive(Args)]
pub struct SetCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    target: RepoOrGroup,
    #[command(flatten)]
    rules: Rules,
    #[command(flatten)]
    dry_run: DryRun,
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
    let (command, dry_run, rules) = match command {
        RetentionCommand::Get(command) => {
            let session = command.access.session()?;
            let policy = command.target.policy(&session, &session.api().await?).await?;
            return shown(&policy, command.output);
        }
        RetentionCommand::Set(command) => {
            let SetCommand { access, target, rules, dry_run, output } = command;
            (GetCommand { access, target, output }, dry_run, Some(rules))
        }
        RetentionCommand::Clear(command) => (command.rules, command.dry_run, None),
        RetentionCommand::Preview(command) => return preview(command).await,
        RetentionCommand::Apply(command) => return apply(command).await,
        RetentionCommand::Generated(command) => return resources::run(command).await,
    };
    let session = command.access.session()?;
    let api = session.api().await?;
    let retention = rules.map(|rules| own::Retention {
        keep_last: rules.keep_last.unwrap_or_default(),
        keep_days: rules.keep_days.unwrap_or_default(),
        keep_patterns: rules.keep_tags,
    });
    let policy = own::RegistryPolicy { retention, ..own::RegistryPolicy::default() };
    match command.target.change(&session, &api, policy, &[FIELD], (dry_run, command.output.form())).await? {
        Some(policy) => shown(&policy, command.output),
        None => Ok(()),
    }
}

async fn preview(command: PreviewCommand) -> Result<(), CliError> {
    let PreviewCommand { repo: command, rules } = command;
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo_uid = targets::repo(&session, &api, &command.repo).await?;
    let retention = own::Retention {
        keep_last: rules.keep_last.unwrap_or_default(),
        keep_days: rules.keep_days.unwrap_or_default(),
        keep_patterns: rules.keep_tags,
    };
    let retention = Some(retention).filter(|rules| *rules != own::Retention::default());
    let request = own::PreviewRetentionRequest { repo_uid, retention };
    removed(&api.call::<policies::PreviewRetention>(&request).await?, &command.output)
}

async fn apply(command: ApplyCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo_uid = targets::repo(&session, &api, &command.repo).await?;
    let preview = own::PreviewRetentionRequest { repo_uid: repo_uid.clone(), retention: None };
    let outcome = api.call::<policies::PreviewRetention>(&preview).await?;
    let count = outcome.removed.len() as i64 + i64::from(outcome.remaining);
    confirm(&format!("Remove {count} images of {} for good; {} stay", command.repo, outcome.kept))?;
    removed(&api.call::<policies::ApplyRetention>(&own::ApplyRetentionRequest { repo_uid }).await?, &command.output)
}

/// What goes, or went; how much is left is talk.
fn removed(outcome: &own::RetentionOutcome, output: &Output) -> Result<(), CliError> {
    let mut table = Table::new(&["digest", "tags", "pushed", "pulled", "bytes"]);
    for manifest in &outcome.removed {
        table.push([
            manifest.digest.clone(),
            manifest.tags.join(","),
            time(manifest.push_time),
            time(manifest.pull_time),
            manifest.size.to_string(),
        ]);
    }
    print(&output.message(&table, outcome)?)?;
    note(&format!("{} images stay, {} more are to be removed\n", outcome.kept, outcome.remaining));
    Ok(())
}

fn shown(policy: &own::RegistryPolicy, output: Output) -> Result<(), CliError> {
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
