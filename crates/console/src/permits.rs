//! Permits for pages and forms, and work on threads of their own that keeps them until it is over.

use std::sync::Arc;

use bowline_core::{Error, Result};
use tokio::sync::OwnedSemaphorePermit;

use crate::turns::Turn;
use crate::visit::Visit;

/// Maximum bytes of a message that is taken apart on the thread of a connection.
const SMALL: usize = 64 << 10;

/// What one page or form holds while it is made: of those that its session may wait for, of those that it makes, and of the
/// server's.
pub(crate) struct Permits {
    pub(crate) _waiting: OwnedSemaphorePermit,
    pub(crate) _of_session: OwnedSemaphorePermit,
    pub(crate) _of_server: OfServer,
}

/// One of the pages that the server makes at a time.
pub(crate) enum OfServer {
    Shared { _turn: Turn },
    Operators { _permit: OwnedSemaphorePermit },
}

/// Runs work that would hold up the thread of a connection. It keeps what is held until it is over: a client that leaves
/// drops the page that waits, and not the work.
///
/// # Errors
/// INTERNAL: the work panicked.
async fn aside<H, T>(held: H, work: impl FnOnce() -> T + Send + 'static) -> Result<T>
where
    H: Send + 'static,
    T: Send + 'static,
{
    let run = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(held);
        done
    });
    run.await.map_err(Error::internal)
}

impl Visit {
    /// Runs work that would hold up the thread of a connection on another one, with the permits of the page.
    ///
    /// # Errors
    /// INTERNAL: the work panicked.
    pub(crate) async fn aside<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
        aside(self.held.clone(), work).await
    }

    /// The same for work on a message: a small one costs less than another thread.
    ///
    /// # Errors
    /// INTERNAL: the work panicked.
    pub(crate) async fn aside_if_large<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T> {
        if bytes <= SMALL { Ok(work()) } else { self.aside(work).await }
    }
}

/// The permits of a page, for [`aside`]; absent before it has them.
pub(crate) type Held = Option<Arc<Permits>>;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use futures_util::FutureExt as _;
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn work_keeps_its_permits_after_its_page_has_gone() {
        let pages = Arc::new(Semaphore::new(1));
        let permit = pages.clone().acquire_owned().await.unwrap();
        let (begin, has_begun) = tokio::sync::oneshot::channel();
        let (end, may_end) = mpsc::channel::<()>();
        let page = tokio::spawn(aside(permit, move || {
            begin.send(()).unwrap();
            may_end.recv().unwrap();
        }));
        has_begun.await.unwrap();
        page.abort();
        assert!(page.await.unwrap_err().is_cancelled());
        assert_eq!(pages.available_permits(), 0, "the work is under way");
        end.send(()).unwrap();
        let free = tokio::time::timeout(Duration::from_secs(60), pages.acquire()).await;
        assert!(free.expect("the work is over").is_ok());
    }

    #[tokio::test]
    async fn work_that_waits_for_a_thread_keeps_its_permits() {
        let pages = Arc::new(Semaphore::new(1));
        let mut page = Box::pin(aside(pages.clone().acquire_owned().await.unwrap(), || ()));
        // Polled once, and dropped.
        assert!((&mut page).now_or_never().is_none());
        drop(page);
        let free = tokio::time::timeout(Duration::from_secs(60), pages.acquire()).await;
        assert!(free.expect("the work is over").is_ok());
    }
}
