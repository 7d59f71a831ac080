//! What waits to be written.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::{OpenTransaction, poll_once};
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

/// A queued closure and the outcome it waits to deliver.
pub(super) trait Job: Send {
    /// What is known of it before it runs.
    fn kind(&self) -> JobKind;
    /// Runs the closure. `true`: keep what it did.
    fn run(&mut self, tx: &mut WriteTx) -> bool;
    fn fail(&mut self, error: StoreError);
    fn answer(&mut self);
}

pub(super) struct TypedJob<F, T, E> {
    f: F,
    kind: JobKind,
    outcome: Option<Result<T, E>>,
    reply: Option<oneshot::Sender<Result<T, E>>>,
    span: tracing::Span,
}

impl<F, T, E> TypedJob<F, T, E> {
    pub(super) fn new(f: F, kind: JobKind, reply: oneshot::Sender<Result<T, E>>) -> Self {
        Self { f, kind, outcome: None, reply: Some(reply), span: tracing::Span::current() }
    }
}

impl<F, T, E> Job for TypedJob<F, T, E>
where
    F: for<'a> FnMut(&'a mut WriteTx) -> BoxFuture<'a, Result<T, E>> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn kind(&self) -> JobKind {
        self.kind
    }

    fn run(&mut self, tx: &mut WriteTx) -> bool {
        let _span = self.span.enter();
        tx.reset();
        // The closure may be left in any state by a panic; then it does not run again
        // but in a group that was lost for another reason, where it fails again.
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _inside = OpenTransaction::enter()?;
            poll_once((self.f)(tx))
        }));
        let outcome = match outcome {
            Ok(Ok(value)) => match tx.swallowed() {
                None => Ok(value),
                Some(error) => Err(error.into()),
            },
            Ok(Err(error)) => Err(error),
            Err(_panic) => Err(StoreError::bug("a transaction closure panicked").into()),
        };
        let keep = outcome.is_ok();
        self.outcome = Some(outcome);
        keep
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
