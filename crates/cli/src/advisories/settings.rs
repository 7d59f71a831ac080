use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::advisory_settings_service as methods;
use bowline_terminal::{Output, Table};
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::Access;

#[derive(Args)]
pub struct SettingsCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group
    #[arg(value_name = "GROUP")]
    group: String,
    /// Whether anyone may read what is approved in the group itself
    #[arg(long, value_name = "BOOL")]
    public: Option<bool>,
    /// Whether no one decides on events of their own, here and below
    #[arg(long, value_name = "BOOL")]
    second_reviewer: Option<bool>,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(command: SettingsCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let uid = resolve::group(&api, &command.group).await?;
    let mut paths = Vec::new();
    if command.public.is_some() {
        paths.push("public".to_owned());
    }
    if command.second_reviewer.is_some() {
        paths.push("second_reviewer_required".to_owned());
    }
    let settings = if paths.is_empty() {
        api.call::<methods::GetAdvisorySettings>(&own::GetAdvisorySettingsRequest { uid }).await?
    } else {
        let settings = own::AdvisorySettings {
            uid,
            public: command.public.unwrap_or_default(),
            second_reviewer_required: command.second_reviewer.unwrap_or_default(),
            update_time: None,
        };
        let update_mask = Some(prost_types::FieldMask { paths });
        let request = own::UpdateAdvisorySettingsRequest { settings: Some(settings), update_mask };
        api.call::<methods::UpdateAdvisorySettings>(&request).await?
    };
    let mut table = Table::new(&["group", "public", "second reviewer"]);
    table.push([settings.uid.clone(), settings.public.to_string(), settings.second_reviewer_required.to_string()]);
    print(&command.output.message(&table, &settings)?)
}
