//! What would keep a server from starting or serving well, found before it does: `bowline self-check`, and in part every
//! start.
//!
//! To add a check: a function in one of the files below that returns findings, and a line in [`run`].

mod machine;
mod network;
mod stored;

use std::sync::Arc;

use bowline_core::Clock;

use crate::error::StartError;
use crate::options::Options;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// As it should be.
    Ok,
    /// The server starts; this will cause trouble later.
    Warning,
    /// The server does not start, or does not do its work.
    Failure,
}

impl Level {
    /// The word in the first column.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Warning => "warning",
            Level::Failure => "failure",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What was checked: `disk`, `tls`.
    pub(crate) subject: &'static str,
    /// What was found, with figures.
    pub(crate) text: String,
    /// What to do about it; empty where nothing is to be done.
    pub(crate) hint: String,
}

impl Finding {
    fn ok(subject: &'static str, text: impl Into<String>) -> Finding {
        Finding { level: Level::Ok, subject, text: text.into(), hint: String::new() }
    }

    fn warning(subject: &'static str, text: impl Into<String>, hint: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, subject, text: text.into(), hint: hint.into() }
    }

    fn failure(subject: &'static str, error: &StartError) -> Finding {
        let hint = error.hint().unwrap_or_default();
        Finding { level: Level::Failure, subject, text: error.to_string(), hint }
    }
}

/// Checks everything. Creates no database and no key; measures the disk with a small file that it removes.
pub(crate) async fn run(options: &Options, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    let mut findings = machine::configuration(options);
    findings.extend(machine::resources(options));
    findings.extend(machine::flush_time(options));
    findings.extend(machine::certificate(options, clock.now()));
    let (stored, providers) = stored::check(options, clock.now()).await;
    findings.extend(stored);
    findings.extend(network::issuers(options, providers, clock.now()).await);
    findings
}

/// What a start warns about: the checks that take no time and need nothing but this machine.
pub(crate) fn at_start(options: &Options, clock: &dyn Clock) -> Vec<Finding> {
    let mut findings = machine::configuration(options);
    findings.extend(machine::resources(options));
    findings.extend(machine::certificate(options, clock.now()));
    findings.retain(|finding| finding.level == Level::Warning);
    findings
}
