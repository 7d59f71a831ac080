//! Paths of names, beside UIDPs in tables.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::Api;
use bowline_contract::bowline::iam::v1 as own;
use bowline_contract::bowline::iam::v1::rpc::names::ResolveNames;

use crate::session::OPERATOR;

/// Most UIDPs of one request.
const BATCH: usize = 200;

/// Names by UIDP, for the UIDPs that were read.
#[derive(Default)]
pub(super) struct UidpNames {
    names: BTreeMap<String, String>,
    /// What was read, also without a name.
    read: BTreeSet<String>,
}

impl UidpNames {
    /// Reads the names of resources and of all groups above them, in one call for each 200 of them. A UIDP whose name the
    /// caller may not list, or whose request failed, is shown as it is.
    pub(super) async fn read(&mut self, api: &Api, uidps: Vec<String>) {
        let mut missing = Vec::new();
        for uidp in uidps.into_iter().filter(|uidp| bowline_core::Uidp::is_valid(uidp)) {
            for prefix in prefixes(&uidp) {
                if self.read.insert(prefix.to_owned()) {
                    missing.push(prefix.to_owned());
                }
            }
        }
        for uids in missing.chunks(BATCH) {
            let request = own::ResolveNamesRequest { uids: uids.to_vec() };
            let names = api.call::<ResolveNames>(&request).await.map(|response| response.names).unwrap_or_default();
            self.names.extend(names.into_iter().map(|one| (one.uid, one.name)));
        }
    }

    /// The path of names, with UIDPs where there is no name.
    pub(super) fn path(&self, uidp: &str) -> String {
        if uidp == OPERATOR {
            return "operator".into();
        }
        let names = prefixes(uidp).map(|prefix| match self.names.get(prefix) {
            Some(name) => name.as_str(),
            None => prefix.rsplit('/').next().unwrap_or(prefix),
        });
        names.collect::<Vec<_>>().join("/")
    }
}

/// A UIDP, and those of everything above it: the root first.
fn prefixes(uidp: &str) -> impl Iterator<Item = &str> {
    uidp.match_indices('/').map(|(at, _)| at).chain([uidp.len()]).filter_map(|end| uidp.get(..end))
}
