//! The registry's control plane.
use bowline_pipeline::Handlers;
pub(crate) fn register(handlers: Handlers) -> Handlers { handlers }
