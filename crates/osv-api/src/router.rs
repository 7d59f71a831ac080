use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::routing::{any, get, post};
use bowline_core::Code;
use bowline_fronts::{AccessLine, code_of};
use bowline_pipeline::{Arrival, RateLimits, Surface};
use bowline_vulnerabilities::records::RecordLookup;

use crate::answer::{self, Answer, failed, invalid, refused};
use crate::request::{self, Asked, Batch};

/// What the door is made of.
pub struct OsvApi {
    /// The records.
    pub records: RecordLookup,
    /// Calls by address.
    pub limits: RateLimits,
}

/// The paths below `/osv/`.
pub fn router(api: OsvApi) -> Router {
    Router::new()
        .route("/osv/v1/query", post(query))
        .route("/osv/v1/querybatch", post(query_batch))
        .route("/osv/v1/vulns/{id}", get(vulnerability))
        .route("/osv/{*rest}", any(nothing))
        .method_not_allowed_fallback(wrong_verb)
        .with_state(Arc::new(api))
}

type Outcome = Result<Answer, Answer>;

async fn query(State(api): State<Arc<OsvApi>>, Extension(arrival): Extension<Arrival>, request: Request) -> Answer {
    let asked = async {
        count(&api, &arrival).map_err(|error| failed(&error, &arrival.request_id))?;
        let query = request::json::<Asked>(request.into_body()).await?.query().map_err(|what| invalid(&what))?;
        let found = api.records.records(query).await;
        found.map(answer::records).map_err(|error| failed(&error, &arrival.request_id))
    };
    logged("osv query", &arrival, asked).await
}

async fn query_batch(
    State(api): State<Arc<OsvApi>>,
    Extension(arrival): Extension<Arrival>,
    request: Request,
) -> Answer {
    let asked = async {
        count(&api, &arrival).map_err(|error| failed(&error, &arrival.request_id))?;
        let queries = request::json::<Batch>(request.into_body()).await?.queries().map_err(|what| invalid(&what))?;
        let found = api.records.ids(queries).await;
        found.and_then(|found| answer::ids(&found)).map_err(|error| failed(&error, &arrival.request_id))
    };
    logged("osv querybatch", &arrival, asked).await
}

async fn vulnerability(
    State(api): State<Arc<OsvApi>>,
    Extension(arrival): Extension<Arrival>,
    Path(id): Path<String>,
) -> Answer {
    let asked = async {
        count(&api, &arrival).map_err(|error| failed(&error, &arrival.request_id))?;
        if !bowline_osv::is_id(&id) {
            return Err(invalid("this is no id of a record"));
        }
        let found = api.records.get(id).await.map_err(|error| failed(&error, &arrival.request_id))?;
        found.map(answer::document).map_err(|missing| {
            let message = match missing.known_as.as_slice() {
                [] => "no record has this id".to_owned(),
                known_as => format!("no record has this id; as an alias it is in {}", known_as.join(", ")),
            };
            refused(StatusCode::NOT_FOUND, Code::NotFound, &message)
        })
    };
    logged("osv vulns", &arrival, asked).await
}

async fn nothing() -> Answer {
    refused(StatusCode::NOT_FOUND, Code::NotFound, "there is nothing here")
}

async fn wrong_verb() -> Answer {
    refused(StatusCode::METHOD_NOT_ALLOWED, Code::Unimplemented, "this path does not take that method")
}

fn count(api: &OsvApi, arrival: &Arrival) -> bowline_core::Result<()> {
    api.limits.count_address(Surface::Osv, Some(arrival.address))
}

async fn logged(method: &str, arrival: &Arrival, asked: impl Future<Output = Outcome>) -> Answer {
    let started = Instant::now();
    let answer = asked.await.unwrap_or_else(|refusal| refusal);
    let status = answer.status().as_u16();
    AccessLine {
        transport: "osv",
        method,
        path: "",
        principal: "",
        scope: "",
        status: Some(status),
        code: code_of(status),
        elapsed: started.elapsed(),
        request_id: &arrival.request_id,
    }
    .write();
    answer
}
