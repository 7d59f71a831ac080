use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::vulnerabilities as v2;
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::ListAdvisories;
use bowline_terminal::{Output, Table, time};
use clap::{Args, ValueEnum};

use super::name;
use crate::error::CliError;
use crate::pages::ListOutput;
use crate::resolve;
use crate::session::Access;
use crate::{pages, print};

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group, with everything below it [default: all that you may see]
    #[arg(value_name = "GROUP")]
    group: Option<String>,
    /// Only about these artifacts
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    artifact: Vec<String>,
    /// Only about packages that are built from this one
    #[arg(long, value_name = "PACKAGE")]
    origin: Option<String>,
    /// Only about these components
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    component: Vec<String>,
    /// Only about these vulnerabilities
    #[arg(long, value_name = "CVE,...", value_delimiter = ',')]
    alias: Vec<String>,
    /// Only where the latest approved event is of this kind
    #[arg(long, value_name = "KIND")]
    latest: Option<Latest>,
    /// Only with an event that waits for its review
    #[arg(long)]
    pending: bool,
    /// Text to look for in artifact, component and vulnerabilities
    #[arg(long, value_name = "TEXT")]
    query: Option<String>,
    #[command(flatten)]
    output: ListOutput,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Latest {
    Detection,
    Affected,
    Fixed,
    NotAffected,
    AnalysisNotPlanned,
    FixNotPlanned,
    PendingUpstreamFix,
    Patched,
}

impl Latest {
    fn filter(self) -> v2::EventTypeFilter {
        match self {
            Latest::Detection => v2::EventTypeFilter::Detection,
            Latest::Affected => v2::EventTypeFilter::TruePositiveDetermination,
            Latest::Fixed => v2::EventTypeFilter::Fixed,
            Latest::NotAffected => v2::EventTypeFilter::FalsePositiveDetermination,
            Latest::AnalysisNotPlanned => v2::EventTypeFilter::AnalysisNotPlanned,
            Latest::FixNotPlanned => v2::EventTypeFilter::FixNotPlanned,
            Latest::PendingUpstreamFix => v2::EventTypeFilter::PendingUpstreamFix,
            Latest::Patched => v2::EventTypeFilter::Patched,
        }
    }
}

#[derive(Args)]
pub struct GetCommand {
    #[command(flatten)]
    access: Access,
    /// Advisory: its public identifier or UIDP
    #[arg(value_name = "ADVISORY")]
    advisory: String,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn list(command: ListCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let mut request = v2::ListAdvisoriesRequest {
        artifact_names: command.artifact,
        origin: command.origin,
        component_names: command.component,
        aliases: command.alias,
        latest_event_type: command.latest.map(|latest| latest.filter() as i32),
        query: command.query.unwrap_or_default(),
        page_size: 200,
        ..v2::ListAdvisoriesRequest::default()
    };
    if let Some(group) = &command.group {
        let descendants_of = resolve::group(&api, group).await?;
        request.uidp = Some(UidpFilter { descendants_of, ..UidpFilter::default() });
    }
    if command.pending {
        request.event_review_states = vec![v2::ReviewState::Pending as i32];
    }
    pages::print::<ListAdvisories, v2::Advisory>(
        &api,
        request,
        &command.output,
        &["id", "artifact", "component", "vulnerabilities", "latest", "updated"],
        |request| &mut request.page_token,
        |page| (page.advisories, page.next_page_token),
        |advisory| {
            vec![
                advisory.advisory_id.clone(),
                advisory.artifact_name.clone(),
                advisory.component_name.clone(),
                advisory.aliases.join(","),
                latest(advisory).into(),
                time(advisory.update_time),
            ]
        },
    )
    .await
}

/// What the latest approved event says; events come with the earliest first.
fn latest(advisory: &v2::Advisory) -> &'static str {
    let approved = advisory.events.iter().rev().find(|event| event.review_state() == v2::ReviewState::Approved);
    approved.map_or("", |event| name::parsed(event).0)
}

pub(super) async fn get(command: GetCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let advisory = name::advisory(&session.api().await?, &command.advisory).await?;
    let mut table = Table::without_head();
    for (field, value) in [
        ("id", advisory.advisory_id.clone()),
        ("uidp", advisory.uid.clone()),
        ("artifact", advisory.artifact_name.clone()),
        ("type", advisory.artifact_type.clone()),
        ("architecture", advisory.artifact_architecture.clone()),
        ("component", advisory.component_name.clone()),
        ("vulnerabilities", advisory.aliases.join(",")),
        ("latest", latest(&advisory).into()),
        ("deleted", time(advisory.delete_time)),
    ] {
        table.push([field.to_owned(), value]);
    }
    for event in &advisory.events {
        let (kind, words) = name::parsed(event);
        table.push([time(event.create_time), kind.into(), name::state(event), event.uid.clone(), words]);
    }
    print(&command.output.message(&table, &advisory)?)
}
