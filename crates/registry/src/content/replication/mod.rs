//! Repositories that take what they lack from elsewhere: from another repository here (`sync`), or from another registry
//! (`upstreams`).
//!
//! States of a tag, or of content that a digest names, when a client that holds the pull permission requests
//! it:
//!
//! ```text
//!               not here ---- no source, or one that does not have it ----> unknown to the client
//!                  |
//!                  | the source has it
//!                  v
//!      from the source, asked now  <--- the source has another by now ---.
//!                  |                                                     |
//!                  | a minute                                            |
//!                  v                                                     |
//!      from the source, to be asked again ---- a client asks ------------'
//!                  |
//!                  | someone pushes the tag here
//!                  v
//!             written here, which the source never replaces
//! ```
//!
//! Content by digest does not change: once here, it stays. A source that does not respond changes nothing
//! either.
//!
//! `sources` says where from, `namespaces` which of several, `fetches` which blobs are on their way, `credentials` as whom, `upstream_tags` which tags came from there, `statuses` how it
//! goes; `upstream_calls` shows that to callers, `upstream_checks` asks another registry for them.

pub mod credentials;
mod fetches;
mod namespaces;
pub(crate) mod sources;
pub(crate) mod statuses;
mod sync;
pub(crate) mod upstream_calls;
pub(crate) mod upstream_checks;
pub(crate) mod upstream_tags;
mod upstreams;

pub use fetches::{BegunFetch, FetchFailure, FetchState, UpstreamBlob};
pub use upstream_checks::{UpstreamAnswer, UpstreamChecks, UpstreamRequests, UpstreamResult};
pub use upstreams::UpstreamConfig;
