use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use http::header::{CONTENT_TYPE, COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use serde_json::{Value, json};

use crate::actor::RestReply;
use crate::idp::{IdentityProvider, SignIn};
use crate::wire::Wire;

/// A client that keeps cookies and follows nothing by itself.
pub struct Browser {
    wire: Arc<Wire>,
    cookies: Mutex<BTreeMap<String, String>>,
}

impl Browser {
    pub(crate) fn new(wire: Arc<Wire>) -> Browser {
        Browser { wire, cookies: Mutex::default() }
    }

    /// Opens a page of the server: a path, or an address of it.
    pub async fn get(&self, address: &str) -> RestReply {
        self.send("GET", address, HeaderMap::new(), String::new()).await
    }

    /// Sends a form from a page of the server.
    pub async fn post(&self, path: &str, form: &[(&str, &str)]) -> RestReply {
        let mut headers = HeaderMap::new();
        headers.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
        self.post_with(path, headers, form).await
    }

    /// Sends a form with these headers.
    pub async fn post_with(&self, path: &str, mut headers: HeaderMap, form: &[(&str, &str)]) -> RestReply {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.send("POST", path, headers, body).await
    }

    /// The cookies, by name.
    pub fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.lock().expect("no test panicked here").clone()
    }

    /// Sets a cookie, or replaces it.
    pub fn set_cookie(&self, name: &str, value: &str) {
        self.cookies.lock().expect("no test panicked here").insert(name.into(), value.into());
    }

    async fn send(&self, verb: &str, address: &str, mut headers: HeaderMap, body: String) -> RestReply {
        let path = match address.split_once("://") {
            Some((_, rest)) => rest.find('/').map_or("/", |at| &rest[at..]),
            None => address,
        };
        let line: Vec<String> = self.cookies().iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !line.is_empty() {
            headers.insert(COOKIE, HeaderValue::from_str(&line.join("; ")).expect("cookies fit into a header"));
        }
        let answer = self.wire.rest(verb, path, headers, body.into_bytes()).await;
        for line in answer.headers.get_all(SET_COOKIE) {
            self.keep(line.to_str().expect("a cookie is text"));
        }
        RestReply { status: answer.status, headers: answer.headers, body: answer.body.into() }
    }

    fn keep(&self, line: &str) {
        let (name, value) = line.split(';').next().and_then(|pair| pair.split_once('=')).expect("a cookie has a name");
        let mut cookies = self.cookies.lock().expect("no test panicked here");
        if line.contains("Max-Age=0") {
            cookies.remove(name);
        } else {
            cookies.insert(name.into(), value.into());
        }
    }
}

impl IdentityProvider {
    /// What the person `sub` does with an authorization request: signs in, and is sent back to this address.
    ///
    /// Members of `extra` come on top of the id token's claims and replace.
    pub fn approve(&self, authorization_url: &str, sub: &str, extra: Value) -> String {
        assert!(authorization_url.starts_with(&format!("{}/authorize?", self.issuer())), "{authorization_url}");
        let url = url::Url::parse(authorization_url).unwrap_or_else(|error| panic!("{authorization_url}: {error}"));
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let given = |name: &str| query.get(name).unwrap_or_else(|| panic!("no {name} in {authorization_url}")).clone();
        assert_eq!((given("response_type"), given("code_challenge_method")), ("code".into(), "S256".into()));
        let mut claims = json!({ "email": format!("{sub}@example.com"), "name": sub });
        for (name, value) in extra.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        let code = self.sign_in(SignIn {
            subject: sub.into(),
            client_id: given("client_id"),
            redirect_uri: given("redirect_uri"),
            nonce: given("nonce"),
            code_challenge: given("code_challenge"),
            claims,
            userinfo: Value::Null,
        });
        let mut back = url::Url::parse(&given("redirect_uri")).expect("an address");
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &given("state"));
        back.into()
    }
}
