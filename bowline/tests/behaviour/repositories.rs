//! Repositories: masks in every form, synchronization, read-mes, and names.

use bowline_contract::v2::registry::rpc::repos_service::UpdateRepo;
use bowline_contract::v2::registry::{Repo, UpdateRepoRequest};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, inventory, ok, rejected, uid_of};

async fn masks_change_what_they_name_and_nothing_else(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let body = json!({ "name": "web", "description": "first", "bundles": ["ai"], "aliases": ["nginx:1"] });
    let uid = uid_of(&ok(&operator, &format!("POST /registry/v2/repos/{org}"), body).await);
    let path = format!("PATCH /registry/v2/repos/{uid}");
    let shown = |repo: &Value| json!([repo["name"], repo["description"], repo["bundles"], repo["aliases"]]);
    for (mask, body, expected) in [
        // Other members of the body are ignored, also wrong ones.
        (
            "?updateMask=description",
            json!({ "description": "b", "name": "IGNORED" }),
            json!(["web", "b", ["ai"], ["nginx:1"]]),
        ),
        ("?update_mask=description", json!({ "description": "c" }), json!(["web", "c", ["ai"], ["nginx:1"]])),
        ("?updateMask=bundles,aliases", json!({ "aliases": ["x:2"] }), json!(["web", "c", [], ["x:2"]])),
        ("?updateMask=description", json!({}), json!(["web", "", [], ["x:2"]])),
        // Without a mask: the members that are there, also empty ones.
        (
            "",
            json!({ "description": "d", "uid": "ignored", "createTime": "1970-01-01T00:00:00Z" }),
            json!(["web", "d", [], ["x:2"]]),
        ),
        ("", json!({ "aliases": [], "nonsense": 1 }), json!(["web", "d", [], []])),
        ("", json!({}), json!(["web", "d", [], []])),
        ("", json!({ "bundles": ["base"] }), json!(["web", "d", ["base"], []])),
        // Everything: what is left out is cleared.
        ("?updateMask=*", json!({ "name": "web2" }), json!(["web2", "", [], []])),
    ] {
        let changed = ok(&operator, &format!("{path}{mask}"), body.clone()).await;
        assert_eq!(shown(&changed), expected, "{mask} {body}");
        let read = ok(&operator, &format!("GET /registry/v2/repos/{uid}"), Value::Null).await;
        assert_eq!(read, changed, "{mask} {body}");
    }
    let refusal = rejected(&operator, &format!("{path}?updateMask=*"), json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["name"]);

    // Over gRPC an absent mask means the fields that are not at their default.
    let repo = |name: &str, description: &str| Repo {
        uid: uid.clone(),
        name: name.into(),
        description: description.into(),
        ..Repo::default()
    };
    let update = async |repo: Repo, paths: &[&str]| {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let update_mask = (!paths.is_empty()).then_some(prost_types::FieldMask { paths });
        let request = UpdateRepoRequest { repo: Some(repo), update_mask };
        operator.grpc::<UpdateRepo>(request).await.map(|repo| (repo.name, repo.description))
    };
    let expect = |name: &str, description: &str| (name.to_owned(), description.to_owned());
    assert_eq!(update(repo("", "e"), &[]).await.expect("a change"), expect("web2", "e"));
    assert_eq!(update(repo("web3", ""), &[]).await.expect("a change"), expect("web3", "e"));
    assert_eq!(update(repo("web4", ""), &["description"]).await.expect("a change"), expect("web3", ""));
    assert_eq!(update(repo("web4", "f"), &["*"]).await.expect("a change"), expect("web4", "f"));
    for bad in ["nothing", "uid", "create_time", "syncConfig.uniqueTags"] {
        let error = update(repo("web4", "f"), &["description", bad]).await.expect_err("no such path");
        assert_eq!(error.code, 3, "{bad}");
        assert!(error.message.contains("updateMask"), "{}", error.message);
    }
}

async fn a_synchronized_repository_keeps_what_comes_from_its_source(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let sync = json!({ "source": "registry.example.com/nginx", "google": "g@example.com", "uniqueTags": true, "gracePeriod": true });
    let body = json!({ "name": "web", "bundles": ["ai"], "sync_config": sync });
    let made = ok(&owner, &format!("POST /registry/v2/repos/{org}"), body).await;
    let uid = uid_of(&made);
    assert_eq!(
        (&made["sync_config"]["source"], &made["sync_config"]["uniqueTags"]),
        (&json!("registry.example.com/nginx"), &json!(false))
    );
    assert!(made.get("syncConfig").is_none(), "the one name in proto spelling");
    let path = format!("PATCH /registry/v2/repos/{uid}");
    let before = inventory(server).await;
    for (body, field) in [
        (json!({ "catalogTier": "CATALOG_TIER_BASE" }), "catalogTier"),
        (json!({ "bundles": ["base"] }), "bundles"),
        (json!({ "aliases": ["x:1"] }), "aliases"),
        (json!({ "activeTags": ["latest"] }), "activeTags"),
    ] {
        let refusal = rejected(&owner, &path, body, 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.fields(), [field]);
    }
    assert_eq!(inventory(server).await, before);
    // An echo is no change; the rest may change.
    ok(&owner, &path, json!({ "bundles": ["ai"], "description": "d" })).await;
    let part =
        ok(&owner, &format!("{path}?updateMask=sync_config.google"), json!({ "sync_config": { "google": "h" } })).await;
    assert_eq!(
        (&part["sync_config"]["google"], &part["sync_config"]["source"]),
        (&json!("h"), &json!("registry.example.com/nginx"))
    );
    // What only the operator writes, through v1; the others' words on it are not heard.
    let v1 = |more: Value| json!({ "name": "web", "bundles": ["ai"], "syncConfig": more, "sync_config": more });
    let expires =
        json!({ "source": "registry.example.com/nginx", "expiration": "2030-01-01T00:00:00Z", "uniqueTags": true });
    ok(&operator, &format!("PUT /registry/v1/repos/{uid}"), v1(expires)).await;
    let read = ok(&owner, &format!("GET /registry/v2/repos/{uid}"), Value::Null).await["sync_config"].clone();
    assert_eq!((&read["expirationTime"], &read["uniqueTags"]), (&json!("2030-01-01T00:00:00Z"), &json!(true)));
    let other = json!({ "source": "registry.example.com/nginx", "expiration": "2040-01-01T00:00:00Z" });
    let reply = call(&owner, &format!("PUT /registry/v1/repos/{uid}"), v1(other)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let kept = ok(&owner, &format!("GET /registry/v2/repos/{uid}"), Value::Null).await["sync_config"].clone();
    assert_eq!(kept["expirationTime"], read["expirationTime"]);
    // Without the source the repository is its own again.
    ok(&owner, &format!("{path}?updateMask=sync_config"), json!({})).await;
    ok(&owner, &path, json!({ "bundles": ["base"] })).await;
}

async fn read_mes_are_safe_and_written_by_who_may(server: &TestServer) {
    let org = server.organization("acme").await;
    let uid = server.repo(&org, "web").await;
    let (operator, owner) = (server.operator().await, server.actor("owner", &org).await);
    let editor = server.actor("editor", &org).await;
    let path = format!("/registry/v2/repos/{uid}/readme");
    let write = format!("PATCH {path}");
    let before = inventory(server).await;
    for unsafe_text in
        ["<script>alert(1)</script>", "[x](javascript:alert(1))", "<img src=x onerror=a>", "<iframe></iframe>"]
    {
        let refusal = rejected(&operator, &write, json!({ "content": unsafe_text }), 400, "INVALID_ARGUMENT").await;
        assert_eq!(refusal.violations(), [("content".to_owned(), "readme contained unsafe html content".to_owned())]);
        let v1 = json!({ "name": "web", "readme": unsafe_text });
        assert_eq!(call(&operator, &format!("PUT /registry/v1/repos/{uid}"), v1).await.status, 400);
    }
    rejected(&editor, &write, json!({ "content": "# hi" }), 403, "PERMISSION_DENIED").await;
    assert_eq!(inventory(server).await, before);
    let text = "# Web\n\n`<script>` in code, **bold**\r\n";
    ok(&owner, &write, json!({ "content": text })).await;
    assert_eq!(ok(&editor, &format!("GET {path}"), Value::Null).await["content"], text);
    assert!(ok(&editor, &format!("GET /registry/v2/repos/{uid}"), Value::Null).await.get("readme").is_none());
    // Who may not write read-mes replaces the rest of the repository and leaves this alone.
    let replaced = json!({ "name": "web", "description": "line one\nline two" });
    let replaced = ok(&editor, &format!("PUT /registry/v1/repos/{uid}"), replaced).await;
    assert_eq!((&replaced["readme"], &replaced["description"]), (&json!(text), &json!("line one\nline two")));
    let v1 = json!({ "name": "web", "readme": "mine" });
    assert_eq!(call(&editor, &format!("PUT /registry/v1/repos/{uid}"), v1).await.status, 403);
    // Who may, replaces it with nothing.
    let cleared = ok(&owner, &format!("PUT /registry/v1/repos/{uid}"), json!({ "name": "web" })).await;
    assert_eq!(cleared["readme"], "");
    assert_eq!(ok(&editor, &format!("GET {path}"), Value::Null).await["content"], "");
}

async fn descriptions_may_have_line_breaks_but_no_other_controls(server: &TestServer) {
    let org = server.organization("acme").await;
    let (operator, uid) = (server.operator().await, server.repo(&org, "web").await);
    for what in [format!("PATCH /registry/v2/repos/{uid}"), format!("PATCH /iam/v2/groups/{org}")] {
        let text = "first\nsecond\r\nthird \u{e4}\u{1f600}";
        assert_eq!(ok(&operator, &what, json!({ "description": text })).await["description"], text);
        for bad in ["a\tb".to_owned(), "a\u{b}b".into(), "x".repeat(513)] {
            let refusal = rejected(&operator, &what, json!({ "description": bad }), 400, "INVALID_ARGUMENT").await;
            assert_eq!(refusal.fields(), ["description"]);
        }
        ok(&operator, &what, json!({ "description": "x".repeat(512) })).await;
    }
}

each_engine!(
    masks_change_what_they_name_and_nothing_else,
    a_synchronized_repository_keeps_what_comes_from_its_source,
    read_mes_are_safe_and_written_by_who_may,
    descriptions_may_have_line_breaks_but_no_other_controls
);
