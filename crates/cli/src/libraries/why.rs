use bowline_client::{Api, ClientError};
use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::decisions::ExplainPackage;
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policies::ListPolicies;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;
use bowline_terminal::{Output, Table, time};
use clap::Args;
use prost_types::Timestamp;

use super::why_dependencies::{self, ExplainedVersion};
use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::{Access, Session};

/// `bowline libraries why`.
#[derive(Args)]
pub struct WhyCommand {
    #[command(flatten)]
    access: Access,
    /// Package URL with a version, as refusals name it
    #[arg(value_name = "PURL")]
    purl: String,
    /// Organization, by name or UIDP [default: the only one of the caller]
    #[arg(long, value_name = "ORG")]
    organization: Option<String>,
    /// Show also which versions that it requires are withheld (JavaScript, Python and Cargo); fails if an installation would
    #[arg(long)]
    deps: bool,
    /// With --deps: show also what is served
    #[arg(long, requires = "deps")]
    all: bool,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(command: WhyCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let parent = match &command.organization {
        Some(organization) => resolve::group(&api, organization).await?,
        None => only_organization(&api).await?,
    };
    let request = own::ExplainPackageRequest { parent: parent.clone(), purl: command.purl };
    let explanation = api.call::<ExplainPackage>(&request).await?;
    let policy = policy_name(&api, &parent, &explanation.policy).await?;
    let table = table(&explanation, policy, Session::now());
    if !command.deps {
        return print(&command.output.message(&table, &explanation)?);
    }
    let required = why_dependencies::required(&api, &parent, &explanation).await;
    why_dependencies::show(&command.output, &ExplainedVersion { explanation, table }, required, command.all)
}

/// The organization of a caller who sees one.
pub(super) async fn only_organization(api: &Api) -> Result<String, ClientError> {
    let uidp = Some(UidpFilter { in_root: true, ..UidpFilter::default() });
    let request = v2::ListGroupsRequest { uidp, page_size: 20, ..v2::ListGroupsRequest::default() };
    let mut found = api.call::<ListGroups>(&request).await?.groups;
    match (found.len(), found.pop()) {
        (1, Some(organization)) => Ok(organization.uid),
        (_, None) => Err(ClientError::Usage("you see no organization: name one with --organization".into())),
        (_, Some(last)) => {
            let names = found.into_iter().chain([last]).map(|group| group.name).collect::<Vec<_>>().join(", ");
            Err(ClientError::Usage(format!("you see several organizations: name one with --organization: {names}")))
        }
    }
}

/// The name of a policy, which is one of the organization's first 200; its UIDP if it is not among them.
async fn policy_name(api: &Api, parent: &str, uid: &str) -> Result<String, ClientError> {
    if uid.is_empty() {
        return Ok(String::new());
    }
    let request =
        v1::LibraryPolicyFilter { parent_id: parent.into(), page_size: 200, ..v1::LibraryPolicyFilter::default() };
    let policies = api.call::<ListPolicies>(&request).await?.items;
    Ok(policies.into_iter().find(|policy| policy.id == uid).map_or_else(|| uid.to_owned(), |policy| policy.name))
}

/// When a version was first seen on the server, beside what its upstream says; empty if that is not known. `now` is in seconds.
fn first_seen(decision: &own::Decision, now: i64) -> String {
    const DAY: i64 = 24 * 3600;
    let day = |at: Option<Timestamp>| time(at).chars().take("2026-01-01".len()).collect::<String>();
    let Some(seen) = decision.first_seen_time else { return String::new() };
    let ago = match now.saturating_sub(seen.seconds).max(0) / DAY {
        0 => "today".to_owned(),
        1 => "1 day ago".to_owned(),
        days => format!("{days} days ago"),
    };
    let says = match decision.publish_time {
        Some(published) => format!("the upstream says {}", day(Some(published))),
        None => "the upstream does not say when it was published".to_owned(),
    };
    format!("first seen here on {}, {ago}; {says}", day(Some(seen)))
}

/// The decision and its facts: a line each, without those that say nothing. `now` is in seconds.
fn table(explanation: &own::PackageExplanation, policy: String, now: i64) -> Table {
    let decision = explanation.decision.clone().unwrap_or_default();
    let seen = first_seen(&decision, now);
    let counted = decision.counted_time.filter(|_| decision.counted_time != decision.publish_time);
    let is_known = |known: bool| (if known { "yes" } else { "no" }).to_owned();
    let mut table = Table::new(&["field", "value"]);
    let lines = [
        ("package", explanation.purl.clone()),
        ("allowed", is_known(decision.allowed)),
        ("reason", decision.reason),
        ("because of", decision.matched),
        ("fixed in", decision.fixed_version),
        ("allowed from", time(decision.allowed_time)),
        ("policy", policy),
        ("known", is_known(decision.known)),
        ("published", time(decision.publish_time)),
        ("age", seen),
        ("age counts from", time(counted)),
        ("license", decision.license),
        ("exception", explanation.exception.as_ref().map(|one| one.uid.clone()).unwrap_or_default()),
        ("exception until", time(explanation.exception.as_ref().and_then(|one| one.expire_time))),
    ];
    for (field, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
        table.push([field.to_owned(), value]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_when_a_version_was_seen() {
        let at = |seconds| Some(Timestamp { seconds, nanos: 0 });
        let decision = |seen, published| own::Decision {
            first_seen_time: seen,
            publish_time: published,
            ..own::Decision::default()
        };
        let now = 1_700_000_000;
        assert_eq!(first_seen(&decision(None, at(1)), now), "");
        let seen = |seconds, published| first_seen(&decision(at(seconds), published), now);
        assert_eq!(
            seen(now - 3 * 86_400, at(1_600_000_000)),
            "first seen here on 2023-11-11, 3 days ago; the upstream says 2020-09-13"
        );
        let undated = "the upstream does not say when it was published";
        assert_eq!(seen(now - 86_400, None), format!("first seen here on 2023-11-13, 1 day ago; {undated}"));
        assert_eq!(seen(now + 60, None), format!("first seen here on 2023-11-14, today; {undated}"));
    }
}
