//! A write that waits to run, its types erased: everything around the closure is compiled once for both engines.

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::tx::WriteTx;

/// When the disk has what a write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flush {
    /// Before the write is answered.
    AtCommit,
    /// With the next write that is flushed, or when the system comes to it.
    Later,
}

/// What is known of a write before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobKind {
    pub(crate) flush: Flush,
    /// It removes something or is the operator's.
    pub(crate) may_use_reserve: bool,
}

/// A closure and the outcome that it will deliver.
pub(crate) trait Job: Send {
    /// Runs the closure and holds its outcome instead of an earlier one. `true`: it succeeded.
    fn run<'a>(&'a mut self, tx: &'a mut WriteTx) -> BoxFuture<'a, bool>;
    /// Holds an error instead of the outcome.
    fn fail(&mut self, error: StoreError);
    /// Delivers the outcome to the caller that waits for it.
    fn answer(&mut self);
}

pub(crate) struct TypedJob<F, T, E> {
    f: F,
    outcome: Option<Result<T, E>>,
    reply: Option<oneshot::Sender<Result<T, E>>>,
}

impl<F, T, E> TypedJob<F, T, E> {
    pub(crate) fn new(f: F, reply: oneshot::Sender<Result<T, E>>) -> Self {
        Self { f, outcome: None, reply: Some(reply) }
    }
}

impl<F, T, E> Job for TypedJob<F, T, E>
where
    F: for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run<'a>(&'a mut self, tx: &'a mut WriteTx) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let outcome = (self.f)(tx).await;
            let succeeded = outcome.is_ok();
            self.outcome = Some(outcome);
            succeeded
        })
    }

    fn fail(&mut self, error: StoreError) {
        self.outcome = Some(Err(error.into()));
    }

    fn answer(&mut self) {
        if let (Some(reply), Some(outcome)) = (self.reply.take(), self.outcome.take()) {
            // No one listens any more: the write stands all the same.
            let _ = reply.send(outcome);
        }
    }
}
