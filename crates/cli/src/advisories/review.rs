use bowline_contract::v1::vulnerabilities as v1;
use bowline_contract::v1::vulnerabilities::rpc::advisories::UpdateAdvisoryEvent;
use bowline_terminal::{Output, Table};
use clap::{Args, ValueEnum};

use crate::error::CliError;
use crate::print;
use crate::resources::DryRun;
use crate::session::Access;

#[derive(Args)]
pub struct ReviewCommand {
    #[command(flatten)]
    access: Access,
    /// UIDP of the event, as `bowline advisories get` shows it
    #[arg(value_name = "EVENT")]
    event: String,
    /// What you decide; approving and rejecting is final
    #[arg(value_name = "DECISION")]
    decision: Decision,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Decision {
    Approve,
    Reject,
    RequestChanges,
    /// Ready to be looked at again
    Resubmit,
}

pub(super) async fn run(command: ReviewCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let status = match command.decision {
        Decision::Approve => v1::ReviewStatus::Approved,
        Decision::Reject => v1::ReviewStatus::Rejected,
        Decision::RequestChanges => v1::ReviewStatus::RequestChanges,
        Decision::Resubmit => v1::ReviewStatus::Pending,
    };
    let request = v1::AdvisoryEvent { id: command.event, status: status as i32, ..v1::AdvisoryEvent::default() };
    let (api, form) = (session.api().await?, command.output.form());
    let Some(event) = command.dry_run.call::<UpdateAdvisoryEvent>(&api, &request, form).await? else {
        return Ok(());
    };
    let mut table = Table::new(&["event", "status", "author", "reviewer"]);
    let state = event.status().as_str_name().to_lowercase().replace('_', "-");
    table.push([event.id.clone(), state, event.author.clone(), event.reviewer.clone()]);
    print(&command.output.message(&table, &event)?)
}
