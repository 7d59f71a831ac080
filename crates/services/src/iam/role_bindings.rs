//! Stub.
use bowline_core::{Result, Uidp};
use bowline_pipeline::{Authorized, Handlers};
use bowline_store::WriteTx;
pub(crate) fn register(handlers: Handlers) -> Handlers { handlers }
pub(crate) async fn bind_owner<T>(_tx: &mut WriteTx, _call: &Authorized<T>, _org: &Uidp) -> Result<()> { Ok(()) }
pub(crate) async fn delete_of_group(_tx: &mut WriteTx, _uid: &Uidp) -> Result<()> { Ok(()) }
