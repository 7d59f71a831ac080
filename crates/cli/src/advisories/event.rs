use bowline_client::ClientError;
use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::advisory_event as of;
use bowline_contract::v1::vulnerabilities::advisory_event::Type;
use bowline_contract::v1::vulnerabilities::advisory_event::false_positive_determination::Type as Ground;
use bowline_contract::v1::vulnerabilities::rpc::advisories::CreateAdvisoryEvent;
use bowline_terminal::{Output, Table};
use clap::{Args, ValueEnum};

use super::name;
use crate::error::CliError;
use crate::print;
use crate::resources::DryRun;
use crate::session::Access;

#[derive(Args)]
pub struct EventCommand {
    #[command(flatten)]
    access: Access,
    /// Advisory: its public identifier or UIDP
    #[arg(value_name = "ADVISORY")]
    advisory: String,
    /// What happened
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// Versions that have the fix: of `fixed` the first one, of `patched` all, comma-separated
    #[arg(long, value_name = "VERSION,...", value_delimiter = ',')]
    version: Vec<String>,
    /// Why the artifact is not affected
    #[arg(long, value_name = "REASON", required_if_eq("kind", "not-affected"))]
    reason: Option<Reason>,
    /// Why, in your own words
    #[arg(long, value_name = "TEXT", default_value = "")]
    note: String,
    /// Link to the ticket in which it is discussed
    #[arg(long, value_name = "URL")]
    issue: Option<String>,
    /// Approve it at once, where you may
    #[arg(long)]
    approved: bool,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Detection,
    Affected,
    NotAffected,
    Fixed,
    Patched,
    AnalysisNotPlanned,
    FixNotPlanned,
    PendingUpstreamFix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Reason {
    Contested,
    ComponentMismatch,
    VersionNotUsed,
    NotIncluded,
    NotExecuted,
    NotControllable,
    Mitigated,
}

impl Reason {
    fn ground(self) -> Ground {
        match self {
            Reason::Contested => Ground::VulnerabilityRecordAnalysisContested,
            Reason::ComponentMismatch => Ground::ComponentVulnerabilityMismatch,
            Reason::VersionNotUsed => Ground::VulnerableCodeVersionNotUsed,
            Reason::NotIncluded => Ground::VulnerableCodeNotIncludedInPackage,
            Reason::NotExecuted => Ground::VulnerableCodeNotInExecutionPath,
            Reason::NotControllable => Ground::VulnerableCodeCannotBeControlledByAdversary,
            Reason::Mitigated => Ground::InlineMitigationsExist,
        }
    }
}

pub(super) async fn run(command: EventCommand) -> Result<(), CliError> {
    let kind = kind(&command)?;
    let session = command.access.session()?;
    let api = session.api().await?;
    let parent_id = name::advisory(&api, &command.advisory).await?.uid;
    let status = if command.approved { v1::ReviewStatus::Approved } else { v1::ReviewStatus::Pending };
    let event = v1::AdvisoryEvent {
        r#type: Some(kind),
        issue: command.issue,
        status: status as i32,
        ..v1::AdvisoryEvent::default()
    };
    let request = v1::CreateAdvisoryEventRequest { parent_id, advisory_event: Some(event) };
    let form = command.output.form();
    let Some(added) = command.dry_run.call::<CreateAdvisoryEvent>(&api, &request, form).await? else {
        return Ok(());
    };
    // The UIDP alone, for its review.
    let mut table = Table::without_head();
    table.push([added.id.clone()]);
    print(&command.output.message(&table, &added)?)
}

fn kind(command: &EventCommand) -> Result<Type, ClientError> {
    let note = command.note.clone();
    Ok(match command.kind {
        Kind::Detection => {
            Type::Detection(of::Detection { r#type: Some(of::detection::Type::Manual(of::detection::Manual {})) })
        }
        Kind::Affected => Type::TruePositiveDetermination(of::TruePositiveDetermination { note }),
        Kind::NotAffected => {
            let ground = command.reason.map_or(Ground::Unspecified, Reason::ground);
            Type::FalsePositiveDetermination(of::FalsePositiveDetermination { r#type: ground as i32, note })
        }
        Kind::Fixed => {
            let [version] = command.version.as_slice() else {
                return Err(ClientError::Usage("fixed wants the first version with the fix: --version VERSION".into()));
            };
            Type::Fixed(of::Fixed { fixed_version: version.clone(), note, ..of::Fixed::default() })
        }
        Kind::Patched if command.version.is_empty() => {
            return Err(ClientError::Usage("patched wants the versions with the patch: --version VERSION,...".into()));
        }
        Kind::Patched => Type::Patched(of::Patched { patched_versions: command.version.clone(), note }),
        Kind::AnalysisNotPlanned => Type::AnalysisNotPlanned(of::AnalysisNotPlanned { note }),
        Kind::FixNotPlanned => Type::FixNotPlanned(of::FixNotPlanned { note }),
        Kind::PendingUpstreamFix => Type::PendingUpstreamFix(of::PendingUpstreamFix { note }),
    })
}
