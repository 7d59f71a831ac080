//! The protocols of ecosystems, with the operations by which their clients are authorized.

use bowline_contract::Method;
use bowline_contract::bowline::libraries::v1::HostedFile;
use bowline_contract::bowline::libraries::v1::rpc::{
    cargo_host, files_host, go_host, java_host, javascript_host, python_host,
};

use crate::ecosystems::Language;

/// The protocol that installers and publishers of an ecosystem speak.
pub trait Protocol: Send + Sync + 'static {
    const LANGUAGE: Language;
    type Read: Method<Request = HostedFile>;
    type Publish: Method<Request = HostedFile>;
    /// Whether packages can be shown as they were at a time. Maven and Go ask for files by name, and their lists have no times.
    const HAS_DATED_VIEWS: bool = true;
}

/// The index of Python.
pub struct Python;

impl Protocol for Python {
    const LANGUAGE: Language = Language::Python;
    type Read = python_host::ReadPackages;
    type Publish = python_host::PublishFile;
}

/// The registry of npm.
pub struct Npm;

impl Protocol for Npm {
    const LANGUAGE: Language = Language::JavaScript;
    type Read = javascript_host::ReadPackages;
    type Publish = javascript_host::PublishFile;
}

/// The repository of Maven.
pub struct Maven;

impl Protocol for Maven {
    const LANGUAGE: Language = Language::Java;
    type Read = java_host::ReadPackages;
    type Publish = java_host::PublishFile;
    const HAS_DATED_VIEWS: bool = false;
}

/// The proxy of Go's modules.
pub struct Go;

impl Protocol for Go {
    const LANGUAGE: Language = Language::Go;
    type Read = go_host::ReadPackages;
    type Publish = go_host::PublishFile;
    const HAS_DATED_VIEWS: bool = false;
}

/// The registry of Cargo.
pub struct Cargo;

impl Protocol for Cargo {
    const LANGUAGE: Language = Language::Cargo;
    type Read = cargo_host::ReadPackages;
    type Publish = cargo_host::PublishFile;
}

/// The host of generic files.
pub struct Generic;

impl Protocol for Generic {
    const LANGUAGE: Language = Language::Generic;
    type Read = files_host::ReadPackages;
    type Publish = files_host::PublishFile;
}
