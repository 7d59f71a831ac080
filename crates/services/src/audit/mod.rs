//! The audit log as callers read it: lists, single entries, the history of a resource, and entries as they come.
//!
//! [`scan`] reads rows of one sequence; [`visibility`] says which sequence a caller may read and which of its rows.

mod entries;
mod images;
mod scan;
mod visibility;
mod watch;

use bowline_contract::bowline::audit::v1::rpc::audit::{
    GetCheckpoints, GetEntry, GetHistory, ListEntries, WatchEntries,
};
use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListEntries>(|tx, call| Box::pin(entries::list(tx, call)))
        .read::<GetEntry>(|tx, call| Box::pin(entries::get(tx, call)))
        .read::<GetHistory>(|tx, call| Box::pin(entries::history(tx, call)))
        .read::<GetCheckpoints>(|tx, call| Box::pin(entries::checkpoints(tx, call)))
        .watch::<WatchEntries>(|tx, call, cursor| Box::pin(watch::look(tx, call, cursor)))
}
