//! Many advisories at a time: what is brought into a group, and what is taken out of it.

mod export;
mod import;
mod known;
mod origins;
mod plan;
#[cfg(test)]
mod plan_tests;

use bowline_pipeline::Handlers;

pub(super) fn register(handlers: Handlers) -> Handlers {
    let handlers = import::register(handlers);
    export::register(handlers)
}
