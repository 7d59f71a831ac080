use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::library_policy_block_events::ListBlockEvents;
use bowline_terminal::{Output, Table, time};
use clap::Args;

use super::{Ecosystem, Mode, mode_name, wire_number};
use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::Access;

#[derive(Args)]
pub struct BlockedCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP; all that the caller may see where none is named
    #[arg(value_name = "ORG")]
    organization: Option<String>,
    /// Only of this ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Option<Ecosystem>,
    /// Only of this package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Enforced refusals, or those that a dry-run policy would have made
    #[arg(long, value_name = "MODE", default_value = "enforced")]
    mode: Mode,
    /// Maximum number of rows; events of the last 30 days
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(command: BlockedCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let parent_id = match &command.organization {
        Some(organization) => resolve::group(&api, organization).await?,
        None => String::new(),
    };
    let mut request = v1::LibraryPolicyBlockEventFilter {
        parent_id,
        ecosystem: wire_number(command.ecosystem)?,
        package_name: command.package.unwrap_or_default(),
        mode: command.mode.wire() as i32,
        ..v1::LibraryPolicyBlockEventFilter::default()
    };
    let mut items = Vec::new();
    while items.len() < command.limit {
        request.page_size = i32::try_from((command.limit - items.len()).min(200)).unwrap_or(200);
        let page = api.call::<ListBlockEvents>(&request).await?;
        items.extend(page.items);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let mut table = Table::new(&["package", "reason", "mode", "attempts", "last", "until", "policy"]);
    for item in &items {
        table.push([
            item.purl.clone(),
            item.reason.clone(),
            mode_name(item.mode),
            item.attempt_count.to_string(),
            time(item.last_blocked_at),
            time(item.unblocks_at),
            item.policy.clone(),
        ]);
    }
    print(&command.output.messages(&table, &items)?)
}
