//! Packages that groups publish, and those that organizations take from upstreams: where they lie, who reads and publishes
//! them, and what policies withhold of them.
//!
//! A view is a group as a client names it, and what of its packages the caller may read: its own and those of the groups
//! above it. Who publishes below a group changes nothing for those who read the group itself. Of two packages of one name
//! the nearest counts, whole. What no group has comes from the upstreams of the organization: `package` finds it,
//! `documents` and `upstream_files` store it; `pages` keeps what was made of it. This module decides what to request, and
//! the front requests it. To add an ecosystem, name its operations in `protocols`, and write what its protocol asks for next to
//! `python`.

mod answers;
mod attestations;
mod cargo;
mod cargo_changes;
mod documents;
mod encoded;
mod entitled;
mod facts;
mod files;
mod first_seen;
mod gate;
mod generic;
mod generic_changes;
mod go;
mod go_changes;
mod go_files;
mod hosted_versions;
mod java;
mod java_changes;
mod java_metadata;
mod java_signatures;
mod javascript;
mod javascript_changes;
mod javascript_versions;
mod known_versions;
mod manifests;
mod memory;
mod notes;
mod own_names;
mod package;
mod package_file;
mod packed;
mod pages;
mod protocols;
mod publishing;
mod python;
mod python_versions;
pub mod removed_keys;
mod repositories;
mod requirements;
mod reservations;
mod room;
mod served;
mod serving;
mod signatures;
pub mod signing;
mod signing_keys;
mod snapshots;
mod stored_packages;
mod summaries;
mod tags;
mod upstream_files;
mod upstream_statements;
pub mod upstreams;
mod versions;
mod views;

use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{CapabilitySet, Error, Micros, Uidp};
use bowline_pipeline::{Authorized, Handlers, Pipeline, Principal, Visit};
use bowline_registry::content::Registry;
use bowline_store::{StoreError, WriteTx};

use crate::policy::decide::{Refusal, Vulnerability};

pub use attestations::{Attestations, FileAttestation};
pub use bowline_contract::bowline::libraries::v1::{
    MavenPlugin, OwnSignature, PackageSigningKey, UpstreamDocument, UpstreamFile, UpstreamManifest, UpstreamManifests,
};
pub use bowline_registry::content::{OpenUpload, StoredBlob};
pub use bowline_registry::trusted_root::{CertifiedSigner, SubjectDigest, TrustedRoot};
pub use cargo::{CargoIndex, CargoVersion, crate_file};
pub use cargo_changes::CargoChange;
pub use documents::{Answer, Ask, NewDocument, UpstreamAccess};
pub(crate) use facts::{PackageFacts, package_facts};
pub use files::Checksums;
pub use generic::{GenericFile, GenericFiles, GenericVersionItem, GenericVersions, generic_file_name, generic_purl};
pub use go::{GoInfo, GoVersions, LATEST as GO_LATEST};
pub use java::{address as java_address, artifact as java_artifact, pom_name as java_pom_name};
pub use java_changes::JavaDigests;
pub use java_metadata::{JavaMetadata, Snapshot, SnapshotFile, list_time};
pub use java_signatures::JAVA_SIGNATURE;
pub use javascript::{Packument, PackumentVersion};
pub use javascript_changes::OwnPackument;
pub use manifests::Manifests;
pub use notes::flush as flush_notes;
pub use packed::PackedManifests;
pub use pages::{PageBody, RenderedPage};
pub use protocols::{Cargo, Generic, Go, Maven, Npm, Protocol, Python};
pub use publishing::{NewBlob, NewFile, NewManifest, NewPom, Published, Publishing};
pub use python::{Project, ProjectFile};
pub(crate) use repositories::delete_of_group;
pub use serving::{File, FileName};
pub use signatures::VersionSignature;
pub use signing::DocumentSigner;
pub use signing_keys::{ListedKey, SIGNING_KEYS, VersionSigning};
pub use snapshots::SNAPSHOT;
pub(crate) use stored_packages::{PackageReader, StoredPackage, StoredVersion};
pub use upstream_files::{FetchedFacts, MissingFile};
pub use upstream_statements::UpstreamStatements;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = hosted_versions::register(python_versions::register(handlers));
    reservations::register(upstreams::register(handlers))
}

/// The packages of all groups, and of the upstreams of organizations.
#[derive(Clone)]
pub struct Hosting {
    pipeline: Arc<Pipeline>,
    registry: Registry,
    notes: Arc<notes::Notes>,
    memory: Arc<memory::Memory>,
    served: Arc<served::Served>,
    pages: Arc<pages::PageCache>,
    opened_key: Arc<signing::OpenedKey>,
}

/// What a request leads to.
#[derive(Debug)]
pub enum Lookup<T> {
    Here(T),
    /// Ask the upstream, note its answer, and try again.
    Ask(Box<Ask>),
}

/// A file that the caller may have.
#[derive(Debug)]
pub enum AvailableFile {
    Stored(File),
    /// Fetch the bytes from the upstream, keep them, and try again.
    Missing(Box<MissingFile>),
}

/// One request of someone whom the front has authenticated.
#[derive(Clone)]
pub struct HostClient {
    visit: Visit,
    /// Whether the caller may publish and read, and change nothing else.
    publishes_alone: bool,
}

/// Why a request fails.
#[derive(Debug)]
pub enum HostError {
    Failed(Error),
    /// A policy withholds the package or version.
    Withheld(Withheld),
    /// A policy withholds the version; whether the file exists at the upstream is not known.
    WithheldIfThere(Withheld, Box<MissingFile>),
    /// An upstream does not give a file as its index says; one sentence for people.
    Upstream(String),
    /// The caller belongs to no organization and may read several: their names, to choose one from.
    Ambiguous(Vec<String>),
}

/// What a policy withholds, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withheld {
    /// Package URL of the version, or of the package if all versions are withheld.
    pub purl: String,
    /// Name of the policy; empty for freezes.
    pub policy: String,
    /// Why, in the words of block events.
    pub reason: &'static str,
    /// One sentence for people.
    pub sentence: String,
}

impl Withheld {
    fn new(purl: String, policy: &str, refusal: &Refusal) -> Withheld {
        let why = match refusal {
            Refusal::Blocked(pattern) => format!("is on its block list as {}", pattern.text()),
            Refusal::License(license) => format!("has the license {license}"),
            Refusal::Malware => "is reported as malware".into(),
            Refusal::Cooldown { days, until: Some(until), first_seen_at: Some(seen) } => {
                let (seen, until) = (second_from(*seen), second_from(*until));
                format!("was first seen here {seen}, less than {days} days ago; allowed from {until}")
            }
            Refusal::Cooldown { days, until: Some(until), first_seen_at: None } => {
                format!("is younger than {days} days; allowed from {}", second_from(*until))
            }
            Refusal::Cooldown { days, until: None, .. } => {
                format!("must be public for {days} days, and its upstream does not say since when it is")
            }
            Refusal::Frozen { first_seen_at: Some(at), .. } => {
                format!("was first seen here later, {}", second_from(*at))
            }
            Refusal::Frozen { published_at: Some(at), .. } => format!("was published later, {}", second_from(*at)),
            Refusal::Frozen { published_at: None, .. } => "is of an unknown time".into(),
            Refusal::Vulnerable(Vulnerability { id, severity, fix: Some(fix) }) => {
                format!("has {id} ({}), fixed in {}", severity.word(), fix.version)
            }
            Refusal::Vulnerable(Vulnerability { id, severity, fix: None }) => {
                format!("has {id} ({}), without a known fix", severity.word())
            }
        };
        let by = match refusal {
            Refusal::Frozen { cutoff, .. } => format!("a freeze at {}", rfc3339::text(*cutoff, Digits::Fewest)),
            _ => format!("policy {policy}"),
        };
        let policy = if refusal.is_of_policy() { policy.into() } else { String::new() };
        Withheld {
            purl: purl.clone(),
            policy,
            reason: refusal.reason(),
            sentence: format!("Blocked by {by}: {purl} {why}"),
        }
    }
}

/// The first whole second at or after a time.
fn second_from(at: Micros) -> String {
    rfc3339::text((at + 999_999).div_euclid(1_000_000) * 1_000_000, Digits::Fewest)
}

impl From<Error> for HostError {
    fn from(error: Error) -> HostError {
        HostError::Failed(error)
    }
}

impl From<StoreError> for HostError {
    fn from(error: StoreError) -> HostError {
        HostError::Failed(error.into())
    }
}

impl Hosting {
    /// Over the pipeline's storage; blobs are linked as the registry links them.
    pub fn new(pipeline: Arc<Pipeline>, registry: Registry) -> Hosting {
        let (notes, memory, served, pages, opened_key) = Default::default();
        Hosting { pipeline, registry, notes, memory, served, pages, opened_key }
    }

    /// A request by `principal`.
    pub fn client(&self, principal: Principal, peer: IpAddr, request_id: Arc<str>) -> HostClient {
        let visit = Visit::new(self.pipeline.clone(), principal, Some(peer), request_id);
        HostClient { visit, publishes_alone: false }
    }

    /// The group of a path such as `acme:web`, be it with a time behind; absent if no group has that path.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn group_at(&self, path: &str) -> Result<Option<Uidp>, Error> {
        let path = path.to_owned();
        let read = self.pipeline.db.read(move |tx| {
            let path = path.clone();
            Box::pin(async move { views::group_of(tx, path.split('@').next().unwrap_or_default()).await })
        });
        read.await
    }

    /// Notes how far an upload of a file has come while it arrives, if that is due.
    ///
    /// # Errors
    /// It has ended, or others have taken the room that a quota left it.
    pub async fn file_grows(&self, upload: &mut OpenUpload, bytes: u64) -> Result<(), Error> {
        self.registry.file_grows(upload, bytes).await
    }

    /// Forgets an upload of which nothing is left to be kept.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn forget_upload(&self, id: &str) -> Result<(), Error> {
        self.registry.forget_file(id).await
    }
}

impl HostClient {
    /// The same client after the body of the request has been read: what is done then is done at that time.
    ///
    /// # Errors
    /// UNAUTHENTICATED if the token has ended meanwhile.
    pub fn renewed(&self) -> Result<HostClient, Error> {
        Ok(HostClient { visit: self.visit.renewed()?, publishes_alone: self.publishes_alone })
    }

    /// The same client for someone who may publish and read, and change nothing that is published.
    #[must_use]
    pub fn publishing_alone(self) -> HostClient {
        HostClient { publishes_alone: true, ..self }
    }

    /// Authorizes a change of what is published.
    async fn authorize_change<M: Method>(
        &self,
        tx: &mut WriteTx,
        group: &Uidp,
        request: M::Request,
    ) -> Result<Authorized<M::Request>, Error> {
        if self.publishes_alone {
            return Err(Error::permission_denied(
                "Permission denied: a token of trusted publishing publishes, and changes nothing that is published; use a token \
                 of the identity",
            ));
        }
        self.visit.authorize_change_at::<M>(tx, group, request).await
    }

    /// What publishers of an ecosystem need: they read what they publish, too.
    ///
    /// # Errors
    /// INTERNAL: the operations are not in the contract.
    pub fn publishing_capabilities<P: Protocol>(&self) -> Result<CapabilitySet, Error> {
        Ok(self.visit.needed::<P::Read>()?.union(&self.visit.needed::<P::Publish>()?))
    }

    /// UIDP of the caller's identity.
    pub fn subject(&self) -> &str {
        self.visit.principal().subject()
    }

    fn now(&self) -> Micros {
        self.visit.now()
    }

    /// The organization that the caller belongs to; absent for people.
    fn organization(&self) -> Option<Uidp> {
        Uidp::parse(self.subject()).ok().filter(|identity| !identity.is_root()).map(|identity| identity.root())
    }
}
