//! Requests that are wrong: each is refused with its status, names what is wrong, and changes nothing.

use bowline_contract::v2::registry::rpc::repos_service::CreateRepo;
use bowline_contract::v2::registry::{CreateRepoRequest, Repo};
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, inventory, ok, rejected, send, uid_of};

const NAME_RULE: &str = r#"name must match "^[a-z0-9 ._-]{1,}$""#;

/// One bad request: what is called, the body as text, and the field and description that the answer names.
type Bad<'a> = (&'a str, &'a str, &'a str, &'a str);

async fn bad_fields_are_named(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    let create = format!("POST /registry/v2/repos/{org}");
    let update = format!("PATCH /registry/v2/repos/{repo}");
    let masked = |mask: &str| format!("{update}?updateMask={mask}");
    let long = format!(r#"{{"name":"x","description":"{}"}}"#, "d".repeat(513));
    let (unknown_mask, output_mask, several) = (masked("nothing"), masked("createTime"), masked("description,uid"));
    let cases: &[Bad<'_>] = &[
        (&create, r#"{"name":5}"#, "name", ""),
        (&create, r#"{"name":"x","bundles":"ai"}"#, "bundles", ""),
        (&create, r#"{"name":"x","catalogTier":"NOPE"}"#, "catalogTier", ""),
        (&create, r#"{"name":"x","catalogTier":99}"#, "catalogTier", "unknown enum value 99"),
        (&create, r#"{"name":"Web/Site"}"#, "name", NAME_RULE),
        (&create, "{}", "name", "name is required"),
        (&create, "", "name", "name is required"),
        (&create, r#"{"name":".."}"#, "name", "must not be"),
        (&create, r#"{"name":" x"}"#, "name", "begin or end with a space"),
        (&create, r#"{"name":"0123456789abcdef"}"#, "name", "UIDP"),
        (&create, r#"{"name":"a\u0000b"}"#, "name", "U+0000"),
        (&create, &long, "description", "description must have at most 512 characters"),
        (&create, r#"{"name":"x","sync_config":{}}"#, "sync_config.source", "required"),
        (&create, r#"{"name":"x","aliases":["no tag"]}"#, "aliases[0]", "must match"),
        (&unknown_mask, "{}", "updateMask", "\"nothing\" is not a field"),
        (&output_mask, "{}", "updateMask", "set by the server"),
        (&several, r#"{"description":"d"}"#, "updateMask", "\"uid\""),
        (&update, r#"{"name":""}"#, "name", "name is required"),
        ("GET /registry/v2/repos/XYZ", "", "uid", "UIDP"),
        ("DELETE /registry/v2/repos/0123", "", "uid", "UIDP"),
        ("POST /registry/v2/repos/nowhere", r#"{"name":"x"}"#, "parent", "UIDP"),
        ("GET /registry/v2/repos?page_size=-1", "", "pageSize", "negative"),
        ("GET /registry/v2/repos?skip=-1", "", "skip", "negative"),
        // Also where there is nothing to list.
        ("GET /registry/v1/buildreports?pageSize=-1", "", "pageSize", "negative"),
        ("GET /registry/v1/buildstatus?pageSize=-1", "", "pageSize", "negative"),
        ("GET /feeds/bowline/v1/sources/none/records?pageSize=-1", "", "pageSize", "negative"),
        ("GET /registry/v2/repos?pageSize=many", "", "pageSize", ""),
        ("GET /registry/v2/repos?order_by=size", "", "orderBy", "size"),
        ("GET /registry/v2/repos?order_by=name+down", "", "orderBy", ""),
        ("GET /registry/v2/repos?uidp.descendants_of=x", "", "uidp.descendantsOf", "UIDP"),
        ("GET /registry/v1/repos?offset=-1", "", "offset", "0 or more"),
        ("GET /iam/v1/groups?page=0&page_size=5", "", "page", "first page is 1"),
    ];
    let before = inventory(server).await;
    for (what, body, field, description) in cases {
        let reply = send(&operator, what, &[("content-type", "application/json")], body).await;
        assert_eq!(reply.status, 400, "{what} {body}: {}", reply.text());
        let refusal = crate::support::Refusal(reply.json());
        assert_eq!(refusal.reason(), "INVALID_ARGUMENT", "{what}");
        let found = refusal.violations();
        let named = found.iter().any(|(name, text)| name == field && text.contains(description));
        assert!(named, "{what} {body}: expected {field} with {description:?}, got {found:?}");
        assert!(refusal.message().starts_with("Invalid argument: "), "{what}: {}", refusal.message());
    }
    assert_eq!(inventory(server).await, before);
}

async fn what_cannot_be_read_is_refused_as_a_whole(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let before = inventory(server).await;
    let create = format!("POST /registry/v2/repos/{org}");
    for body in ["{\"name\": ", "[]", "{\"name\":\"x\"} {}", "name=x", "\"x\"", "{\"name\":\"x\",}", "\u{1}"] {
        let reply = send(&operator, &create, &[("content-type", "application/json")], body).await;
        let refusal = crate::support::Refusal(reply.json());
        assert_eq!((reply.status, refusal.reason().as_str()), (400, "INVALID_ARGUMENT"), "{body}: {}", reply.text());
        assert!(refusal.message().len() > "Invalid argument: ".len(), "{body}: {}", refusal.message());
    }
    let reply = send(&operator, "GET /registry/v2/repos?name=%zz", &[], "").await;
    assert_eq!(reply.status, 400, "{}", reply.text());
    assert!(reply.text().contains("escape"), "{}", reply.text());

    let large = format!("{{\"name\":\"x\",\"description\":\"{}\"}}", "d".repeat(10 << 20));
    let reply = send(&operator, &create, &[("content-type", "application/json")], &large).await;
    let refusal = crate::support::Refusal(reply.json());
    assert_eq!((reply.status, refusal.reason().as_str()), (413, "REQUEST_TOO_LARGE"), "{}", refusal.message());
    assert_eq!(refusal.0["code"], 8);
    assert_eq!(inventory(server).await, before);

    let error = operator
        .grpc_raw("/chainguard.platform.registry.v2.ReposService/CreateRepo", vec![0xff; 9])
        .await
        .expect_err("no message");
    assert_eq!(error.code, 3, "{error:?}");
}

async fn all_field_violations_come_at_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let body = json!({
        "name": "A",
        "description": "d".repeat(600),
        "bundles": ["ai", "nonsense"],
        "aliases": ["nginx:1", "no tag"],
        "activeTags": ["-x"],
    });
    let refusal = rejected(&operator, &format!("POST /registry/v2/repos/{org}"), body, 400, "INVALID_ARGUMENT").await;
    let mut fields = refusal.fields();
    fields.sort();
    assert_eq!(fields, ["activeTags[0]", "aliases[1]", "bundles[1]", "description", "name"]);
    for (field, description) in refusal.violations() {
        assert!(refusal.message().contains(&format!("{field}: {description}")), "{}", refusal.message());
    }
    let sizes = "GET /registry/v2/repos?page_size=-1&skip=-1&order_by=size";
    let refusal = rejected(&operator, sizes, Value::Null, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.fields(), ["pageSize", "skip", "orderBy"]);

    // The published sample, word by word.
    let what = format!("POST /iam/v2/groups/{org}");
    let refusal = rejected(&operator, &what, json!({ "name": "Team/One" }), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.message(), format!("Invalid argument: name: {NAME_RULE}"));
    assert_eq!(refusal.0["code"], 3);
    assert_eq!(refusal.detail("ErrorInfo")["domain"], "iam.chainguard.dev");
    assert_eq!(refusal.violations(), [("name".to_owned(), NAME_RULE.to_owned())]);
}

async fn missing_parents_and_taken_names_are_distinguished(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let other = server.repo(&org, "other").await;
    let team = server.group(&org, "team").await;
    let operator = server.operator().await;
    let before = inventory(server).await;
    let nowhere = absent(&org);
    for (collection, body) in [
        ("registry/v2/repos", json!({ "name": "x" })),
        ("iam/v2/groups", json!({ "name": "xyz" })),
        ("iam/v2/roles", json!({ "name": "x", "capabilities": ["CAP_REPO_LIST"] })),
        ("iam/v2/roleBindings", json!({ "identityUid": org, "roleUid": server.role("viewer") })),
        (
            "iam/v2/identities",
            json!({ "name": "xyz", "claimMatch": { "issuer": "https://a.example", "subject": "s" } }),
        ),
    ] {
        let refusal = rejected(&operator, &format!("POST /{collection}/{nowhere}"), body, 404, "NOT_FOUND").await;
        let resource = refusal.detail("ResourceInfo");
        assert_eq!(resource["resourceType"], "iam.chainguard.dev/Group", "{collection}");
        assert_eq!(resource["resourceName"], nowhere.as_str(), "{collection}");
    }
    for (what, body, kind) in [
        (format!("POST /registry/v2/repos/{org}"), json!({ "name": "web" }), "registry.chainguard.dev/Repo"),
        (format!("PATCH /registry/v2/repos/{other}"), json!({ "name": "web" }), "registry.chainguard.dev/Repo"),
        (format!("POST /iam/v2/groups/{org}"), json!({ "name": "team" }), "iam.chainguard.dev/Group"),
    ] {
        let refusal = rejected(&operator, &what, body, 409, "ALREADY_EXISTS").await;
        assert_eq!(refusal.detail("ResourceInfo")["resourceType"], kind, "{what}");
    }
    for verb in ["GET", "DELETE", "PATCH"] {
        let what = format!("{verb} /registry/v2/repos/{}", absent(&team));
        let body = if verb == "PATCH" { json!({ "description": "d" }) } else { Value::Null };
        let refusal = rejected(&operator, &what, body, 404, "NOT_FOUND").await;
        let resource = refusal.detail("ResourceInfo");
        assert_eq!(resource["resourceType"], "registry.chainguard.dev/Repo");
        assert_eq!(resource["resourceName"], absent(&team).as_str());
    }
    assert_eq!(inventory(server).await, before);
    // The same name elsewhere is free.
    ok(&operator, &format!("POST /registry/v2/repos/{team}"), json!({ "name": "web" })).await;
    ok(&operator, &format!("PATCH /registry/v2/repos/{repo}"), json!({ "name": "web" })).await;
}

async fn a_taken_name_is_taken_under_concurrency(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let (operator, org) = (operator.clone(), org.clone());
        tasks.spawn(async move {
            let repo = Repo { name: "one".into(), ..Repo::default() };
            let request = CreateRepoRequest { parent: org, repo: Some(repo) };
            operator.grpc::<CreateRepo>(request).await.map_err(|error| error.code)
        });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|one| one.is_ok()).count(), 1, "{outcomes:?}");
    assert!(outcomes.iter().all(|one| one.as_ref().map_or_else(|code| *code == 6, |_| true)), "{outcomes:?}");
}

async fn a_stranger_learns_nothing_from_field_errors(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let stranger = server.stranger().await;
    for place in [org.clone(), absent(&org), repo.clone()] {
        let what = format!("POST /registry/v2/repos/{place}");
        let refusal = rejected(&stranger, &what, json!({ "name": "NOT A NAME" }), 403, "PERMISSION_DENIED").await;
        let metadata = &refusal.detail("ErrorInfo")["metadata"];
        assert_eq!((&metadata["capability"], &metadata["scope"]), (&json!("repo.create"), &json!(place)));
    }
    // What exists and what does not get the same response but for the requested UIDP.
    let answer = async |uid: &str| {
        let reply = call(&stranger, &format!("GET /registry/v2/repos/{uid}"), Value::Null).await;
        (reply.status, reply.text().replace(uid, "?"))
    };
    assert_eq!(answer(&repo).await, answer(&absent(&org)).await);
    assert_eq!(answer(&repo).await.0, 403);
    // The shape of the place is no secret, and an empty one is no one's.
    rejected(&stranger, "POST /registry/v2/repos/nowhere", json!({ "name": "x" }), 400, "INVALID_ARGUMENT").await;
    let error = stranger.grpc::<CreateRepo>(CreateRepoRequest::default()).await.expect_err("no scope");
    assert_eq!(error.code, 3, "{error:?}");
    let viewer = server.actor("viewer", &org).await;
    assert_eq!(uid_of(&ok(&viewer, &format!("GET /registry/v2/repos/{repo}"), Value::Null).await), repo);
}

each_engine!(
    bad_fields_are_named,
    what_cannot_be_read_is_refused_as_a_whole,
    all_field_violations_come_at_once,
    missing_parents_and_taken_names_are_distinguished,
    a_taken_name_is_taken_under_concurrency,
    a_stranger_learns_nothing_from_field_errors
);
