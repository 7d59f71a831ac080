//! The lists of the contract show packages of groups beside the catalogue, to those who may read them and to no one else.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::*;

/// The ecosystems that v2 has names for.
const ALL: &str = "ecosystems=ECOSYSTEM_PYTHON&ecosystems=ECOSYSTEM_JAVA";
/// What a name of a private package has, and no other.
const SECRET: &str = "s3cret";

async fn ok(actor: &Actor, verb: &str, path: &str, body: Value) -> Value {
    let reply = actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await;
    assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    reply.json()
}

async fn get(actor: &Actor, path: &str) -> Value {
    ok(actor, "GET", &format!("/libraries/{path}"), Value::Null).await
}

fn texts(list: &Value, member: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[member].as_str().unwrap().to_owned()).collect()
}

/// Names and latest versions that v1 lists.
async fn listed(actor: &Actor, query: &str) -> Vec<(String, String)> {
    let list = get(actor, &format!("v1/artifacts?{query}")).await;
    assert_eq!(list["totalArtifacts"], json!(list["items"].as_array().unwrap().len()), "{query}");
    texts(&list["items"], "name").into_iter().zip(texts(&list["items"], "latestVersion")).collect()
}

async fn names(actor: &Actor, query: &str) -> Vec<String> {
    listed(actor, query).await.into_iter().map(|(name, _)| name).collect()
}

/// Someone of an organization who has several roles, each at a group.
async fn someone(server: &TestServer, organization: &str, name: &str, roles: &[(&str, &str)]) -> Actor {
    let identity = server.identity(organization, name).await;
    for (role, group) in roles {
        server.bind(&identity, &server.role(role), group).await;
    }
    server.sign_in(name, name, &identity).await
}

async fn import(server: &TestServer, packages: &[(&str, &str)]) {
    let version = |(ecosystem, name): &(&str, &str)| {
        let file = json!({ "name": "1.tgz", "sizeBytes": "10", "sha256": "a".repeat(64), "sha512": "b".repeat(128) });
        json!({
            "ecosystem": ecosystem, "name": name, "version": "1.0.0", "source": "SOURCE_TYPE_INTERNAL", "files": [file],
        })
    };
    let versions: Vec<Value> = packages.iter().map(version).collect();
    ok(&server.operator().await, "POST", "/catalog/v1/versions:import", json!({ "versions": versions })).await;
}

/// Publishes a package with two versions in each ecosystem of the contract, and a crate.
async fn publish_all(client: &Client) {
    for version in ["1.9", "1.10"] {
        client.publish(&format!("{SECRET}-app"), version).await;
        client.java().java_publish("com.acme", &format!("{SECRET}-lib"), version, "").await;
        client.javascript().npm_publish(&format!("@acme/{SECRET}"), &format!("{version}.0"), "latest").await;
        let module = format!("git.acme.example/{SECRET}");
        client.go().go_publish(&module, &module, &format!("v{version}.0")).await;
        client.cargo().cargo_publish(&format!("{SECRET}-crate"), &format!("{version}.0")).await;
    }
}

async fn readers_see_packages_of_their_groups(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    publish_all(&client).await;
    assert_eq!(
        listed(&owner, "").await,
        [
            ("@acme/s3cret", "1.10.0"),
            ("com.acme:s3cret-lib", "1.10"),
            ("git.acme.example/s3cret", "v1.10.0"),
            ("s3cret-app", "1.10")
        ]
        .map(|(name, version)| (name.to_owned(), version.to_owned())),
        "the contract has no ecosystem for crates"
    );
    for (query, wanted) in [
        ("ecosystems=PYTHON", &["s3cret-app"] as &[&str]),
        ("query=S3CRET-", &["com.acme:s3cret-lib", "s3cret-app"]),
        ("query=s3", &["@acme/s3cret", "com.acme:s3cret-lib", "git.acme.example/s3cret", "s3cret-app"]),
        ("query=acme&includeUpstream=true&ecosystems=JAVA", &["com.acme:s3cret-lib"]),
        ("query=s_cret", &[]),
        ("remediated=true", &[]),
        ("ecosystems=PYTHON_ATHENA", &[]),
        ("cudaVersion=cu128", &[]),
    ] {
        assert_eq!(names(&owner, query).await, wanted, "{query}");
    }
    let shown = get(&owner, &format!("v2/artifacts?{ALL}&query=s3cret-app")).await;
    let app = &shown["artifacts"][0];
    assert_eq!((&app["ecosystem"], &app["versionCount"]), (&json!("ECOSYSTEM_PYTHON"), &json!(2)));
    assert_eq!(shown["totalCount"], "1");
    let id = app["uid"].as_str().unwrap();
    assert!(id.starts_with("hosted:") && !id.contains(SECRET) && !id.contains(&org), "{id}");
    client.publish("s3cret-app", "1.8").await;
    assert_eq!(get(&owner, "v1/artifacts?query=s3cret-app").await["items"][0]["id"], id, "an id stays");

    let v1 = get(&owner, &format!("v1/artifacts/{id}/versions")).await;
    assert_eq!(texts(&v1["items"], "version"), ["1.10", "1.9", "1.8"]);
    assert_eq!((&v1["items"][0]["name"], &v1["items"][0]["id"]), (&json!("s3cret-app"), &json!(format!("{id}:1.10"))));
    assert_ne!(v1["items"][0]["sizeBytes"], "0");
    let page = get(&owner, &format!("v2/artifacts/{id}/versions?pageSize=2")).await;
    assert_eq!(
        (texts(&page["artifactVersions"], "version"), &page["totalCount"]),
        (vec!["1.10".into(), "1.9".into()], &json!("3"))
    );
    let token = page["nextPageToken"].as_str().unwrap();
    let rest = get(&owner, &format!("v2/artifacts/{id}/versions?pageSize=2&pageToken={token}")).await;
    assert_eq!(texts(&rest["artifactVersions"], "version"), ["1.8"]);
    let oldest = get(&owner, &format!("v2/artifacts/{id}/versions?orderBy=create_time")).await;
    assert_eq!(oldest["artifactVersions"].as_array().map(Vec::len), Some(3));
    let counts = get(&owner, &format!("v2/artifacts/count?{ALL}")).await;
    assert_eq!(texts(&counts["counts"], "totalCount"), ["1", "1"]);
    let counts = get(&owner, "v1/artifacts/count?ecosystems=PYTHON&ecosystems=PYTHON_ATHENA").await;
    assert_eq!(
        (&counts["counts"][0]["totalArtifacts"], &counts["counts"][1]["totalArtifacts"]),
        (&json!(1), &json!(0))
    );
}

async fn reports_of_malware_are_about_public_packages(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    Client::of(server, &owner).publish("app", "1.0").await;
    import(server, &[("PYTHON", "app")]).await;
    let entry = |version: &str| {
        json!({
            "ecosystem": "PyPI", "packageName": "app", "version": version, "malid": format!("MAL-{version}"),
            "source": "operator", "scope": "MALWARE_SCOPE_VERSION", "reason": ["steals tokens"],
            "blockedAt": "2026-01-01T00:00:00Z",
        })
    };
    let entries = json!({ "entries": [entry("1.0"), entry("1.0.0")] });
    ok(&server.operator().await, "POST", "/catalog/v1/malware:import", entries).await;
    let mut marks = Vec::new();
    for artifact in get(&owner, "v1/artifacts?query=app").await["items"].as_array().unwrap() {
        let id = artifact["id"].as_str().unwrap();
        let versions = get(&owner, &format!("v1/artifacts/{id}/versions")).await;
        marks.push((id.starts_with("hosted:"), versions["items"][0]["malwareMalicious"].clone()));
    }
    marks.sort_by_key(|(is_hosted, _)| *is_hosted);
    assert_eq!(marks, [(false, json!(true)), (true, json!(false))]);
}

/// All that a caller can learn of the lists; of page tokens, which have a time, whether there is one.
async fn learned(actor: &Actor, ids: &[String]) -> Vec<Value> {
    let mut answers = Vec::new();
    for path in [
        "v1/artifacts".to_owned(),
        "v1/artifacts?includeUpstream=true&pageSize=2".to_owned(),
        "v1/artifacts?query=s3cret".to_owned(),
        "v1/artifacts?query=a".to_owned(),
        "v1/artifacts?skip=1".to_owned(),
        "v1/artifacts/count".to_owned(),
        "v1/npm/packages?query=s3cret".to_owned(),
        format!("v2/artifacts?{ALL}"),
        format!("v2/artifacts?{ALL}&query=s3cret"),
        format!("v2/artifacts?{ALL}&orderBy=update_time%20desc&pageSize=1"),
        format!("v2/artifacts/count?{ALL}"),
    ] {
        let mut answer = get(actor, &path).await;
        if let Some(token) = answer.get_mut("nextPageToken") {
            *token = json!(token != "");
        }
        if let Some(token) = answer.get_mut("next_page_token") {
            *token = json!(token != "");
        }
        answers.push(answer);
    }
    for (id, version) in ids.iter().flat_map(|id| [(id, "v1"), (id, "v2")]) {
        let path = format!("/libraries/{version}/artifacts/{id}/versions");
        let (hidden, unknown) = (actor.rest("GET", &path, None).await, format!("hosted:{}", "0".repeat(32)));
        let absent = actor.rest("GET", &path.replace(id, &unknown), None).await;
        assert_eq!((hidden.status, absent.status), (404, 404), "{path}: {}", hidden.text());
        assert_eq!(hidden.text().replace(id, &unknown), absent.text());
    }
    answers
}

async fn others_learn_nothing(server: &TestServer) {
    import(server, &[("PYTHON", "requests"), ("PYTHON", "s3-client"), ("JAVASCRIPT", "a-node"), ("JAVA", "org.a:b")])
        .await;
    let (org, elsewhere) = (server.organization("acme").await, server.organization("other").await);
    let web = server.group(&org, "web").await;
    let owner = server.actor("owner", &org).await;
    let others = [
        server.actor("owner", &elsewhere).await,
        server.actor("viewer", &org).await,
        someone(server, &org, "reader-of-cargo", &[("libraries.cargo.pull", &org)]).await,
        someone(server, &org, "reader-below", &[("viewer", &org), ("libraries.go.pull", &web)]).await,
        someone(server, &org, "reader-apart", &[("viewer", &web), ("libraries.python.pull", &org)]).await,
        server.stranger().await,
    ];
    let mut before = Vec::new();
    for other in &others {
        before.push(learned(other, &[]).await);
    }
    publish_all(&Client::of(server, &owner)).await;
    let ids = texts(&get(&owner, "v1/artifacts?query=s3cret").await["items"], "id");
    assert_eq!(ids.len(), 4);
    for (other, before) in others.iter().zip(&before) {
        let after = learned(other, &ids).await;
        assert_eq!(&after, before, "{}", other.name);
        assert!(!json!(after).to_string().contains(SECRET), "{}", other.name);
    }
    // Who may read one ecosystem at one group sees what is published there, and no more.
    let web_client = Client::of(server, &owner).at(&web.replace('/', ":"));
    let reader = someone(server, &org, "reader-of-web", &[("viewer", &org), ("libraries.python.pull", &web)]).await;
    let catalogue = names(&reader, "").await;
    web_client.publish("web-app", "1.0").await;
    web_client.javascript().npm_publish("web-app", "1.0.0", "latest").await;
    let seen = names(&reader, "").await;
    assert_eq!(seen.iter().filter(|name| !catalogue.contains(name)).collect::<Vec<_>>(), ["web-app"]);
    assert_eq!(names(&owner, "query=web-app").await, ["web-app", "web-app"]);
    assert_eq!(names(&others[0], "query=web-app").await, [] as [String; 0]);
    // A token that is narrowed to the group sees no more than that.
    let upstream = server.idp().token("reader-of-org", &server.server().parts().settings.auth_url, Value::Null);
    let roles = [("viewer", org.as_str()), ("libraries.python.pull", &org)];
    let whole = someone(server, &org, "reader-of-org", &roles).await;
    assert_eq!(names(&whole, "query=app").await, ["s3cret-app", "web-app"]);
    let params = [("aud", server.base()), ("identity", whole.identity.as_str()), ("scopes", web.as_str())];
    let narrowed = server.exchange(&upstream, &params).await.json();
    let narrowed = server.anonymous().with_token(narrowed["token"].as_str().expect("a token"));
    assert_eq!(names(&narrowed, "query=app").await, ["web-app"]);
}

/// Names of all pages of one item.
async fn walked(actor: &Actor, order: &str) -> Vec<String> {
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let path = format!("v2/artifacts?{ALL}&orderBy={order}&pageSize=1&pageToken={token}");
        let page = get(actor, &path).await;
        assert_eq!(page["totalCount"], "7", "{order}");
        seen.extend(texts(&page["artifacts"], "uid"));
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return seen;
        }
    }
}

async fn both_are_in_one_order(server: &TestServer) {
    import(
        server,
        &[("PYTHON", "requests"), ("PYTHON", "numpy"), ("JAVA", "org.left:pad"), ("JAVASCRIPT", "left-pad")],
    )
    .await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let client = Client::of(server, &owner);
    for name in ["requests", "aaa", "opener"] {
        client.publish(name, "3.0").await;
    }
    client.java().java_publish("zzz", "b", "1.0", "").await;
    let whole = get(&owner, &format!("v2/artifacts?{ALL}")).await;
    let wanted = ["aaa", "numpy", "opener", "org.left:pad", "requests", "requests", "zzz:b"];
    assert_eq!(texts(&whole["artifacts"], "name"), wanted);
    let ids = texts(&whole["artifacts"], "uid");
    assert_ne!(ids[4], ids[5], "packages of one name are two");
    let named = get(&owner, "v1/artifacts?query=requests").await;
    let mut versions = texts(&named["items"], "latestVersion");
    versions.sort();
    assert_eq!((versions, &named["totalArtifacts"]), (vec!["1.0.0".to_owned(), "3.0".to_owned()], &json!(2)));
    for order in ["name", "name%20desc", "create_time", "update_time%20desc"] {
        let mut seen = walked(&owner, order).await;
        if order == "name" {
            assert_eq!(seen, ids);
        }
        if order == "name%20desc" {
            seen.reverse();
            assert_eq!(seen, ids);
        }
        seen.sort();
        let mut all = ids.clone();
        all.sort();
        assert_eq!(seen, all, "{order}");
    }
    let rest = get(&owner, &format!("v2/artifacts?{ALL}&skip=5")).await;
    assert_eq!(
        (texts(&rest["artifacts"], "name"), &rest["skipped"]),
        (vec!["requests".to_owned(), "zzz:b".into()], &json!(5))
    );
    // Packages of npm by their names are those of the catalogue.
    let npm = get(&owner, "v1/npm/packages").await;
    assert_eq!((texts(&npm["items"], "packageName"), &npm["totalCount"]), (vec!["left-pad".to_owned()], &json!("1")));
}

async fn summaries_follow_their_versions(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let operator = server.operator().await;
    let web = server.group(&org, "web").await;
    let client = Client::of(server, &owner).at(&web.replace('/', ":"));
    for version in ["1.0", "1.1", "2.0rc1"] {
        client.publish("app", version).await;
    }
    let shown = async || listed(&owner, "").await.pop().map(|(_, latest)| latest);
    assert_eq!(shown().await.as_deref(), Some("1.1"), "a release comes before a pre-release");
    let call = async |verb: &str, version: &str| {
        let path = format!("/pythonpackages/v1/groups/{web}:{verb}");
        ok(&owner, "POST", &path, json!({ "package": "app", "version": version })).await;
    };
    call("yankVersion", "1.1").await;
    assert_eq!(shown().await.as_deref(), Some("1.0"));
    call("unyankVersion", "1.1").await;
    assert_eq!(shown().await.as_deref(), Some("1.1"));
    call("deleteVersion", "1.1").await;
    let id = get(&owner, "v1/artifacts").await["items"][0].clone();
    assert_eq!((&id["latestVersion"], &id["versionCount"]), (&json!("1.0"), &json!(2)));
    let id = id["id"].as_str().unwrap();
    call("deleteVersion", "1.0").await;
    assert_eq!(shown().await.as_deref(), Some("2.0rc1"));
    call("deleteVersion", "2.0rc1").await;
    assert_eq!(shown().await, None);
    let versions = owner.rest("GET", &format!("/libraries/v1/artifacts/{id}/versions"), None).await;
    assert_eq!(versions.status, 404, "{}", versions.text());
    let counts = get(&owner, "v2/artifacts/count?ecosystems=ECOSYSTEM_PYTHON").await;
    assert_eq!(counts["counts"][0]["totalCount"], "0");

    // Each change by a protocol counts, too.
    let (javascript, cargo) = (client.javascript(), client.cargo());
    for version in ["1.0.0", "1.1.0"] {
        javascript.npm_publish("tool", version, "latest").await;
        cargo.cargo_publish("tool", version).await;
    }
    let yank = cargo.send("DELETE api/v1/crates/tool/1.1.0/yank", &[], &[]).await;
    assert_eq!(yank.status, 200, "{}", yank.text());
    let of_crate =
        "SELECT count(*) FROM hosted_packages WHERE ecosystem = 1000 AND latest = '1.0.0' AND version_count = 2";
    assert_eq!(number(server, of_crate).await, 1);
    let revision = javascript.document("tool?write=true").await["_rev"].as_str().unwrap().to_owned();
    let gone = javascript.send(&format!("DELETE tool/-rev/{revision}"), &[], &[]).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    for version in ["1.0.0", "1.1.0"] {
        let gone = cargo.send(&format!("DELETE api/v1/crates/tool/{version}"), &[], &[]).await;
        assert_eq!(gone.status, 200, "{}", gone.text());
    }
    assert_eq!(number(server, "SELECT count(*) FROM hosted_packages").await, 0);
    let gone = operator.rest("DELETE", &format!("/iam/v2/groups/{web}"), None).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    assert!(listed(&owner, "").await.is_empty());
}

each_engine!(
    readers_see_packages_of_their_groups,
    reports_of_malware_are_about_public_packages,
    others_learn_nothing,
    both_are_in_one_order,
    summaries_follow_their_versions,
);
