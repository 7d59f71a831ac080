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
    /// What a database says at a path.
    pub(super) async fn checksums(
        &self,
        client: &HostClient,
        scope: Option<&str>,
        (database, path): (&str, &str),
    ) -> Result<Response, Refused> {
        let module = looked_up(path).transpose().map_err(|()| nowhere())?;
        for upstream in self.hosting.go_checksum_upstreams(client, scope, module.as_deref()).await? {
            let _slot = self.slot(upstream.organization()).await?;
            if let Some(body) = self.passed_on(&upstream, database, path).await? {
                let mut response = typed(StatusCode::OK, "application/octet-stream", body);
                set(&mut response, header::CACHE_CONTROL, "private, no-cache");
                return Ok(response);
            }
        }
        let text = format!("no upstream passes on what {database} says there");
        Err(Refused::new(StatusCode::NOT_FOUND, text))
    }

    /// What an upstream passes on; absent if it does not.
    async fn passed_on(&self, upstream: &UpstreamAccess, database: &str, path: &str) -> Result<Option<Bytes>, Refused> {
        let failed = |error: FetchError| {
            tracing::warn!(upstream = upstream.name, database, %error, reason = error.reason(), "checksums were not passed on");
            let text = format!("the upstream {} does not say what {database} has: try again", upstream.name);
            Refused::from(Error::new(Reason::Unavailable, text))
        };
        let address = format!("{}/sumdb/{database}/{path}", upstream.url.trim_end_matches('/'));
        let url = Url::parse(&address).map_err(|_| failed(FetchError::InvalidUrl))?;
        let (opened, _) = self.fetching.client.get(upstream, &url, &HeaderMap::new()).await.map_err(failed)?;
        match opened.status() {
            StatusCode::OK => opened.whole(ANSWER).await.map(Some).map_err(failed),
            StatusCode::NOT_FOUND | StatusCode::GONE => Ok(None),
            status => Err(failed(FetchError::Status(status.as_u16()))),
        }
    }
}
