//! Images in one call: lists with what is known at a glance, details, comparisons, and deletions with what goes along.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::{Manifest, digest, store};
use crate::support::{absent, each, execute, holder, image, inventory, number, ok, rejected};

async fn tag(server: &TestServer, repo: &str, name: &str, digest: &str) {
    let body = json!({ "name": name, "digest": digest });
    ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), body).await;
}

async fn list(actor: &Actor, repo: &str, query: &str) -> Value {
    ok(actor, &format!("GET /images/v1/repos/{repo}/images?{query}"), Value::Null).await
}

/// The preview of what a deletion names, which stands in the query.
fn previewed(preview: &str, body: &Value) -> String {
    let named = |member: &str| {
        let values = body[member].as_array().cloned().unwrap_or_default();
        let parts: Vec<String> =
            values.into_iter().map(|value| format!("&{member}={}", value.as_str().unwrap_or_default())).collect();
        parts.concat()
    };
    format!("{preview}?{}{}", named("digests"), named("tags"))
}

fn digests(list: &Value) -> Vec<String> {
    each(&list["images"], "digest").into_iter().map(String::from).collect()
}

/// An index `0` of the images `1` and `2` with the tag latest, a signature `3` of it, and an untagged image `4`.
async fn filled(server: &TestServer, repo: &str) {
    let run = |user: &str| format!(r#"{{"User":"{user}","Env":["A={user}"]}}"#);
    for (character, size, architecture) in [('1', 100, "amd64"), ('2', 200, "arm64"), ('4', 400, "amd64")] {
        let (digest, run) = (digest(character), run(&character.to_string()));
        let config = Some((architecture, run.as_str()));
        store(server, repo, &Manifest { digest: &digest, shape: 1, size, names: &[], config }).await;
    }
    let (one, two) = (digest('1'), digest('2'));
    let names = [(one.as_str(), "amd64"), (two.as_str(), "arm64")];
    store(server, repo, &Manifest { digest: &digest('0'), shape: 2, size: 9, names: &names, config: None }).await;
    image(server, repo, &digest('3'), 3).await;
    let sql =
        "UPDATE repo_manifests SET subject = $3, artifact_type = 'application/vnd.dev.cosign.artifact.sig.v1+json'
               WHERE repo = $1 AND digest = $2";
    execute(server, sql, &[repo, &digest('3'), &digest('0')]).await;
    execute(
        server,
        "UPDATE repo_manifests SET pushed_at = 5000000 WHERE repo = $1 AND digest = $2",
        &[repo, &digest('0')],
    )
    .await;
    tag(server, repo, "latest", &digest('0')).await;
}

async fn report(server: &TestServer, repo: &str, digest: &str, findings: &[(&str, &str)]) {
    let matches: Vec<Value> = findings
        .iter()
        .map(|(id, severity)| {
            json!({
                "vulnerability": { "id": id, "severity": severity },
                "artifact": { "name": "openssl", "version": "1", "type": "apk" }
            })
        })
        .collect();
    let report = json!({ "matches": matches }).to_string();
    let report = STANDARD.encode(report);
    let body = json!({ "digest": digest, "scanner": "SCANNER_NAME_GRYPE", "report": report });
    let what = format!("POST /scans/v1/repos/{repo}/reports");
    ok(&server.operator().await, &what, body).await;
}

async fn a_list_tells_everything_at_a_glance(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    filled(server, &repo).await;
    report(
        server,
        &repo,
        &digest('0'),
        &[("CVE-2026-1", "Critical"), ("CVE-2026-2", "Low"), ("CVE-2026-1", "Critical")],
    )
    .await;
    let operator = server.operator().await;
    let shown = list(&operator, &repo, "").await;
    assert_eq!(digests(&shown), [digest('0')], "members, signatures and untagged images are not listed");
    let image = &shown["images"][0];
    for (member, expected) in [
        ("tags", json!(["latest"])),
        ("size", json!("309")),
        ("platforms", json!(["linux/amd64", "linux/arm64"])),
        ("pushTime", json!("1970-01-01T00:00:05Z")),
        ("signed", json!(true)),
        ("hasSbom", json!(false)),
    ] {
        assert_eq!(image[member], expected, "{member}");
    }
    assert_eq!((&image["findings"]["critical"], &image["findings"]["low"]), (&json!(1), &json!(1)));
    assert_eq!(digests(&list(&operator, &repo, "untagged=true").await), [digest('4')]);
    assert_eq!(digests(&list(&operator, &repo, "query=LAT").await), [digest('0')]);
    assert_eq!(digests(&list(&operator, &repo, "query=%25").await), [""; 0]);
    assert_eq!(digests(&list(&operator, &repo, "query=sha256:00").await), [digest('0')]);
    tag(server, &repo, &format!("{}.sbom", digest('4').replace(':', "-")), &digest('3')).await;
    tag(server, &repo, "four", &digest('4')).await;
    let shown = list(&operator, &repo, "query=four").await;
    assert_eq!(shown["images"][0]["hasSbom"], json!(true));
    // Page by page, in either direction.
    for (order, expected) in [("push_time+desc", ['0', '4']), ("push_time+asc", ['4', '0'])] {
        let first = list(&operator, &repo, &format!("page_size=1&order_by={order}")).await;
        let token = first["nextPageToken"].as_str().expect("a token");
        let second = list(&operator, &repo, &format!("page_size=1&order_by={order}&page_token={token}")).await;
        assert_eq!([digests(&first), digests(&second)].concat(), expected.map(digest), "{order}");
    }
    let what = format!("GET /images/v1/repos/{repo}/images");
    rejected(&operator, &format!("{what}?order_by=stars"), Value::Null, 400, "INVALID_ARGUMENT").await;
    rejected(&operator, &format!("GET /images/v1/repos/{}/images", absent(&org)), Value::Null, 404, "NOT_FOUND").await;
}

async fn details_count_what_the_caller_may_see(server: &TestServer) {
    let (org, foreign) = (server.organization("acme").await, server.organization("other").await);
    let (repo, second, hidden) =
        (server.repo(&org, "web").await, server.repo(&org, "second").await, server.repo(&foreign, "web").await);
    filled(server, &repo).await;
    image(server, &second, &digest('0'), 9).await;
    image(server, &hidden, &digest('0'), 9).await;
    let needed = ["CAP_REPO_LIST", "CAP_MANIFEST_LIST", "CAP_TAG_LIST", "CAP_TENANT_VULN_REPORTS_LIST"];
    let bot = holder(server, &org, "bot", &org, &needed).await.actor;
    let get = |repo: &str, digest: &str| format!("GET /images/v1/repos/{repo}/images/{digest}");
    let shown = ok(&bot, &get(&repo, &digest('0')), Value::Null).await;
    assert_eq!(shown["sharedWith"], json!(1), "the repository of the other organization is not counted");
    assert_eq!(ok(&server.operator().await, &get(&repo, &digest('0')), Value::Null).await["sharedWith"], json!(2));
    assert_eq!(each(&shown["members"], "platform"), ["linux/amd64", "linux/arm64"]);
    assert_eq!(each(&shown["referrers"], "digest"), [digest('3')]);
    let one = ok(&bot, &get(&repo, &digest('1')), Value::Null).await;
    assert_eq!(one["runConfig"], "", "GetImageConfig asks for another capability");
    let needed = [&needed[..], &["CAP_MANIFEST_METADATA_LIST"]].concat();
    let reader = holder(server, &org, "reader", &org, &needed).await.actor;
    let one = ok(&reader, &get(&repo, &digest('1')), Value::Null).await;
    let run: Value = serde_json::from_str(one["runConfig"].as_str().expect("a config")).expect("JSON");
    assert_eq!(run["User"], "1");
    rejected(&bot, &get(&repo, &digest('9')), Value::Null, 404, "NOT_FOUND").await;
    rejected(&bot, &get(&hidden, &digest('0')), Value::Null, 403, "PERMISSION_DENIED").await;
    rejected(&bot, &get(&repo, "sha256:1"), Value::Null, 400, "INVALID_ARGUMENT").await;
}

async fn two_images_are_compared(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    filled(server, &repo).await;
    report(server, &repo, &digest('1'), &[("CVE-2026-1", "High"), ("CVE-2026-2", "Low")]).await;
    report(server, &repo, &digest('2'), &[("CVE-2026-2", "Low"), ("CVE-2026-3", "Low")]).await;
    let operator = server.operator().await;
    let what =
        |to: &str| format!("GET /images/v1/repos/{repo}:compareImages?from_digest={}&to_digest={to}", digest('1'));
    let shown = ok(&operator, &what(&digest('2')), Value::Null).await;
    assert_eq!((&shown["fromSize"], &shown["toSize"]), (&json!("100"), &json!("200")));
    assert_eq!((&shown["findingsAdded"], &shown["findingsRemoved"]), (&json!(["CVE-2026-3"]), &json!(["CVE-2026-1"])));
    assert_eq!(each(&shown["configuration"], "name"), ["Env", "User"]);
    assert_eq!(shown["hasPackages"], json!([false, false]));
    rejected(&operator, &what(&digest('9')), Value::Null, 404, "NOT_FOUND").await;
}

async fn a_deletion_does_what_its_preview_says(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    filled(server, &repo).await;
    tag(server, &repo, "four", &digest('4')).await;
    let operator = server.operator().await;
    let (preview, delete) =
        (format!("GET /images/v1/repos/{repo}:previewDelete"), format!("POST /images/v1/repos/{repo}:deleteImages"));
    let body = json!({ "digests": [digest('0')], "tags": ["four"] });
    let before = inventory(server).await;
    let told = ok(&operator, &previewed(&preview, &body), Value::Null).await;
    assert_eq!(inventory(server).await, before, "a preview changes nothing");
    assert_eq!(each(&told["images"], "digest"), [digest('0'), digest('1'), digest('2'), digest('3')]);
    let cause = |cause: &str| json!(format!("REMOVAL_CAUSE_{cause}"));
    assert_eq!(
        [0, 1, 3].map(|at: usize| told["images"][at]["cause"].clone()),
        [cause("REQUESTED"), cause("MEMBER"), cause("REFERRER")]
    );
    assert_eq!(told["tags"], json!(["four", "latest"]));
    assert_eq!(ok(&operator, &delete, body.clone()).await, told);
    assert_eq!(number(server, "SELECT count(*) FROM repo_manifests").await, 1, "what the tag was at stays");
    assert_eq!(number(server, "SELECT count(*) FROM tags").await, 0);
    let audited = "SELECT count(*) FROM audit WHERE kind = 'registry.chainguard.dev/Manifest' AND after_image IS NULL";
    assert_eq!(number(server, audited).await, 4);
    let events = "SELECT count(*) FROM outbox WHERE event_type = 'dev.bowline.registry.images.deleted.v1'";
    assert_eq!(number(server, events).await, 1);
    for (body, status, reason) in [
        (body, 404, "NOT_FOUND"),
        (json!({}), 400, "INVALID_ARGUMENT"),
        (json!({ "digests": ["sha256:1"] }), 400, "INVALID_ARGUMENT"),
    ] {
        rejected(&operator, &previewed(&preview, &body), Value::Null, status, reason).await;
        rejected(&operator, &delete, body, status, reason).await;
    }
}

async fn what_something_else_holds_stays(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    filled(server, &repo).await;
    // The image 1 is in another index, and 2 has a tag of its own.
    let one = digest('1');
    let names = [(one.as_str(), "amd64")];
    store(server, &repo, &Manifest { digest: &digest('5'), shape: 2, size: 5, names: &names, config: None }).await;
    tag(server, &repo, "arm", &digest('2')).await;
    let operator = server.operator().await;
    let (preview, delete) =
        (format!("GET /images/v1/repos/{repo}:previewDelete"), format!("POST /images/v1/repos/{repo}:deleteImages"));
    let body = json!({ "digests": [digest('0')] });
    let told = ok(&operator, &previewed(&preview, &body), Value::Null).await;
    assert_eq!(each(&told["images"], "digest"), [digest('0'), digest('3')]);
    let both = json!({ "digests": [digest('0'), digest('5')] });
    let both = ok(&operator, &previewed(&preview, &both), Value::Null).await;
    assert_eq!(each(&both["images"], "digest"), [digest('0'), digest('5'), digest('1'), digest('3')]);
    // A tag of a referrer's name on an image with a tag of its own makes it no referrer.
    tag(server, &repo, &digest('4').replace(':', "-"), &digest('2')).await;
    let four = ok(&operator, &previewed(&preview, &json!({ "digests": [digest('4')] })), Value::Null).await;
    assert_eq!(each(&four["images"], "digest"), [digest('4')]);
    // What a policy keeps is refused whole, by the preview as well.
    let policy = format!("PATCH /registrypolicies/v1/repos/{repo}");
    ok(&operator, &policy, json!({ "immutableTagPatterns": ["latest"] })).await;
    let before = inventory(server).await;
    for body in [
        body,
        json!({ "digests": [digest('4'), digest('1')] }),
        json!({ "digests": [digest('4')], "tags": ["latest"] }),
    ] {
        rejected(&operator, &previewed(&preview, &body), Value::Null, 400, "FAILED_PRECONDITION").await;
        rejected(&operator, &delete, body, 400, "FAILED_PRECONDITION").await;
    }
    assert_eq!(inventory(server).await, before);
}

each_engine!(
    a_list_tells_everything_at_a_glance,
    details_count_what_the_caller_may_see,
    two_images_are_compared,
    a_deletion_does_what_its_preview_says,
    what_something_else_holds_stays
);
