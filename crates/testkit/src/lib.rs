//! A whole server in the test's own process, on real loopback sockets, with a database of its own.
//!
//! [`TestServer::start`] brings one up on either [`Engine`], with a clock that stands still until the
//! test moves it and an OpenID Connect issuer that it may trust. [`Actor`]s call it over REST and gRPC
//! as a client would. Everything here panics when it cannot do its work: it is for tests alone.

mod actor;
mod browser;
pub mod cargo;
mod clock;
mod engine;
pub mod golang;
mod idp;
mod mail;
pub mod maven;
pub mod npm;
pub mod packages;
pub mod python;
mod server;
pub mod sigstore;
mod streamed;
pub mod tarball;
mod template;
mod wire;

pub use actor::{Actor, GrpcError, RestReply};
pub use browser::Browser;
pub use clock::TestClock;
pub use engine::{Database, Engine, engines, if_chosen, on_engine, on_engine_with};
pub use idp::{IdentityProvider, SignIn};
pub use mail::{MailSink, Received};
pub use server::TestServer;
pub use streamed::{Event, Streamed};

#[cfg(test)]
mod tests;
