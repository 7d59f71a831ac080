//! What every protocol front shares: admission, access log, request counts, reading of credentials, cookies,
//! forms, ranges, bodies and their compression, and the causes of failures.
//!
//! A front is a crate with a router for the paths of a protocol. To add one:
//!
//! 1. Write the crate: handlers that call `Pipeline` or a domain, errors as [`error_response`] with the protocol's form of them,
//!    and a `router` that ends with [`Front::wrap`].
//! 2. Register it in the server's `fronts` module, one line.
//! 3. Give it a row in the structure test, which says what it may depend on.
//! 4. Document its paths.

mod access_line;
mod authorization;
pub mod body;
mod browser_sessions;
pub mod cookies;
pub mod encoding;
mod front;
pub mod range;
pub mod request;
mod single_flight;

pub use access_line::{AccessLine, code_of, write_failure};
pub use authorization::{Presented, UnreadableAuthorization, presented};
pub use browser_sessions::BrowserSessions;
pub use front::{Admit, Count, Front, LogFields, error_response};
pub use single_flight::SingleFlight;
