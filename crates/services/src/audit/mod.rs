//! The audit log as callers read it: lists, single entries, the history of a resource, and entries as they come.
//!
//! [`scan`] reads rows of one sequence; [`visibility`] says which sequence a caller may read and which of its rows.

mod chain;
mod entries;
mod export;
mod scan;
mod snapshots;
mod visibility;
mod watch;

use bowline_contract::bowline::audit::v1::rpc::audit::{
    ExportEntries, GetCheckpoints, GetEntry, GetHistory, GetSummary, ListEntries, VerifyChain, WatchEntries,
};
use bowline_pipeline::{Handlers, handler};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListEntries>(handler!(entries::list))
        .read::<GetEntry>(handler!(entries::get))
        .read::<GetHistory>(handler!(entries::history))
        .read::<GetCheckpoints>(handler!(entries::checkpoints))
        .read::<GetSummary>(handler!(chain::summary))
        .watch::<VerifyChain>(|tx, call, cursor| Box::pin(chain::verify(tx, call, cursor)))
        .watch::<ExportEntries>(|tx, call, cursor| Box::pin(export::look(tx, call, cursor)))
        .watch::<WatchEntries>(|tx, call, cursor| Box::pin(watch::look(tx, call, cursor)))
}
