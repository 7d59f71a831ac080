//! The contract: descriptor set, generated types, and what is derived from them.
//!
//! `proto/` is the specification. [`Contract::load`] turns the embedded descriptor set into one
//! immutable method table; routing, permissions, validation and documentation read it. A program that calls one method
//! reads only [`Contract::of`] it, which takes a tenth of the time.
//!
//! To add a method: declare it in a file under `proto/` with its `google.api.http` binding, its `iam` option,
//! an `iam_scope` field and, if it changes something, its `events` option. It is then routed on both
//! transports and fails with UNIMPLEMENTED until a handler is registered for the type that the build script
//! generates, `<package>::rpc::<service>::<Method>`.

mod capabilities;
mod contract;
mod docs;
mod fields;
mod method;
mod options;
mod part;
mod print;
mod roles;
mod route;
mod rules;
mod template;
mod text_rule;

/// Types generated from `proto/`.
#[expect(
    clippy::pedantic,
    clippy::large_enum_variant,
    clippy::allow_attributes_without_reason,
    clippy::allow_attributes,
    missing_docs,
    reason = "generated code"
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/generated.rs"));
}

pub use capabilities::{Capabilities, CapabilityFacts};
pub use contract::{Contract, SERVED_DESCRIPTOR_SET};
pub use docs::Docs;
pub use generated::{bowline, chainguard, google};
pub use method::{ApiVersion, Auth, Body, EventRule, HttpBinding, MethodInfo, ToolHints, Verb};
pub use print::{print_capabilities, print_packages};
pub use roles::BuiltInRole;
pub use route::{Match, Miss, Routes};
pub use rules::{FieldFacts, FieldRules, TextFacts, Violation, Violations};
pub use template::Template;

/// A method of the contract as a type, by which its handler is registered.
pub trait Method: Send + Sync + 'static {
    type Request: prost::Message + Default + Clone + Send + Sync + 'static;
    type Response: prost::Message + Default + Send + Sync + 'static;
    /// Its full name: `<package>.<Service>.<Method>`.
    const FULL_NAME: &'static str;
}

/// Short paths of the packages that handlers use.
pub mod v1 {
    pub use crate::chainguard::platform::vulnerabilities::v1 as vulnerabilities;
    pub use crate::chainguard::platform::{
        advisory, auth, common, events, iam, libraries, oidc, ping, registry, tenant,
    };
}

/// Short paths of the packages that handlers use.
pub mod v2 {
    pub use crate::chainguard::platform::advisory::v2 as advisory;
    pub use crate::chainguard::platform::events::v2 as events;
    pub use crate::chainguard::platform::iam::v2 as iam;
    pub use crate::chainguard::platform::libraries::v2 as libraries;
    pub use crate::chainguard::platform::ping::v2 as ping;
    pub use crate::chainguard::platform::registry::v2 as registry;
    pub use crate::chainguard::platform::vulnerabilities::v2 as vulnerabilities;
}
