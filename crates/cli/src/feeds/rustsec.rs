//! `bowline feeds export rustsec`: imported records about crates, as a database that `cargo audit` reads.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bowline_client::Api;
use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::records::ListPackageRecords;
use bowline_feeds::{Problems, rustsec_file};
use bowline_osv::RUST;
use bowline_terminal::{Table, say};
use clap::Args;

use super::vex::Tree;
use crate::error::CliError;
use crate::print;
use crate::session::{Session, Target};

/// File with the sources of an export, beside its `crates`.
const SOURCES: &str = "sources.txt";
/// Records of one page: the most that a response has.
const PAGE_SIZE: i32 = 200;
/// Most files of an export.
const MAX_FILES: usize = 1_000_000;

#[derive(Args)]
pub struct ExportCommand {
    #[command(flatten)]
    target: Target,
    /// Directory to make, with all files in it
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    out: PathBuf,
    /// Replace an earlier export in this directory
    #[arg(long)]
    replace: bool,
}

/// What was written.
#[derive(Default)]
struct Written {
    files: usize,
    problems: Problems,
    /// Licence and number of records of each source.
    sources: BTreeMap<String, (String, usize)>,
}

/// Fetches the records page by page and writes a file for each.
pub(super) async fn export(command: ExportCommand) -> Result<(), CliError> {
    let api = Api::new(&Session::open(&command.target)?.api, None)?;
    let tree =
        if command.replace { Tree::replacing(&command.out, &["crates", SOURCES])? } else { Tree::new(&command.out)? };
    let written = match write(&api, &tree).await {
        Ok(written) if written.files > 0 => written,
        failed => {
            tree.abandon()?;
            let problems = failed?.problems;
            say(&talk(&problems));
            return Err(CliError::NoRecords("a crate that this form can express".into()));
        }
    };
    tree.write(SOURCES, sources(&written).as_bytes())?;
    tree.finish()?;
    say(&talk(&written.problems));
    let left_out = written.problems.skipped();
    let mut table = Table::new(&["records", "left out"]);
    table.push([written.files.to_string(), left_out.to_string()]);
    print(&table.text())?;
    if left_out > 0 { Err(CliError::NotExported(left_out)) } else { Ok(()) }
}

async fn write(api: &Api, tree: &Tree) -> Result<Written, CliError> {
    let mut written = Written::default();
    let mut generation = None;
    let mut request =
        own::ListPackageRecordsRequest { ecosystem: RUST.into(), page_size: PAGE_SIZE, ..Default::default() };
    loop {
        let page = api.call::<ListPackageRecords>(&request).await?;
        // Pages of different states could have an id twice, which readers refuse.
        if *generation.get_or_insert(page.generation) != page.generation {
            return Err(CliError::RecordsChanged);
        }
        for package in page.packages {
            let file = rustsec_file(&package.record, &package.name, &package.licence, &mut written.problems);
            let Some(file) = file else { continue };
            if written.files == MAX_FILES {
                return Err(CliError::Document(format!("there are more than {MAX_FILES} records")));
            }
            tree.write(&file.path, &file.bytes)?;
            written.files += 1;
            written.sources.entry(package.source).or_insert((package.licence, 0)).1 += 1;
        }
        if page.next_page_token.is_empty() {
            return Ok(written);
        }
        request.page_token = page.next_page_token;
    }
}

/// The sources with their licences, as those want it.
fn sources(written: &Written) -> String {
    let plain = |text: &str| text.replace(|c: char| c.is_control(), " ");
    let lines = written
        .sources
        .iter()
        .map(|(name, (licence, records))| format!("{}\t{}\t{records}\n", plain(name), plain(licence)));
    format!("source\tlicence\trecords\n{}", lines.collect::<String>())
}

/// What was left out, for people.
fn talk(problems: &Problems) -> String {
    let lines =
        problems.iter().map(|problem| format!("{}\n", problem.to_string().replace(|c: char| c.is_control(), " ")));
    let mut talk: String = lines.collect();
    let more = problems.skipped().saturating_sub(problems.iter().count());
    if more > 0 {
        talk.push_str(&format!("and {more} more\n"));
    }
    talk
}
