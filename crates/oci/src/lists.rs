//! Lists over HTTP: tags, referrers, repositories, and how a tag moved.

use axum::http::{HeaderName, Method, StatusCode, header};
use axum::response::Response;
use bowline_content::Digest;
use bowline_core::Micros;
use bowline_core::rfc3339::{self, Digits};
use bowline_registry::content::{Name, Referrer, RefusalCode};
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use crate::answer::{self, Answer, Refused, set, wrong_verb};
use crate::{Distribution, DistributionRequest};

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// Whether the registry speaks the protocol: to anyone who shows anything that it knows.
pub(crate) fn base(request: &DistributionRequest, has_credential: bool) -> Answer {
    require_reading(request)?;
    if has_credential {
        return Ok(answer::json(StatusCode::OK, &json!({})));
    }
    Err(Refused::new(RefusalCode::Unauthorized, "Authentication required"))
}

impl Distribution {
    pub(crate) async fn tags(&self, request: &DistributionRequest, name: &Name) -> Answer {
        require_reading(request)?;
        let wanted = number(request)?;
        let page = self.registry.tags(&request.client, name, wanted, request.parameter("last").unwrap_or("")).await?;
        let mut response = answer::json(StatusCode::OK, &json!({ "name": name.as_str(), "tags": page.tags }));
        if let Some(last) = page.tags.last().filter(|_| page.has_more) {
            link(&mut response, &format!("/v2/{name}/tags/list"), &next(wanted, last));
        }
        Ok(response)
    }

    pub(crate) async fn catalog(&self, request: &DistributionRequest) -> Answer {
        require_reading(request)?;
        if request.client.is_anonymous() {
            return Err(Refused::new(RefusalCode::Unauthorized, "Authentication required"));
        }
        let wanted = number(request)?;
        let last = request.parameter("last").filter(|last| !last.is_empty()).map(|last| {
            Name::parse(last).ok_or_else(|| Refused::new(RefusalCode::NameInvalid, "last is no repository's name"))
        });
        let page = self.registry.catalog(&request.client, wanted, last.transpose()?.as_ref()).await?;
        let mut response = answer::json(StatusCode::OK, &json!({ "repositories": page.repositories }));
        if let Some(last) = page.repositories.last().filter(|_| page.has_more) {
            link(&mut response, "/v2/_catalog", &next(wanted, last));
        }
        Ok(response)
    }

    pub(crate) async fn referrers(&self, request: &DistributionRequest, name: &Name, digest: &Digest) -> Answer {
        require_reading(request)?;
        let artifact_type = request.parameter("artifactType").filter(|text| !text.is_empty());
        let last = request.parameter("last").unwrap_or("");
        let found = self.registry.referrers(&request.client, name, digest.as_str(), artifact_type, last).await?;
        let manifests: Vec<Value> = found.referrers.iter().map(descriptor).collect();
        let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": manifests });
        let mut response = answer::typed(StatusCode::OK, INDEX, index.to_string().into_bytes());
        if artifact_type.is_some() {
            set(&mut response, HeaderName::from_static("oci-filters-applied"), "artifactType");
        }
        if let Some(last) = found.referrers.last().filter(|_| found.has_more) {
            let mut more = Vec::from_iter(artifact_type.map(|text| ("artifactType", text.to_owned())));
            more.push(("last", last.digest.clone()));
            link(&mut response, &format!("/v2/{name}/referrers/{digest}"), &more);
        }
        Ok(response)
    }

    pub(crate) async fn history(&self, request: &DistributionRequest, name: &Name, tag: &str) -> Answer {
        require_reading(request)?;
        let (start, end) = (time(request, "start")?, time(request, "end")?);
        let moves = self.registry.tag_history(&request.client, name, tag, start, end).await?;
        let history: Vec<Value> = moves
            .iter()
            .map(|moved| json!({ "updateTimestamp": rfc3339::text(moved.at, Digits::Fewest), "digest": moved.digest }))
            .collect();
        Ok(answer::json(StatusCode::OK, &json!({ "history": history })))
    }
}

fn require_reading(request: &DistributionRequest) -> Result<(), Refused> {
    match request.method {
        Method::GET | Method::HEAD => Ok(()),
        _ => Err(wrong_verb("GET, HEAD")),
    }
}

fn descriptor(referrer: &Referrer) -> Value {
    let mut descriptor = json!({ "mediaType": referrer.media_type, "digest": referrer.digest, "size": referrer.size });
    if !referrer.artifact_type.is_empty() {
        descriptor["artifactType"] = json!(referrer.artifact_type);
    }
    if !referrer.annotations.is_empty() {
        descriptor["annotations"] = json!(referrer.annotations);
    }
    descriptor
}

/// How many are wanted at most.
fn number(request: &DistributionRequest) -> Result<Option<u64>, Refused> {
    let number = request.parameter("n").filter(|text| !text.is_empty()).map(str::parse);
    number
        .transpose()
        .map_err(|_| Refused::new(RefusalCode::PaginationNumberInvalid, "n must be a whole number, 0 or more"))
}

fn next(wanted: Option<u64>, last: &str) -> Vec<(&'static str, String)> {
    let mut parameters = Vec::from_iter(wanted.map(|wanted| ("n", wanted.to_string())));
    parameters.push(("last", last.to_owned()));
    parameters
}

/// Says where the next page is.
fn link(response: &mut Response, path: &str, parameters: &[(&str, String)]) {
    let query = Serializer::new(String::new()).extend_pairs(parameters).finish();
    set(response, header::LINK, &format!("<{path}?{query}>; rel=\"next\""));
}

fn time(request: &DistributionRequest, name: &str) -> Result<Option<Micros>, Refused> {
    let Some(text) = request.parameter(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    // A plus sign in a query is a space.
    let time = rfc3339::parse_micros(&text.replace(' ', "+")).ok_or_else(|| {
        let message = format!("{name} must be a time, such as 2026-01-31T00:00:00Z");
        Refused::new(RefusalCode::Unsupported, message).with_status(StatusCode::BAD_REQUEST)
    })?;
    Ok(Some(time))
}
