//! What the server promises, each promise as a named test on both engines, over REST and gRPC.
//!
//! `BOWLINE_TEST_POSTGRES` names the PostgreSQL server; `BOWLINE_WALK_ROWS` and
//! `BOWLINE_REVOCATION_ROUNDS` size the two long tests.

#[path = "behaviour/accepting.rs"]
mod accepting;
#[path = "behaviour/access.rs"]
mod access;
#[path = "behaviour/associations.rs"]
mod associations;
#[path = "behaviour/audit.rs"]
mod audit;
#[path = "behaviour/bad_input.rs"]
mod bad_input;
#[path = "behaviour/bad_tokens.rs"]
mod bad_tokens;
#[path = "behaviour/contents.rs"]
mod contents;
#[path = "behaviour/escalation.rs"]
mod escalation;
#[path = "behaviour/exchange.rs"]
mod exchange;
#[path = "behaviour/first_version.rs"]
mod first_version;
#[path = "behaviour/groups.rs"]
mod groups;
#[path = "behaviour/images.rs"]
mod images;
#[path = "behaviour/invites.rs"]
mod invites;
#[path = "behaviour/mail.rs"]
mod mail;
#[path = "behaviour/metadata.rs"]
mod metadata;
#[path = "behaviour/narrowing.rs"]
mod narrowing;
#[path = "behaviour/page_tokens.rs"]
mod page_tokens;
#[path = "behaviour/registry_policies.rs"]
mod registry_policies;
#[path = "behaviour/repositories.rs"]
mod repositories;
#[path = "behaviour/revocation.rs"]
mod revocation;
#[path = "behaviour/roles.rs"]
mod roles;
#[path = "behaviour/scans.rs"]
mod scans;
#[path = "behaviour/storage_failure.rs"]
mod storage_failure;
#[path = "behaviour/support.rs"]
mod support;
#[path = "behaviour/tags.rs"]
mod tags;
#[path = "behaviour/terms.rs"]
mod terms;
#[path = "behaviour/traces.rs"]
mod traces;
#[path = "behaviour/visibility.rs"]
mod visibility;
#[path = "behaviour/walks.rs"]
mod walks;
#[path = "behaviour/wire.rs"]
mod wire;
