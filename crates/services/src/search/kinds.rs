//! Kinds of results, and where a caller may see each: where the method that lists the kind would show it.

use bowline_contract::bowline::registry::v1::rpc::content::PullManifest;
use bowline_contract::bowline::search::v1::SearchKind;
use bowline_contract::v2::iam::rpc::{groups_service::ListGroups, identities_service::ListIdentities};
use bowline_contract::v2::libraries::rpc::artifacts_service::ListArtifacts;
use bowline_contract::v2::registry::rpc::{repos_service::ListRepos, tags_service::ListTags};
use bowline_contract::v2::vulnerabilities::rpc::advisories_service::ListAdvisories;
use bowline_contract::{Auth, Method};
use bowline_core::{CapabilitySet, Error, Result, UidRange, intersect};
use bowline_pipeline::Authorized;
use bowline_resources::names::NamedKind;

/// A kind of results. Its number is that of the wire and of the table of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Group = 1,
    Repo = 2,
    Tag = 3,
    Image = 4,
    Package = 5,
    Advisory = 6,
    Identity = 7,
}

pub(super) const KINDS: [Kind; 7] =
    [Kind::Group, Kind::Repo, Kind::Tag, Kind::Image, Kind::Package, Kind::Advisory, Kind::Identity];

impl Kind {
    pub(super) fn number(self) -> i64 {
        self as i64
    }

    /// The kind among those whose names are searched.
    pub(super) fn named(self) -> Option<NamedKind> {
        match self {
            Kind::Group => Some(NamedKind::Group),
            Kind::Repo => Some(NamedKind::Repo),
            Kind::Tag => Some(NamedKind::Tag),
            Kind::Identity => Some(NamedKind::Identity),
            Kind::Image | Kind::Package | Kind::Advisory => None,
        }
    }

    pub(super) fn wire(self) -> SearchKind {
        match self {
            Kind::Group => SearchKind::Group,
            Kind::Repo => SearchKind::Repo,
            Kind::Tag => SearchKind::Tag,
            Kind::Image => SearchKind::Image,
            Kind::Package => SearchKind::Package,
            Kind::Advisory => SearchKind::Advisory,
            Kind::Identity => SearchKind::Identity,
        }
    }

    /// The kinds that a request names, each once; all of them if it names none.
    pub(super) fn requested(numbers: &[i32]) -> Result<Vec<Kind>> {
        if numbers.is_empty() {
            return Ok(KINDS.to_vec());
        }
        let known = |number: &i32| KINDS.into_iter().any(|kind| kind as i32 == *number);
        if !numbers.iter().all(known) {
            return Err(Error::invalid_field("kinds", "must name kinds; leave the field out for all of them"));
        }
        Ok(KINDS.into_iter().filter(|kind| numbers.contains(&(*kind as i32))).collect())
    }

    /// Table of the resources that have names, and the column with their digest if they have one.
    pub(super) fn table(self) -> Option<(&'static str, &'static str)> {
        match self {
            Kind::Group => Some(("groups", "''")),
            Kind::Repo => Some(("repos", "''")),
            Kind::Tag => Some(("tags", "digest")),
            Kind::Identity => Some(("identities", "''")),
            Kind::Image | Kind::Package | Kind::Advisory => None,
        }
    }

    /// The kind of what resources of this kind are in.
    pub(super) fn parent(self) -> Kind {
        if self == Kind::Tag { Kind::Repo } else { Kind::Group }
    }

    fn needed<T>(self, call: &Authorized<T>) -> CapabilitySet {
        match self {
            Kind::Group => needed_by::<ListGroups, T>(call),
            Kind::Repo => needed_by::<ListRepos, T>(call),
            Kind::Tag => needed_by::<ListTags, T>(call),
            Kind::Image => needed_by::<PullManifest, T>(call),
            Kind::Package => needed_by::<ListArtifacts, T>(call),
            Kind::Advisory => needed_by::<ListAdvisories, T>(call),
            Kind::Identity => needed_by::<ListIdentities, T>(call),
        }
    }

    /// Where the caller may see resources of this kind, at and below the scope if there is one.
    pub(super) fn visible<T>(self, call: &Authorized<T>, scope: &str) -> Vec<UidRange> {
        let visible = call.grants().visible(&self.needed(call));
        if scope.is_empty() { visible } else { intersect(&visible, &[UidRange::subtree(scope)]) }
    }

    /// Whether the caller may see the resource of this kind that is there.
    pub(super) fn is_visible<T>(self, call: &Authorized<T>, uid: &str) -> bool {
        call.grants().allows(uid, &self.needed(call))
    }
}

/// What a method needs; all capabilities, which only the operator holds, if it is not in the contract.
fn needed_by<M: Method, T>(call: &Authorized<T>) -> CapabilitySet {
    match call.contract().by_full_name(M::FULL_NAME).map(|method| &method.auth) {
        Some(Auth::Capabilities { needed, .. }) => *needed,
        _ => CapabilitySet::ALL,
    }
}
