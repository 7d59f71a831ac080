use bowline_client::ClientError;
use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::ListTagHistory;
use bowline_terminal::{Output, Table, say, time};
use clap::Args;

use crate::error::CliError;
use crate::print;
use crate::registry::targets::{self, Image};
use crate::session::Access;

/// `bowline registry history`.
#[derive(Args)]
pub struct HistoryCommand {
    #[command(flatten)]
    access: Access,
    /// Image: organization/name:tag, with more groups between and with the registry's host if you like
    #[arg(value_name = "IMAGE")]
    image: String,
    #[command(flatten)]
    output: Output,
}

/// Most moves in one response of a server.
const SHOWN: usize = 1000;

pub(crate) async fn run(command: HistoryCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let image = Image::parse(&command.image);
    let name = image.tag.filter(|_| image.digest.is_none());
    let name = name.ok_or_else(|| ClientError::Usage("a tag has a history, a digest never changes".into()))?;
    let api = session.api().await?;
    let repo = targets::repo(&session, &api, image.repo).await?;
    let tag = targets::tag(&api, &repo, name).await?;
    let filter = v1::TagHistoryFilter { parent_id: tag.uid, ..v1::TagHistoryFilter::default() };
    let mut moves = api.call::<ListTagHistory>(&filter).await?.items;
    moves.sort_by_key(|moved| moved.update_timestamp.map(|time| std::cmp::Reverse((time.seconds, time.nanos))));
    if moves.len() >= SHOWN {
        say(&format!("these are the newest {SHOWN} moves of {name}; older ones are not shown\n"));
    }
    let mut table = Table::new(&["since", "digest"]);
    for moved in &moves {
        table.push([time(moved.update_timestamp), moved.digest.clone()]);
    }
    print(&command.output.messages(&table, &moves)?)
}
