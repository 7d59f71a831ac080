//! `bowline search`: everything that has a name, or what was pasted.

use bowline_contract::bowline::search::v1 as search;
use bowline_contract::bowline::search::v1::rpc::search::Search;
use bowline_terminal::{Form, Output, Table, Work, note};
use clap::{Args, ValueEnum};

use crate::error::CliError;
use crate::session::Access;
use crate::{print, resolve};

/// `bowline search`.
#[derive(Args)]
#[command(
    after_help = "Example:\n  bowline search nginx --kinds repo,tag --scope acme\n\nDigests, ids of vulnerabilities, package URLs, UIDPs and image references are resolved."
)]
pub struct SearchCommand {
    #[command(flatten)]
    access: Access,
    /// A part of a name, or what was pasted
    #[arg(value_name = "TEXT")]
    query: String,
    /// Kinds of results [default: all]
    #[arg(long, value_name = "KIND,...", value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// Only in this organization or group and below it, by path or UIDP
    #[arg(long, value_name = "GROUP")]
    scope: Option<String>,
    /// Most results of each kind
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(i32).range(1..=200))]
    limit: i32,
    #[command(flatten)]
    output: Output,
}

/// Kinds of results.
#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Group,
    Repo,
    Tag,
    Image,
    Package,
    Advisory,
    Identity,
}

impl Kind {
    fn wire(self) -> search::SearchKind {
        match self {
            Kind::Group => search::SearchKind::Group,
            Kind::Repo => search::SearchKind::Repo,
            Kind::Tag => search::SearchKind::Tag,
            Kind::Image => search::SearchKind::Image,
            Kind::Package => search::SearchKind::Package,
            Kind::Advisory => search::SearchKind::Advisory,
            Kind::Identity => search::SearchKind::Identity,
        }
    }
}

/// Runs `bowline search`.
pub fn run(command: SearchCommand) -> Work<CliError> {
    Box::pin(execute(command))
}

async fn execute(command: SearchCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let scope = match &command.scope {
        Some(scope) => resolve::group(&api, scope).await?,
        None => String::new(),
    };
    let request = search::SearchRequest {
        query: command.query,
        kinds: command.kinds.iter().map(|kind| kind.wire() as i32).collect(),
        scope,
        page_size: command.limit,
        page_token: String::new(),
    };
    let response = api.call::<Search>(&request).await?;
    let is_wide = *command.output.form() == Form::Wide;
    let output = match command.output.form() {
        // The names of the results, and not of the response.
        Form::Name => {
            response.sections.iter().flat_map(|section| &section.hits).map(|hit| hit.uid.clone() + "\n").collect()
        }
        _ => command.output.message(&table(&response, is_wide), &response)?,
    };
    print(&output)?;
    for section in response.sections.iter().filter(|section| !section.next_page_token.is_empty()) {
        note(&format!("there are more results of the kind {}: pass --limit, 200 at most\n", kind_name(section)));
    }
    Ok(())
}

fn table(response: &search::SearchResponse, is_wide: bool) -> Table {
    let head = ["kind", "name", "in", "detail", "uidp", "digest"];
    let columns = if is_wide { head.len() } else { 5 };
    let mut table = Table::new(head.get(..columns).unwrap_or(&head));
    for section in &response.sections {
        for hit in &section.hits {
            let parent = if hit.parent_name.is_empty() { &hit.parent } else { &hit.parent_name };
            let cells = [
                kind_name(section),
                hit.name.clone(),
                parent.clone(),
                hit.detail.clone(),
                hit.uid.clone(),
                hit.digest.clone(),
            ];
            table.push(cells.into_iter().take(columns));
        }
    }
    table
}

fn kind_name(section: &search::SearchSection) -> String {
    section.kind().as_str_name().trim_start_matches("SEARCH_KIND_").to_lowercase()
}
