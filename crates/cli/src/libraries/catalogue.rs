use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::artifacts as methods;
use bowline_terminal::{Output, Table, time};
use clap::Args;

use super::{Ecosystem, ecosystem_name, wire_number};
use crate::error::CliError;
use crate::print;
use crate::session::Access;

#[derive(Args)]
pub struct ArtifactsCommand {
    #[command(flatten)]
    access: Access,
    /// Part of the name
    #[arg(value_name = "TEXT")]
    query: Option<String>,
    /// Ecosystems, comma-separated [default: all]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    ecosystem: Vec<Ecosystem>,
    /// Only packages that have remediated versions
    #[arg(long)]
    remediated: bool,
    /// Also packages that come from upstream alone
    #[arg(long)]
    upstream: bool,
    /// Only packages built for this CUDA version, such as cu128
    #[arg(long, value_name = "VERSION")]
    cuda: Option<String>,
    /// Most packages that are listed
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: usize,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct VersionsCommand {
    #[command(flatten)]
    access: Access,
    /// Id of a package, as artifacts lists it
    #[arg(value_name = "ID")]
    id: String,
    /// Also versions that come from upstream
    #[arg(long)]
    upstream: bool,
    #[command(flatten)]
    output: Output,
}

pub(crate) async fn artifacts(command: ArtifactsCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let numbers = command.ecosystem.iter().map(|ecosystem| wire_number(Some(*ecosystem)));
    let mut request = v1::ArtifactFilter {
        ecosystems: numbers.collect::<Result<Vec<_>, _>>()?,
        query: command.query.unwrap_or_default(),
        cuda_version: command.cuda.unwrap_or_default(),
        remediated: command.remediated,
        include_upstream: command.upstream,
        ..v1::ArtifactFilter::default()
    };
    let mut items = Vec::new();
    while items.len() < command.limit {
        request.page_size = i32::try_from((command.limit - items.len()).min(200)).unwrap_or(200);
        let page = api.call::<methods::List>(&request).await?;
        items.extend(page.items);
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    let mut table = Table::new(&["id", "ecosystem", "name", "latest", "versions", "description"]);
    for item in &items {
        let (ecosystem, versions) = (ecosystem_name(item.ecosystem), item.version_count.to_string());
        let (id, name, latest) = (item.id.clone(), item.name.clone(), item.latest_version.clone());
        table.push([id, ecosystem, name, latest, versions, item.description.clone()]);
    }
    print(&command.output.messages(&table, &items)?)
}

pub(crate) async fn versions(command: VersionsCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let request = v1::ArtifactVersionFilter { id: command.id, include_upstream: command.upstream };
    let items = api.call::<methods::ListVersions>(&request).await?.items;
    let mut table = Table::new(&["version", "source", "bytes", "malicious", "published", "updated"]);
    for item in &items {
        let source = item.source_type().as_str_name().trim_start_matches("SOURCE_TYPE_").to_lowercase();
        table.push([
            item.version.clone(),
            source,
            item.size_bytes.to_string(),
            item.malware_malicious.to_string(),
            time(item.upstream_published_date),
            time(item.updated_at),
        ]);
    }
    print(&command.output.messages(&table, &items)?)
}
