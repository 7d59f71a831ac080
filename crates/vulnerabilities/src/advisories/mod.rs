//! Statements about vulnerabilities: advisories, what happened to them, and its review.
//!
//! The methods of v1 and v2 and the importers share `operations`, which change the rows. `transfers` exports
//! and imports many advisories at a time, `filters` and `lists` read them, `words` searches their text, and
//! `publication` decides what everyone may read.

mod batch_reviews;
mod calls_v1;
mod calls_v2;
mod event_calls;
pub(crate) mod events;
mod filters;
mod groups;
pub(crate) mod ids;
mod lists;
pub(crate) mod operations;
mod pagination;
mod publication;
mod review;
pub(crate) mod rows;
pub mod search;
mod settings;
pub(crate) mod severities;
mod shapes;
mod transfers;
mod waiting;
mod words;

use bowline_pipeline::Handlers;

pub use groups::GROUP_CONTENTS;
pub use ids::is_prefix;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    let handlers = calls_v1::register(handlers);
    let handlers = calls_v2::register(handlers);
    let handlers = event_calls::register(handlers);
    let handlers = batch_reviews::register(handlers);
    let handlers = settings::register(handlers);
    transfers::register(handlers)
}
