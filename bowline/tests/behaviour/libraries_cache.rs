//! The memory of which tier an organization was served a version from.

use bowline_core::Uidp;
use bowline_libraries::{Choice, Language, record_choice};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::libraries::texts;
use crate::support::{call, inventory, number, ok};

/// Records a choice; whether it was recorded.
pub(crate) async fn remember(
    server: &TestServer,
    org: &str,
    language: Language,
    package: &str,
    version: &str,
    built: bool,
) -> bool {
    let now = server.clock().seconds() * 1_000_000;
    let (org, package, version) = (Uidp::parse(org).expect("a UIDP"), package.to_owned(), version.to_owned());
    let db = &server.server().parts().storage.db;
    let written = db.write(move |tx| {
        let (org, package, version) = (org.clone(), package.clone(), version.clone());
        Box::pin(async move {
            let digest = format!("sha256:{version}");
            let choice = Choice {
                organization: &org,
                language,
                registry: "python",
                package: &package,
                version: &version,
                is_built: built,
                digest: &digest,
            };
            record_choice(tx, &choice, now).await
        })
    });
    written.await.expect("a row")
}

async fn a_resolution_is_cached_until_it_is_purged(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let path = format!("/libraries/v1/resolutioncache/{org}");
    for (package, version) in [("requests", "1"), ("requests", "2"), ("req_other", "1"), ("torch", "1")] {
        assert!(remember(server, &org, Language::Python, package, version, false).await);
    }
    remember(server, &org, Language::Java, "g:a", "1", true).await;
    // The first choice stays, whatever would be chosen now.
    remember(server, &org, Language::Python, "requests", "1", true).await;
    let upstream = ok(&owner, &format!("GET {path}/entries?tier=TIER_UPSTREAM"), Value::Null).await;
    assert_eq!(upstream["totalCount"], "4");

    let all = ok(&owner, &format!("GET {path}/entries?pageSize=2"), Value::Null).await;
    assert_eq!(
        (texts(&all["items"], "packageName"), &all["totalCount"]),
        (vec!["g:a".into(), "req_other".into()], &json!("5"))
    );
    let cursor = all["nextCursor"].as_str().expect("a cursor");
    let rest = ok(&owner, &format!("GET {path}/entries?pageSize=3&cursor={cursor}"), Value::Null).await;
    assert_eq!(
        (texts(&rest["items"], "packageName"), &rest["nextCursor"]),
        (vec!["requests".into(), "requests".into(), "torch".into()], &json!(""))
    );

    let before = inventory(server).await;
    let dry = json!({ "ecosystem": "PYTHON", "packagePrefix": "req_", "dryRun": true, "idempotencyKey": "dry" });
    let dry = ok(&owner, &format!("POST {path}:zap"), dry).await;
    assert_eq!((&dry["dryRun"], &dry["results"][0]["retiredCount"]), (&json!(true), &json!("1")));
    assert_eq!(inventory(server).await, before);

    let part = json!({ "ecosystem": "PYTHON", "packageName": "requests", "version": "1" });
    let part = ok(&owner, &format!("POST {path}:zap"), part).await;
    assert_eq!((&part["results"][0]["retiredCount"], &part["results"][0]["generation"]), (&json!("1"), &json!("1")));
    let live =
        async || ok(&owner, &format!("GET {path}/entries?liveOnly=true"), Value::Null).await["totalCount"].clone();
    assert_eq!(live().await, "4");
    remember(server, &org, Language::Python, "requests", "1", true).await;
    assert_eq!(live().await, "5", "forgotten, so chosen anew");
    let built = ok(&owner, &format!("GET {path}/entries?tier=TIER_CHAINGUARD&ecosystem=PYTHON"), Value::Null).await;
    assert_eq!((texts(&built["items"], "version"), &built["items"][0]["live"]), (vec!["1".into()], &json!(true)));

    let whole = ok(&owner, &format!("POST {path}:zap"), json!({ "ecosystem": "PYTHON" })).await;
    assert_eq!((&whole["results"][0]["retiredCount"], &whole["results"][0]["generation"]), (&json!("4"), &json!("2")));
    assert_eq!(live().await, "1");
    let status = ok(&owner, &format!("GET {path}/status"), Value::Null).await;
    assert_eq!(texts(&status["watermarks"], "ecosystem"), ["JAVA", "PYTHON", "JAVASCRIPT", "GO"]);
    assert_eq!(texts(&status["watermarks"], "generation"), ["1", "2", "1", "1"]);
    assert_eq!(texts(&status["watermarks"], "zapCount"), ["0", "2", "0", "0"]);
}

async fn a_purge_with_the_same_key_gets_the_same_response_and_runs_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let zap = format!("POST /libraries/v1/resolutioncache/{org}:zap");
    let body = json!({ "idempotencyKey": "key-1" });
    let first = ok(&owner, &zap, body.clone()).await;
    assert_eq!((&first["replayed"], first["results"].as_array().map(Vec::len)), (&json!(false), Some(4)));
    let before = inventory(server).await;
    let again = ok(&owner, &zap, body.clone()).await;
    assert_eq!((&again["replayed"], &again["results"]), (&json!(true), &first["results"]));
    assert_eq!(inventory(server).await, before);
    let told = "SELECT count(*) FROM outbox WHERE event_type LIKE '%resolutioncache.zapped%'";
    assert_eq!(number(server, told).await, 1);
    // The next zap ends what was guaranteed.
    ok(&owner, &zap, json!({ "ecosystem": "JAVA" })).await;
    assert_eq!(ok(&owner, &zap, body).await["replayed"], false);
}

async fn opted_out_organizations_have_no_cached_resolutions(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let path = format!("POST /libraries/v1/resolutioncache/{org}:optout");
    let state = ok(&owner, &path, json!({ "ecosystem": "PYTHON", "optedOut": true })).await;
    assert_eq!(state["watermarks"][1]["optedOut"], true);
    let before = inventory(server).await;
    ok(&owner, &path, json!({ "ecosystem": "PYTHON", "optedOut": true })).await;
    assert_eq!(inventory(server).await, before, "twice is once");
    assert!(!remember(server, &org, Language::Python, "requests", "1", true).await);
    assert!(remember(server, &org, Language::Java, "g:a", "1", true).await);
    ok(&owner, &path, json!({ "optedOut": false })).await;
    assert!(remember(server, &org, Language::Python, "requests", "1", true).await);
}

async fn zaps_that_leave_open_what_they_mean_are_refused(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    for wrong in [
        json!({ "ecosystem": "PYTHON", "version": "1" }),
        json!({ "ecosystem": "PYTHON", "packageName": "a", "packagePrefix": "a" }),
        json!({ "packageName": "a" }),
        json!({ "ecosystem": "DOTNET" }),
        json!({ "ecosystem": "PYTHON", "packageName": "x".repeat(256) }),
    ] {
        let reply = call(&owner, &format!("POST /libraries/v1/resolutioncache/{org}:zap"), wrong.clone()).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
    let nested = call(&owner, &format!("POST /libraries/v1/resolutioncache/{group}:zap"), json!({})).await;
    assert_eq!(nested.status, 400);
    assert_eq!(number(server, "SELECT count(*) FROM library_watermarks").await, 0);
    let viewer = server.actor("viewer", &org).await;
    let denied = call(&viewer, &format!("POST /libraries/v1/resolutioncache/{org}:zap"), json!({})).await;
    assert_eq!(denied.status, 403);
}

each_engine!(
    a_resolution_is_cached_until_it_is_purged,
    a_purge_with_the_same_key_gets_the_same_response_and_runs_once,
    opted_out_organizations_have_no_cached_resolutions,
    zaps_that_leave_open_what_they_mean_are_refused
);
