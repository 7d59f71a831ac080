//! Forms read while they arrive, with little of them in memory.
//!
//! The parser takes all that it is given before it looks at any of it, and looks for the end of a field's head without end.
//! So it is given one part of the body at a time, and a bounded number of bytes for a head.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::Body;
use bowline_fronts::body::{BodyError, parts};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use multer::{Field, Multipart};

/// Bytes that may arrive until the head of a field is whole: a head, with what came along with it.
const HEAD: u64 = 1 << 20;

/// A form whose fields are read one after the other, each to its end.
pub(crate) struct FormReader {
    form: Multipart<'static>,
    window: Arc<Window>,
}

/// How much of a body may still be read.
#[derive(Debug)]
struct Window {
    read: AtomicU64,
    most: AtomicU64,
}

impl Window {
    fn pass(&self, length: usize) -> Result<(), BodyError> {
        let read = self.read.fetch_add(length as u64, Ordering::Relaxed) + length as u64;
        if read > self.most.load(Ordering::Relaxed) { Err(BodyError) } else { Ok(()) }
    }

    fn allow(&self, more: u64) {
        self.most.store(self.read.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
    }
}

impl FormReader {
    /// The form of a body with this boundary.
    pub(crate) fn new(body: Body, boundary: String) -> FormReader {
        let window = Arc::new(Window { read: AtomicU64::new(0), most: AtomicU64::new(0) });
        let form = Multipart::new(paced(parts(body, None), window.clone()), boundary);
        FormReader { form, window }
    }

    /// The next field; absent at the end.
    pub(crate) async fn next_field(&mut self) -> multer::Result<Option<Field<'static>>> {
        self.window.allow(HEAD);
        let field = self.form.next_field().await;
        self.window.allow(u64::MAX);
        field
    }
}

/// Gives way after each part, so that the parser looks at what it has. Not before one: it takes the end of a body for a
/// broken form if that comes with the first part.
fn paced(
    parts: impl Stream<Item = Result<Bytes, BodyError>> + Send,
    window: Arc<Window>,
) -> impl Stream<Item = Result<Bytes, BodyError>> + Send {
    futures_util::stream::unfold((Box::pin(parts), window, false), |(mut parts, window, is_later)| async move {
        if is_later {
            tokio::task::yield_now().await;
        }
        let part = parts.next().await?;
        let passed = part.and_then(|part| window.pass(part.len()).map(|()| part));
        Some((passed, (parts, window, true)))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn form(parts: Vec<&'static str>, taken: &Arc<AtomicUsize>) -> FormReader {
        let taken = taken.clone();
        let parts = futures_util::stream::iter(parts).inspect(move |_| _ = taken.fetch_add(1, Ordering::Relaxed));
        let body = Body::from_stream(parts.map(|part| Ok::<_, std::io::Error>(Bytes::from_static(part.as_bytes()))));
        FormReader::new(body, "b".into())
    }

    #[tokio::test]
    async fn no_more_is_taken_than_is_asked_for() {
        let head = "--b\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\n";
        let taken = Arc::default();
        let mut form = form([&[head][..], &["0123456789"; 100], &["\r\n--b--\r\n"]].concat(), &taken);
        let mut field = form.next_field().await.unwrap().unwrap();
        let mut size = field.chunk().await.unwrap().unwrap().len();
        assert!(taken.load(Ordering::Relaxed) < 5, "{taken:?}");
        while let Some(chunk) = field.chunk().await.unwrap() {
            size += chunk.len();
        }
        drop(field);
        assert_eq!((size, form.next_field().await.unwrap().is_none()), (1000, true));
    }

    #[tokio::test]
    async fn a_head_without_end_is_given_up() {
        let long: &'static str = "x".repeat(64 << 10).leak();
        let taken = Arc::default();
        let mut form = form([&["--b\r\nX: "][..], &vec![long; 1000]].concat(), &taken);
        assert!(form.next_field().await.is_err());
        assert!(taken.load(Ordering::Relaxed) < 20, "{taken:?}");
    }
}
