//! Checks of upstreams that callers of the API make: the same request as that of a pull.

use std::pin::Pin;

use axum::http::Method;
use bowline_registry::content::{UpstreamAnswer, UpstreamConfig, UpstreamRequests, UpstreamResult, is_digest};

use super::{Problem, Unanswered, Upstream};
use crate::pull_through::{accepted, stated_digest};

impl UpstreamRequests for Upstream {
    fn head<'a>(
        &'a self,
        upstream: &'a UpstreamConfig,
        tag: &'a str,
    ) -> Pin<Box<dyn Future<Output = UpstreamAnswer> + Send + 'a>> {
        Box::pin(async move {
            let asked = self.ask(Method::HEAD, upstream, &format!("manifests/{tag}"), &accepted()).await;
            match asked {
                Ok(opened) => {
                    let digest = stated_digest(&opened).filter(|digest| is_digest(digest)).unwrap_or_default();
                    UpstreamAnswer { is_new: true, result: UpstreamResult::Present(digest) }
                }
                Err(Unanswered { problem: Problem::Absent, is_new }) => {
                    UpstreamAnswer { is_new, result: UpstreamResult::Absent }
                }
                Err(Unanswered { problem, is_new }) => {
                    UpstreamAnswer { is_new, result: UpstreamResult::Failed(problem.to_string()) }
                }
            }
        })
    }
}
