use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::sync::mpsc;

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
        let router = Router::new()
            .route(&self.path, get(callback))
            .fallback(|| async { StatusCode::NOT_FOUND })
            .with_state(Arc::new(sender));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let until = async move {
                let _ = stopped.await;
            };
            axum::serve(self.listener, router).with_graceful_shutdown(until).await
        });
        let answer = tokio::time::timeout(patience, answers.recv()).await;
        // The page that says so has to reach the browser first.
        let _ = stop.send(());
        let _ = tokio::time::timeout(Duration::from_secs(2), serving).await;
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

async fn callback(
    State(sender): State<Arc<mpsc::Sender<Answer>>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Response {
    // A person comes here by a page that moves on, never by a script or an image of one.
    if headers.get("sec-fetch-mode").is_some_and(|mode| mode != "navigate") {
        return StatusCode::NOT_FOUND.into_response();
    }
    let answer = read(query.as_deref().unwrap_or_default());
    let text = match &answer {
        Ok(_) => "You are signed in. You can close this page and return to the terminal.",
        Err(_) => "The sign-in did not succeed. The terminal says why.",
    };
    // A second visit finds no one waiting.
    let _ = sender.try_send(answer);
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
