//! Paths of names of groups, beside UIDPs in tables.

use std::collections::{BTreeMap, BTreeSet};

use bowline_client::Api;
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::groups_service::ListGroups;

/// Most groups that one request reads.
const PAGE: usize = 200;

/// Names of groups by UIDP, for the groups that were read.
#[derive(Default)]
pub(super) struct GroupNames(BTreeMap<String, String>);

impl GroupNames {
    /// Reads the names of groups and of all groups above them, in one call for each 200 of them. Groups that the
    /// caller may not list have no name, and a table shows their UIDP.
    pub(super) async fn read(&mut self, api: &Api, uidps: impl Iterator<Item = String>) {
        let mut missing = BTreeSet::new();
        for uidp in uidps.filter(|uidp| !uidp.is_empty()) {
            let ends = uidp.match_indices('/').map(|(at, _)| at).chain([uidp.len()]);
            missing.extend(ends.filter_map(|end| uidp.get(..end)).map(String::from));
        }
        missing.retain(|uidp| !self.0.contains_key(uidp));
        let missing: Vec<String> = missing.into_iter().collect();
        for ids in missing.chunks(PAGE) {
            let filter = UidpFilter { ids: ids.to_vec(), ..UidpFilter::default() };
            let request = v2::ListGroupsRequest {
                uidp: Some(filter),
                page_size: PAGE as i32,
                ..v2::ListGroupsRequest::default()
            };
            let groups = api.call::<ListGroups>(&request).await.map(|page| page.groups).unwrap_or_default();
            self.0.extend(groups.into_iter().map(|group| (group.uid, group.name)));
        }
    }

    /// The path of names, with UIDPs where there is no name.
    pub(super) fn path(&self, uidp: &str) -> String {
        let ends = uidp.match_indices('/').map(|(at, _)| at).chain([uidp.len()]);
        let names = ends.filter_map(|end| uidp.get(..end)).map(|prefix| match self.0.get(prefix) {
            Some(name) => name.as_str(),
            None => prefix.rsplit('/').next().unwrap_or(prefix),
        });
        names.collect::<Vec<_>>().join("/")
    }
}
