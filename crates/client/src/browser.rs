use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::{Notify, mpsc};

use crate::cache::Tokens;
use crate::error::ClientError;
use crate::issuer::{Issuer, SignInRequest};

/// A sign-in in the browser: the issuer sends the browser back to a listener on this machine.
#[derive(Debug)]
pub struct BrowserSignIn {
    listener: TcpListener,
    /// A secret path that only the redirected browser knows, so that other pages cannot call it.
    path: String,
    /// The address that the browser has to open.
    pub url: String,
}

type Answer = Result<Tokens, ClientError>;

/// How long the last page may take to reach the browser.
const PAGE_TIME: Duration = Duration::from_secs(2);

/// Last parts of the addresses of the pages that tell the outcome.
const SIGNED_IN: &str = "signed-in";
const REFUSED: &str = "refused";

impl BrowserSignIn {
    /// Listens on a free port of this machine.
    ///
    /// # Errors
    /// No port can be listened on.
    pub async fn start(issuer: &Issuer, request: &SignInRequest) -> Result<BrowserSignIn, ClientError> {
        let failed = |error: std::io::Error| ClientError::SignIn(format!("no local port can be listened on: {error}"));
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let nonce: String = bowline_core::hex(&bowline_authn::crypto::random_bytes::<16>());
        let path = format!("/callback/{nonce}");
        let redirect = format!("http://127.0.0.1:{port}{path}?token=true&error=true");
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("exit", "redirect").append_pair("redirect", &redirect);
        query.extend_pairs(request.parameters());
        Ok(BrowserSignIn { listener, path, url: format!("{}?{}", issuer.at("/oauth"), query.finish()) })
    }

    /// Waits for the browser to come back.
    ///
    /// # Errors
    /// The sign-in was refused or cancelled, or no one came in time.
    pub async fn finish(self, patience: Duration) -> Result<Tokens, ClientError> {
        let (sender, mut answers) = mpsc::channel::<Answer>(1);
        let shown = Arc::new(Notify::new());
        let visit = Arc::new(Visit { path: self.path.clone(), sender, shown: shown.clone() });
        let router = Router::new()
            .route(&self.path, get(callback))
            .route(&format!("{}/{{outcome}}", self.path), get(outcome))
            .fallback(|| async { StatusCode::NOT_FOUND })
            .with_state(visit);
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let until = async move {
                let _ = stopped.await;
            };
            axum::serve(self.listener, router).with_graceful_shutdown(until).await
        });
        let answer = tokio::time::timeout(patience, answers.recv()).await;
        // The page that says so has to reach the browser first.
        if matches!(answer, Ok(Some(_))) {
            let _ = tokio::time::timeout(PAGE_TIME, shown.notified()).await;
        }
        let _ = stop.send(());
        let _ = tokio::time::timeout(PAGE_TIME, serving).await;
        match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => Err(ClientError::SignIn("the local listener stopped".into())),
            Err(_) => {
                let seconds = patience.as_secs();
                Err(ClientError::SignIn(format!("no sign-in within {seconds} seconds; run the command again")))
            }
        }
    }
}

/// What the listener's pages share.
struct Visit {
    path: String,
    sender: mpsc::Sender<Answer>,
    /// Notified when the browser asks for the page that tells the outcome.
    shown: Arc<Notify>,
}

/// Takes the token, and sends the browser on to an address without it, which its history may keep.
async fn callback(State(visit): State<Arc<Visit>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    if !is_navigation(&headers) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let answer = read(query.as_deref().unwrap_or_default());
    let outcome = if answer.is_ok() { SIGNED_IN } else { REFUSED };
    // A second visit finds no one waiting.
    let _ = visit.sender.try_send(answer);
    let headers = [
        (header::LOCATION, format!("{}/{outcome}", visit.path)),
        (header::CACHE_CONTROL, "no-store".into()),
        (header::REFERRER_POLICY, "no-referrer".into()),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

async fn outcome(State(visit): State<Arc<Visit>>, Path(outcome): Path<String>, headers: HeaderMap) -> Response {
    let text = match outcome.as_str() {
        SIGNED_IN => "You are signed in. You can close this page and return to the terminal.",
        REFUSED => "The sign-in did not succeed. The terminal says why.",
        _ => return StatusCode::NOT_FOUND.into_response(),
    };
    if !is_navigation(&headers) {
        return StatusCode::NOT_FOUND.into_response();
    }
    visit.shown.notify_one();
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Bowline</title><main style=\"font:1.1rem/1.5 system-ui;margin:20vh auto;max-width:30rem;padding:1rem\">\
         <h1>Bowline</h1><p>{text}</p></main></html>"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'unsafe-inline'"),
    ];
    (headers, page).into_response()
}

/// Whether a person comes here by a page that moves on, not by a script or an image of one.
fn is_navigation(headers: &HeaderMap) -> bool {
    headers.get("sec-fetch-mode").is_none_or(|mode| mode == "navigate")
}

/// The query that the browser comes back with.
fn read(query: &str) -> Answer {
    let value = |wanted: &str| {
        let mut pairs = url::form_urlencoded::parse(query.as_bytes());
        // The listener's own address says `token=true` and `error=true`: what comes after them is meant.
        pairs
            .by_ref()
            .filter(|(name, value)| name == wanted && value != "true")
            .map(|(_, value)| value.into_owned())
            .last()
    };
    if let Some(error) = value("error") {
        let status = value("status_code").map(|status| format!(" ({status})")).unwrap_or_default();
        return Err(ClientError::SignIn(format!("the sign-in was refused{status}: {error}")));
    }
    let token = value("token").ok_or_else(|| ClientError::SignIn("the browser brought no token".into()))?;
    Ok(Tokens { token: Some(token), refresh_token: value("refresh_token") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_browser_brings() {
        let tokens = read("token=true&error=true&token=a.b.c&refresh_token=r%3D").unwrap();
        assert_eq!((tokens.token.as_deref(), tokens.refresh_token.as_deref()), (Some("a.b.c"), Some("r=")));
        assert_eq!(read("token=a.b.c").unwrap().refresh_token, None);
        let refused = read("token=true&error=account+not+found&status_code=404").unwrap_err().to_string();
        assert_eq!(refused, "the sign-in was refused (404): account not found");
        assert!(read("token=true&error=true").is_err());
    }
}
