//! Stub.
use bowline_pipeline::Handlers;
pub(crate) fn register(handlers: Handlers) -> Handlers { handlers }
/// Stub.
pub async fn seed_built_in_roles() {}
