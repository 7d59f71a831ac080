//! Signing in where there is no browser: the headless flow, and device authorization (RFC 8628).

use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::agreement::{PrivateKey, UnparsedPublicKey, X25519, agree};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bowline_testkit::{Browser, RestReply, TestServer, each_engine};
use http::HeaderMap;
use serde_json::{Value, json};

use super::signin::{field, location, offer_provider, press, to_confirmation};
use super::support::{claims_of, number, ok};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:device_code";

async fn a_headless_result_is_for_the_holder_of_the_key(server: &TestServer) {
    offer_provider(server, "main").await;
    let key = PrivateKey::from_private_key(&X25519, &[7; 32]).expect("a key");
    let public: [u8; 32] = key.compute_public_key().expect("a public key").as_ref().try_into().expect("32 bytes");
    let code = URL_SAFE_NO_PAD.encode(public);
    let browser = server.browser();
    let poll = format!("/sts/headless_sessions?code={code}");
    assert_eq!(browser.get(&poll).await.status, 404, "nobody has signed in yet");
    let page = to_confirmation(server, &browser, &format!("/oauth?headless_code={code}&connection=main"), "ada").await;
    assert!(page.text().contains(&bowline_signin::check_code(&public)), "{}", page.text());
    let end = press(&browser, &page, "continue").await;
    assert!(end.text().contains("Return to your terminal"), "{}", end.text());
    assert!(browser.cookies().is_empty(), "the browser itself is not signed in");
    let result = browser.get(&poll).await.json();
    let bytes = |name: &str| STANDARD.decode(result[name].as_str().expect(name)).expect("base64");
    let theirs = URL_SAFE_NO_PAD.decode(bytes("ecdhPublicKey")).expect("text of a key");
    let sealed = bytes("encryptedIdtoken");
    let secret = agree(&key, UnparsedPublicKey::new(&X25519, theirs), (), |secret| Ok(secret.to_vec()))
        .expect("a shared secret");
    let opener = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &secret).expect("32 bytes"));
    let mut text = sealed[12..].to_vec();
    let nonce = Nonce::try_assume_unique_for_key(&sealed[..12]).expect("twelve bytes");
    let token = opener.open_in_place(nonce, Aad::empty(), &mut text).expect("it opens").to_vec();
    let token = String::from_utf8(token).expect("a text");
    assert_eq!(browser.get(&poll).await.status, 404, "read once");
    let exchanged = server.exchange(&token, &[("aud", server.base())]).await;
    assert_eq!(exchanged.status, 200, "{}", exchanged.text());
    assert!(claims_of(exchanged.json()["token"].as_str().expect("a text"))["sid"].is_string());
}

async fn begin(browser: &Browser, scope: &str) -> Value {
    begin_with(browser, &[("client_id", "cli"), ("scope", scope)]).await
}

async fn begin_with(browser: &Browser, form: &[(&str, &str)]) -> Value {
    let reply = browser.post_with("/oauth/device_authorization", HeaderMap::new(), form).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

async fn poll(browser: &Browser, begun: &Value, client: &str) -> RestReply {
    let code = begun["device_code"].as_str().expect("a text");
    let form = [("client_id", client), ("grant_type", GRANT), ("device_code", code)];
    browser.post_with("/oauth/token", HeaderMap::new(), &form).await
}

async fn error_of_poll(browser: &Browser, begun: &Value) -> String {
    let reply = poll(browser, begun, "cli").await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    reply.json()["error"].as_str().expect("a text").to_owned()
}

/// Types the code and signs in; the page that asks for confirmation.
async fn activate(server: &TestServer, browser: &Browser, begun: &Value, sub: &str) -> RestReply {
    let typed = begun["user_code"].as_str().expect("a text").to_lowercase().replace('-', " ");
    let choose = location(&browser.post("/activate", &[("user_code", &typed)]).await);
    let page = browser.get(&choose).await;
    assert!(page.text().contains("A device asks you to sign in"), "{}", page.text());
    to_confirmation(server, browser, &format!("{choose}&connection=main"), sub).await
}

async fn a_device_gets_its_tokens_once_its_person_confirmed(server: &TestServer) {
    offer_provider(server, "main").await;
    let (device, browser) = (server.browser(), server.browser());
    let begun = begin(&device, "openid offline_access").await;
    assert_eq!((&begun["expires_in"], &begun["interval"]), (&json!(900), &json!(5)));
    let complete = begun["verification_uri_complete"].as_str().expect("a text");
    assert!(browser.get(complete).await.text().contains(begun["user_code"].as_str().expect("a text")));
    assert_eq!(error_of_poll(&device, &begun).await, "authorization_pending");
    assert_eq!(error_of_poll(&device, &begun).await, "slow_down");
    server.clock().advance(Duration::from_secs(5));
    assert_eq!(poll(&device, &begun, "other").await.json()["error"], "invalid_grant", "another client");
    let page = activate(server, &browser, &begun, "ada").await;
    for shown in [begun["user_code"].as_str().expect("a text"), "127.0.0.1", "cli", server.base()] {
        assert!(page.text().contains(shown), "{shown}: {}", page.text());
    }
    assert_eq!(error_of_poll(&device, &begun).await, "authorization_pending", "before the click");
    assert!(press(&browser, &page, "continue").await.text().contains("Return to your device"));
    server.clock().advance(Duration::from_secs(5));
    let granted = poll(&device, &begun, "cli").await.json();
    assert_eq!(
        (&granted["token_type"], granted["expires_in"].as_i64().expect("a number") > 3000),
        (&json!("Bearer"), true)
    );
    assert!(granted["id_token"].is_string() && granted["refresh_token"].is_string(), "{granted}");
    let ada = server.anonymous().with_token(granted["access_token"].as_str().expect("a text"));
    ok(&ada, "GET /iam/v2/groups", Value::Null).await;
    server.clock().advance(Duration::from_secs(5));
    assert_eq!(error_of_poll(&device, &begun).await, "invalid_grant", "tokens are handed out once");
    let revoke = [("token", granted["refresh_token"].as_str().expect("a text"))];
    for _ in 0..2 {
        assert_eq!(device.post_with("/oauth/revoke", HeaderMap::new(), &revoke).await.status, 200);
    }
    assert_eq!(ada.rest("GET", "/iam/v2/groups", None).await.status, 401, "the session ended with it");
}

async fn a_device_is_refused_and_its_code_ends(server: &TestServer) {
    offer_provider(server, "main").await;
    let (device, browser, other) = (server.browser(), server.browser(), server.browser());
    let begun = begin(&device, "").await;
    let first = activate(server, &browser, &begun, "ada").await;
    let second = activate(server, &other, &begun, "bob").await;
    assert!(press(&browser, &first, "cancel").await.text().contains("The sign-in did not take place"));
    assert_eq!(press(&other, &second, "continue").await.status, 400, "answered already");
    assert_eq!(error_of_poll(&device, &begun).await, "access_denied");
    assert_eq!(number(server, "SELECT count(*) FROM sessions").await, 0);
    let late = begin(&device, "").await;
    let page = activate(server, &browser, &late, "ada").await;
    server.clock().advance(Duration::from_secs(590));
    let reply = browser.post("/activate", &[("user_code", late["user_code"].as_str().expect("a text"))]).await;
    let choose = location(&reply);
    server.clock().advance(Duration::from_secs(311));
    assert_eq!(error_of_poll(&device, &late).await, "expired_token");
    assert_eq!(browser.get(&choose).await.status, 400, "the ticket ends with the code");
    assert_eq!(press(&browser, &page, "continue").await.status, 400);
}

async fn user_codes_cannot_be_guessed(server: &TestServer) {
    let (device, browser) = (server.browser(), server.browser());
    let begun = begin(&device, "").await;
    let right = begun["user_code"].as_str().expect("a text");
    location(&browser.post("/activate", &[("user_code", right)]).await);
    for wrong in ["0000-0000", "1111-1111", "nonsense", "", "2222-2222"] {
        assert_eq!(browser.post("/activate", &[("user_code", wrong)]).await.status, 404, "{wrong}");
    }
    let waits = browser.post("/activate", &[("user_code", right)]).await;
    assert_eq!(waits.status, 429, "even the right one has to wait");
    assert!(waits.header("retry-after").is_some());
    server.clock().advance(Duration::from_secs(900));
    assert_eq!(browser.get("/oauth?device=AAAA").await.status, 400, "nor can a ticket be made");
}

async fn programs_hear_what_is_wrong(server: &TestServer) {
    let browser = server.browser();
    let error = async |path: &str, form: &[(&str, &str)]| {
        let reply = browser.post_with(path, HeaderMap::new(), form).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
        reply.json()["error"].as_str().expect("a text").to_owned()
    };
    assert_eq!(error("/oauth/device_authorization", &[]).await, "invalid_request");
    assert_eq!(error("/oauth/token", &[("client_id", "c")]).await, "invalid_request");
    assert_eq!(error("/oauth/token", &[("grant_type", "password")]).await, "unsupported_grant_type");
    let unknown = [("grant_type", GRANT), ("client_id", "c"), ("device_code", "x")];
    assert_eq!(error("/oauth/token", &unknown).await, "invalid_grant");
    assert_eq!(error("/oauth/revoke", &[]).await, "invalid_request");
    let discovery = browser.get("/.well-known/openid-configuration").await.json();
    let metadata = browser.get("/.well-known/oauth-authorization-server").await.json();
    for document in [&discovery, &metadata] {
        assert_eq!(document["issuer"], server.base());
        assert_eq!(document["device_authorization_endpoint"], format!("{}/oauth/device_authorization", server.base()));
        assert_eq!(document["grant_types_supported"], json!([GRANT]));
    }
    assert!(field(&browser.get("/activate").await, "user_code").is_empty());
}

async fn a_device_opens_what_its_person_confirmed(server: &TestServer) {
    offer_provider(server, "main").await;
    let registry = server.server().parts().settings.audiences()[1].to_owned();
    let (device, browser) = (server.browser(), server.browser());
    let begun = begin_with(&device, &[("client_id", "cli"), ("audience", &registry)]).await;
    let page = activate(server, &browser, &begun, "ada").await;
    assert!(page.text().contains(&registry), "{}", page.text());
    press(&browser, &page, "continue").await;
    let granted = poll(&device, &begun, "cli").await.json();
    let exchange = async |token: &str, audience: &str| {
        server.exchange(granted[token].as_str().expect(token), &[("aud", audience)]).await.status
    };
    for token in ["id_token", "access_token"] {
        assert_eq!(exchange(token, server.base()).await, 403, "{token}: nobody confirmed the API");
        assert_eq!(exchange(token, &registry).await, 200, "{token}");
    }
}

each_engine!(
    multi_thread:
    a_headless_result_is_for_the_holder_of_the_key,
    a_device_gets_its_tokens_once_its_person_confirmed,
    a_device_is_refused_and_its_code_ends,
    user_codes_cannot_be_guessed,
    programs_hear_what_is_wrong,
    a_device_opens_what_its_person_confirmed
);
