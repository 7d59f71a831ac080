//! The audit log as callers read it: lists, single entries, the history of a resource, and entries as they come.
//!
//! [`scan`] reads rows of one sequence; [`visibility`] says which sequence a caller may read and which of its rows.

mod entries;
mod scan;
mod snapshots;
mod visibility;
mod watch;

use bowline_contract::bowline::audit::v1::rpc::audit::{
    GetCheckpoints, GetEntry, GetHistory, ListEntries, WatchEntries,
};
use bowline_pipeline::{Handlers, handler};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListEntries>(handler!(entries::list))
        .read::<GetEntry>(handler!(entries::get))
        .read::<GetHistory>(handler!(entries::history))
        .read::<GetCheckpoints>(handler!(entries::checkpoints))
        .watch::<WatchEntries>(|tx, call, cursor| Box::pin(watch::look(tx, call, cursor)))
}
