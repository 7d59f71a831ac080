//! Since when versions of Go's modules are public.
//!
//! An upstream says when the commit of a version was made, which its author chooses. So a version that an earlier list of the
//! upstream did not have is as old as this server has known it, whatever its commit says. Of a module that has no list here
//! yet, the times of commits count, and so they do for versions that are made of commits, which no list has.

use std::collections::HashMap;

use bowline_contract::bowline::libraries::v1::{UpstreamDocument, UpstreamFile};
use bowline_core::{Micros, Result};
use bowline_store::WriteTx;

use super::documents::{self, Ask, DocumentRow};
use super::go;
use crate::ecosystems::Language;

/// Sets since when this server knows the versions of a new document: of a list, or of one version.
pub(super) async fn set_first_seen(
    tx: &mut WriteTx,
    ask: &Ask,
    before: Option<&DocumentRow>,
    new: &mut UpstreamDocument,
    now: Micros,
) -> Result<()> {
    if ask.language != Language::Go {
        return Ok(());
    }
    let list = match go::module_of_key(&ask.package) {
        None => Seen::of(before),
        Some(module) => Seen::of(documents::find(tx, &ask.upstream.uid, module).await?.as_ref()),
    };
    for file in &mut new.files {
        file.first_seen_micros = list.first_seen(&file.version, now);
    }
    Ok(())
}

/// What a list said of versions.
struct Seen(HashMap<String, Micros>);

impl Seen {
    fn of(list: Option<&DocumentRow>) -> Seen {
        let files = list.map(DocumentRow::upstream_files).unwrap_or_default();
        Seen(
            files
                .iter()
                .map(|UpstreamFile { version, first_seen_micros, .. }| (version.clone(), *first_seen_micros))
                .collect(),
        )
    }

    /// Since when a version is known; 0 if since the first list, or if none would have it.
    fn first_seen(&self, version: &str, now: Micros) -> Micros {
        match self.0.get(version) {
            Some(at) => *at,
            None if self.0.is_empty() || go::is_of_commit(version) => 0,
            None => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_list_lacked_is_as_old_as_it_is_known() {
        let seen =
            |versions: &[(&str, Micros)]| Seen(versions.iter().map(|(version, at)| ((*version).into(), *at)).collect());
        let list = seen(&[("v1.0.0", 0), ("v1.1.0", 5)]);
        assert_eq!(
            (list.first_seen("v1.0.0", 9), list.first_seen("v1.1.0", 9), list.first_seen("v1.2.0", 9)),
            (0, 5, 9)
        );
        assert_eq!(list.first_seen("v1.2.1-0.20230714214113-ca9018fc6e4b", 9), 0);
        assert_eq!(seen(&[]).first_seen("v1.0.0", 9), 0);
    }
}
