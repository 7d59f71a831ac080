//! Handlers that read so much that they would hold up other calls.

use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::Result;
use bowline_store::{BoxFuture, ReadTx};
use bytes::Bytes;

use crate::call::Authorized;
use crate::handlers::{Handler, Handlers, decode, typed_read};

/// Whether an encoded request reads so much.
pub(crate) type IsHeavy = dyn Fn(&Bytes) -> bool + Send + Sync;

impl Handlers {
    /// Registers a handler that reads so much that it would hold up other calls: it runs on a thread of its own, a few
    /// at once, for a limited time.
    pub fn heavy_read<M: Method>(
        mut self,
        handler: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(true, Handler::HeavyRead(typed_read::<M>(handler)));
        self
    }

    /// The same for a method of which only some requests read so much; the others are plain reads.
    pub fn heavy_read_when<M: Method>(
        mut self,
        is_heavy: impl Fn(&M::Request) -> bool + Send + Sync + 'static,
        handler: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        // What does not decode is refused by the handler, after the caller is authorized.
        let is_heavy = move |payload: &Bytes| decode::<M::Request>(payload).is_ok_and(|request| is_heavy(&request));
        self.put::<M>(true, Handler::HeavyReadWhen(Arc::new(is_heavy), typed_read::<M>(handler)));
        self
    }
}
