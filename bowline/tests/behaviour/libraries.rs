//! The catalogue of packages: taken in by the operator, read in both versions of the API.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, each, each_of, inventory, number, ok, pages, rejected};

pub(crate) const BUILT: &str = "SOURCE_TYPE_INTERNAL";
pub(crate) const REMEDIATED: &str = "SOURCE_TYPE_INTERNAL_REMEDIATED";
pub(crate) const UPSTREAM: &str = "SOURCE_TYPE_UPSTREAM_REGISTRY";

/// The texts of one member of each element.
pub(crate) fn texts(list: &Value, member: &str) -> Vec<String> {
    each(list, member).into_iter().map(String::from).collect()
}

/// A version with one file.
pub(crate) fn version(ecosystem: &str, name: &str, version: &str, source: &str) -> Value {
    json!({
        "ecosystem": ecosystem, "name": name, "version": version, "source": source,
        "description": format!("about {name}"), "license": "MIT",
        "files": [{ "name": format!("{version}.tgz"), "sizeBytes": "10", "sha256": "a".repeat(64), "sha512": "b".repeat(128) }]
    })
}

pub(crate) async fn import(operator: &Actor, versions: &[Value]) -> Value {
    ok(operator, "POST /catalog/v1/versions:import", json!({ "versions": versions })).await["outcomes"].clone()
}

fn outcomes(of: &[&str]) -> Value {
    of.iter().map(|outcome| format!("IMPORT_OUTCOME_{outcome}")).collect()
}

/// A catalogue with something of each ecosystem.
async fn filled(server: &TestServer) -> Actor {
    let operator = server.operator().await;
    let versions = [
        version("PYTHON", "Requests", "2.9.0", BUILT),
        version("PYTHON", "requests", "2.10.0", BUILT),
        version("PYTHON", "requests", "3.0.0rc1", BUILT),
        version("PYTHON", "requests", "2.10.0+cgr.1", REMEDIATED),
        version("PYTHON", "requests", "2.11.0", UPSTREAM),
        version("PYTHON", "torch", "2.3.0+cu128", BUILT),
        version("PYTHON", "only-upstream", "1.0", UPSTREAM),
        version("JAVA", "org.slf4j:slf4j-api", "2.0.0-alpha1", BUILT),
        version("JAVA", "org.slf4j:slf4j-api", "2.0.0", BUILT),
        version("JAVA", "org.Example:Requestor", "1", BUILT),
        version("JAVASCRIPT", "@types/node", "20.0.0", UPSTREAM),
        version("JAVASCRIPT", "node", "20.0.0", BUILT),
        version("JAVASCRIPT", "node-fetch", "3.0.0", BUILT),
        version("JAVASCRIPT", "a-node", "1.0.0", BUILT),
    ];
    let made = import(&operator, &versions).await;
    assert!(
        made.as_array().is_some_and(|made| made.iter().all(|outcome| outcome == "IMPORT_OUTCOME_CREATED")),
        "{made}"
    );
    operator
}

async fn an_import_that_is_repeated_changes_nothing(server: &TestServer) {
    let operator = server.operator().await;
    let one = version("PYTHON", "Requests", "2.9.0", BUILT);
    let dry = json!({ "versions": [one], "dryRun": true });
    let before = inventory(server).await;
    let forecast = ok(&operator, "POST /catalog/v1/versions:import", dry).await;
    assert_eq!(forecast["outcomes"], outcomes(&["CREATED"]));
    assert_eq!(inventory(server).await, before);

    assert_eq!(import(&operator, std::slice::from_ref(&one)).await, outcomes(&["CREATED"]));
    let after = inventory(server).await;
    assert_eq!(import(&operator, std::slice::from_ref(&one)).await, outcomes(&["UNCHANGED"]));
    // An import with fewer details changes nothing.
    let mut bare = one.clone();
    for member in ["description", "license"] {
        bare[member] = json!("");
    }
    bare["files"][0]["sha512"] = json!("");
    assert_eq!(import(&operator, &[bare]).await, outcomes(&["UNCHANGED"]));
    assert_eq!(inventory(server).await, after);

    let mut more = one.clone();
    more["files"][0]["name"] = json!("another.whl");
    let second = version("PYTHON", "requests", "2.10.0", BUILT);
    assert_eq!(import(&operator, &[more, second]).await, outcomes(&["UPDATED", "CREATED"]));
    assert_eq!(number(server, "SELECT count(*) FROM library_files WHERE version = '2.9.0'").await, 2);
    assert_eq!(number(server, "SELECT size_bytes FROM library_versions WHERE version = '2.9.0'").await, 20);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'libraries.chainguard.dev/Artifact'";
    assert_eq!(number(server, audited).await, 2, "one row for each artifact and import");
    let told =
        "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.libraries.versions.imported.v1' AND NOT customer";
    assert_eq!(number(server, told).await, 2);
}

async fn the_operator_alone_fills_the_catalogue(server: &TestServer) {
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;
    let before = inventory(server).await;
    for (what, body) in [
        ("versions:import", json!({ "versions": [version("PYTHON", "a", "1", BUILT)] })),
        ("malware:import", json!({ "entries": [] })),
        ("malware:remove", json!({ "malids": [] })),
    ] {
        let reply = call(&owner, &format!("POST /catalog/v1/{what}"), body).await;
        assert_eq!(reply.status, 403, "{what}: {}", reply.text());
    }
    assert_eq!(inventory(server).await, before);
}

async fn invalid_versions_are_rejected_with_their_field(server: &TestServer) {
    let operator = server.operator().await;
    let before = inventory(server).await;
    let with = |member: &str, value: Value| {
        let mut version = version("PYTHON", "requests", "1.0", BUILT);
        version[member] = value;
        version
    };
    let file = |name: &str, sha256: &str| json!([{ "name": name, "sizeBytes": "1", "sha256": sha256 }]);
    let digest = "a".repeat(64);
    for (wrong, field) in [
        (with("ecosystem", json!("DOTNET")), "versions[0].ecosystem"),
        (with("ecosystem", json!("PYTHON_ATHENA")), "versions[0].ecosystem"),
        (with("name", json!("../etc")), "versions[0].name"),
        (with("version", json!("1 0")), "versions[0].version"),
        (with("version", json!("")), "versions[0].version"),
        (with("source", json!(0)), "versions[0].source"),
        (with("files", json!([])), "versions[0].files"),
        (with("files", file("a/b.whl", &digest)), "versions[0].files"),
        (with("files", file("b.whl", "beef")), "versions[0].files[0].sha256"),
        (with("npmManifest", json!("{}")), "versions[0].npmManifest"),
    ] {
        let body = json!({ "versions": [wrong] });
        let refusal =
            rejected(&operator, "POST /catalog/v1/versions:import", body.clone(), 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().contains(&field.to_owned()), "{body}: {refusal:?}");
    }
    let twice = json!({ "versions": [version("PYTHON", "A_b", "1", BUILT), version("PYTHON", "a-b", "1", BUILT)] });
    rejected(&operator, "POST /catalog/v1/versions:import", twice, 400, "INVALID_ARGUMENT").await;
    let many = json!({ "versions": vec![version("PYTHON", "a", "1", BUILT); 501] });
    rejected(&operator, "POST /catalog/v1/versions:import", many, 400, "INVALID_ARGUMENT").await;
    assert_eq!(inventory(server).await, before);
}

async fn artifacts_are_found_by_ecosystem_and_by_part_of_their_name(server: &TestServer) {
    filled(server).await;
    let org = server.organization("acme").await;
    let viewer = server.actor("viewer", &org).await;
    for (query, names) in [
        (
            "",
            &["a-node", "node", "node-fetch", "org.Example:Requestor", "org.slf4j:slf4j-api", "requests", "torch"]
                as &[&str],
        ),
        ("ecosystems=PYTHON", &["requests", "torch"]),
        ("ecosystems=PYTHON&includeUpstream=true", &["only-upstream", "requests", "torch"]),
        ("ecosystems=PYTHON&remediated=true", &["requests"]),
        ("ecosystems=PYTHON_ATHENA", &["requests"]),
        ("ecosystems=PYTHON_ATHENA&ecosystems=PYTHON", &["requests", "torch"]),
        ("ecosystems=GO", &[]),
        ("query=REQUEST", &["org.Example:Requestor", "requests"]),
        ("query=request&ecosystems=JAVA", &["org.Example:Requestor"]),
        ("query=slf4j-api", &["org.slf4j:slf4j-api"]),
        ("query=or", &["org.Example:Requestor", "org.slf4j:slf4j-api", "torch"]),
        ("query=node&includeUpstream=true", &["@types/node", "a-node", "node", "node-fetch"]),
        ("query=no%25e", &[]),
        ("query=n_de", &[]),
        ("cudaVersion=cu128", &["torch"]),
        ("cudaVersion=cu128&query=tor", &["torch"]),
        ("cudaVersion=cu126", &[]),
    ] {
        let list = ok(&viewer, &format!("GET /libraries/v1/artifacts?{query}"), Value::Null).await;
        assert_eq!(texts(&list["items"], "name"), names, "{query}");
        assert_eq!(list["totalArtifacts"], json!(names.len()), "{query}");
    }
    let tier = ok(&viewer, "GET /libraries/v1/artifacts?ecosystems=PYTHON_ATHENA", Value::Null).await;
    assert_eq!(tier["items"][0]["ecosystem"], "PYTHON_ATHENA");
    let found = ok(&viewer, "GET /libraries/v1/artifacts?query=requests", Value::Null).await["items"][0].clone();
    let shown = ["id", "ecosystem", "latestVersion", "description"].map(|member| found[member].clone());
    assert_eq!(shown, ["python:requests", "PYTHON", "2.10.0+cgr.1", "about requests"].map(Value::from));
    assert_eq!(found["versionCount"], 4);
    let all = ok(&viewer, "GET /libraries/v1/artifacts?query=requests&includeUpstream=true", Value::Null).await;
    assert_eq!((&all["items"][0]["latestVersion"], &all["items"][0]["versionCount"]), (&json!("2.11.0"), &json!(5)));
}

async fn callers_without_any_role_see_an_empty_catalog(server: &TestServer) {
    filled(server).await;
    let stranger = server.stranger().await;
    for path in ["v1/artifacts", "v1/npm/packages", "v1/malware/blocklist"] {
        let list = ok(&stranger, &format!("GET /libraries/{path}"), Value::Null).await;
        assert_eq!(list["items"], json!([]), "{path}");
    }
    let counts = ok(&stranger, "GET /libraries/v2/artifacts/count?ecosystems=ECOSYSTEM_PYTHON", Value::Null).await;
    assert_eq!(counts["counts"][0]["totalCount"], "0");
    let known = call(&stranger, "GET /libraries/v1/artifacts/python:requests/versions", Value::Null).await;
    let unknown = call(&stranger, "GET /libraries/v1/artifacts/python:unknown/versions", Value::Null).await;
    assert_eq!((known.status, unknown.status), (404, 404));
    assert_eq!(known.text().replace("requests", "unknown"), unknown.text());
}

async fn v2_pages_sorts_and_counts(server: &TestServer) {
    let operator = filled(server).await;
    let of = "ecosystems=ECOSYSTEM_PYTHON&ecosystems=ECOSYSTEM_JAVA";
    let whole = ok(&operator, &format!("GET /libraries/v2/artifacts?{of}"), Value::Null).await;
    let names = texts(&whole["artifacts"], "name");
    assert_eq!(names, ["org.Example:Requestor", "org.slf4j:slf4j-api", "requests", "torch"]);
    assert_eq!((&whole["totalCount"], &whole["artifacts"][2]["ecosystem"]), (&json!("4"), &json!("ECOSYSTEM_PYTHON")));
    for order in ["name", "name%20desc", "create_time", "update_time%20desc"] {
        let list = format!("GET /libraries/v2/artifacts?{of}&orderBy={order}&page_size=1");
        let mut walked = each_of(&pages(&operator, &list).await, "artifacts", "name");
        let mut sorted = walked.clone();
        sorted.sort();
        assert_eq!((walked.len(), &sorted), (4, &names), "{order}");
        if order == "name%20desc" {
            walked.reverse();
            assert_eq!(walked, names);
        }
    }
    let rest = ok(&operator, &format!("GET /libraries/v2/artifacts?{of}&skip=3"), Value::Null).await;
    assert_eq!((texts(&rest["artifacts"], "name"), &rest["skipped"]), (vec!["torch".to_owned()], &json!(3)));
    let counts = ok(&operator, &format!("GET /libraries/v2/artifacts/count?{of}"), Value::Null).await;
    assert_eq!(texts(&counts["counts"], "totalCount"), ["2", "2"]);
    for (wrong, field) in [
        ("", "ecosystems"),
        ("ecosystems=ECOSYSTEM_UNSPECIFIED", "ecosystems"),
        ("ecosystems=ECOSYSTEM_JAVA&orderBy=size", "orderBy"),
        ("ecosystems=ECOSYSTEM_JAVA&pageSize=-1", "pageSize"),
    ] {
        let what = format!("GET /libraries/v2/artifacts?{wrong}");
        let refusal = rejected(&operator, &what, Value::Null, 400, "INVALID_ARGUMENT").await;
        assert!(refusal.fields().iter().any(|named| named.starts_with(field)), "{wrong}: {refusal:?}");
    }
}

async fn versions_come_highest_first_as_their_ecosystem_orders_them(server: &TestServer) {
    let operator = filled(server).await;
    let versions = async |path: &str| {
        let list = ok(&operator, &format!("GET /libraries/{path}"), Value::Null).await;
        texts(if list["items"].is_array() { &list["items"] } else { &list["artifactVersions"] }, "version")
    };
    let built = ["3.0.0rc1", "2.10.0+cgr.1", "2.10.0", "2.9.0"];
    assert_eq!(versions("v1/artifacts/python:requests/versions").await, built);
    assert_eq!(versions("v2/artifacts/python:requests/versions").await, built);
    let all = versions("v1/artifacts/python:requests/versions?includeUpstream=true").await;
    assert_eq!(all, ["3.0.0rc1", "2.11.0", "2.10.0+cgr.1", "2.10.0", "2.9.0"]);
    assert_eq!(versions("v1/artifacts/python:requests/versions?offset=1&limit=2").await, built[1..3]);
    assert_eq!(versions("v2/artifacts/python:requests/versions?orderBy=version").await[0], "2.9.0");
    assert_eq!(versions("v2/artifacts/java:org.slf4j:slf4j-api/versions").await, ["2.0.0", "2.0.0-alpha1"]);

    let listed = pages(&operator, "GET /libraries/v2/artifacts/python:requests/versions?page_size=1").await;
    assert!(listed.iter().all(|page| page["totalCount"] == "4"), "{listed:?}");
    assert_eq!(each_of(&listed, "artifactVersions", "version"), built);
    let shown = ok(&operator, "GET /libraries/v1/artifacts/python:requests/versions", Value::Null).await;
    assert_eq!(shown["items"][1]["id"], "python:requests:2.10.0+cgr.1:INTERNAL_REMEDIATED");
    assert_eq!((&shown["items"][1]["sizeBytes"], &shown["items"][1]["sourceType"]), (&json!("10"), &json!(REMEDIATED)));
    let absent = call(&operator, "GET /libraries/v2/artifacts/python:nothing/versions", Value::Null).await;
    assert_eq!(absent.status, 404);
}

async fn packages_of_npm_go_by_their_names_and_by_ids_of_one_segment(server: &TestServer) {
    let operator = filled(server).await;
    let list =
        ok(&operator, "GET /libraries/v1/artifacts?ecosystems=JAVASCRIPT&includeUpstream=true", Value::Null).await;
    assert_eq!(list["items"][0]["id"], "javascript:@types:node");
    for id in ["javascript:@types:node", "javascript%3A%40types%3Anode"] {
        let path = format!("GET /libraries/v1/artifacts/{id}/versions?includeUpstream=true");
        assert_eq!(texts(&ok(&operator, &path, Value::Null).await["items"], "name"), ["@types/node"]);
    }
    let found = ok(&operator, "GET /libraries/v1/npm/packages?query=node", Value::Null).await;
    assert_eq!(texts(&found["items"], "packageName"), ["node", "node-fetch", "@types/node", "a-node"], "by relevance");
    assert_eq!(found["totalCount"], "4");
    let listed = pages(&operator, "GET /libraries/v1/npm/packages?query=node&page_size=1").await;
    assert_eq!(each_of(&listed, "items", "packageName"), texts(&found["items"], "packageName"));
    let upstream = "GET /libraries/v1/npm/packages?sourceTypes=NPM_SOURCE_TYPE_UPSTREAM_REGISTRY";
    assert_eq!(texts(&ok(&operator, upstream, Value::Null).await["items"], "packageName"), ["@types/node"]);

    let versions = ok(&operator, "GET /libraries/v1/npm/packages/versions?packageName=@types/node", Value::Null).await;
    let only = &versions["items"][0];
    assert_eq!(
        (&only["version"], &only["sourceType"]),
        (&json!("20.0.0"), &json!("NPM_SOURCE_TYPE_UPSTREAM_REGISTRY"))
    );
    assert!(only["integrity"].as_str().is_some_and(|text| text.starts_with("sha512-u7u7")), "{only}");
    let scoped = call(&operator, "GET /libraries/v1/npm/packages/versions?packageName=@types:node", Value::Null).await;
    assert_eq!(scoped.status, 404);
}

each_engine!(
    an_import_that_is_repeated_changes_nothing,
    the_operator_alone_fills_the_catalogue,
    invalid_versions_are_rejected_with_their_field,
    artifacts_are_found_by_ecosystem_and_by_part_of_their_name,
    callers_without_any_role_see_an_empty_catalog,
    v2_pages_sorts_and_counts,
    versions_come_highest_first_as_their_ecosystem_orders_them,
    packages_of_npm_go_by_their_names_and_by_ids_of_one_segment
);
