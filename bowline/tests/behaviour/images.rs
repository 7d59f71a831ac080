//! Images by digest, deployments, settings, and methods with empty results.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::{Manifest, digest, store};
use crate::support::{absent, call, image, number, ok, rejected};

async fn an_image_is_found_through_its_repository_only(server: &TestServer) {
    let org = server.organization("acme").await;
    let (repo, other) = (server.repo(&org, "web").await, server.repo(&org, "db").await);
    let operator = server.operator().await;
    let (index, amd, arm, foreign, odd) = (digest('0'), digest('1'), digest('2'), digest('3'), digest('4'));
    let run = r#"{"User":"65532","Env":["A=1"],"Entrypoint":["/bin/x"],"Cmd":["-v"],"WorkingDir":"/w",
                      "ExposedPorts":{"80/tcp":{}},"Volumes":{"/data":{}},"Labels":{"a":"b","n":1},"StopSignal":"TERM"}"#;
    let config = |architecture| Some((architecture, run));
    let one = |digest, size, config| Manifest { digest, shape: 1, size, names: &[], config };
    store(server, &repo, &one(&amd, 100, config("amd64"))).await;
    store(server, &repo, &one(&arm, 200, config("arm64"))).await;
    store(server, &other, &one(&foreign, 300, config("riscv64"))).await;
    let names = [(amd.as_str(), "amd64"), (&arm, ""), (&foreign, "riscv64"), (&odd, "unknown")];
    store(server, &repo, &Manifest { digest: &index, shape: 2, size: 999, names: &names, config: None }).await;

    let path = |repo: &str, digest: &str, what: &str| format!("/registry/v2/repos/{repo}/digests/{digest}/{what}");
    let v1 = |repo: &str, digest: &str, what: &str| format!("/registry/v1/repos/{repo}/digests/{digest}/{what}");
    let get = |path: String| format!("GET {path}");
    let shown = ok(&operator, &get(path(&repo, &index, "architectures")), Value::Null).await;
    assert_eq!(shown["architectures"], json!(["amd64", "arm64", "riscv64"]));
    let shown = ok(&operator, &get(v1(&repo, &amd, "architectures")), Value::Null).await;
    assert_eq!(shown["archs"], json!(["amd64"]));
    for (digest, query, size, architecture) in [
        (&index, "", "100", "amd64"),
        (&index, "?architecture=arm64", "200", "arm64"),
        (&arm, "", "200", "arm64"),
        (&arm, "?architecture=arm64", "200", "arm64"),
    ] {
        let shown = ok(&operator, &get(path(&repo, digest, "size") + query), Value::Null).await;
        assert_eq!(shown, json!({ "size": size, "architecture": architecture }), "{query}");
    }
    let shown = ok(&operator, &get(v1(&repo, &index, "size?arch=arm64")), Value::Null).await;
    assert_eq!(shown, json!({ "size": "200", "arch": "arm64" }));

    // An index may name what is not here: it is not shown for that.
    for (digest, query) in [
        (&index, "?architecture=riscv64"),
        (&index, "?architecture=s390x"),
        (&arm, "?architecture=amd64"),
        (&foreign, ""),
    ] {
        rejected(&operator, &get(path(&repo, digest, "size") + query), Value::Null, 404, "NOT_FOUND").await;
    }
    rejected(&operator, &get(path(&repo, "sha256:1", "size")), Value::Null, 400, "INVALID_ARGUMENT").await;

    let shown = ok(&operator, &get(v1(&repo, &index, "imageconfig?arch=arm64")), Value::Null).await;
    let expected = json!({
        "user": "65532", "exposedPorts": { "80/tcp": {} }, "env": ["A=1"], "entrypoint": ["/bin/x"], "cmd": ["-v"],
        "volumes": { "/data": {} }, "workingDir": "/w", "labels": { "a": "b" }, "stopSignal": "TERM"
    });
    assert_eq!(shown, expected);
    assert_eq!(call(&operator, &get(v1(&repo, &foreign, "imageconfig")), Value::Null).await.status, 404);

    let shown = ok(&operator, &format!("GET /registry/v1/repos/{repo}/manifestmetdata"), Value::Null).await;
    let item = |digest: &str| json!({ "digest": digest, "pkgMetadata": [] });
    assert_eq!(shown["items"], json!([item(&amd), item(&arm)]));
    for (place, count) in [(&repo, "3"), (&other, "1"), (&org, "4")] {
        let shown = ok(&operator, &format!("GET /registry/v1/digestcount/{place}"), Value::Null).await;
        assert_eq!(shown["count"], json!(count));
    }
    let check = format!("POST /registry/v1/repos/{repo}:checkPolicies");
    assert_eq!(ok(&operator, &check, json!({ "digest": amd })).await["results"], json!([]));
    assert_eq!(call(&operator, &check, json!({ "digest": foreign })).await.status, 404);
}

async fn a_repository_has_one_deployment(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    let path = format!("/registry/v1/repos/{repo}/deployment");
    let charts = |repo: &str| json!({ "charts": [{ "source": "https://example.com/src", "repo": repo }] });
    for verb in ["GET", "PUT"] {
        let body = if verb == "PUT" { charts("oci://a") } else { Value::Null };
        assert_eq!(call(&operator, &format!("{verb} {path}"), body).await.status, 404);
    }
    let made = ok(&operator, &format!("POST {path}"), charts("oci://a")).await;
    let expected = |url: &str| json!({ "id": repo, "charts": [{ "source": "https://example.com/src", "repo": url }] });
    assert_eq!(made, expected("oci://a"));
    assert_eq!(call(&operator, &format!("POST {path}"), charts("oci://b")).await.status, 409);
    assert_eq!(ok(&operator, &format!("PUT {path}"), charts("oci://b")).await, expected("oci://b"));
    assert_eq!(ok(&operator, &format!("GET {path}"), Value::Null).await, expected("oci://b"));
    assert_eq!(call(&operator, &format!("PUT {path}"), json!({ "charts": [{ "repo": "" }] })).await.status, 400);

    // Clearing is the only way to be rid of it; afterwards it can be created again.
    let cleared = ok(&operator, &format!("PUT {path}"), json!({ "charts": [] })).await;
    assert_eq!(cleared["charts"], json!([]));
    assert_eq!(ok(&operator, &format!("GET {path}"), Value::Null).await["charts"], json!([]));
    ok(&operator, &format!("POST {path}"), charts("oci://c")).await;
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Deployment'";
    assert_eq!(number(server, audited).await, 4);
    let nowhere = format!("POST /registry/v1/repos/{}/deployment", absent(&org));
    assert_eq!(call(&operator, &nowhere, charts("oci://a")).await.status, 404);
}

async fn an_organization_has_settings_and_nothing_else_has(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "team").await;
    let operator = server.operator().await;
    let path = format!("/registry/v1/settings/{org}");
    let off = json!({ "registryId": org, "uniqueTags": false, "eolGracePeriod": false });
    assert_eq!(ok(&operator, &format!("GET {path}"), Value::Null).await, off);
    let on = json!({ "registryId": org, "uniqueTags": true, "eolGracePeriod": false });
    let body = json!({ "uniqueTags": true });
    assert_eq!(ok(&operator, &format!("PUT {path}"), body.clone()).await, on);
    assert_eq!(ok(&operator, &format!("PUT {path}"), body).await, on);
    assert_eq!(ok(&operator, &format!("GET {path}"), Value::Null).await, on);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/RegistrySettings'";
    assert_eq!(number(server, audited).await, 1);
    for verb in ["GET", "PUT"] {
        let body = if verb == "PUT" { json!({}) } else { Value::Null };
        let reply = call(&operator, &format!("{verb} /registry/v1/settings/{group}"), body).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
    let features = ok(&operator, &format!("GET /registry/v1/entitlements/{group}:features"), Value::Null).await;
    assert_eq!(features, json!({ "customAssembly": false, "uniqueTags": true }));
    ok(&operator, &format!("DELETE /iam/v2/groups/{group}"), Value::Null).await;
    ok(&operator, &format!("DELETE /iam/v2/groups/{org}"), Value::Null).await;
    assert_eq!(number(server, "SELECT count(*) FROM registry_settings").await, 0);
}

async fn sync_statuses_and_repositories_by_source_are_returned(server: &TestServer) {
    let org = server.organization("acme").await;
    let (source, repo) = (server.repo(&org, "web").await, server.repo(&org, "copy").await);
    let operator = server.operator().await;
    let path = format!("GET /registry/v1/repos/{repo}:syncstatus");
    assert_eq!(ok(&operator, &path, Value::Null).await, json!({ "status": "UNKNOWN" }));
    let sql = "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, 2, 1000000, '')";
    crate::support::execute(server, sql, &[&repo, &org]).await;
    let running = json!({ "status": "IN_PROGRESS", "createTime": "1970-01-01T00:00:01Z" });
    assert_eq!(ok(&operator, &path, Value::Null).await, running);
    let all = ok(&operator, &format!("GET /registry/v1/syncstatuses?registryId={org}"), Value::Null).await;
    assert_eq!(all["items"], json!([{ "repoId": repo, "repoStatus": running }]));

    let count = format!("GET /registry/v1/repocountbysource/{source}");
    assert_eq!(ok(&operator, &count, Value::Null).await["count"], json!("0"));
    let update = format!("PATCH /registry/v2/repos/{repo}");
    ok(&operator, &update, json!({ "sync_config": { "source": source } })).await;
    let body = json!({ "name": "third", "sync_config": { "source": source } });
    ok(&operator, &format!("POST /registry/v2/repos/{org}"), body).await;
    assert_eq!(ok(&operator, &count, Value::Null).await["count"], json!("2"));
    ok(&operator, &format!("{update}?updateMask=sync_config"), json!({})).await;
    assert_eq!(ok(&operator, &count, Value::Null).await["count"], json!("1"));
}

async fn commercial_and_build_methods_return_empty_results(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    image(server, &repo, &digest('1'), 1).await;
    let operator = server.operator().await;
    let get = |path: String| format!("GET {path}");
    for (path, expected) in [
        (format!("/registry/v1/entitlements/{org}"), json!({ "items": [] })),
        (format!("/registry/v1/entitlements/{org}/images"), json!({ "images": [] })),
        (format!("/registry/v1/entitlements/{org}/catalog-images"), json!({ "images": [] })),
        (format!("/registry/v1/entitlements/{org}:summary"), json!({ "quota": {} })),
        ("/registry/v1/buildreports".to_owned(), json!({ "reports": [] })),
        ("/registry/v1/buildstatus".to_owned(), json!({ "failures": [] })),
    ] {
        assert_eq!(ok(&operator, &get(path.clone()), Value::Null).await, expected, "{path}");
    }
    let all = ok(&operator, &get(format!("/registry/v1/entitlements/{org}:effective")), Value::Null).await;
    assert_eq!((&all["plan"], &all["maxTotalImages"], &all["swapQuota"]), (&json!("CATALOG"), &json!(-1), &json!(-1)));
    assert_eq!(all["activeTiers"].as_array().map(Vec::len), Some(6));
    assert_eq!(call(&operator, "GET /registry/v1/versions/python", Value::Null).await.status, 404);
    let what = format!("POST /apko/v1/resolve/{repo}");
    assert_eq!(call(&operator, &what, json!({})).await.status, 501, "{what}");
}

each_engine!(
    an_image_is_found_through_its_repository_only,
    a_repository_has_one_deployment,
    an_organization_has_settings_and_nothing_else_has,
    sync_statuses_and_repositories_by_source_are_returned,
    commercial_and_build_methods_return_empty_results
);
