use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::routing::any;
use bowline_core::{Clock, Micros};
use bowline_fronts::request::bearer;
use bowline_fronts::{Count, Front};
use bowline_identity::ScimUsers;
use bowline_identity::scim::{Changing, Presented, User};
use bowline_pipeline::{RateLimits, RequestOrigin, Surface};
use serde_json::Value;

use crate::answer::{Answer, empty, failed, failure, message, refused};
use crate::request::{self, Parameters};
use crate::{documents, render};

/// What the endpoint is made of.
pub struct Scim {
    pub users: ScimUsers,
    /// Public address of the API.
    pub base_url: String,
    pub clock: Arc<dyn Clock>,
    /// Random bytes for a new user's id.
    pub draw: fn() -> [u8; 8],
    /// Writes and searches by provider, and everything by address.
    pub limits: Arc<RateLimits>,
    /// Who counts the requests.
    pub count: Count,
}

/// The paths below `/scim/v2/`.
pub fn router(scim: Scim) -> Router {
    let (limits, count) = (scim.limits.clone(), scim.count.clone());
    let admit = move |_: &str, origin: &RequestOrigin| limits.count_address(Surface::Scim, Some(origin.address));
    let front =
        Front { transport: "scim", name, admit: Arc::new(admit), render_rejection: |_, error| failed(&error), count };
    front.wrap(Router::new().route("/scim/v2/{*rest}", any(serve)).with_state(Arc::new(scim)))
}

fn name(verb: &Method, _: &str) -> &'static str {
    match verb.as_str() {
        "GET" => "scim.get",
        "HEAD" => "scim.head",
        "POST" => "scim.post",
        "PUT" => "scim.put",
        "PATCH" => "scim.patch",
        "DELETE" => "scim.delete",
        _ => "scim.unknown",
    }
}

/// One request whose token was good.
struct Call<'a> {
    scim: &'a Scim,
    presented: Presented,
    /// Address of the endpoint of this provider.
    base: String,
    head: &'a Parts,
    parameters: Parameters,
    now: Micros,
    request_id: &'a str,
}

type Outcome = Result<Answer, Answer>;

async fn serve(State(scim): State<Arc<Scim>>, Extension(origin): Extension<RequestOrigin>, request: Request) -> Answer {
    let (mut head, body) = request.into_parts();
    // The router leaves the body of the response out.
    if head.method == Method::HEAD {
        head.method = Method::GET;
    }
    let path = head.uri.path().strip_prefix("/scim/v2/").unwrap_or_default().trim_end_matches('/').to_owned();
    let (provider, rest) = path.split_once('/').unwrap_or((&path, ""));
    answer(&scim, &head, body, &origin, provider, rest).await.unwrap_or_else(|refusal| refusal)
}

async fn answer(
    scim: &Scim,
    head: &Parts,
    body: axum::body::Body,
    origin: &RequestOrigin,
    provider: &str,
    rest: &str,
) -> Outcome {
    let request_id: &str = &origin.request_id;
    let presented = Presented::new(provider, bearer(&head.headers).unwrap_or_default());
    let now = scim.clock.now();
    let admitted = scim.users.admit(&presented, now).await;
    let directory = admitted.map_err(failure)?;
    let parameters = Parameters::read(head.uri.query().unwrap_or_default());
    let parameters = parameters.map_err(|detail| refused(StatusCode::BAD_REQUEST, &detail))?;
    if head.method != Method::GET || parameters.query().reads_all() {
        let counted = scim.limits.count_principal(Surface::Scim, directory.provider.as_str());
        counted.map_err(|error| failed(&error))?;
    }
    let base = format!("{}/scim/v2/{provider}", scim.base_url);
    let call = Call { scim, presented, base, head, parameters, now, request_id };
    call.dispatch(rest, body).await
}

impl Call<'_> {
    async fn dispatch(&self, path: &str, body: axum::body::Body) -> Outcome {
        let method = &self.head.method;
        match path.split('/').collect::<Vec<_>>().as_slice() {
            ["Users"] if method == Method::GET => self.list().await,
            ["Users"] if method == Method::POST => self.create(body).await,
            ["Users"] => Err(wrong_verb("GET, HEAD, POST")),
            ["Users", id] => match *method {
                Method::GET => self.get(id).await,
                Method::PUT => self.replace(id, body).await,
                Method::PATCH => self.patch(id, body).await,
                Method::DELETE => self.delete(id).await,
                _ => Err(wrong_verb("GET, HEAD, PUT, PATCH, DELETE")),
            },
            other => {
                let document =
                    self.document(other).ok_or_else(|| refused(StatusCode::NOT_FOUND, "there is nothing here"))?;
                if method == Method::GET {
                    Ok(message(StatusCode::OK, &document))
                } else {
                    Err(wrong_verb("GET, HEAD"))
                }
            }
        }
    }

    /// What the endpoint says of itself.
    fn document(&self, path: &[&str]) -> Option<Value> {
        let base = &self.base;
        let all = |documents: Vec<Value>| {
            let total = documents.len();
            documents::list(documents, total, 1)
        };
        match path {
            ["ServiceProviderConfig"] => Some(documents::service_provider_config(base)),
            ["ResourceTypes"] => Some(all(vec![documents::resource_type(base)])),
            ["ResourceTypes", "User"] => Some(documents::resource_type(base)),
            ["Schemas"] => Some(all(documents::schemas(base))),
            ["Schemas", id] => documents::schemas(base).into_iter().find(|schema| schema["id"] == *id),
            _ => None,
        }
    }

    fn changing(&self) -> Changing {
        let versions = request::tags(&self.head.headers, header::IF_MATCH);
        Changing { now: self.now, request_id: self.request_id.into(), versions }
    }

    async fn list(&self) -> Outcome {
        let listed = self.scim.users.list(&self.presented, &self.parameters.query(), self.now).await;
        let listing = listed.map_err(failure)?;
        let resources =
            listing.users.into_iter().map(|user| render::user(user, &self.base, &self.parameters)).collect();
        Ok(message(StatusCode::OK, &documents::list(resources, listing.total, self.parameters.start())))
    }

    async fn get(&self, id: &str) -> Outcome {
        let found = self.scim.users.get(&self.presented, id, self.now).await;
        let user = found.map_err(failure)?;
        if request::tags(&self.head.headers, header::IF_NONE_MATCH).is_some_and(|tags| tags.contains(&user.version)) {
            return Ok(empty(StatusCode::NOT_MODIFIED));
        }
        Ok(self.resource(StatusCode::OK, user))
    }

    async fn create(&self, body: axum::body::Body) -> Outcome {
        let body = request::json(body).await?;
        let created = self.scim.users.create(&self.presented, body, (self.scim.draw)(), self.changing()).await;
        let user = created.map_err(failure)?;
        Ok(self.resource(StatusCode::CREATED, user))
    }

    async fn replace(&self, id: &str, body: axum::body::Body) -> Outcome {
        let body = request::json(body).await?;
        let replaced = self.scim.users.replace(&self.presented, id, body, self.changing()).await;
        let user = replaced.map_err(failure)?;
        Ok(self.resource(StatusCode::OK, user))
    }

    async fn patch(&self, id: &str, body: axum::body::Body) -> Outcome {
        let body = request::json(body).await?;
        let patched = self.scim.users.patch(&self.presented, id, body, self.changing()).await;
        let user = patched.map_err(failure)?;
        Ok(self.resource(StatusCode::OK, user))
    }

    async fn delete(&self, id: &str) -> Outcome {
        let deleted = self.scim.users.delete(&self.presented, id, self.changing()).await;
        deleted.map_err(failure)?;
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// A user, with version and URL in the headers too.
    fn resource(&self, status: StatusCode, user: User) -> Answer {
        let location = HeaderValue::from_str(&render::location(&self.base, &user.id));
        let version = HeaderValue::from_str(&user.version);
        let mut response = message(status, &render::user(user, &self.base, &self.parameters));
        if let (Ok(location), Ok(version)) = (location, version) {
            response.headers_mut().insert(header::LOCATION, location);
            response.headers_mut().insert(header::ETAG, version);
        }
        response
    }
}

fn wrong_verb(allowed: &'static str) -> Answer {
    let mut response = refused(StatusCode::METHOD_NOT_ALLOWED, "this path does not take that method");
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}
