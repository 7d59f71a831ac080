//! Since when this server knows the versions that upstreams list.
//!
//! An upstream says when a version was published, or, of Go, when its commit was made, and those who control a mirror of it or make
//! the commit choose that time. So a file that an earlier list of the package did not have is noted with the time at which it came,
//! and so is one whose digest changed. What a list had once is kept in it as gone, so that it is not new when it comes back. Of a
//! package whose first list comes now nothing else is known: the list is noted with the time, and whether its versions count from
//! then is up to policies. That is by upstream: what one says of a package tells nothing about another. Versions of Go that are made of
//! commits are in no list.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use bowline_contract::bowline::libraries::v1::{UpstreamDocument, UpstreamFile};
use bowline_core::{Micros, Result, Uidp};
use bowline_store::{ReadTx, WriteTx};

use super::documents::{self, Ask, DocumentRow};
use super::{go, known_versions, upstream_files};
use crate::ecosystems::Language;
use crate::policy::age::FirstSeen;

/// Versions that are gone and still remembered: an upstream that lists others each time would fill the database.
pub(super) const GONE: usize = 50_000;

/// When a file of a document was seen first; absent if it was before this server noted that.
pub(super) fn of_file(document: &UpstreamDocument, file: &UpstreamFile) -> Option<FirstSeen> {
    match (file.first_seen_micros, document.known_since_micros) {
        (0, 0) => None,
        (0, known_since) => Some(FirstSeen { at: known_since, is_new: false }),
        (at, _) => Some(FirstSeen { at, is_new: !file.seen_before_lists }),
    }
}

/// When a file became public by the word of its upstream. Of Go that is the time of a commit, which its author chooses: a version
/// that an earlier list did not have is as old as it is known here.
pub(super) fn published_micros(language: Language, file: &UpstreamFile) -> Micros {
    match language {
        Language::Go => file.upload_micros.max(file.first_seen_micros),
        _ => file.upload_micros,
    }
}

/// Completes a new document of a package by what was known before: of a list, or of one version of Go.
pub(super) async fn complete(
    tx: &mut WriteTx,
    ask: &Ask,
    before: Option<&DocumentRow>,
    new: &mut UpstreamDocument,
    now: Micros,
) -> Result<()> {
    let upstream = &ask.upstream.uid;
    if ask.language == Language::Go
        && let Some(module) = go::module_of_key(&ask.package)
    {
        let list = known(tx, upstream, module).await?.unwrap_or_default();
        let archive = match new.files.first() {
            Some(file) => upstream_files::stored_file(tx, upstream, module, &format!("{}.zip", file.version)).await?,
            None => None,
        };
        // The archive of a version made of a commit is as old as it is known here, also if that was not noted.
        let archive = archive.map(|archive| archive.first_seen.map_or(0, |seen| seen.at));
        complete_version(before.map(DocumentRow::document), &list, archive, new, now);
        return Ok(());
    }
    let forgotten = match before {
        Some(_) => None,
        None => known_versions::take(tx, upstream, &ask.package).await?,
    };
    complete_list(ask.language, before.map(DocumentRow::document).or(forgotten.as_ref()), new, now);
    if ask.language == Language::Java {
        let poms = upstream_files::first_seen_of_package(tx, upstream, &ask.package).await?;
        let known: HashMap<&str, FirstSeen> = poms.iter().map(|(name, seen)| (name.as_str(), *seen)).collect();
        take_earlier(new, &known);
    }
    Ok(())
}

/// What is known of the list of a package, be it forgotten.
async fn known(tx: &mut ReadTx, upstream: &Uidp, package: &str) -> Result<Option<UpstreamDocument>> {
    match documents::find(tx, upstream, package).await? {
        Some(row) => Ok(Some(row.into_document())),
        None => known_versions::find(tx, upstream, package).await,
    }
}

/// When a file was seen first that is fetched without having been looked for in the list of its package, as those of Java are.
/// Without a list, there is nothing that would say that its version is new.
pub(super) async fn of_fetched(
    tx: &mut ReadTx,
    upstream: &Uidp,
    (package, name): (&str, &str),
    now: Micros,
) -> Result<Option<FirstSeen>> {
    let listed = documents::find_of(tx, upstream, package, name).await?.map(DocumentRow::into_document);
    let list = match listed {
        Some(list) => Some(list),
        None => known_versions::find(tx, upstream, package).await?,
    };
    let Some(list) = list else { return Ok(Some(FirstSeen { at: now, is_new: false })) };
    Ok(match list.files.iter().find(|file| file.name == name) {
        Some(file) => of_file(&list, file),
        None => Some(FirstSeen { at: now, is_new: true }),
    })
}

/// Completes what an upstream says of one version of Go by the list of its module, and by when the archive of it was seen that is
/// stored: the document of a version may have been forgotten since.
fn complete_version(
    before: Option<&UpstreamDocument>,
    list: &UpstreamDocument,
    archive: Option<Micros>,
    new: &mut UpstreamDocument,
    now: Micros,
) {
    // What another query leads to may have been another version before.
    let version = |document: &UpstreamDocument| document.files.first().map(|file| file.version.clone());
    let same = before.filter(|before| version(before) == version(new));
    new.known_since_micros = same.map(|before| before.known_since_micros).or(archive).unwrap_or(now);
    for file in new.files.iter_mut().filter(|file| !go::is_of_commit(&file.version)) {
        match list.files.iter().find(|known| known.version == file.version) {
            Some(known) => {
                file.first_seen_micros = known.first_seen_micros;
                new.known_since_micros = list.known_since_micros;
            }
            None => file.first_seen_micros = now,
        }
    }
}

/// What makes two files one.
fn key(file: &UpstreamFile) -> (&str, &str) {
    (&file.name, &file.version)
}

/// Whether digests say nothing against two files having the same bytes.
fn may_be_same(one: &UpstreamFile, other: &UpstreamFile) -> bool {
    let agree = |one: &str, other: &str| one.is_empty() || other.is_empty() || one == other;
    agree(&one.sha256, &other.sha256) && agree(&one.sha512, &other.sha512)
}

/// Completes a list by the one before: since when files are known, of Go when commits were made, and what is gone.
fn complete_list(language: Language, before: Option<&UpstreamDocument>, new: &mut UpstreamDocument, now: Micros) {
    let Some(before) = before else {
        new.known_since_micros = now;
        return;
    };
    new.known_since_micros = before.known_since_micros;
    let known: HashMap<(&str, &str), &UpstreamFile> = before.files.iter().map(|file| (key(file), file)).collect();
    for file in &mut new.files {
        let known = known.get(&key(file)).filter(|known| may_be_same(known, file));
        let times = known.map(|known| (known.first_seen_micros, known.seen_before_lists, known.upload_micros));
        let (seen, seen_before_lists, uploaded) = times.unwrap_or((now, false, 0));
        (file.first_seen_micros, file.seen_before_lists) = (seen, seen_before_lists);
        if language == Language::Go && file.upload_micros == 0 {
            file.upload_micros = uploaded;
        }
    }
    let listed: HashSet<(&str, &str)> = new.files.iter().map(key).collect();
    let lost: Vec<UpstreamFile> =
        before.files.iter().filter(|file| !listed.contains(&key(file))).take(GONE).map(gone).collect();
    new.files.extend(lost);
}

/// Counts files from when they were seen before the list had them.
fn take_earlier(new: &mut UpstreamDocument, known: &HashMap<&str, FirstSeen>) {
    let known_since = new.known_since_micros;
    for file in &mut new.files {
        let listed = if file.first_seen_micros == 0 { known_since } else { file.first_seen_micros };
        if let Some(seen) = known.get(file.name.as_str()).filter(|seen| seen.at < listed) {
            file.first_seen_micros = seen.at;
            file.seen_before_lists = !seen.is_new;
        }
    }
}

/// What is kept of a file that its list does not have any more.
fn gone(file: &UpstreamFile) -> UpstreamFile {
    UpstreamFile {
        name: file.name.clone(),
        version: file.version.clone(),
        sha256: file.sha256.clone(),
        sha512: file.sha512.clone(),
        upload_micros: file.upload_micros,
        first_seen_micros: file.first_seen_micros,
        seen_before_lists: file.seen_before_lists,
        gone: true,
        ..UpstreamFile::default()
    }
}

/// A list of which its upstream says that it is not there any more, or that is forgotten: so many of its files, the youngest.
pub(super) fn all_gone(before: UpstreamDocument, most: usize) -> UpstreamDocument {
    let UpstreamDocument { mut files, known_since_micros, .. } = before;
    if files.len() > most {
        // Lists that give no times begin with the lowest version.
        files.reverse();
        files.sort_by_key(|file| Reverse(file.upload_micros.max(file.first_seen_micros)));
    }
    let files = files.iter().take(most).map(gone).collect();
    UpstreamDocument { files, known_since_micros, ..UpstreamDocument::default() }
}

#[cfg(test)]
#[path = "first_seen_tests.rs"]
mod tests;
