//! Charts that are added with the images that they use, and found.

use bowline_contract::v1::registry::rpc::charts::{AddChart, FindChart};
use bowline_contract::v1::registry::{AddChartRequest, FindChartRequest};
use bowline_testkit::{Actor, Engine, RestReply, TestServer, by_engine, each_engine};
use serde_json::{Value, json};

use crate::support::*;

fn default<T: Default>() -> T {
    T::default()
}

const METADATA: &str = "application/vnd.cncf.helm.config.v1+json";
const ARCHIVE: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Pushes a chart that says this of its images; its manifest.
pub(crate) async fn push_chart(client: &Client, name: &str, tag: &str, images: Option<&str>) -> Value {
    let mut metadata = json!({ "name": "shop", "version": tag, "apiVersion": "v2" });
    if let Some(images) = images {
        metadata["annotations"] = json!({ "artifacthub.io/images": images });
    }
    push_with_config(client, name, tag, metadata.to_string().as_bytes()).await
}

async fn push_with_config(client: &Client, name: &str, tag: &str, config: &[u8]) -> Value {
    client.blob(name, config).await;
    client.blob(name, b"an archive").await;
    let mut manifest = image(b"an archive");
    manifest["config"] = descriptor(METADATA, config);
    manifest["layers"][0]["mediaType"] = json!(ARCHIVE);
    let reply = client.put(name, tag, &manifest).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    manifest
}

/// The registry's own host.
fn host(server: &TestServer) -> String {
    server.base().split_once("://").expect("a URL").1.to_owned()
}

async fn add(actor: &Actor, group: &str, request: Value) -> RestReply {
    actor.rest("POST", &format!("/registry/v1/repos/{group}:addChart"), Some(request)).await
}

/// What was added: path, whether it is new, and whether it has a UIDP.
fn told(reply: &RestReply) -> Vec<(String, bool, bool)> {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let repos = reply.json()["repos"].as_array().expect("a list").clone();
    let one = |repo: &Value| {
        let created = repo["created"].as_bool().expect("a truth");
        (repo["name"].as_str().expect("a name").to_owned(), created, !repo["id"].as_str().expect("an id").is_empty())
    };
    repos.iter().map(one).collect()
}

/// The names of the charts that use images of a repository.
async fn users(actor: &Actor, repo: &str) -> Value {
    let reply = actor.rest("GET", &format!("/registry/v1/repos/{repo}/chart-image-bindings"), None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let bindings = reply.json()["chartImageBindings"].as_array().expect("a list").clone();
    bindings.iter().map(|binding| binding["chartRepo"].clone()).collect()
}

/// What the reply refuses for, all in one line.
fn rejected(reply: &RestReply, status: u16) -> String {
    assert_eq!(reply.status, status, "{}", reply.text());
    reply.text()
}

async fn a_chart_comes_with_repositories_for_its_images(server: &TestServer) {
    let (catalog, there) = pusher(server, "catalog").await;
    server.group(&catalog, "helm").await;
    publish(server, &catalog, true).await;
    let shop = there.image(&format!("{catalog}/shop-server"), "7", b"the shop").await;
    let images = format!(
        "- image: {}/{catalog}/shop-server:7\n- image: r.example/team/db:1@{}\n- image: r.example/team/db:2\n",
        host(server),
        digest(b"x")
    );
    let chart = push_chart(&there, &format!("{catalog}/helm/shop"), "1.0.0", Some(&images)).await;
    let source = repo_uid(server, "shop").await;
    let served = repo_uid(server, "shop-server").await;
    let org = server.organization("acme").await;
    let owner = server.actor("owner", &org).await;

    // A dry run tells the same and changes nothing.
    let rows = "SELECT (SELECT count(*) FROM repos) + (SELECT count(*) FROM groups) + (SELECT count(*) FROM audit)";
    let before = number(server, rows).await;
    let dry = add(&owner, &org, json!({ "sourceRepoId": source, "dryRun": true })).await;
    let new = |has_id: bool| ["helm/shop", "db", "shop-server"].map(|name| (name.to_owned(), true, has_id));
    assert_eq!((told(&dry), number(server, rows).await), (new(false).to_vec(), before));
    let request =
        AddChartRequest { parent_id: org.clone(), source_repo_id: source.clone(), dry_run: true, ..default() };
    let over_grpc = owner.grpc::<AddChart>(request).await.expect("the owner may").repos;
    let over_grpc = over_grpc.into_iter().map(|repo| (repo.name, repo.created, !repo.id.is_empty()));
    assert_eq!(over_grpc.collect::<Vec<_>>(), new(false));

    let added = add(&owner, &org, json!({ "sourceRepoId": source })).await;
    assert_eq!(told(&added), new(true));
    let sources = texts(server, "SELECT name || ' ' || synced_from FROM repos WHERE synced_from <> '' ORDER BY name");
    let expected = ["db https://r.example/team/db", &format!("shop {source}"), &format!("shop-server {served}")];
    assert_eq!(sources.await, expected);
    let logged = "SELECT count(*) FROM audit WHERE method LIKE '%AddChart'";
    assert_eq!(number(server, logged).await, 4, "a group and three repositories");

    // Again, everything is there already.
    let logged_once = number(server, "SELECT count(*) FROM audit").await;
    for dry_run in [true, false] {
        let again = add(&owner, &org, json!({ "sourceRepoId": source, "tag": "1.0.0", "dryRun": dry_run })).await;
        assert!(told(&again).iter().all(|(_, created, has_id)| !created && *has_id), "{}", again.text());
        let ids = |reply: &RestReply| {
            reply.json()["repos"].as_array().map(|all| all.iter().map(|one| one["id"].clone()).collect::<Vec<_>>())
        };
        assert_eq!(ids(&again), ids(&added));
    }
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, logged_once);

    // What was added can be pulled, and the chart is known as a user of the images then.
    let operator = server.operator().await;
    assert_eq!(users(&operator, &served).await, json!(["shop"]));
    assert_eq!(users(&operator, &source).await, json!([]));
    let id = |at: usize| added.json()["repos"][at]["id"].as_str().expect("an id").to_owned();
    for (at, known) in [(0, json!([])), (1, json!([])), (2, json!([]))] {
        assert_eq!(users(&owner, &id(at)).await, known, "of charts that one may see");
    }
    let reader = client(server, "registry.pull", &org).await;
    assert_eq!(reader.get(&format!("/v2/{org}/helm/shop/manifests/1.0.0")).await.json(), chart);
    assert_eq!(reader.get(&format!("/v2/{org}/shop-server/manifests/7")).await.json(), shop);
    for at in [1, 2] {
        assert_eq!(users(&owner, &id(at)).await, json!(["shop"]), "through their sources");
    }
    let reply =
        server.stranger().await.rest("GET", &format!("/registry/v1/repos/{served}/chart-image-bindings"), None).await;
    assert_eq!(reply.status, 403, "{}", reply.text());
}

async fn a_chart_without_a_list_comes_alone_and_the_newest_tag_counts(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let owner = server.actor("owner", &org).await;
    push_chart(&client, &format!("{org}/shop"), "1", None).await;
    server.clock().advance(std::time::Duration::from_secs(1));
    let client = crate::support::client(server, "registry.push", &org).await;
    push_chart(&client, &format!("{org}/shop"), "2", Some("- image: r.example/app:1")).await;
    server.clock().advance(std::time::Duration::from_secs(1));
    client.image(&format!("{org}/shop"), "not-a-chart", b"a layer").await;
    let source = repo_uid(server, "shop").await;
    let target = server.group(&org, "team").await;
    let first = add(&owner, &target, json!({ "sourceRepoId": source, "tag": "1", "dryRun": true })).await;
    assert_eq!(told(&first), [("charts/shop".to_owned(), true, false)]);
    let newest = add(&owner, &target, json!({ "sourceRepoId": source })).await;
    assert_eq!(told(&newest), [("charts/shop".to_owned(), true, true), ("app".to_owned(), true, true)]);
}

#[expect(clippy::too_many_lines, reason = "one scenario, step by step")]
async fn what_cannot_be_added_is_refused_whole(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let (theirs, there) = pusher(server, "theirs").await;
    there.image(&format!("{theirs}/secret"), "1", b"a secret").await;
    push_chart(&there, &format!("{theirs}/hidden"), "1", None).await;
    let (name, host) = (format!("{org}/shop"), host(server));
    for (tag, images) in [
        ("unreadable", "x"),
        ("nameless", "- name: x"),
        ("clash", "- image: r.example/a/app\n- image: r.example/b/app"),
        ("short", "- image: app:1"),
        ("secret", &format!("- image: {host}/{theirs}/secret")),
        ("absent", &format!("- image: {host}/{org}/nothing")),
        ("unnameable", "- image: r.example/0123456789abcdef"),
        ("fine", "- image: r.example/app"),
    ] {
        push_chart(&client, &name, tag, Some(images)).await;
    }
    push_with_config(&client, &name, "damaged", b"[]").await;
    client.image(&name, "an-image", b"a layer").await;
    let source = repo_uid(server, "shop").await;
    let hidden = repo_uid(server, "hidden").await;
    let owner = server.actor("owner", &org).await;
    let rows = "SELECT (SELECT count(*) FROM repos) + (SELECT count(*) FROM groups)";
    let before = number(server, rows).await;
    for (tag, status, reason) in [
        ("unreadable", 400, "is not a list of YAML objects"),
        ("nameless", 400, "names no image with"),
        ("damaged", 400, "not JSON as Helm writes it"),
        ("clash", 400, "would both be app"),
        ("short", 400, "images of app, which is no repository here that you may pull from"),
        ("secret", 400, "secret, which is no repository here that you may pull from"),
        ("absent", 400, "nothing, which is no repository here that you may pull from"),
        ("unnameable", 400, "0123456789abcdef cannot be a repository here"),
        ("an-image", 404, ":an-image"),
        ("3", 404, ":3"),
    ] {
        for dry_run in [true, false] {
            let reply = add(&owner, &org, json!({ "sourceRepoId": source, "tag": tag, "dryRun": dry_run })).await;
            let told = rejected(&reply, status);
            assert!(told.contains(reason), "{tag}: {told}");
        }
    }
    for source in [&hidden, &"0".repeat(40), "", "r.example/charts/shop"] {
        let told = rejected(&add(&owner, &org, json!({ "sourceRepoId": source })).await, 400);
        assert!(told.contains("sourceRepoId") && told.contains("that you may pull from"), "{told}");
    }
    let no_chart = repo_uid(server, "secret").await;
    let operator = server.operator().await;
    rejected(&add(&operator, &org, json!({ "sourceRepoId": no_chart })).await, 404);
    rejected(&add(&operator, &"0".repeat(40), json!({ "sourceRepoId": source })).await, 404);
    let reader = server.actor("registry.pull", &org).await;
    rejected(&add(&reader, &org, json!({ "sourceRepoId": source, "tag": "fine" })).await, 403);
    assert_eq!(number(server, rows).await, before, "nothing was made on the way to a refusal");

    // A chart of before its images were kept has to be pushed once more.
    execute(server, "DELETE FROM charts").await;
    let request = json!({ "sourceRepoId": source, "tag": "fine" });
    let told = rejected(&add(&owner, &org, request.clone()).await, 400);
    assert!(told.contains("push it once more"), "{told}");
    execute(server, "DELETE FROM chart_images").await;
    push_chart(&client, &name, "fine", Some("- image: r.example/app")).await;
    assert_eq!(add(&owner, &org, request).await.status, 200);
}

async fn a_chart_opens_nothing_of_the_organization_that_gets_it(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    client.image(&format!("{org}/payroll"), "1", b"not for the team").await;
    let payroll = repo_uid(server, "payroll").await;
    let images = format!("- image: {}/{org}/payroll:1\n", host(server));
    push_chart(&client, &format!("{org}/shop"), "1", Some(&images)).await;
    let source = repo_uid(server, "shop").await;
    let team = server.group(&org, "team").await;
    let owner = server.actor("owner", &org).await;
    for dry_run in [true, false] {
        let reply = add(&owner, &team, json!({ "sourceRepoId": source, "dryRun": dry_run })).await;
        let told = rejected(&reply, 400);
        assert!(told.contains("not everybody may pull from") && told.contains(&payroll), "{told}");
    }
    assert_eq!(number(server, "SELECT count(*) FROM groups WHERE name = 'charts'").await, 0);

    // What is public may be had by everyone; and what the caller has made themselves is there.
    publish(server, &payroll, true).await;
    let dry = add(&owner, &team, json!({ "sourceRepoId": source, "dryRun": true })).await;
    assert_eq!(told(&dry)[1], ("payroll".to_owned(), true, false));
    execute(server, "UPDATE registry_policies SET is_public = FALSE").await;
    let copy = json!({ "name": "payroll", "sync_config": { "source": payroll } });
    assert_eq!(owner.rest("POST", &format!("/registry/v2/repos/{team}"), Some(copy)).await.status, 200);
    let added = add(&owner, &team, json!({ "sourceRepoId": source })).await;
    assert_eq!(told(&added)[1], ("payroll".to_owned(), false, true));
    assert_eq!(users(&owner, &payroll).await, json!(["shop"]));
}

async fn charts_are_found_in_the_catalogues_that_the_operator_named(engine: Engine) {
    let server = TestServer::start(engine).await;
    let (org, client) = pusher(&server, "catalog").await;
    let charts = server.group(&org, "charts").await;
    push_chart(&client, &format!("{org}/charts/shop"), "1", None).await;
    let find = async |server: &TestServer, query: &str| {
        let stranger = server.stranger().await;
        stranger.rest("GET", &format!("/registry/v1/charts:find?{query}"), None).await
    };
    let told = rejected(&find(&server, "name=shop").await, 400);
    assert!(told.contains("--community-charts"), "{told}");
    let server = server.restarted_with(|options| options.community_charts = Some(charts.clone())).await;
    let found = find(&server, "name=shop&catalog=CHART_CATALOG_COMMUNITY").await;
    assert_eq!(found.json(), json!({ "sourceRepoId": repo_uid(&server, "shop").await, "name": "shop" }));
    assert_eq!(find(&server, "name=shop").await.json(), found.json());
    let request = FindChartRequest { name: "shop".into(), ..default() };
    let over_grpc = server.stranger().await.grpc::<FindChart>(request).await.expect("anybody may ask");
    assert_eq!(over_grpc.source_repo_id, repo_uid(&server, "shop").await);
    rejected(&find(&server, "name=other").await, 404);
    let told = rejected(&find(&server, "name=shop&catalog=CHART_CATALOG_IAMGUARDED").await, 400);
    assert!(told.contains("--iamguarded-charts"), "{told}");
    server.stop().await;
}

each_engine!(
    multi_thread:
    a_chart_comes_with_repositories_for_its_images,
    a_chart_without_a_list_comes_alone_and_the_newest_tag_counts,
    what_cannot_be_added_is_refused_whole,
    a_chart_opens_nothing_of_the_organization_that_gets_it
);

by_engine!(multi_thread: charts_are_found_in_the_catalogues_that_the_operator_named);
