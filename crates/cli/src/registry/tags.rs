use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::tags_service::ListTags;
use bowline_terminal::{Output, Table, time};
use clap::{Args, Subcommand};

use crate::error::CliError;
use crate::print;
use crate::registry::targets;
use crate::session::Access;

/// `bowline registry tags`.
#[derive(Subcommand)]
pub enum TagsCommand {
    /// List the tags of a repository with the digests that they name
    List(ListCommand),
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: String,
    /// Only tags that name this digest
    #[arg(long)]
    digest: Option<String>,
    /// Also tags that clients made for signatures and their like
    #[arg(long)]
    referrers: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn run(command: TagsCommand) -> Result<(), CliError> {
    let TagsCommand::List(command) = command;
    let session = command.access.session()?;
    let api = session.api().await?;
    let repo = targets::repo(&session, &api, &command.repo).await?;
    let mut request = v2::ListTagsRequest {
        uidp: Some(UidpFilter { children_of: repo, ..UidpFilter::default() }),
        digest: command.digest.unwrap_or_default(),
        include_referrers: command.referrers,
        include_dates: true,
        include_epochs: true,
        page_size: 200,
        ..v2::ListTagsRequest::default()
    };
    let mut tags = Vec::new();
    loop {
        let page = api.call::<ListTags>(&request).await?;
        tags.extend(page.tags);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let mut table = Table::new(&["name", "digest", "updated"]);
    for tag in &tags {
        table.push([tag.name.clone(), tag.digest.clone(), time(tag.update_time)]);
    }
    print(&command.output.messages(&table, &tags)?)
}
