//! Sessions as their people see and end them, and preferences.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_identity::people::Provider;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{
    Own, actor, context, offered, own, people, plain, sign_in, status, uid_of_provider, vouched,
};
use crate::support::{call, each, holder, machine, number, ok, rejected};

/// Someone signed in: the session's id, and a token of it.
async fn signed_in(server: &TestServer, provider: &Provider, subject: &str) -> (String, Actor) {
    let upstream = vouched(server, provider, subject, Value::Null).await;
    let login = sign_in(server, provider, &upstream).await;
    let issued = people(server).issue(&login.session, &upstream, &plain(server), &context(server)).await;
    (login.session, actor(server, &issued.expect("a token").token))
}

async fn people_see_and_end_their_own_sessions(server: &TestServer) {
    let operators = offered(server).await;
    let (first, ada) = signed_in(server, &operators, "ada").await;
    server.clock().advance(Duration::from_secs(1));
    let (second, again) = signed_in(server, &operators, "ada").await;
    let (other, bea) = signed_in(server, &operators, "bea").await;
    let listed = ok(&ada, "GET /people/v1/sessions", Value::Null).await;
    assert_eq!(each(&listed["sessions"], "id"), [&second, &first], "the newest first");
    assert_eq!(listed["sessions"][1]["current"], json!(true));
    let page = ok(&ada, "GET /people/v1/sessions?pageSize=1", Value::Null).await;
    let token = page["nextPageToken"].as_str().expect("a token");
    let page = ok(&ada, &format!("GET /people/v1/sessions?pageSize=1&pageToken={token}"), Value::Null).await;
    assert_eq!((each(&page["sessions"], "id"), &page["nextPageToken"]), (vec![first.as_str()], &json!("")));
    // Another's session is like none.
    let ask = async |id: &str| {
        let what = format!("DELETE /people/v1/sessions/{id}");
        rejected(&ada, &what, Value::Null, 404, "NOT_FOUND").await.0.to_string().replace(id, "ID")
    };
    assert_eq!(ask(&other).await, ask("absent").await);
    let audit = number(server, "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/Session'").await;
    ok(&ada, &format!("DELETE /people/v1/sessions/{second}"), Value::Null).await;
    assert_eq!(call(&again, "GET /people/v1/sessions", Value::Null).await.status, 401, "it ends at once");
    assert_eq!(number(server, "SELECT count(*) FROM audit WHERE kind = 'bowline.dev/Session'").await, audit + 1);
    signed_in(server, &operators, "ada").await;
    let ended = ok(&ada, "POST /people/v1/sessions:endAll", json!({ "keepCurrent": true })).await;
    assert_eq!(ended["ended"], json!(1));
    let ended = ok(&ada, "POST /people/v1/sessions:endAll", json!({})).await;
    assert_eq!(ended["ended"], json!(1));
    assert_eq!(call(&ada, "GET /people/v1/sessions", Value::Null).await.status, 401);
    assert_eq!(each(&ok(&bea, "GET /people/v1/sessions", Value::Null).await["sessions"], "id"), [&other]);
    for id in ["%00", "a%2Fb", "%20"] {
        let reply = call(&bea, &format!("DELETE /people/v1/sessions/{id}"), Value::Null).await;
        assert!([400, 404].contains(&reply.status), "{id}: {}", reply.text());
    }
}

async fn a_provider_reaches_the_sessions_that_began_with_it_alone(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let uid = uid_of_provider(&provider);
    let (of_provider, limited) = signed_in(server, &provider, "ada").await;
    let operators = offered(server).await;
    let (of_operator, ada) = signed_in(server, &operators, "ada").await;
    // The organization's administrator can sign in as anyone of its issuer, and must not end what is not its own.
    let listed = ok(&limited, "GET /people/v1/sessions", Value::Null).await;
    assert_eq!(each(&listed["sessions"], "id"), [&of_provider], "{listed}");
    let what = format!("DELETE /people/v1/sessions/{of_operator}");
    rejected(&limited, &what, Value::Null, 404, "NOT_FOUND").await;
    let listed = ok(&ada, "GET /people/v1/sessions", Value::Null).await;
    assert_eq!(listed["sessions"].as_array().map(Vec::len), Some(2));
    // A token that was made for less reaches its own session.
    let reply =
        server.exchange(ada.token.as_deref().expect("a token"), &[("aud", server.base()), ("cap", "repo.list")]).await;
    let narrowed = actor(server, reply.json()["token"].as_str().expect("a token"));
    let listed = ok(&narrowed, "GET /people/v1/sessions", Value::Null).await;
    assert_eq!(each(&listed["sessions"], "id"), [&of_operator]);
    rejected(&narrowed, &format!("DELETE /people/v1/sessions/{of_provider}"), Value::Null, 404, "NOT_FOUND").await;
    // The organization sees those of its provider.
    let admin = machine(server, &org, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &org).await;
    let list = format!("GET /people/v1/providerSessions/{uid}");
    let listed = ok(&admin.actor, &list, Value::Null).await;
    let person = bowline_identity::human_uid(server.idp().issuer(), "ada");
    assert_eq!(each(&listed["sessions"], "identity"), [person.as_str()]);
    assert_eq!(listed["sessions"][0]["current"], json!(false));
    let lister = holder(server, &org, "lister", &org, &["CAP_IAM_IDENTITY_PROVIDERS_LIST"]).await.actor;
    rejected(&lister, &list, Value::Null, 403, "PERMISSION_DENIED").await;
    assert_eq!(status(&limited, &org).await, 200);
    let ended = ok(&limited, "POST /people/v1/sessions:endAll", json!({})).await;
    assert_eq!((&ended["ended"], status(&limited, &org).await), (&json!(1), 401));
    assert_eq!(status(&ada, &org).await, 200, "what began elsewhere goes on");
    assert_eq!(ok(&admin.actor, &list, Value::Null).await["sessions"], json!([]));
}

async fn a_providers_list_names_sessions_and_gives_no_id_away(server: &TestServer) {
    let org = server.organization("acme").await;
    let provider = own(server, &org, Own { default_role: &server.role("viewer"), ..Own::default() }).await;
    let list = format!("GET /people/v1/providerSessions/{}", uid_of_provider(&provider));
    let mut ids = Vec::new();
    for person in ["ada", "bea", "cyd"] {
        ids.push(signed_in(server, &provider, person).await);
    }
    let admin = machine(server, &org, "admin").await;
    server.bind(&admin.uid, &server.role("owner"), &org).await;
    let (mut shown, mut token, mut bytes) = (Vec::new(), String::new(), Vec::new());
    for _ in 0..3 {
        let page = ok(&admin.actor, &format!("{list}?pageSize=1&pageToken={token}"), Value::Null).await;
        shown.extend(each(&page["sessions"], "id").into_iter().map(String::from));
        token = page["nextPageToken"].as_str().unwrap_or_default().into();
        bytes.extend(page.to_string().into_bytes());
        bytes.extend(URL_SAFE_NO_PAD.decode(&token).expect("base64"));
    }
    assert_eq!((shown.len(), token.as_str()), (3, ""));
    let whole = ok(&admin.actor, &list, Value::Null).await;
    assert_eq!(each(&whole["sessions"], "id"), shown, "a hash stays the same");
    for (id, actor) in &ids {
        assert!(!bytes.windows(id.len()).any(|window| window == id.as_bytes()), "{id} is in a page or its token");
        for hash in &shown {
            rejected(actor, &format!("DELETE /people/v1/sessions/{hash}"), Value::Null, 404, "NOT_FOUND").await;
        }
    }
}

async fn preferences_are_each_persons_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let (ada, bea) = (machine(server, &org, "ada").await, machine(server, &org, "bea").await);
    let get = "GET /people/v1/preferences";
    let unset = json!({ "theme": "THEME_UNSPECIFIED", "timeZone": "", "pageSize": 0, "singleKeyShortcuts": false });
    assert_eq!(ok(&ada.actor, get, Value::Null).await, unset);
    let patch = "PATCH /people/v1/preferences";
    ok(&ada.actor, patch, json!({ "theme": "THEME_DARK", "timeZone": "Europe/Berlin", "pageSize": 100 })).await;
    let audit = number(server, "SELECT count(*) FROM audit").await;
    // What the request does not name stays.
    let changed = ok(&ada.actor, patch, json!({ "singleKeyShortcuts": true })).await;
    let expected =
        json!({ "theme": "THEME_DARK", "timeZone": "Europe/Berlin", "pageSize": 100, "singleKeyShortcuts": true });
    assert_eq!((&changed, &ok(&ada.actor, get, Value::Null).await), (&expected, &expected));
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audit + 1);
    ok(&ada.actor, patch, json!({ "singleKeyShortcuts": true })).await;
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, audit + 1, "nothing changed");
    assert_eq!(ok(&bea.actor, get, Value::Null).await, unset);
    let far = "x/".repeat(40);
    for body in [
        json!({ "pageSize": 5 }),
        json!({ "pageSize": -1 }),
        json!({ "pageSize": 201 }),
        json!({ "timeZone": "Berlin; DROP" }),
        json!({ "timeZone": far }),
        json!({ "theme": 9 }),
    ] {
        let reply = call(&ada.actor, patch, body.clone()).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text());
    }
    assert_eq!(ok(&ada.actor, get, Value::Null).await, expected);
    ok(&server.operator().await, &format!("DELETE /iam/v2/identities/{}", ada.uid), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM preferences").await, 0, "they go with the identity");
}

each_engine!(
    a_providers_list_names_sessions_and_gives_no_id_away,
    a_provider_reaches_the_sessions_that_began_with_it_alone,
    people_see_and_end_their_own_sessions,
    preferences_are_each_persons_own
);
