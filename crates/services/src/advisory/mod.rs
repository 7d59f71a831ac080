//! What is told of advisories to everybody, and reports of what was resolved.

mod documents;
mod pieces;
mod published;
mod resolved;

use std::sync::Arc;

use bowline_pipeline::Handlers;

use crate::registry::attached::Documents;

pub use published::Published;

pub(crate) fn register(handlers: Handlers, published: &Arc<Published>, documents: &Documents) -> Handlers {
    let handlers = documents::register(handlers, published);
    resolved::register(handlers, documents)
}
