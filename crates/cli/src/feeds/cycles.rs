//! `bowline feeds import cycles` and `bowline feeds cycles`: until when versions of products are supported.

use std::path::{Path, PathBuf};

use bowline_client::Api;
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::release_cycles as methods;
use bowline_feeds::{Cycle, Limits, Problems, Product};
use bowline_terminal::{Output, Table, say, time};
use clap::Args;

use super::vex::documents;
use crate::error::CliError;
use crate::session::Access;
use crate::{input, print};

#[derive(Args)]
pub struct ImportCommand {
    #[command(flatten)]
    access: Access,
    /// A file in the form of endoflife.date, a directory of such, or - for standard input. A file with the cycles of one
    /// product is named after it, as python.json
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The product of a file that does not say whose cycles it has [default: the name of the file]
    #[arg(long, value_name = "NAME")]
    product: Option<String>,
    /// The files have all products: remove those that they do not have
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    output: Output,
}

/// Products that are sent at once: a short transaction of the server's one writer.
const PRODUCTS_AT_ONCE: usize = 100;
/// Names of products that are removed at once.
const REMOVED_AT_ONCE: usize = 200;
/// Products on a page.
const PAGE: i32 = 200;

pub(super) async fn import(command: ImportCommand) -> Result<(), CliError> {
    let (products, skipped) = read(&command)?;
    let api = command.access.session()?.api().await?;
    let gone = if command.full && skipped == 0 { gone(&api, &products).await? } else { Vec::new() };
    let mut done = own::ReleaseCycleImport::default();
    for part in products.chunks(PRODUCTS_AT_ONCE) {
        let request = own::ImportReleaseCyclesRequest { products: part.to_vec(), ..Default::default() };
        add(&mut done, api.call::<methods::ImportReleaseCycles>(&request).await?);
    }
    for part in gone.chunks(REMOVED_AT_ONCE) {
        let request = own::ImportReleaseCyclesRequest { removed_names: part.to_vec(), ..Default::default() };
        add(&mut done, api.call::<methods::ImportReleaseCycles>(&request).await?);
    }
    let mut table = Table::new(&["products", "added", "changed", "removed"]);
    let counts = [products.len(), done.added.len(), done.changed.len(), done.removed.len()];
    table.push(counts.map(|count| count.to_string()));
    print(&command.output.message(&table, &done)?)?;
    match skipped {
        0 => Ok(()),
        _ if command.full => Err(CliError::Document(format!(
            "{skipped} entries were skipped, for the reasons above; the others were taken in, and nothing was removed"
        ))),
        _ => Err(CliError::Document(format!(
            "{skipped} entries were skipped, for the reasons above; the others were taken in"
        ))),
    }
}

fn add(done: &mut own::ReleaseCycleImport, part: own::ReleaseCycleImport) {
    let own::ReleaseCycleImport { added, changed, removed } = part;
    done.added.extend(added);
    done.changed.extend(changed);
    done.removed.extend(removed);
}

/// The products of all files, and how many entries are skipped.
fn read(command: &ImportCommand) -> Result<(Vec<own::ReleaseProduct>, usize), CliError> {
    let limits = Limits::default();
    let (mut products, mut skipped) = (Vec::<own::ReleaseProduct>::new(), 0);
    for path in documents(&command.path)? {
        let bytes = input::read(&path, limits.bytes as u64)?;
        let name = command.product.clone().unwrap_or_else(|| stem(&path));
        let mut problems = Problems::default();
        let read = bowline_feeds::release_cycles(&bytes, &name, &limits, &mut problems)
            .map_err(|error| CliError::Document(format!("{}: {error}", path.display())))?;
        for problem in problems.iter() {
            say(&format!("{}: {problem}\n", path.display()));
        }
        skipped += problems.skipped();
        for product in read {
            if products.iter().any(|other| other.name == product.name) {
                say(&format!("{}: skipped {}: another file has this product\n", path.display(), product.name));
                skipped += 1;
                continue;
            }
            products.push(message(product));
        }
    }
    Ok((products, skipped))
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

fn message(product: Product) -> own::ReleaseProduct {
    let Product { name, aliases, cycles } = product;
    let cycle = |cycle: Cycle| {
        let Cycle { name, release_date, end_date, ended, lts, latest_version } = cycle;
        own::ReleaseCycle { name, release_date, end_date, ended, lts, latest_version }
    };
    own::ReleaseProduct { name, aliases, cycles: cycles.into_iter().map(cycle).collect() }
}

/// Names of stored products that the files do not have.
async fn gone(api: &Api, products: &[own::ReleaseProduct]) -> Result<Vec<String>, CliError> {
    let stored = stored(api).await?;
    let is_gone = |name: &String| products.iter().all(|product| product.name != *name);
    Ok(stored.into_iter().map(|product| product.name).filter(is_gone).collect())
}

async fn stored(api: &Api) -> Result<Vec<own::ReleaseProductSummary>, CliError> {
    let mut request = own::ListReleaseProductsRequest { page_size: PAGE, page_token: String::new() };
    let mut found = Vec::new();
    loop {
        let page = api.call::<methods::ListReleaseProducts>(&request).await?;
        found.extend(page.products);
        if page.next_page_token.is_empty() {
            return Ok(found);
        }
        request.page_token = page.next_page_token;
    }
}

pub(super) async fn list(command: ListCommand) -> Result<(), CliError> {
    let products = stored(&command.access.session()?.api().await?).await?;
    let mut table = Table::new(&["product", "cycles", "supported", "imported", "aliases"]);
    for product in &products {
        let counts = [product.cycles, product.supported].map(|count| count.to_string());
        let rest = [time(product.import_time), product.aliases.join(", ")];
        table.push([product.name.clone()].into_iter().chain(counts).chain(rest));
    }
    print(&command.output.messages(&table, &products)?)
}
