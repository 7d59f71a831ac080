//! The database of checksums, which clients ask through their proxy: what an upstream passes on of it.
//!
//! Clients verify it themselves. It is never asked for modules of the organization, whose names it would learn.

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use bowline_authn::guarded::FetchError;
use bowline_core::{Error, Reason};
use bowline_libraries::hosting::{HostClient, UpstreamAccess};
use bytes::Bytes;
use url::Url;

use super::nowhere;
use super::target::looked_up;
use crate::PackageHosts;
use crate::answers::{Refused, set, typed};

/// Bytes of an answer; tiles have some kilobytes.
const ANSWER: usize = 1 << 20;

impl PackageHosts {
    /// What a database says at a path: the first upstream that passes it on.
    pub(super) async fn checksums(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (database, path): (&str, &str),
    ) -> Result<Response, Refused> {
        let module = looked_up(path).transpose().map_err(|()| nowhere())?;
        let mut silent = None;
        for upstream in self.hosting.go_checksum_upstreams(client, scope, module.as_deref()).await? {
            let _slot = self.slot(upstream.organization()).await?;
            match self.passed_on(&upstream, database, path).await {
                Ok(Some(body)) => {
                    let mut response = typed(StatusCode::OK, "application/octet-stream", body);
                    set(&mut response, header::CACHE_CONTROL, "private, no-cache");
                    return Ok(response);
                }
                Ok(None) => {}
                Err(error) => {
                    let (upstream, reason) = (&upstream.name, error.reason());
                    tracing::warn!(upstream, database, %error, reason, "checksums were not passed on");
                    silent = silent.or(Some(upstream.clone()));
                }
            }
        }
        if let Some(upstream) = silent {
            let text = format!("the upstream {upstream} does not say what {database} has: try again");
            return Err(Error::new(Reason::Unavailable, text).into());
        }
        // The same of own modules and of others: it tells no one which of them there are.
        let text = module.map_or_else(
            || format!("no upstream passes on what {database} says there"),
            |module| format!("{database} says nothing of {module} here: for a module of the organization, set GONOSUMDB={module}, or a pattern of such modules"),
        );
        Err(Refused::new(StatusCode::NOT_FOUND, text))
    }

    /// What an upstream passes on; absent if it does not, by whatever refusal.
    async fn passed_on(
        &self,
        upstream: &UpstreamAccess,
        database: &str,
        path: &str,
    ) -> Result<Option<Bytes>, FetchError> {
        let address = format!("{}/sumdb/{database}/{path}", upstream.url.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|_| FetchError::InvalidUrl)?;
        let (opened, _) = self.fetching.client.get(upstream, &url, &HeaderMap::new()).await?;
        match opened.status() {
            StatusCode::OK => opened.whole(ANSWER).await.map(Some),
            StatusCode::NOT_IMPLEMENTED => Ok(None),
            status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => Ok(None),
            status => Err(FetchError::Status(status.as_u16())),
        }
    }
}
