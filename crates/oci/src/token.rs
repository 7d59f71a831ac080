//! The token service: credentials in, a token of this server for the registry out.

use axum::body::Body;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use bowline_authn::claims::{AccessClaims, TokenClass, mint};
use bowline_authn::crypto::random_bytes;
use bowline_core::rfc3339::{self, Digits};
use bowline_core::{Error, hex};
use bowline_fronts::body::IDLE;
use bowline_fronts::request::is_form;
use bowline_fronts::{Presented, presented};
use bowline_identity::{Credential, Issued};
use bowline_pipeline::{ANONYMOUS, RequestOrigin, Surface};
use bowline_registry::content::RefusalCode;
use serde_json::json;

use crate::answer::{self, Answer, Refused, set, wrong_verb};
use crate::scopes::{self, Scope};
use crate::{Distribution, Shared, body, route};

/// How long a token that everyone gets lasts, in seconds.
const ANONYMOUS_LIFETIME: i64 = 300;
/// Maximum bytes of a form.
const FORM: usize = 64 << 10;
/// Maximum number of scopes that are looked at.
const SCOPES: usize = 100;

pub(crate) async fn serve(
    State(distribution): Shared,
    Extension(origin): Extension<RequestOrigin>,
    request: Request,
) -> Response {
    let response = token(&distribution, request, &origin).await;
    let response = response.unwrap_or_else(|refused| distribution.refusal(refused, None, &Method::GET));
    let mut response = answer::finished(response, &origin.request_id);
    set(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

async fn token(distribution: &Distribution, request: Request, origin: &RequestOrigin) -> Answer {
    let (head, body) = request.into_parts();
    let mut parameters = route::query(head.uri.query().unwrap_or(""))?;
    let has_form = match head.method {
        Method::GET => false,
        Method::POST => true,
        _ => return Err(wrong_verb("GET, POST")),
    };
    if has_form {
        parameters.extend(form(&head.headers, body).await?);
    }
    let credential = credential(&head.headers, if has_form { &parameters } else { &[] })?;
    let scopes = scopes::read(parameters.iter().filter(|(name, _)| name == "scope").map(|(_, value)| value.as_str()));
    let issued = match credential {
        Some(credential) => distribution.exchanged(&credential, origin).await?,
        None => distribution.anonymous(&scopes, origin).await?,
    };
    Ok(rendered(&issued, distribution.pipeline.clock.now().div_euclid(1_000_000)))
}

async fn form(headers: &HeaderMap, body: Body) -> Result<Vec<(String, String)>, Refused> {
    let bytes = body::whole(body, FORM, IDLE).await?;
    if !is_form(headers) && !bytes.is_empty() {
        return Err(bad("send a form: Content-Type: application/x-www-form-urlencoded"));
    }
    let text = std::str::from_utf8(&bytes).map_err(|_| bad("the form is not UTF-8"))?;
    Ok(route::query(text)?)
}

/// The header's credential, or the form's.
fn credential(headers: &HeaderMap, form: &[(String, String)]) -> Result<Option<Credential>, Refused> {
    let given = match presented(headers)? {
        Presented::Nothing => None,
        Presented::Basic { user, password } => Some(Credential { user, password }),
        Presented::Bearer(password) => Some(Credential { user: "_token".into(), password }),
    };
    let value = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
    let of_form = match value("grant_type").as_deref() {
        None => None,
        Some("password") => Some(Credential {
            user: value("username").ok_or_else(|| bad("grant_type=password needs a username"))?,
            password: value("password").ok_or_else(|| bad("grant_type=password needs a password"))?,
        }),
        Some("refresh_token") => Some(Credential {
            user: "_token".into(),
            password: value("refresh_token").ok_or_else(|| bad("grant_type=refresh_token needs a refresh_token"))?,
        }),
        Some(_) => return Err(bad("grant_type is password or refresh_token")),
    };
    Ok(given.or(of_form))
}

fn bad(message: &str) -> Refused {
    Refused::new(RefusalCode::Unsupported, message).with_status(StatusCode::BAD_REQUEST)
}

impl Distribution {
    /// A token that everyone gets who wants to pull what everyone may. It may nothing that no one may do.
    async fn anonymous(&self, scopes: &[Scope], origin: &RequestOrigin) -> Result<Issued, Refused> {
        self.pipeline.limits.count_address(Surface::Registry, Some(origin.address))?;
        let mut is_public = false;
        for scope in scopes.iter().take(SCOPES) {
            if let Scope::Repository(name) = scope {
                is_public |= self.registry.is_public(name).await?;
            }
        }
        if !is_public {
            return Err(Refused::new(RefusalCode::Unauthorized, "Authentication required"));
        }
        let now = self.pipeline.clock.now().div_euclid(1_000_000);
        let keys = self.pipeline.authenticator.keys();
        let key = keys.ring.signing_key(now).ok_or_else(|| Error::internal("there is no signing key"))?;
        let settings = &self.pipeline.settings;
        let claims = AccessClaims {
            iss: settings.auth_url.clone(),
            sub: ANONYMOUS.into(),
            aud: vec![settings.registry_audience.clone()],
            iat: now,
            exp: now + ANONYMOUS_LIFETIME,
            jti: hex(&random_bytes::<16>()),
            ..AccessClaims::default()
        };
        Ok(Issued { token: mint(TokenClass::Access, &claims, key).into(), expires_at: claims.exp * 1_000_000 })
    }
}

fn rendered(issued: &Issued, now: i64) -> Response {
    let expires_in = issued.expires_at.div_euclid(1_000_000) - now;
    answer::json(
        StatusCode::OK,
        &json!({
            "token": &*issued.token,
            "access_token": &*issued.token,
            "token_type": "Bearer",
            "expires_in": expires_in.max(0),
            "issued_at": rfc3339::text(now * 1_000_000, Digits::Fewest),
        }),
    )
}
