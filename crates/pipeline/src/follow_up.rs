//! Handlers that continue after their commit, without an open transaction.

use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::Result;
use bowline_store::{BoxFuture, WriteTx};
use prost::Message;

use crate::call::Authorized;
use crate::changed::Changed;
use crate::handlers::{Handler, Handlers, Rest, decode};

impl Handlers {
    /// Registers a handler that changes something, after whose commit `answer` continues with what it returned: for
    /// calls that send requests to other servers, for which no transaction may wait.
    pub fn write_then<M: Method, F: Send + 'static>(
        mut self,
        handler: impl for<'a> Fn(&'a mut WriteTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<Changed<F>>>
        + Clone
        + Send
        + Sync
        + 'static,
        answer: impl Fn(F) -> BoxFuture<'static, Result<M::Response>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::WriteThen(Arc::new(move |tx, call| {
                let (handler, answer) = (handler.clone(), answer.clone());
                Box::pin(async move {
                    let typed = call.with_request(decode::<M::Request>(call.request())?);
                    let changed = handler(tx, &typed).await?;
                    Ok(changed.map(|made| {
                        let rest = async move { Ok(answer(made).await?.encode_to_vec().into()) };
                        Box::pin(rest) as Rest
                    }))
                })
            })),
        );
        self
    }
}
