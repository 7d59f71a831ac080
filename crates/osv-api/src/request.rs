//! Requests as the public documentation of the API defines them. Unknown members are ignored.

use std::time::Duration;

use axum::body::Body;
use axum::http::StatusCode;
use bowline_core::Code;
use bowline_osv::Purl;
use bowline_vulnerabilities::records::Query;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::answer::{Answer, invalid, read_token, refused};

/// Maximum bytes of a body.
pub const MAX_BODY: usize = 4 << 20;
/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Maximum number of queries of a batch.
const MAX_QUERIES: usize = 1000;
/// Maximum bytes of a name, a version or a package URL.
const LONGEST: usize = 4096;

/// A query, not yet validated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct QueryRequest {
    commit: Option<String>,
    version: Option<String>,
    package: Option<PackageQuery>,
    #[serde(alias = "pageToken")]
    page_token: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PackageQuery {
    name: Option<String>,
    ecosystem: Option<String>,
    purl: Option<String>,
}

/// A batch of queries, not yet validated.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Batch {
    queries: Vec<QueryRequest>,
}

impl Batch {
    /// Validates all queries; the error names the first invalid one.
    pub(crate) fn queries(self) -> Result<Vec<Query>, String> {
        if self.queries.len() > MAX_QUERIES {
            return Err(format!("{} queries are too many; a batch has {MAX_QUERIES} at most", self.queries.len()));
        }
        let queries = self.queries.into_iter().enumerate();
        queries.map(|(i, asked)| asked.query().map_err(|what| format!("queries[{i}]: {what}"))).collect()
    }
}

impl QueryRequest {
    /// Validates the query; the error is for the client.
    pub(crate) fn query(self) -> Result<Query, String> {
        fn given(text: Option<String>) -> Option<String> {
            text.filter(|text| !text.is_empty())
        }
        let version = given(self.version);
        let package = self.package.unwrap_or_default();
        let (name, ecosystem, purl) = (given(package.name), given(package.ecosystem), given(package.purl));
        let texts = [&version, &name, &ecosystem, &purl];
        if texts.into_iter().flatten().any(|text| text.len() > LONGEST || text.contains('\0')) {
            return Err(format!("a name or version has more than {LONGEST} bytes, or a null character"));
        }
        if given(self.commit).is_some() {
            return Err("this server knows no commits: ask for a package, best with its version".into());
        }
        let after = read_token(&self.page_token.unwrap_or_default()).ok_or("the page token is damaged")?;
        match (purl, name, ecosystem) {
            (Some(purl), None, None) => {
                let purl = Purl::parse(&purl).map_err(|error| format!("package.purl {error}"))?;
                if version.is_some() && purl.version.is_some() {
                    return Err("give the version in the package URL or beside it, not both".into());
                }
                let version = purl.version.or(version);
                Ok(Query { ecosystem: purl.ecosystem, name: purl.name, version, after })
            }
            (Some(_), ..) => Err("give package.purl, or package.name and package.ecosystem, not both".into()),
            (None, Some(name), Some(ecosystem)) => Ok(Query { ecosystem, name, version, after }),
            (None, ..) => Err("package.name and package.ecosystem are missing, or package.purl".into()),
        }
    }
}

/// Reads a body as JSON.
pub(crate) async fn json<T: DeserializeOwned>(body: Body) -> Result<T, Answer> {
    let too_large = format!("a body has at most {MAX_BODY} bytes");
    let collected = tokio::time::timeout(BODY_TIME, axum::body::to_bytes(body, MAX_BODY)).await;
    let late = |_| refused(StatusCode::REQUEST_TIMEOUT, Code::DeadlineExceeded, "the body did not arrive in time");
    let bytes = collected.map_err(late)?.map_err(|error| {
        // Any error but the limit is a broken connection, where no one reads the response.
        tracing::debug!(%error, "a body of the OSV API was not read");
        refused(StatusCode::PAYLOAD_TOO_LARGE, Code::InvalidArgument, &too_large)
    })?;
    serde_json::from_slice(&bytes).map_err(|error| invalid(&format!("the body is no JSON that is understood: {error}")))
}
