use bowline_contract::v1::libraries as v1;
use bowline_contract::v1::libraries::rpc::resolution_cache as methods;
use bowline_terminal::{Output, Table, time};
use clap::{Args, Subcommand};

use super::{Ecosystem, ecosystem_name, wire_number};
use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::Access;

/// `bowline libraries cache`.
#[derive(Subcommand)]
pub enum CacheCommand {
    /// Show the state of the cache by ecosystem
    Status(OrganizationCommand),
    /// List cached resolutions
    List(ListCommand),
    /// Purge cached resolutions
    Zap(PurgeCommand),
    /// Cache resolutions again
    OptIn(SwitchCommand),
    /// Stop caching resolutions
    OptOut(SwitchCommand),
}

#[derive(Args)]
pub struct OrganizationCommand {
    #[command(flatten)]
    access: Access,
    /// Organization, by name or UIDP
    #[arg(value_name = "ORG")]
    organization: String,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct SwitchCommand {
    #[command(flatten)]
    at: OrganizationCommand,
    /// Only of this ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Option<Ecosystem>,
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    at: OrganizationCommand,
    /// Only of this ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Option<Ecosystem>,
    /// Only of this package
    #[arg(long, value_name = "NAME")]
    package: Option<String>,
    /// Only what counts
    #[arg(long)]
    live: bool,
    /// Most choices that are listed
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
}

#[derive(Args)]
pub struct PurgeCommand {
    #[command(flatten)]
    at: OrganizationCommand,
    /// Only of this ecosystem
    #[arg(long, value_name = "NAME")]
    ecosystem: Option<Ecosystem>,
    /// Only of this package
    #[arg(long, value_name = "NAME", requires = "ecosystem")]
    package: Option<String>,
    /// Only of packages whose names begin so
    #[arg(long, value_name = "TEXT", requires = "ecosystem", conflicts_with = "package")]
    prefix: Option<String>,
    /// Only this version
    #[arg(long, value_name = "VERSION", requires = "package")]
    version: Option<String>,
    /// Say what would be forgotten, and forget nothing
    #[arg(long)]
    dry_run: bool,
    /// Key that makes a repetition harmless
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

pub(crate) async fn run(command: CacheCommand) -> Result<(), CliError> {
    match command {
        CacheCommand::Status(command) => {
            let api = command.access.session()?.api().await?;
            let parent_id = resolve::group(&api, &command.organization).await?;
            let status = api.call::<methods::Status>(&v1::ResolutionCacheStatusFilter { parent_id }).await?;
            watermarks(&status.watermarks, command.output)
        }
        CacheCommand::List(command) => list(command).await,
        CacheCommand::Zap(command) => purge(command).await,
        CacheCommand::OptIn(command) => switch(command, false).await,
        CacheCommand::OptOut(command) => switch(command, true).await,
    }
}

async fn switch(command: SwitchCommand, opted_out: bool) -> Result<(), CliError> {
    let api = command.at.access.session()?.api().await?;
    let parent_id = resolve::group(&api, &command.at.organization).await?;
    let ecosystem = wire_number(command.ecosystem)?;
    let request = v1::ResolutionCacheOptOutRequest { parent_id, ecosystem, opted_out };
    let state = api.call::<methods::SetOptOut>(&request).await?;
    watermarks(&state.watermarks, command.at.output)
}

fn watermarks(marks: &[v1::ResolutionCacheWatermark], output: Output) -> Result<(), CliError> {
    let mut table = Table::new(&["ecosystem", "generation", "zaps", "opted out", "last zap"]);
    for mark in marks {
        let (ecosystem, generation) = (ecosystem_name(mark.ecosystem), mark.generation.to_string());
        let (zaps, out) = (mark.zap_count.to_string(), mark.opted_out.to_string());
        table.push([ecosystem, generation, zaps, out, time(mark.last_zapped_at)]);
    }
    print(&output.messages(&table, marks)?)
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let api = command.at.access.session()?.api().await?;
    let mut request = v1::ResolutionCacheEntryFilter {
        parent_id: resolve::group(&api, &command.at.organization).await?,
        ecosystem: wire_number(command.ecosystem)?,
        package_name: command.package.unwrap_or_default(),
        live_only: command.live,
        ..v1::ResolutionCacheEntryFilter::default()
    };
    let mut items = Vec::new();
    while items.len() < command.limit {
        request.page_size = i32::try_from((command.limit - items.len()).min(200)).unwrap_or(200);
        let page = api.call::<methods::List>(&request).await?;
        items.extend(page.items);
        if page.next_cursor.is_empty() {
            break;
        }
        request.cursor = page.next_cursor;
    }
    let mut table = Table::new(&["ecosystem", "registry", "package", "version", "tier", "live", "digest"]);
    for item in &items {
        let tier = item.tier().as_str_name().trim_start_matches("TIER_").to_lowercase();
        let (ecosystem, registry) = (ecosystem_name(item.ecosystem), item.registry.clone());
        let (package, version) = (item.package_name.clone(), item.version.clone());
        table.push([ecosystem, registry, package, version, tier, item.live.to_string(), item.digest.clone()]);
    }
    print(&command.at.output.messages(&table, &items)?)
}

async fn purge(command: PurgeCommand) -> Result<(), CliError> {
    let api = command.at.access.session()?.api().await?;
    let request = v1::ZapResolutionCacheRequest {
        parent_id: resolve::group(&api, &command.at.organization).await?,
        ecosystem: wire_number(command.ecosystem)?,
        package_prefix: command.prefix.unwrap_or_default(),
        package_name: command.package.unwrap_or_default(),
        version: command.version.unwrap_or_default(),
        registry: String::new(),
        dry_run: command.dry_run,
        idempotency_key: command.idempotency_key.unwrap_or_default(),
    };
    let summary = api.call::<methods::Zap>(&request).await?;
    let mut table = Table::new(&["ecosystem", "forgotten", "generation"]);
    for result in &summary.results {
        let (ecosystem, count) = (ecosystem_name(result.ecosystem), result.retired_count.to_string());
        table.push([ecosystem, count, result.generation.to_string()]);
    }
    print(&command.at.output.message(&table, &summary)?)
}
