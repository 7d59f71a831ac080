//! Since when versions of Go's modules are public.
//!
//! An upstream says when the commit of a version was made, which its author chooses. So a version that an earlier list of the
//! upstream did not have is as old as this server has known it, whatever its commit says. What a list had once is kept in it as
//! gone, so that it is not new when it comes back. Of a module whose first list comes now, the times of commits count, and so they
//! do for versions that are made of commits, which no list has.

use std::collections::HashMap;

use bowline_contract::bowline::libraries::v1::{UpstreamDocument, UpstreamFile};
use bowline_core::{Micros, Result};
use bowline_store::WriteTx;

use super::documents::{self, Ask, DocumentRow};
use super::go;
use crate::ecosystems::Language;

/// Versions that are gone and still remembered: an upstream that lists others each time would fill the database.
const GONE: usize = 50_000;

/// Completes a new document of a module by what was known before: of a list, or of one version.
pub(super) async fn complete(
    tx: &mut WriteTx,
    ask: &Ask,
    before: Option<&DocumentRow>,
    new: &mut UpstreamDocument,
    now: Micros,
) -> Result<()> {
    if ask.language != Language::Go {
        return Ok(());
    }
    match go::module_of_key(&ask.package) {
        None => complete_list(before.map(DocumentRow::upstream_files), new, now),
        Some(module) => {
            let list = documents::find(tx, &ask.upstream.uid, module).await?;
            let list = list.as_ref().map(DocumentRow::upstream_files).unwrap_or_default();
            for file in new.files.iter_mut().filter(|file| !go::is_of_commit(&file.version)) {
                let known = list.iter().find(|known| known.version == file.version);
                file.first_seen_micros = known.map_or(now, |known| known.first_seen_micros);
            }
        }
    }
    Ok(())
}

/// Completes a list by the one before: since when versions are known, when their commits were made, and what is gone.
fn complete_list(before: Option<&[UpstreamFile]>, new: &mut UpstreamDocument, now: Micros) {
    let Some(before) = before else { return };
    let mut known: HashMap<&str, &UpstreamFile> = before.iter().map(|file| (file.version.as_str(), file)).collect();
    for file in &mut new.files {
        let before = known.remove(file.version.as_str());
        file.first_seen_micros = before.map_or(now, |before| before.first_seen_micros);
        if file.upload_micros == 0 {
            file.upload_micros = before.map_or(0, |before| before.upload_micros);
        }
    }
    let lost = before.iter().filter(|file| known.contains_key(file.version.as_str())).take(GONE);
    new.files.extend(lost.map(|file| UpstreamFile { gone: true, ..file.clone() }));
}

/// A list of which its upstream says that it is not there any more.
pub(super) fn all_gone(before: &DocumentRow) -> UpstreamDocument {
    let files = before.upstream_files().iter().map(|file| UpstreamFile { gone: true, ..file.clone() });
    UpstreamDocument { files: files.collect(), ..UpstreamDocument::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(version: &str, upload_micros: Micros, first_seen_micros: Micros) -> UpstreamFile {
        UpstreamFile { version: version.into(), upload_micros, first_seen_micros, ..UpstreamFile::default() }
    }

    /// What a list says after another one: versions with both times, and whether they are gone.
    fn after(before: Option<&[UpstreamFile]>, versions: &[&str]) -> Vec<(String, Micros, Micros, bool)> {
        let files = versions.iter().map(|version| file(version, 0, 0)).collect();
        let mut new = UpstreamDocument { files, ..UpstreamDocument::default() };
        complete_list(before, &mut new, 9);
        let shown = |file: UpstreamFile| (file.version, file.upload_micros, file.first_seen_micros, file.gone);
        new.files.into_iter().map(shown).collect()
    }

    #[test]
    fn what_a_list_lacked_is_as_old_as_it_is_known() {
        let before = [file("v1.0.0", 3, 0), file("v1.1.0", 4, 5)];
        let row = |version: &str, made, seen, gone| (version.to_owned(), made, seen, gone);
        let now = after(Some(&before), &["v1.0.0", "v1.2.0"]);
        assert_eq!(now, [row("v1.0.0", 3, 0, false), row("v1.2.0", 0, 9, false), row("v1.1.0", 4, 5, true)]);
        assert_eq!(after(Some(&[]), &["v1.0.0"]), [row("v1.0.0", 0, 9, false)], "the list was empty");
        assert_eq!(after(None, &["v1.0.0"]), [row("v1.0.0", 0, 0, false)], "the first list");
        let forged = "v1.9.0-0.20200101000000-abcdefabcdef";
        assert_eq!(after(Some(&before[..1]), &[forged])[0], row(forged, 0, 9, false), "what is listed is no commit");
    }

    #[test]
    fn what_comes_back_is_as_old_as_before() {
        let gone = [UpstreamFile { gone: true, ..file("v1.0.0", 3, 4) }];
        assert_eq!(after(Some(&gone), &["v1.0.0"]), [("v1.0.0".to_owned(), 3, 4, false)]);
    }
}
