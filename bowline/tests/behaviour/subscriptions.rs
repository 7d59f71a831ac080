//! Subscriptions: the two versions of one resource, and what a sink may look like.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, each, inventory, number, ok, rejected, uid_of};

async fn subscriptions_are_created_read_listed_and_deleted_in_both_versions(server: &TestServer) {
    let org = server.organization("acme").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    let body = json!({ "sink": "https://localhost/callback" });
    let second = ok(&owner, &format!("POST /events/v2/subscriptions/{team}"), body.clone()).await;
    let uid = uid_of(&second);
    assert!(uid.starts_with(&format!("{team}/")), "{uid}");
    assert_eq!(second, json!({ "uid": uid, "sink": "https://localhost/callback" }));
    assert_eq!(ok(&owner, &format!("GET /events/v2/subscriptions/{uid}"), Value::Null).await, second);
    // The provider of infrastructure speaks v1.
    let first = ok(&owner, &format!("POST /events/v1/subscriptions/{org}"), body).await;
    let id = first["id"].as_str().expect("an id").to_owned();
    let found = ok(&owner, &format!("GET /events/v1/subscriptions?id={id}"), Value::Null).await;
    assert_eq!(found, json!({ "items": [{ "id": id, "sink": "https://localhost/callback" }] }));
    let all = ok(&owner, "GET /events/v2/subscriptions", Value::Null).await;
    let mut uids = [uid.as_str(), id.as_str()];
    uids.sort_unstable();
    assert_eq!((each(&all["subscriptions"], "uid"), &all["totalCount"]), (uids.to_vec(), &json!("2")));
    let below = format!("GET /events/v2/subscriptions?uidp.children_of={team}");
    assert_eq!(each(&ok(&owner, &below, Value::Null).await["subscriptions"], "uid"), [uid.as_str()]);

    let kept = format!("DELETE /iam/v2/groups/{team}");
    let refusal = rejected(&owner, &kept, Value::Null, 400, "FAILED_PRECONDITION").await;
    assert_eq!(refusal.message(), "Precondition failed: cannot delete group with child subscriptions");
    ok(&owner, &format!("DELETE /events/v2/subscriptions/{uid}"), Value::Null).await;
    rejected(&owner, &format!("DELETE /events/v2/subscriptions/{uid}"), Value::Null, 404, "NOT_FOUND").await;
    ok(&owner, &format!("DELETE /events/v1/subscriptions/{id}"), Value::Null).await;
    let gone = call(&owner, &format!("DELETE /events/v1/subscriptions/{id}"), Value::Null).await;
    assert_eq!((gone.status, &gone.json()["details"]), (404, &json!([])));
    assert_eq!(ok(&owner, "GET /events/v1/subscriptions", Value::Null).await, json!({ "items": [] }));
    ok(&owner, &kept, Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM subscription_cursors").await, 0);
}

async fn a_sink_is_an_absolute_url_without_credentials(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let before = inventory(server).await;
    let long = format!("https://a.example/{}", "x".repeat(2048));
    for sink in [
        "",
        "x",
        "/x",
        "//a.example",
        "ftp://a.example",
        "https://",
        "https://u@a.example",
        "https://u:p@a.example",
        "https://a.example#f",
        "https://a.example/\u{0}",
        "https:a.example",
        "https://a .example",
        &long,
    ] {
        for version in ["v1", "v2"] {
            let what = format!("POST /events/{version}/subscriptions/{org}");
            let reply = call(&owner, &what, json!({ "sink": sink })).await;
            assert_eq!((reply.status, reply.code()), (400, 3), "{version} {sink:?}: {}", reply.text());
            assert!(reply.text().contains("sink"), "{version} {sink:?}: {}", reply.text());
        }
    }
    let http = json!({ "sink": "http://a.example" });
    let refusal =
        rejected(&owner, &format!("POST /events/v2/subscriptions/{org}"), http.clone(), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["sink"]);
    assert_eq!(call(&owner, &format!("POST /events/v1/subscriptions/{org}"), Value::Null).await.status, 400);
    assert_eq!(inventory(server).await, before);
    ok(&owner, &format!("POST /events/v1/subscriptions/{org}"), http).await;
}

async fn the_path_and_query_of_a_sink_are_for_its_readers(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let body = json!({ "sink": "https://a.example/hidden?token=hidden" });
    let made = ok(&owner, &format!("POST /events/v2/subscriptions/{org}"), body).await;
    assert_eq!(made["sink"], "https://a.example/hidden?token=hidden", "its own readers have it");
    ok(&owner, &format!("DELETE /events/v2/subscriptions/{}", uid_of(&made)), Value::Null).await;
    let kind = "FROM audit WHERE kind = 'events.chainguard.dev/Subscription'";
    assert_eq!(number(server, &*format!("SELECT count(*) {kind}").leak()).await, 2);
    let db = &server.server().parts().storage.db;
    let images = db.read(|tx| {
        Box::pin(async move {
            let sql = format!("SELECT coalesce(after_image, before_image) {kind}");
            let mut images = tx.query(&sql, &[], |row| row.bytes(0).map_err(bowline_core::Error::from)).await?;
            let sql = "SELECT body FROM outbox WHERE subject <> group_uid";
            images.extend(tx.query(sql, &[], |row| row.bytes(0).map_err(bowline_core::Error::from)).await?);
            Ok::<_, bowline_core::Error>(images)
        })
    });
    let images = images.await.expect("the rows are read");
    assert!(images.len() >= 4);
    let told: Vec<String> = images.iter().map(|image| String::from_utf8_lossy(image).into_owned()).collect();
    assert!(told.iter().any(|image| image.contains("https://a.example/...")), "the audit log tells two sinks apart");
    assert!(told.iter().any(|image| image.contains("https://a.example") && !image.contains("...")), "{told:?}");
    assert!(!told.iter().any(|image| image.contains("hidden")));
}

async fn the_operator_limits_subscriptions(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let limit = json!({ "name": "acme", "resourceLimits": { "subscriptions": 1 } });
    ok(&operator, &format!("PUT /iam/v1/groups/{org}"), limit).await;
    let (create, body) = (format!("POST /events/v2/subscriptions/{org}"), json!({ "sink": "https://a.example" }));
    ok(&owner, &create, body.clone()).await;
    rejected(&owner, &create, body, 429, "QUOTA_EXCEEDED").await;
}

each_engine!(
    subscriptions_are_created_read_listed_and_deleted_in_both_versions,
    a_sink_is_an_absolute_url_without_credentials,
    the_path_and_query_of_a_sink_are_for_its_readers,
    the_operator_limits_subscriptions
);
