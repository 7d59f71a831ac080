//! What the server promises, each promise as a named test on both engines, over REST and gRPC.
//!
//! `BOWLINE_TEST_POSTGRES` names the PostgreSQL server; `BOWLINE_WALK_ROWS` and
//! `BOWLINE_REVOCATION_ROUNDS` size the two long tests.

#[path = "behaviour/audit.rs"]
mod audit;
#[path = "behaviour/bad_input.rs"]
mod bad_input;
#[path = "behaviour/bad_tokens.rs"]
mod bad_tokens;
#[path = "behaviour/escalation.rs"]
mod escalation;
#[path = "behaviour/exchange.rs"]
mod exchange;
#[path = "behaviour/first_version.rs"]
mod first_version;
#[path = "behaviour/groups.rs"]
mod groups;
#[path = "behaviour/narrowing.rs"]
mod narrowing;
#[path = "behaviour/page_tokens.rs"]
mod page_tokens;
#[path = "behaviour/people.rs"]
mod people;
#[path = "behaviour/people_refresh.rs"]
mod people_refresh;
#[path = "behaviour/people_register.rs"]
mod people_register;
#[path = "behaviour/people_sessions.rs"]
mod people_sessions;
#[path = "behaviour/people_support.rs"]
mod people_support;
#[path = "behaviour/repositories.rs"]
mod repositories;
#[path = "behaviour/revocation.rs"]
mod revocation;
#[path = "behaviour/roles.rs"]
mod roles;
#[path = "behaviour/signin.rs"]
mod signin;
#[path = "behaviour/signin_devices.rs"]
mod signin_devices;
#[path = "behaviour/signin_refusals.rs"]
mod signin_refusals;
#[path = "behaviour/storage_failure.rs"]
mod storage_failure;
#[path = "behaviour/support.rs"]
mod support;
#[path = "behaviour/visibility.rs"]
mod visibility;
#[path = "behaviour/walks.rs"]
mod walks;
#[path = "behaviour/wire.rs"]
mod wire;
