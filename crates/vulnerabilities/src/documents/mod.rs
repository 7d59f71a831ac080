//! Public documents of advisories, and reports of what was resolved.

mod all;
mod pieces;
mod preview;
mod published;
mod resolved;

use std::sync::Arc;

use bowline_pipeline::Handlers;
use bowline_registry::attached::Documents;

pub use published::Published;

pub(crate) fn register(handlers: Handlers, published: &Arc<Published>, files: &Documents) -> Handlers {
    let handlers = all::register(handlers, published);
    let handlers = preview::register(handlers);
    resolved::register(handlers, files)
}
