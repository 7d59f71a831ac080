//! `bowline feeds export FORMAT`: fetches the approved state of a group, artifact by artifact, and writes files.

use std::path::PathBuf;

use bowline_client::Api;
use bowline_contract::bowline::advisories::v1::ExportAdvisoriesRequest;
use bowline_contract::bowline::advisories::v1::rpc::advisory_transfers::ExportAdvisories;
use bowline_feeds::{Advisory, Artifact, Effect, Osv, Problems, Publisher, Secdb, WriteFormat};
use bowline_terminal::{Table, say};
use clap::Args;

use super::documents::Documents;
use super::records::{Database, Records};
use super::tree::Tree;
use super::unconvert;
use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::Access;

/// What is written.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// One database of all packages.
    Secdb,
    /// Records, by ecosystem.
    Osv,
    /// A document for each artifact.
    Documents(WriteFormat),
}

#[derive(Args)]
pub struct ExportCommand {
    #[command(flatten)]
    access: Access,
    /// Group whose statements are written: UIDP, organization or organization/group
    #[arg(long, value_name = "GROUP")]
    group: String,
    /// Directory to make, with all files in it
    #[arg(short = 'o', long = "out", value_name = "DIR")]
    out: PathBuf,
    /// Who publishes, as readers are told [default: the group as it is named here]
    #[arg(long, value_name = "NAME")]
    publisher: Option<String>,
    /// Address that the files will be found under [default: the API's]
    #[arg(long, value_name = "URL")]
    namespace: Option<String>,
    /// Distribution in the package URLs of the kind apk, such as wolfi
    #[arg(long, value_name = "NAME", default_value = "")]
    distribution: String,
    /// OSV ecosystem of packages of the kind apk; they are left out without it
    #[arg(long, value_name = "NAME", default_value = "")]
    ecosystem: String,
    /// Architectures that a security database names
    #[arg(long, value_name = "ARCH,...", value_delimiter = ',', default_value = "x86_64,aarch64")]
    architectures: Vec<String>,
    /// Write what came under a licence that forbids to hand on derivatives too
    #[arg(long)]
    include_restricted: bool,
}

/// What takes the advisories of one artifact after the other.
enum Writer {
    Secdb(Database),
    Osv(Records),
    Documents(Documents),
}

/// Fetches advisories, writes documents and reports problems.
pub(super) async fn run(kind: Kind, command: ExportCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let group = resolve::group(&api, &command.group).await?;
    let namespace = command.namespace.as_deref().unwrap_or(&session.api).trim_end_matches('/').to_owned();
    let publisher = Publisher {
        name: command.publisher.clone().unwrap_or_else(|| command.group.clone()),
        namespace,
        distribution: command.distribution.clone(),
    };
    let tree = Tree::new(&command.out)?;
    let mut writer = match kind {
        Kind::Secdb => Writer::Secdb(Database::new(&tree, &head(&command, &publisher))?),
        Kind::Osv => {
            let osv = Osv { ecosystem: command.ecosystem.clone(), distribution: command.distribution.clone() };
            Writer::Osv(Records::new(osv))
        }
        Kind::Documents(format) => Writer::Documents(Documents::new(format, publisher)),
    };
    let mut problems = Problems::default();
    let counts = fetch(&api, &group, command.include_restricted, |artifact, advisories| match &mut writer {
        Writer::Secdb(database) => database.add(&tree, artifact, advisories, &mut problems),
        Writer::Osv(records) => records.add(&tree, advisories, &mut problems),
        Writer::Documents(documents) => documents.add(&tree, artifact, advisories, &mut problems),
    });
    let counts = counts.await?;
    match writer {
        Writer::Secdb(database) => database.finish(&tree)?,
        Writer::Osv(records) => records.finish(&tree)?,
        Writer::Documents(documents) => documents.finish(&tree)?,
    }
    tree.finish()?;
    tell(&counts, &problems)
}

fn head(command: &ExportCommand, publisher: &Publisher) -> Secdb {
    let mut architectures = command.architectures.clone();
    architectures.sort();
    architectures.dedup();
    Secdb { repository: publisher.name.clone(), prefix: publisher.namespace.clone(), architectures }
}

#[derive(Default)]
struct Counts {
    artifacts: usize,
    advisories: usize,
    restricted: i64,
}

/// Gives the advisories of each artifact, all its architectures, to `write`. Only those of one artifact and of one page
/// are in memory.
async fn fetch(
    api: &Api,
    group: &str,
    include_restricted: bool,
    mut write: impl FnMut(&Artifact, &[Advisory]) -> Result<(), CliError>,
) -> Result<Counts, CliError> {
    let mut counts = Counts::default();
    let mut request =
        ExportAdvisoriesRequest { parent: group.into(), page_size: 200, include_restricted, ..Default::default() };
    let mut current: Vec<Advisory> = Vec::new();
    let mut flush = |current: &mut Vec<Advisory>, counts: &mut Counts| {
        let Some(first) = current.first() else {
            return Ok(());
        };
        let artifact = Artifact { architecture: String::new(), ..first.artifact.clone() };
        // The same advisories in the same order, whatever their UIDPs are.
        current.sort();
        counts.artifacts += 1;
        counts.advisories += current.len();
        write(&artifact, current)?;
        current.clear();
        Ok::<_, CliError>(())
    };
    loop {
        let page = api.call::<ExportAdvisories>(&request).await?;
        counts.restricted += i64::from(page.restricted_events);
        for exported in page.advisories {
            let advisory = unconvert::advisory(exported).map_err(CliError::Document)?;
            let is_other = current.first().is_some_and(|first| {
                (&first.artifact.kind, &first.artifact.name) != (&advisory.artifact.kind, &advisory.artifact.name)
            });
            if is_other {
                flush(&mut current, &mut counts)?;
            }
            current.push(advisory);
        }
        request.page_token = page.next_page_token;
        if request.page_token.is_empty() {
            flush(&mut current, &mut counts)?;
            return Ok(counts);
        }
    }
}

/// Most problems that are printed.
const MAX_SHOWN: usize = 20;

fn tell(counts: &Counts, problems: &Problems) -> Result<(), CliError> {
    let mut talk = String::new();
    // What could not be written at all comes first.
    let skipped = problems.iter().filter(|problem| problem.effect == Effect::Skipped);
    let reduced = problems.iter().filter(|problem| problem.effect == Effect::Reduced);
    for problem in skipped.chain(reduced).take(MAX_SHOWN) {
        talk.push_str(&format!("{}\n", problem.to_string().replace(|c: char| c.is_control(), " ")));
    }
    let more = (problems.skipped() + problems.reduced()).saturating_sub(MAX_SHOWN);
    if more > 0 {
        talk.push_str(&format!("and {more} more\n"));
    }
    if counts.restricted > 0 {
        talk.push_str(&format!(
            "{} statements were left out: their licence forbids to hand on derivatives (--include-restricted)\n",
            counts.restricted
        ));
    }
    say(&talk);
    let mut table = Table::new(&["artifacts", "advisories", "skipped", "reduced", "restricted"]);
    table.push([
        counts.artifacts.to_string(),
        counts.advisories.to_string(),
        problems.skipped().to_string(),
        problems.reduced().to_string(),
        counts.restricted.to_string(),
    ]);
    print(&table.text())
}
