//! Rules that images must satisfy to be pulled: signatures, attestations, vulnerabilities, licenses, age and SBOMs.
//!
//! Policies are stored for groups and repositories (`stored`) and checked when they are written (`validate`). One decision
//! answers everything: what it depends on is read in a transaction and from blobs (`gather`), put down as plain values
//! (`evidence`), and decided without either (`decide`), on a thread that serves no one. `CheckPolicies`, previews (`check`)
//! and pulls (`content/gate.rs`) all ask for it.

mod check;
mod decide;
mod evidence;
mod exempt;
mod gather;
mod layers;
mod signing;
mod stored;
mod validate;

use bowline_pipeline::Handlers;

use super::attached::Documents;

pub(crate) use decide::Decision;
pub(crate) use gather::{FindingBytes, gather, policies};

pub(crate) fn register(handlers: Handlers, documents: &Documents) -> Handlers {
    check::register(stored::register(handlers), documents)
}
