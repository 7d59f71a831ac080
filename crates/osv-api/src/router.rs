use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode};
use axum::routing::{any, get, post};
use bowline_core::Code;
use bowline_fronts::{Count, Front};
use bowline_pipeline::{RateLimits, RequestOrigin, Surface};
use bowline_vulnerabilities::records::RecordLookup;

use crate::answer::{self, Answer, failed, invalid, refused};
use crate::request::{self, Batch, QueryRequest};

/// Dependencies of the front.
pub struct OsvApi {
    pub records: RecordLookup,
    pub limits: RateLimits,
    /// Counts requests, for the metrics.
    pub count: Count,
}

/// The paths below `/osv/`. A host of its own serves the same ones without that.
pub fn router(api: OsvApi) -> Router {
    let OsvApi { records, limits, count } = api;
    let admit = move |_: &str, origin: &RequestOrigin| limits.count_address(Surface::Osv, Some(origin.address));
    let front =
        Front { transport: "osv", name, admit: Arc::new(admit), render_rejection: |_, error| failed(&error), count };
    let routes = Router::new()
        .route("/osv/v1/query", post(query))
        .route("/osv/v1/querybatch", post(query_batch))
        .route("/osv/v1/vulns/{id}", get(vulnerability))
        .route("/osv/v1experimental/determineversion", any(no_hashes))
        .route("/osv/", any(nothing))
        .route("/osv/{*rest}", any(nothing))
        .method_not_allowed_fallback(wrong_verb)
        .with_state(Arc::new(records));
    front.wrap(routes)
}

fn name(_: &Method, path: &str) -> &'static str {
    match path {
        "/osv/v1/query" => "osv.query",
        "/osv/v1/querybatch" => "osv.querybatch",
        path if path.starts_with("/osv/v1/vulns/") => "osv.vulns",
        _ => "osv.unknown",
    }
}

type Outcome = Result<Answer, Answer>;
type Records = State<Arc<RecordLookup>>;

async fn query(State(records): Records, body: Body) -> Outcome {
    let query = request::json::<QueryRequest>(body).await?.query().map_err(|what| invalid(&what))?;
    records.records(query).await.map(answer::records).map_err(|error| failed(&error))
}

async fn query_batch(State(records): Records, body: Body) -> Outcome {
    let queries = request::json::<Batch>(body).await?.queries().map_err(|what| invalid(&what))?;
    let found = records.ids(queries).await;
    found.and_then(|found| answer::ids(&found)).map_err(|error| failed(&error))
}

async fn vulnerability(State(records): Records, Path(id): Path<String>) -> Outcome {
    if !bowline_osv::is_id(&id) {
        return Err(invalid("this is no id of a record"));
    }
    let found = records.get(id).await.map_err(|error| failed(&error))?;
    found.map(answer::document).map_err(|missing| {
        let message = match missing.known_as.as_slice() {
            [] => "no record has this id".to_owned(),
            known_as => format!("no record has this id; as an alias it is in {}", known_as.join(", ")),
        };
        refused(StatusCode::NOT_FOUND, Code::NotFound, &message)
    })
}

async fn nothing() -> Answer {
    refused(StatusCode::NOT_FOUND, Code::NotFound, "there is nothing here")
}

async fn no_hashes() -> Answer {
    let message =
        "this server does not determine versions from hashes of files: query a package, best with its version";
    refused(StatusCode::NOT_IMPLEMENTED, Code::Unimplemented, message)
}

async fn wrong_verb() -> Answer {
    refused(StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented, "this path does not take that method")
}
