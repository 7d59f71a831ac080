//! `bowline feeds import`: compares files with what the server has, and sends what differs.

use std::path::PathBuf;

use bowline_client::{Api, ClientError};
use bowline_contract::bowline::feeds::v1 as feeds;
use bowline_contract::bowline::feeds::v1::rpc::record_imports as methods;
use bowline_osv::Parsed;
use bowline_terminal::{Output, Table};
use clap::Args;
use feeds::ImportState;

use super::abort_whole;
use super::known::{Difference, Known};
use super::reading::{Item, Items, Unread};
use super::report::{Counts, Report};
use crate::error::CliError;
use crate::print;
use crate::session::Access;

#[derive(Args)]
pub struct ImportCommand {
    #[command(flatten)]
    access: Access,
    /// A directory, a zip archive, or a file of one record (.json) or of one on each line (.jsonl)
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Name of the source: lower-case letters, digits, dots, dashes
    #[arg(long, value_name = "NAME")]
    source: String,
    /// License of the records, such as CC-BY-4.0
    #[arg(long = "license", alias = "licence", value_name = "LICENSE")]
    licence: String,
    /// Where the source is published
    #[arg(long, value_name = "URL", default_value = "")]
    url: String,
    /// The files are all that the source has: remove records that they do not have
    #[arg(long)]
    full: bool,
    /// Tell what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Write what is left out, and why, as a line of JSON each
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What is sent at once: a transaction of the server's one writer so short that other writes hardly wait for it.
const RECORDS_AT_ONCE: usize = 4;
const BYTES_AT_ONCE: usize = 1 << 20;
/// Ids that are removed at once.
const REMOVED_AT_ONCE: usize = 100;

pub(super) async fn run(command: ImportCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let mut report = Report::new(command.report.as_deref())?;
    let mut import = Import { api: &api, command: &command, generation: 0, begun: None };
    let mut known = import.compare_with().await?;
    let mut items = Items::read(&command.path);
    let mut batch = Batch::default();
    while let Some(part) = items.next()? {
        for item in part {
            if let Some(parsed) = take(item, &mut known, &mut report)? {
                batch.push(parsed);
                if batch.is_full() {
                    import.stage(&mut batch, &mut report).await?;
                }
            }
        }
        report.progress();
    }
    import.stage(&mut batch, &mut report).await?;
    if command.full {
        let gone = known.gone();
        if known.is_uncertain() {
            report.keep(gone.len());
        } else {
            import.remove(&gone, &mut report).await?;
        }
    }
    import.commit().await?;
    let counts = report.finish()?;
    tell(&command, counts)?;
    if counts.skipped > 0 { Err(CliError::LeftOut(counts.skipped)) } else { Ok(()) }
}

/// A record that the server does not have, or nothing.
fn take(item: Item, known: &mut Known, report: &mut Report) -> Result<Option<(String, Parsed)>, ClientError> {
    report.counts.read += 1;
    let parsed = match item.content {
        Ok(parsed) => parsed,
        Err(Unread { id, reason }) => {
            known.skip(&item.name, id.as_deref());
            report.skip(&item.name, id.as_deref().unwrap_or_default(), &reason)?;
            return Ok(None);
        }
    };
    let id = parsed.record.id.as_str();
    match known.bring(id, parsed.digest) {
        Difference::Added => report.counts.added += 1,
        Difference::Changed => report.counts.changed += 1,
        Difference::Unchanged => {
            report.counts.unchanged += 1;
            return Ok(None);
        }
        Difference::Repeated => {
            report.counts.repeated += 1;
            return Ok(None);
        }
        Difference::Conflict => {
            report.skip(&item.name, id, "another file has other content of the same id; the first one counts")?;
            return Ok(None);
        }
    }
    Ok(Some((item.name, parsed)))
}

/// Records on their way, with the names of their files.
#[derive(Default)]
struct Batch {
    names: Vec<String>,
    records: Vec<Vec<u8>>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, (name, parsed): (String, Parsed)) {
        self.bytes += parsed.canonical.len();
        self.names.push(name);
        self.records.push(parsed.canonical);
    }

    fn is_full(&self) -> bool {
        self.records.len() >= RECORDS_AT_ONCE || self.bytes >= BYTES_AT_ONCE
    }
}

/// An import that is begun when there is something to send.
struct Import<'a> {
    api: &'a Api,
    command: &'a ImportCommand,
    generation: i64,
    begun: Option<feeds::RecordImport>,
}

impl Import<'_> {
    /// The server's records of the source. An interrupted import of everything continues with its staged
    /// records. An interrupted import of a part begins again, because the files may have changed.
    async fn compare_with(&mut self) -> Result<Known, ClientError> {
        let mut known = Known::default();
        let source = &self.command.source;
        let mut request = feeds::ListRecordsRequest { source: source.clone(), ..Default::default() };
        loop {
            let page = self.api.call::<methods::ListRecords>(&request).await?;
            // A concurrent import between two pages makes the server reject this one.
            if request.after_id.is_empty() {
                self.generation = page.generation;
            }
            page.records.iter().for_each(|record| known.there(&record.id, &record.digest));
            match page.records.last() {
                Some(last) if page.more => request.after_id.clone_from(&last.id),
                _ if page.generation > 0 && page.licence != self.command.licence => break known.forget_contents(),
                _ => break,
            }
        }
        self.resume(&mut known).await?;
        Ok(known)
    }

    async fn resume(&mut self, known: &mut Known) -> Result<(), ClientError> {
        let sources = self.api.call::<methods::ListSources>(&feeds::ListSourcesRequest {}).await?.sources;
        let open = sources.into_iter().find(|source| source.name == self.command.source);
        let Some(uid) = open.map(|source| source.open_import_uid).filter(|uid| !uid.is_empty()) else {
            return Ok(());
        };
        let request = feeds::GetImportRequest { uid: uid.clone() };
        let import = self.api.call::<methods::GetImport>(&request).await?;
        let is_open = import.state() == ImportState::Open;
        let command = self.command;
        let is_same = (&import.licence, &import.url, import.full) == (&command.licence, &command.url, true);
        match (is_open && is_same && command.full, command.dry_run) {
            (true, true) => self.go_on(uid, known).await,
            // Claimed first, so that no other import stages records that were not compared.
            (true, false) => {
                let (uid, _) = self.begin().await?;
                self.go_on(uid, known).await
            }
            // What is staged is no one's yet.
            (false, true) => Ok(()),
            (false, false) => abort_whole(self.api, &uid).await.map(drop),
        }
    }

    async fn go_on(&mut self, uid: String, known: &mut Known) -> Result<(), ClientError> {
        let mut request = feeds::ListStagedRequest { uid, ..Default::default() };
        loop {
            let page = self.api.call::<methods::ListStaged>(&request).await?;
            page.records.iter().for_each(|record| known.there(&record.id, &record.digest));
            match page.records.last() {
                Some(last) if page.more => request.after_id.clone_from(&last.id),
                _ => return Ok(()),
            }
        }
    }

    /// The import and this attempt at it, begun if it was not.
    async fn begin(&mut self) -> Result<(String, Option<i64>), ClientError> {
        if let Some(begun) = &self.begun {
            return Ok((begun.uid.clone(), Some(begun.attempt)));
        }
        let request = feeds::BeginImportRequest {
            source: self.command.source.clone(),
            licence: self.command.licence.clone(),
            url: self.command.url.clone(),
            full: self.command.full,
            generation: Some(self.generation),
        };
        let begun = self.api.call::<methods::BeginImport>(&request).await?;
        let (uid, attempt) = (begun.uid.clone(), begun.attempt);
        self.begun = Some(begun);
        Ok((uid, Some(attempt)))
    }

    async fn stage(&mut self, batch: &mut Batch, report: &mut Report) -> Result<(), ClientError> {
        let Batch { names, records, .. } = std::mem::take(batch);
        if records.is_empty() || self.command.dry_run {
            return Ok(());
        }
        let (uid, attempt) = self.begin().await?;
        let request = feeds::StageRecordsRequest { uid, records, removed_ids: Vec::new(), replace: true, attempt };
        let staged = self.api.call::<methods::StageRecords>(&request).await?;
        for refused in staged.refused {
            let name = usize::try_from(refused.index).ok().and_then(|index| names.get(index));
            report.skip(name.map_or("", String::as_str), &refused.id, &refused.reason)?;
        }
        Ok(())
    }

    async fn remove(&mut self, ids: &[String], report: &mut Report) -> Result<(), ClientError> {
        report.counts.removed = ids.len();
        if self.command.dry_run {
            return Ok(());
        }
        for part in ids.chunks(REMOVED_AT_ONCE) {
            let (uid, attempt) = self.begin().await?;
            let request = feeds::StageRecordsRequest { uid, removed_ids: part.to_vec(), attempt, ..Default::default() };
            self.api.call::<methods::StageRecords>(&request).await?;
        }
        Ok(())
    }

    async fn commit(self) -> Result<(), ClientError> {
        let Some(begun) = self.begun else { return Ok(()) };
        let request = feeds::CommitImportRequest { uid: begun.uid, attempt: Some(begun.attempt) };
        self.api.call::<methods::CommitImport>(&request).await.map(drop)
    }
}

fn tell(command: &ImportCommand, counts: Counts) -> Result<(), CliError> {
    let mut table = Table::new(&["source", "read", "added", "changed", "removed", "unchanged", "repeated", "left out"]);
    let numbers =
        [counts.read, counts.added, counts.changed, counts.removed, counts.unchanged, counts.repeated, counts.skipped];
    table.push([command.source.clone()].into_iter().chain(numbers.map(|number| number.to_string())));
    print(&command.output.list(&table)?)
}
