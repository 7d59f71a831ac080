//! V1's manners, over the same rows.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{absent, call, each, holder, inventory, ok, rejected};

async fn a_creation_overwrites_only_with_the_right_to_update(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let creator = holder(server, &org, "creator", &org, &["CAP_REPO_CREATE", "CAP_REPO_LIST"]).await.actor;
    let editor = server.actor("editor", &org).await;
    let create = format!("POST /registry/v1/repos/{org}");
    let body = |description: &str| json!({ "name": "web", "description": description });
    let made = ok(&creator, &create, body("first")).await;
    let before = inventory(server).await;
    assert_eq!(call(&creator, &create, body("second")).await.status, 409);
    for path in [format!("{create}?prevent_existing=true"), format!("{create}?preventExisting=true")] {
        assert_eq!(call(&editor, &path, body("second")).await.status, 409, "{path}");
    }
    assert_eq!(inventory(server).await, before);
    let over = ok(&editor, &create, body("second")).await;
    assert_eq!((&over["id"], &over["description"]), (&made["id"], &json!("second")));
    rejected(&operator, &format!("POST /registry/v2/repos/{org}"), json!({ "name": "web" }), 409, "ALREADY_EXISTS")
        .await;
}

async fn a_put_replaces_and_both_versions_see_the_same(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let body = json!({ "name": "web", "description": "d", "bundles": ["ai"], "aliases": ["x:1"] });
    let made = ok(&operator, &format!("POST /registry/v1/repos/{org}"), body).await;
    let id = made["id"].as_str().expect("an id").to_owned();
    let v2 = ok(&operator, &format!("GET /registry/v2/repos/{id}"), Value::Null).await;
    assert_eq!((&v2["uid"], &v2["description"], &v2["bundles"]), (&made["id"], &made["description"], &made["bundles"]));
    let put = ok(&operator, &format!("PUT /registry/v1/repos/{id}"), json!({ "name": "web" })).await;
    assert_eq!((&put["description"], &put["bundles"], &put["aliases"]), (&json!(""), &json!([]), &json!([])));
    let v2 = ok(&operator, &format!("GET /registry/v2/repos/{id}"), Value::Null).await;
    assert_eq!((&v2["description"], &v2["bundles"]), (&json!(""), &json!([])));

    let group = server.group(&org, "team").await;
    ok(&operator, &format!("PATCH /iam/v2/groups/{group}"), json!({ "description": "d" })).await;
    let put = ok(&operator, &format!("PUT /iam/v1/groups/{group}"), json!({ "name": "team two" })).await;
    assert_eq!((&put["name"], &put["description"]), (&json!("team two"), &json!("")));
    // The names of the defining document are understood.
    let body = json!({ "name": "machine", "claim_match": { "issuer": "https://a.example", "subject": "s" } });
    let made = ok(&operator, &format!("POST /iam/v1/identities/{org}"), body).await;
    assert!(made["createdAt"].as_str().is_some_and(|time| time.ends_with('Z')), "{made}");
    assert_eq!(made["claimMatch"]["subject"], "s");
    let v2 =
        ok(&operator, &format!("GET /iam/v2/identities/{}", made["id"].as_str().expect("an id")), Value::Null).await;
    assert_eq!((&v2["createTime"], &v2["claimMatch"]), (&made["createdAt"], &made["claimMatch"]));
}

async fn lists_answer_with_what_there_is_and_never_with_an_error(server: &TestServer) {
    let org = server.organization("acme").await;
    server.repo(&org, "web").await;
    let (operator, stranger) = (server.operator().await, server.stranger().await);
    for (path, actor) in
        [("/registry/v1/repos", &operator), ("/iam/v1/groups", &operator), ("/iam/v1/rolebindings", &operator)]
    {
        for query in
            [format!("id={}", absent(&org)), format!("uidp.children_of={}", absent(&org)), "id=nonsense".into()]
        {
            let list = ok(actor, &format!("GET {path}?{query}"), Value::Null).await;
            assert_eq!(list, json!({ "items": [] }), "{path}?{query}");
        }
    }
    let hidden = ok(&stranger, &format!("GET /registry/v1/repos?uidp.descendants_of={org}"), Value::Null).await;
    assert_eq!(hidden, json!({ "items": [] }));
    for (actor, what, status, code) in [
        (&operator, format!("DELETE /registry/v1/repos/{}", absent(&org)), 404, 5),
        (&stranger, format!("DELETE /registry/v1/repos/{}", absent(&org)), 403, 7),
        (&stranger, format!("DELETE /iam/v1/groups/{org}"), 403, 7),
    ] {
        let reply = call(actor, &what, Value::Null).await;
        assert_eq!(
            (reply.status, &reply.json()["code"], &reply.json()["details"]),
            (status, &json!(code), &json!([])),
            "{what}"
        );
    }
}

async fn whole_lists_come_in_slices_too(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    for n in 0..7 {
        server.repo(&org, &format!("r{n}")).await;
    }
    let list = async |query: &str| {
        let list = ok(&operator, &format!("GET /registry/v1/repos?{query}"), Value::Null).await;
        assert_eq!(list.as_object().map(serde_json::Map::len), Some(1), "no paging members: {list}");
        each(&list["items"], "id").into_iter().map(String::from).collect::<Vec<String>>()
    };
    let all = list("").await;
    assert_eq!(all.len(), 7);
    assert!(all.is_sorted());
    for (query, range) in [
        ("offset=2&limit=3", 2..5),
        ("offset=5", 5..7),
        ("limit=2", 0..2),
        ("offset=7", 7..7),
        ("offset=100&limit=5", 7..7),
        ("limit=0", 0..0),
        ("page=1&page_size=3", 0..3),
        ("page=3&page_size=3", 6..7),
        ("page=4&pageSize=3", 7..7),
        ("page_size=4", 0..4),
        ("page=1", 0..7),
        ("offset=1&limit=9223372036854775807", 1..7),
    ] {
        assert_eq!(list(query).await, all[range], "{query}");
    }
    let below = list(&format!("uidp.descendants_of={org}&offset=6")).await;
    assert_eq!(below, all[6..]);
    let huge = call(&operator, "GET /registry/v1/repos?offset=9223372036854775807", Value::Null).await;
    assert_eq!((huge.status, huge.json()), (200, json!({ "items": [] })));
}

each_engine!(
    a_creation_overwrites_only_with_the_right_to_update,
    a_put_replaces_and_both_versions_see_the_same,
    lists_answer_with_what_there_is_and_never_with_an_error,
    whole_lists_come_in_slices_too
);
