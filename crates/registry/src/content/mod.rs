//! The operations of the registry host: repositories' tags, manifests and blobs, and who may read and change
//! them.
//!
//! A blob or manifest is visible through its link to a repository alone. The bytes of blobs are stored
//! elsewhere. The front that moves them checks here before it does, and records here when they are durable.

mod before;
mod blobs;
mod catalog;
mod config;
mod deletes;
pub mod garbage;
mod gate;
mod lookup;
mod manifest;
mod manifests;
pub mod package_files;
mod pull_spill;
mod pulls;
mod referrers;
mod refusal;
pub mod replication;
mod retaining;
mod tag_lists;
mod upload_growth;
mod uploads;

use std::net::IpAddr;
use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::{Micros, Reason};
use bowline_pipeline::{Pipeline, Principal, Visit};

pub use super::paths::Name;
use crate::attached::Documents;
pub use blobs::StoredBlob;
pub use catalog::CatalogPage;
pub use config::Config;
pub(crate) use deletes::{find_stored, take_out, take_out_unnamed_blobs};
pub use gate::{GateCounts, PulledManifest};
pub(crate) use lookup::is_public;
pub use manifest::{MAX_MANIFEST_BYTES, MEDIA_TYPES, Manifest, is_digest, is_tag};
pub use manifests::{PushedManifest, StoredManifest};
pub use pull_spill::PullSpill;
pub use pulls::PullBacklog;
pub use referrers::{Referrer, Referrers};
pub use refusal::{Refusal, RefusalCode, RegistryError};
pub use replication::credentials::Credentials;
pub use replication::{BegunFetch, FetchFailure, FetchState, UpstreamBlob};
pub use replication::{UpstreamAnswer, UpstreamChecks, UpstreamConfig, UpstreamRequests, UpstreamResult};
pub use tag_lists::{Moved, TagPage};
pub use upload_growth::OpenUpload;
pub use uploads::UPLOAD_LIFETIME;

/// The registry's rules over the database.
#[derive(Clone)]
pub struct Registry {
    pub(crate) pipeline: Arc<Pipeline>,
    pulls: Arc<pulls::Pulls>,
    gate: Arc<gate::ImageGate>,
    /// Reads the SBOMs of pushes, and what decisions about images depend on.
    pub(crate) documents: Documents,
}

/// One request of someone whom the front has authenticated.
#[derive(Clone)]
pub struct RegistryClient {
    visit: Visit,
    user_agent: String,
    method: String,
}

/// A manifest's name in its repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    Tag(String),
    Digest(String),
}

impl Reference {
    /// Parses a reference; absent if the text is not one.
    pub fn parse(text: &str) -> Option<Reference> {
        if is_tag(text) {
            Some(Reference::Tag(text.into()))
        } else {
            is_digest(text).then(|| Reference::Digest(text.into()))
        }
    }
}

/// Maximum characters of a client's user agent that are stored.
const USER_AGENT: usize = 512;

impl Registry {
    /// The registry over the pipeline's storage, with its decisions. Pulls that come faster than they can be written
    /// wait in the spill file, if there is one.
    pub fn new(pipeline: Arc<Pipeline>, spill: Option<PullSpill>, documents: Documents) -> Registry {
        let (pulls, gate) = (Arc::new(pulls::Pulls::new(spill)), Arc::default());
        Registry { pipeline, pulls, gate, documents }
    }

    /// A request by `principal`; `method` and `user_agent` are for its events.
    pub fn client(
        &self,
        principal: Principal,
        peer: IpAddr,
        request_id: Arc<str>,
        method: &str,
        user_agent: &str,
    ) -> RegistryClient {
        RegistryClient {
            visit: Visit::new(self.pipeline.clone(), principal, Some(peer), request_id),
            user_agent: user_agent.chars().take(USER_AGENT).collect(),
            method: method.into(),
        }
    }

    /// Writes the events and times of pulls; true if more wait in the spill file. Call it every second, and once at the
    /// end.
    pub async fn flush_pulls(&self) -> bool {
        self.pulls.flush(&self.pipeline.db, &self.pipeline.contract).await
    }

    /// Pulls that wait or were lost.
    pub fn pull_backlog(&self) -> PullBacklog {
        self.pulls.backlog()
    }

    /// Pulls that image policies logged, refused, or let through in their grace, since the start.
    pub fn gate_counts(&self) -> GateCounts {
        self.gate.counts()
    }

    fn needed<M: Method>(&self) -> Vec<&str> {
        use bowline_contract::Auth;
        let contract = &self.pipeline.contract;
        match contract.by_full_name(M::FULL_NAME).map(|info| &info.auth) {
            Some(Auth::Capabilities { needed, .. }) => contract.capabilities().names(needed),
            _ => Vec::new(),
        }
    }

    /// The error that replaces the pipeline's, which reveals more than a stranger may know.
    fn refusal<M: Method>(&self, client: &RegistryClient, name: &str, error: bowline_core::Error) -> RegistryError {
        match error.reason() {
            Reason::PermissionDenied => refusal::denied(client.is_anonymous(), name, &self.needed::<M>()),
            _ => error.into(),
        }
    }

    fn denied<M: Method>(&self, client: &RegistryClient, name: &str) -> RegistryError {
        refusal::denied(client.is_anonymous(), name, &self.needed::<M>())
    }
}

impl RegistryClient {
    /// Whether no one in particular asks.
    pub fn is_anonymous(&self) -> bool {
        self.visit.principal().token().is_none()
    }

    /// The same client after the body of the request has been read: what is done then is done at that time.
    ///
    /// # Errors
    /// UNAUTHORIZED if the token has ended meanwhile.
    pub fn renewed(&self) -> Result<RegistryClient, RegistryError> {
        Ok(RegistryClient { visit: self.visit.renewed()?, ..self.clone() })
    }

    /// When the request arrived, or was renewed.
    pub fn now(&self) -> Micros {
        self.visit.now()
    }

    fn subject(&self) -> &str {
        self.visit.principal().subject()
    }
}
