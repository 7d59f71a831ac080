//! What a new protocol front takes: a front of twenty lines, made of what `bowline_fronts` gives.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::http::{HeaderMap, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bowline_core::{Code, Error, Reason};
use bowline_fronts::request::bearer;
use bowline_fronts::{Count, Front, LogFields, error_response};
use bowline_pipeline::{RateLimits, RequestOrigin, Surface};
use http_body_util::BodyExt as _;
use tower_service::Service as _;

/// The front: anyone who sends a token is greeted by it.
fn router(limits: RateLimits, count: Count) -> Router {
    let admit = move |_: &str, origin: &RequestOrigin| limits.count_address(Surface::Osv, Some(origin.address));
    let render_rejection = |_: &str, error: Error| rejected(&error);
    let front = Front { transport: "greeter", name: |_, _| "greet", admit: Arc::new(admit), render_rejection, count };
    front.wrap(Router::new().route("/greet", get(greet)))
}

async fn greet(headers: HeaderMap) -> Response {
    match bearer(&headers) {
        Some("broken") => rejected(&Error::internal("the disk is gone")),
        Some(name) => {
            (Extension(LogFields { principal: name.into(), ..LogFields::default() }), format!("hello {name}"))
                .into_response()
        }
        None => rejected(&Error::new(Reason::Unauthenticated, "who are you? send a token")),
    }
}

fn rejected(error: &Error) -> Response {
    error_response(error, |status, error| (status, error.message().to_owned()).into_response())
}

/// What was counted: a name and a code.
type Counted = Arc<Mutex<Vec<(&'static str, Option<Code>)>>>;

async fn ask(router: &mut Router, token: Option<&str>) -> (StatusCode, String, bool) {
    let mut request = Request::builder().uri("/greet");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let mut request = request.body(Body::empty()).expect("a request");
    request.extensions_mut().insert(RequestOrigin { address: [127, 0, 0, 1].into(), request_id: "r".into() });
    let response = router.call(request).await.expect("never an error");
    let (status, has_delay) = (response.status(), response.headers().contains_key("retry-after"));
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (status, String::from_utf8_lossy(&body).into_owned(), has_delay)
}

#[tokio::test]
async fn a_front_of_twenty_lines_is_limited_counted_and_answers_in_its_own_form() {
    let counted = Counted::default();
    let told = counted.clone();
    let count: Count = Arc::new(move |name, code, _| told.lock().expect("no thread panicked").push((name, code)));
    // An address has a burst of ten times its rate.
    let mut router = router(RateLimits::new(0, 1), count);
    assert_eq!(ask(&mut router, Some("ann")).await, (StatusCode::OK, "hello ann".into(), false));
    let anonymous = ask(&mut router, None).await;
    assert_eq!(anonymous, (StatusCode::UNAUTHORIZED, "who are you? send a token".into(), false));
    let (status, text, _) = ask(&mut router, Some("broken")).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR);
    assert!(!text.contains("disk"), "{text}");
    let mut last = ask(&mut router, Some("ann")).await;
    for _ in 0..20 {
        last = ask(&mut router, Some("ann")).await;
    }
    assert_eq!((last.0, last.2), (StatusCode::TOO_MANY_REQUESTS, true));
    let counted = counted.lock().expect("no thread panicked").clone();
    let first = [("greet", None), ("greet", Some(Code::Unauthenticated)), ("greet", Some(Code::Internal))];
    assert_eq!(counted[..3], first);
    assert_eq!((counted.len(), counted.last()), (24, Some(&("greet", Some(Code::ResourceExhausted)))));
}
