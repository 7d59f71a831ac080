use std::path::PathBuf;

use bowline_client::ClientError;
use bowline_contract::bowline::registry::v1 as own;
use bowline_terminal::{Output, Table, time};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::registry::targets::RepoOrGroup;
use crate::registry::upstream::UpstreamChange;
use crate::resources::{self, DryRun, Generated, Policy};
use crate::session::Access;

/// `bowline registry policy`.
#[derive(Subcommand)]
pub enum PolicyCommand {
    /// Show the policy of a repository or a group
    Get(GetCommand),
    /// Change the named fields of the policy of a repository or a group
    Set(SetCommand),
    #[command(flatten)]
    Generated(Generated<Policy>),
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
pub struct SetCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    target: RepoOrGroup,
    #[command(flatten)]
    change: Change,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
#[group(required = true, multiple = true)]
struct Change {
    /// Whether anyone may pull, also without credentials
    #[arg(long, value_name = "BOOL")]
    public: Option<bool>,
    /// Patterns of tags that are never moved nor deleted, comma-separated; "" for none
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    immutable_tags: Option<Vec<String>>,
    /// Most bytes that may be stored, such as 500MiB or 20GiB; 0 for no limit
    #[arg(long, value_name = "BYTES")]
    quota: Option<String>,
    /// Repository or registry that missing images come from: an https address; "" for none
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Only tags that one of these patterns matches as a whole, comma-separated; "" for all
    #[arg(long, value_name = "PATTERN,...", value_delimiter = ',')]
    upstream_tags: Option<Vec<String>>,
    /// Account at the upstream; "" to ask it as everyone may
    #[arg(long, value_name = "NAME")]
    upstream_username: Option<String>,
    /// File with the account's password or token, - for standard input; without it the stored one stays
    #[arg(long, value_name = "FILE")]
    upstream_password_file: Option<PathBuf>,
}

impl Change {
    fn of_upstream(&mut self) -> UpstreamChange {
        UpstreamChange {
            url: self.upstream.take(),
            tags: self.upstream_tags.take(),
            username: self.upstream_username.take(),
            password_file: self.upstream_password_file.take(),
        }
    }
}

pub(crate) async fn run(command: PolicyCommand) -> Result<(), CliError> {
    match command {
        PolicyCommand::Get(command) => {
            let session = command.access.session()?;
            let policy = command.target.policy(&session, &session.api().await?).await?;
            shown(&policy, command.output)
        }
        PolicyCommand::Set(command) => set(command).await,
        PolicyCommand::Generated(command) => resources::run(command).await,
    }
}

async fn set(mut command: SetCommand) -> Result<(), CliError> {
    let upstream = command.change.of_upstream();
    let mut policy = own::RegistryPolicy::default();
    let mut fields = Vec::new();
    if let Some(public) = command.change.public {
        policy.public = public;
        fields.push("public");
    }
    if let Some(patterns) = command.change.immutable_tags {
        policy.immutable_tag_patterns = patterns.into_iter().filter(|pattern| !pattern.is_empty()).collect();
        fields.push("immutable_tag_patterns");
    }
    if let Some(quota) = &command.change.quota {
        policy.byte_quota = bytes(quota)?;
        fields.push("byte_quota");
    }
    let session = command.access.session()?;
    let api = session.api().await?;
    if upstream.is_given() {
        // The server takes an upstream as a whole.
        let before = command.target.policy(&session, &api).await?.upstream;
        policy.upstream = upstream.applied(before)?;
        fields.push("upstream");
    }
    let manner = (command.dry_run, command.output.form());
    match command.target.change(&session, &api, policy, &fields, manner).await? {
        Some(policy) => shown(&policy, command.output),
        None => Ok(()),
    }
}

/// Units of quotas, the largest first.
const UNITS: [(&str, i64); 5] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("", 1)];

/// A quota in the largest unit that it is a whole number of; empty without one.
fn quota_text(bytes: i64) -> String {
    let whole = UNITS.into_iter().find(|(_, factor)| bytes != 0 && bytes % factor == 0);
    whole.map(|(unit, factor)| format!("{}{unit}", bytes / factor)).unwrap_or_default()
}

/// Bytes of `1000`, `500MiB` or `20GiB`.
fn bytes(text: &str) -> Result<i64, ClientError> {
    let refuse = || ClientError::Usage(format!("--quota {text}: a number of bytes, or one with KiB, MiB, GiB or TiB"));
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let (_, factor) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(refuse)?;
    number.parse::<i64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(refuse)
}

fn shown(policy: &own::RegistryPolicy, output: Output) -> Result<(), CliError> {
    let mut table = Table::new(&["field", "value"]);
    let upstream = policy.upstream.clone().unwrap_or_default();
    let password = match &policy.upstream {
        Some(upstream) if upstream.has_password => "set",
        Some(_) => "not set",
        None => "",
    };
    for (field, value) in [
        ("uidp", policy.uid.clone()),
        ("public", policy.public.to_string()),
        ("immutable tags", policy.immutable_tag_patterns.join(",")),
        ("byte quota", quota_text(policy.byte_quota)),
        ("retention", if policy.retention.is_some() { "set" } else { "" }.to_owned()),
        ("upstream", upstream.url),
        ("upstream tags", upstream.tag_patterns.join(",")),
        ("upstream username", upstream.username),
        ("upstream password", password.to_owned()),
        ("updated", time(policy.update_time)),
    ] {
        table.push([field.to_owned(), value]);
    }
    print(&output.message(&table, policy)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas() {
        assert_eq!(bytes("0").unwrap(), 0);
        assert_eq!(bytes("1500").unwrap(), 1500);
        assert_eq!(bytes("20GiB").unwrap(), 20 << 30);
        for text in ["1500", "20GiB", "1TiB", "1025KiB"] {
            assert_eq!(quota_text(bytes(text).unwrap()), text);
        }
        assert_eq!(quota_text(0), "");
        for text in ["", "GiB", "-1", "1.5GiB", "20GB", "9999999999TiB"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
