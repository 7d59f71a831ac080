//! Repositories, tags, and what is set for them.

use bowline_content::{Algorithm, Digest};
use bowline_testkit::{Engine, TestServer};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::support::{Terminal, ended, text};

const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An organization with an owner at the terminal.
async fn owner(server: &TestServer) -> (String, Terminal) {
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    (organization, terminal)
}

/// Pushes an image with nothing in it; its digest.
pub(crate) async fn push(server: &TestServer, terminal: &Terminal, repo: &str, tag: &str, what: &str) -> String {
    let registry = server.server().parts().settings.registry_audience.clone();
    let token = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    let manifest = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [], "annotations": {"what": what}});
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, INDEX.parse().expect("a header"))]);
    let path = format!("/v2/{repo}/manifests/{tag}");
    let client = server.anonymous().with_token(&token);
    let reply = client.rest_with("PUT", &path, headers, manifest.to_string().into_bytes()).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.header("docker-content-digest").expect("a digest").to_owned()
}

/// Pushes a chart that uses images of one repository.
pub(crate) async fn push_chart(server: &TestServer, terminal: &Terminal, repo: &str, tag: &str, image: &str) {
    let registry = server.server().parts().settings.registry_audience.clone();
    let client =
        server.anonymous().with_token(&ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0));
    let annotations = json!({ "artifacthub.io/images": format!("- image: {image}\n") });
    let config = json!({ "name": "shop", "version": tag, "annotations": annotations }).to_string();
    let digest = Digest::of(Algorithm::Sha256, config.as_bytes());
    let upload = format!("/v2/{repo}/blobs/uploads/?digest={digest}");
    let pushed = client.rest_with("POST", &upload, HeaderMap::new(), config.clone().into_bytes()).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text());
    let config = json!({
        "mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": digest.as_str(), "size": config.len(),
    });
    let manifest = json!({ "schemaVersion": 2, "mediaType": IMAGE, "config": config, "layers": [] });
    let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, IMAGE.parse().expect("a header"))]);
    let path = format!("/v2/{repo}/manifests/{tag}");
    let pushed = client.rest_with("PUT", &path, headers, manifest.to_string().into_bytes()).await;
    assert_eq!(pushed.status, 201, "{}", pushed.text());
}

/// Pushes an image without layers, and an SBOM about it; the image's digest.
pub(crate) async fn push_with_sbom(server: &TestServer, terminal: &Terminal, repo: &str, tag: &str) -> String {
    let registry = server.server().parts().settings.registry_audience.clone();
    let token = ended(&terminal.run(&["auth", "token", "--audience", &registry]).await, 0);
    let client = server.anonymous().with_token(&token);
    let created = json!({ "created": "2026-01-02T03:04:05Z", "creators": [] });
    let packages = json!([{ "SPDXID": "SPDXRef-a", "name": "musl", "versionInfo": "1.2", "licenseDeclared": "MIT" }]);
    let sbom = json!({ "spdxVersion": "SPDX-2.3", "name": "app", "creationInfo": created, "packages": packages });
    let config = json!({ "architecture": "amd64", "os": "linux", "rootfs": { "type": "layers", "diff_ids": [] } });
    let mut blobs = Vec::new();
    for (media_type, content) in [("application/vnd.oci.image.config.v1+json", config), ("application/spdx+json", sbom)]
    {
        let content = content.to_string();
        let digest = Digest::of(Algorithm::Sha256, content.as_bytes());
        let upload = format!("/v2/{repo}/blobs/uploads/?digest={digest}");
        let size = content.len();
        let pushed = client.rest_with("POST", &upload, HeaderMap::new(), content.into_bytes()).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text());
        blobs.push(json!({ "mediaType": media_type, "digest": digest.as_str(), "size": size }));
    }
    let headers = || HeaderMap::from_iter([(http::header::CONTENT_TYPE, IMAGE.parse().expect("a header"))]);
    let image = json!({ "schemaVersion": 2, "mediaType": IMAGE, "config": blobs[0], "layers": [] }).to_string();
    let digest = Digest::of(Algorithm::Sha256, image.as_bytes()).to_string();
    let subject = json!({ "mediaType": IMAGE, "digest": digest, "size": image.len() });
    let referrer = json!({
        "schemaVersion": 2, "mediaType": IMAGE, "config": blobs[0], "layers": [blobs[1]], "subject": subject,
    })
    .to_string();
    let referrer_digest = Digest::of(Algorithm::Sha256, referrer.as_bytes()).to_string();
    for (reference, manifest) in [(tag, image), (&referrer_digest, referrer)] {
        let path = format!("/v2/{repo}/manifests/{reference}");
        let pushed = client.rest_with("PUT", &path, headers(), manifest.into_bytes()).await;
        assert_eq!(pushed.status, 201, "{}", pushed.text());
    }
    digest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn charts_are_added_with_their_images_and_found() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let team = server.group(&organization, "team").await;
    push_chart(&server, &terminal, &format!("{organization}/shop"), "1", "r.example/app:1").await;
    let add = ["registry", "charts", "add", "acme/shop", "--parent", "acme/team"];
    let dry = ended(&terminal.run(&[&add[..], &["--dry-run", "--tag", "1"]].concat()).await, 0);
    assert!(dry.contains("charts/shop\tto be created") && dry.contains("app\tto be created"), "{dry}");
    let added = terminal.json(&add).await;
    let names: Vec<&Value> = added.as_array().expect("a list").iter().map(|repo| &repo["name"]).collect();
    assert_eq!(names, [&json!("charts/shop"), &json!("app")]);
    assert_eq!((&added[0]["created"], &added[1]["created"]), (&json!(true), &json!(true)), "the dry run made nothing");
    assert!(added[1]["id"].as_str().is_some_and(|id| id.starts_with(&team)), "{added}");
    let again = ended(&terminal.run(&add).await, 0);
    assert!(again.contains("app\tthere already"), "{again}");
    let source = terminal.json(&["registry", "repos", "get", "acme/team/app"]).await["sync_config"]["source"].clone();
    assert_eq!(source, json!("r.example/app"));
    let using = terminal.json(&["registry", "charts", "using", "acme/team/app"]).await;
    assert_eq!((using.as_array().map(Vec::len), &using[0]["chartRepo"]), (Some(1), &json!("shop")));
    ended(&terminal.run(&[&add[..], &["--tag", "2"]].concat()).await, 6);
    // Names of charts' repositories have a slash, and containers name organizations by UIDP.
    for path in ["acme/team/charts/shop".to_owned(), format!("{team}/charts/shop"), format!("{organization}/team/app")]
    {
        let got = terminal.json(&["registry", "repos", "get", &path]).await;
        assert!(got["uid"].as_str().is_some_and(|uid| uid.starts_with(&team)), "{path}: {got}");
    }
    let found = terminal.run(&["registry", "charts", "find", "shop"]).await;
    ended(&found, 1);
    assert!(text(&found.stderr).contains("--community-charts"), "{}", text(&found.stderr));

    // A source by hand, and none any more.
    let own = ["registry", "repos", "create", "acme/copy", "--source", "r.example/copy"];
    ended(&terminal.run(&own).await, 0);
    ended(&terminal.run(&["registry", "repos", "update", "acme/copy", "--source", "acme/shop"]).await, 1);
    let by_name = format!("{organization}/shop");
    ended(&terminal.run(&["registry", "repos", "update", "acme/copy", "--source", &by_name]).await, 0);
    ended(&terminal.run(&["registry", "repos", "update", "acme/copy", "--source", ""]).await, 0);
    let copy = terminal.json(&["registry", "repos", "get", "acme/copy"]).await;
    assert_eq!(copy.get("sync_config").filter(|sync| !sync.is_null()), None, "{copy}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repositories_from_the_first_to_the_last_day() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let team = server.group(&organization, "web").await;
    let readme = terminal.home.path().join("README.md");
    std::fs::write(&readme, "# Ours\n").expect("a file is written");
    let readme = readme.to_string_lossy();
    let create = ["registry", "repos", "create", "acme/web/nginx", "--description", "ours", "--readme", &readme];
    let uid = ended(&terminal.run(&create).await, 0);
    assert!(uid.starts_with(&format!("{team}/")), "{uid}");
    ended(&terminal.run(&create).await, 1);
    let long = terminal.home.path().join("LONG.md");
    std::fs::write(&long, "x".repeat(300_000)).expect("a file is written");
    let long = long.to_string_lossy();
    let refused = terminal.run(&["registry", "repos", "create", "acme/web/long", "--readme", &long]).await;
    ended(&refused, 2);
    assert!(text(&refused.stderr).contains("262144"), "{}", text(&refused.stderr));
    ended(&terminal.run(&["registry", "repos", "get", "acme/web/long"]).await, 6);

    let host = terminal.api.split_once("://").expect("an address").1;
    for name in ["acme/web/nginx", &uid, &format!("{host}/acme/web/nginx")] {
        let got = terminal.json(&["registry", "repos", "get", name]).await;
        assert_eq!((&got["uid"], &got["description"]), (&json!(uid), &json!("ours")), "{name}");
    }
    let change = ["--description", "theirs", "--bundles", "base,fips", "--name", "proxy"];
    ended(&terminal.run(&[&["registry", "repos", "update", "acme/web/nginx"][..], &change].concat()).await, 0);
    let shown = ended(&terminal.run(&["registry", "repos", "get", "acme/web/proxy"]).await, 0);
    assert!(shown.contains("description\ttheirs") && shown.contains("bundles\tbase,fips"), "{shown}");
    ended(&terminal.run(&["registry", "repos", "update", "acme/web/proxy", "--bundles", ""]).await, 0);
    ended(&terminal.run(&["registry", "repos", "update", "acme/web/proxy"]).await, 2);

    server.repo(&organization, "other").await;
    let listed = terminal.json(&["registry", "repos", "list", "acme"]).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    let listed = ended(&terminal.run(&["registry", "repos", "list", "acme/web"]).await, 0);
    assert!(listed.starts_with("UIDP\tNAME\tUPDATED\tDESCRIPTION\n") && listed.contains("\tproxy\t"), "{listed}");
    assert!(!listed.contains("other"), "{listed}");

    let unasked = terminal.run(&["registry", "repos", "delete", "acme/web/proxy"]).await;
    ended(&unasked, 2);
    let message = text(&unasked.stderr);
    assert!(
        message.contains("Delete the repository acme/web/proxy with 0 tags") && message.contains("--yes"),
        "{message}"
    );
    let deleted = terminal.run(&["registry", "repos", "delete", "acme/web/proxy", "--yes"]).await;
    assert_eq!(ended(&deleted, 0), "", "talk goes to stderr");
    for (missing, named) in [
        ("acme/web/proxy", "no repository \"acme/web/proxy\""),
        ("acme/none/proxy", "no group \"acme/none\""),
        ("none/proxy", "no group \"none\""),
        ("proxy", "organization/name"),
    ] {
        let refused = terminal.run(&["registry", "repos", "get", missing]).await;
        ended(&refused, if missing.contains('/') { 6 } else { 2 });
        assert!(text(&refused.stderr).contains(named), "{}", text(&refused.stderr));
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_and_what_they_named() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let path = format!("{organization}/nginx");
    let first = push(&server, &terminal, &path, "1.0", "first").await;
    push(&server, &terminal, &path, "0.9", "old").await;
    server.clock().advance(std::time::Duration::from_mins(5));
    let second = push(&server, &terminal, &path, "1.0", "second").await;

    let listed = ended(&terminal.run(&["registry", "tags", "list", "acme/nginx"]).await, 0);
    assert!(listed.contains(&format!("1.0\t{second}\t")) && listed.contains("0.9\t"), "{listed}");
    let listed = terminal.json(&["registry", "tags", "list", "acme/nginx", "--digest", &second]).await;
    assert_eq!((listed.as_array().map(Vec::len), &listed[0]["name"]), (Some(1), &json!("1.0")));

    let history = terminal.json(&["registry", "history", "acme/nginx:1.0"]).await;
    let digests: Vec<&Value> = history.as_array().expect("a list").iter().map(|moved| &moved["digest"]).collect();
    assert_eq!(digests, [&json!(second), &json!(first)], "the newest first");
    let table = ended(&terminal.run(&["registry", "history", "acme/nginx:1.0"]).await, 0);
    assert!(table.starts_with("SINCE\tDIGEST\n") && table.lines().count() == 3, "{table}");
    ended(&terminal.run(&["registry", "history", "acme/nginx:none"]).await, 6);
    // Lists leave such names out; here they are named.
    for hidden in ["1.2.3-r0", "latest-20240229", &format!("sha256-{}.sig", "ab".repeat(32))] {
        push(&server, &terminal, &path, hidden, "hidden").await;
        ended(&terminal.run(&["registry", "history", &format!("acme/nginx:{hidden}")]).await, 0);
    }
    ended(&terminal.run(&["registry", "history", &format!("acme/nginx@{first}")]).await, 2);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tags_are_made_resolved_and_deleted_and_retention_is_previewed() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let digest = push(&server, &terminal, &format!("{organization}/nginx"), "1.0", "one").await;
    let create = ["registry", "tags", "create", "acme/nginx:stable", "--digest", &digest];
    assert!(ended(&terminal.run(&create).await, 0).starts_with(&organization));
    assert_eq!(ended(&terminal.run(&["registry", "tags", "resolve", "acme/nginx:stable"]).await, 0), digest);
    let delete = ["registry", "tags", "delete", "acme/nginx:stable"];
    let unasked = terminal.run(&delete).await;
    ended(&unasked, 2);
    assert!(text(&unasked.stderr).contains(&digest), "{}", text(&unasked.stderr));
    ended(&terminal.run(&[&delete[..], &["--yes"]].concat()).await, 0);
    ended(&terminal.run(&["registry", "tags", "resolve", "acme/nginx:stable"]).await, 6);
    ended(&terminal.run(&["registry", "tags", "resolve", &format!("acme/nginx@{digest}")]).await, 2);

    server.clock().advance(std::time::Duration::from_mins(5));
    push(&server, &terminal, &format!("{organization}/nginx"), "2.0", "two").await;
    let preview = ["registry", "retention", "preview", "acme/nginx", "--keep-last", "1"];
    let outcome = terminal.json(&preview).await;
    assert_eq!((&outcome["kept"], &outcome["removed"][0]["digest"]), (&json!(1), &json!(digest)));
    let kept = terminal.json(&["registry", "retention", "preview", "acme/nginx"]).await;
    assert_eq!(kept["kept"], json!(2), "without rules everything stays");
    ended(&terminal.run(&["registry", "retention", "set", "acme/nginx", "--keep-last", "1"]).await, 0);
    let apply = ["registry", "retention", "apply", "acme/nginx"];
    let unasked = terminal.run(&apply).await;
    ended(&unasked, 2);
    assert!(text(&unasked.stderr).contains("Remove 1 images of acme/nginx"), "{}", text(&unasked.stderr));
    assert!(ended(&terminal.run(&[&apply[..], &["--yes"]].concat()).await, 0).contains(&digest));
    ended(&terminal.run(&["registry", "tags", "resolve", "acme/nginx:1.0"]).await, 6);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn policies_of_repositories_and_groups() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    server.repo(&organization, "nginx").await;
    let set = ["registry", "policy", "set", "acme/nginx", "--public", "true", "--immutable-tags", "v.*,r[0-9]+"];
    ended(&terminal.run(&set).await, 0);
    ended(&terminal.run(&["registry", "policy", "set", "acme/nginx", "--quota", "20GiB"]).await, 0);
    let keep = ["registry", "retention", "set", "acme/nginx", "--keep-last", "3", "--keep-tags", "v.*"];
    let kept = ended(&terminal.run(&keep).await, 0);
    assert!(kept.contains("keep last\t3\n") && kept.contains("otherwise\tdeleted"), "{kept}");
    let policy = terminal.json(&["registry", "policy", "get", "acme/nginx"]).await;
    assert_eq!((&policy["public"], &policy["byteQuota"]), (&json!(true), &json!("21474836480")));
    assert_eq!(policy["immutableTagPatterns"], json!(["v.*", "r[0-9]+"]));
    assert_eq!((&policy["retention"]["keepLast"], &policy["retention"]["keepPatterns"]), (&json!(3), &json!(["v.*"])));

    ended(&terminal.run(&["registry", "policy", "set", "acme/nginx", "--immutable-tags", ""]).await, 0);
    let cleared = terminal.json(&["registry", "retention", "clear", "acme/nginx"]).await;
    assert_eq!((&cleared["retention"], &cleared["public"]), (&Value::Null, &json!(true)), "the rest stays");
    let policy = ended(&terminal.run(&["registry", "policy", "get", "acme/nginx"]).await, 0);
    assert!(policy.contains("immutable tags\t\n"), "{policy}");

    ended(&terminal.run(&["registry", "retention", "set", "--group", "acme", "--keep-days", "90"]).await, 0);
    let of_group = terminal.json(&["registry", "policy", "get", "--group", "acme"]).await;
    assert_eq!((&of_group["uid"], &of_group["retention"]["keepDays"]), (&json!(organization), &json!(90)));

    let url = ["--upstream", "https://registry.example.com/team", "--upstream-tags", "1,2"];
    let account = ["--upstream-username", "me", "--upstream-password-file", "-"];
    let set = [&["registry", "policy", "set", "acme/nginx"][..], &url, &account].concat();
    let shown = ended(&terminal.run_with(&set, b"hush\n").await, 0);
    for line in ["upstream\thttps://registry.example.com/team", "upstream tags\t1,2", "upstream username\tme"] {
        assert!(shown.contains(&format!("{line}\n")), "{shown}");
    }
    assert!(shown.contains("upstream password\tset\n") && !shown.contains("hush"), "{shown}");
    let kept = ["registry", "policy", "set", "acme/nginx", "--upstream-tags", "3"];
    let shown = ended(&terminal.run(&kept).await, 0);
    assert!(shown.contains("upstream tags\t3\n") && shown.contains("upstream password\tset\n"), "{shown}");
    let elsewhere = ["registry", "policy", "set", "acme/nginx", "--upstream", "https://evil.example.com"];
    let refused = terminal.run(&elsewhere).await;
    ended(&refused, 1);
    assert!(text(&refused.stderr).contains("upstream.password must be given again"), "{}", text(&refused.stderr));
    let everybody = ["registry", "policy", "set", "acme/nginx", "--upstream-username", ""];
    assert!(ended(&terminal.run(&everybody).await, 0).contains("upstream password\tnot set\n"));
    let shown = ended(&terminal.run(&["registry", "policy", "set", "acme/nginx", "--upstream", ""]).await, 0);
    assert!(shown.contains("upstream\t\n") && shown.contains("upstream password\t\n"), "{shown}");

    for wrong in [
        &["registry", "policy", "set", "acme/nginx"][..],
        &["registry", "policy", "set", "acme/nginx", "--upstream-username", "me"],
        &["registry", "policy", "set", "acme/nginx", "--upstream", "", "--upstream-tags", "1"],
        &["registry", "policy", "get"],
        &["registry", "policy", "get", "acme/nginx", "--group", "acme"],
        &["registry", "policy", "set", "acme/nginx", "--quota", "many"],
        &["registry", "retention", "set", "acme/nginx"],
        &["registry", "retention", "set", "acme/nginx", "--keep-last", "0"],
    ] {
        ended(&terminal.run(wrong).await, 2);
    }
    terminal.sign_in_as(&server.actor("viewer", &organization).await);
    ended(&terminal.run(&["registry", "policy", "set", "acme/nginx", "--public", "false"]).await, 4);
    // An editor changes repositories, and may not push.
    terminal.sign_in_as(&server.actor("editor", &organization).await);
    for set in [
        &["registry", "policy", "set", "acme/nginx", "--upstream", "https://registry.example.com/evil"][..],
        &["registry", "repos", "update", "acme/nginx", "--source", "registry.example.com/evil"],
        &["registry", "repos", "create", "acme/copy", "--source", "registry.example.com/evil"],
    ] {
        let refused = terminal.run(set).await;
        ended(&refused, 4);
        let told = text(&refused.stderr);
        assert!(told.contains("manifest.create") && told.contains("registry.push"), "{told}");
    }
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_of_scanners() {
    let server = TestServer::start(Engine::Sqlite).await;
    let (organization, terminal) = owner(&server).await;
    let digest = push(&server, &terminal, &format!("{organization}/nginx"), "latest", "scanned").await;
    let report = json!({
        "descriptor": {"name": "grype", "version": "0.80.0"},
        "matches": [{
            "vulnerability": {"id": "CVE-2026-1", "severity": "High"},
            "artifact": {"name": "openssl", "version": "3.0.0", "type": "apk"},
        }],
    });
    let file = terminal.home.path().join("grype.json");
    std::fs::write(&file, report.to_string()).expect("a file is written");
    let file = file.to_string_lossy();
    let put = ["registry", "scan-report", "put", "acme/nginx", "--file", &file];
    let stored = terminal.json(&put).await;
    assert_eq!((&stored["digest"], &stored["vulnerabilities"]), (&json!(digest), &json!(1)));
    assert_eq!((&stored["scanner"], &stored["scannerVersion"]), (&json!("SCANNER_NAME_GRYPE"), &json!("0.80.0")));

    let by_digest = format!("acme/nginx@{digest}");
    let from_stdin = ["registry", "scan-report", "put", &by_digest, "--file", "-"];
    let table = ended(&terminal.run_with(&from_stdin, report.to_string().as_bytes()).await, 0);
    assert!(table.contains(&format!("{digest}\t1\t0.80.0\t")), "{table}");

    let unknown = terminal.run_with(&from_stdin, b"{}").await;
    ended(&unknown, 2);
    assert!(text(&unknown.stderr).contains("--scanner"), "{}", text(&unknown.stderr));
    let missing = terminal.run(&["registry", "scan-report", "put", "acme/nginx", "--file", "/no/such/file"]).await;
    ended(&missing, 1);
    assert!(text(&missing.stderr).contains("/no/such/file"), "{}", text(&missing.stderr));
    let trivy = [&from_stdin[..], &["--scanner", "trivy"]].concat();
    ended(&terminal.run_with(&trivy, b"no report").await, 1);
    server.stop().await;
}
