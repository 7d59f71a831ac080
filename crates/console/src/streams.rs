//! Streams that pages and the live view read: a call of the signed-in caller, with one line in the access log at its end.

use std::sync::Arc;
use std::time::Instant;

use bowline_core::{Code, Error, Result};
use bowline_fronts::{AccessLine, write_failure};
use bowline_pipeline::{ConsoleStream, ConsoleWatch};
use prost::Message as _;

use crate::app::App;
use crate::visit::{Visit, too_long};

/// An open stream. It is over when it is dropped.
pub(crate) struct OpenStream<M: ConsoleWatch> {
    stream: ConsoleStream<M>,
    line: Line,
}

/// What the access log gets at the end of a stream.
struct Line {
    app: Arc<App>,
    method: &'static str,
    principal: String,
    scope: String,
    request_id: String,
    started: Instant,
    code: Option<Code>,
}

impl Drop for Line {
    fn drop(&mut self) {
        let elapsed = self.started.elapsed();
        (self.app.count)(self.method, self.code, elapsed);
        AccessLine {
            transport: "console",
            method: self.method,
            path: "",
            previewed: "",
            principal: &self.principal,
            scope: &self.scope,
            status: None,
            code: self.code,
            elapsed,
            request_id: &self.request_id,
        }
        .write();
    }
}

impl Line {
    fn fail(&mut self, error: &Error) {
        self.code = Some(error.code());
        write_failure(self.method, &self.request_id, error);
    }
}

impl Visit {
    /// Opens a stream as the signed-in caller, after this position if there is one.
    ///
    /// # Errors
    /// What the API would return to the same caller.
    pub(crate) async fn watch<M: ConsoleWatch>(
        &mut self,
        request: M::Request,
        resume: Option<i64>,
    ) -> Result<OpenStream<M>> {
        let app = self.app.clone();
        let method = app.api.contract().by_full_name(M::FULL_NAME);
        let method = method.ok_or_else(|| Error::internal(format!("the contract has no {}", M::FULL_NAME)))?.index;
        let request_id = self.record(method, request.encode_to_vec().into(), false)?;
        let mut line = Line {
            app: app.clone(),
            method: M::FULL_NAME,
            principal: self.session.subject.clone(),
            scope: String::new(),
            request_id: request_id.clone(),
            started: Instant::now(),
            code: None,
        };
        let opened = app.api.watch::<M>(self.last_call(&request_id)?, resume);
        let opened = tokio::time::timeout_at(self.deadline.into(), opened).await;
        match opened.unwrap_or_else(|_| Err(too_long(app.page_time))) {
            Ok(stream) => {
                line.scope.clone_from(&stream.scope);
                Ok(OpenStream { stream, line })
            }
            Err(error) => {
                line.fail(&error);
                Err(error)
            }
        }
    }
}

impl<M: ConsoleWatch> OpenStream<M> {
    /// The next messages that are there together, with their numbers; absent at the end. Dropping the future loses
    /// nothing.
    ///
    /// # Errors
    /// Why the stream ends.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<(i64, M::Response)>>> {
        let next = self.stream.next().await;
        next.inspect_err(|error| self.line.fail(error))
    }
}
