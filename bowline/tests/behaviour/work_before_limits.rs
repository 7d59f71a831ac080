//! Requests whose work would cost much: their limits are checked first, and what is done is done where no other
//! organization waits for it.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::{PreviewRetention, UpdateGroupPolicy};
use bowline_contract::v2::iam::identity_provider::{Configuration, Oidc};
use bowline_contract::v2::iam::rpc::identity_providers_service::CreateIdentityProvider;
use bowline_contract::v2::iam::{CreateIdentityProviderRequest, IdentityProvider};
use bowline_testkit::{GrpcError, TestServer, each_engine};
use serde_json::{Value, json};

use crate::contents::{Manifest, digest, store};
use crate::neighbours::Neighbour;
use crate::support::{call, execute, inventory, ok, rejected};

/// 450 KB of patterns, each other than the others, and each costly to compile.
fn patterns() -> Vec<String> {
    (0..15_000).map(|n| format!(r"v[0-9]{{1,9}}\.(a|b){{1,9}}-{n:05}")).collect()
}

fn policy(org: &str, patterns: Vec<String>) -> own::UpdateGroupPolicyRequest {
    let policy =
        own::RegistryPolicy { uid: org.into(), immutable_tag_patterns: patterns, ..own::RegistryPolicy::default() };
    own::UpdateGroupPolicyRequest { policy: Some(policy), update_mask: None }
}

/// Checks that the request is refused for one list alone, by its size.
fn require_limit(error: &GrpcError, field: &str, most: usize) {
    assert_eq!(error.message, format!("Invalid argument: {field}: at most {most} elements"));
}

async fn fifteen_thousand_patterns_are_refused_before_the_first_is_compiled(server: &TestServer) {
    let org = server.organization("loud").await;
    let repo = server.repo(&org, "app").await;
    let (owner, viewer) = (server.actor("owner", &org).await, server.actor("viewer", &org).await);
    let neighbour = Neighbour::of(server).await;
    let (before, many) = (inventory(server).await, patterns());
    let harmless = async || {
        let error = owner.grpc::<UpdateGroupPolicy>(policy(&org, vec![String::new()])).await.expect_err("a refusal");
        assert!(error.message.contains("must not be empty"), "{}", error.message);
    };
    let writes = async || {
        let error = owner.grpc::<UpdateGroupPolicy>(policy(&org, many.clone())).await.expect_err("a refusal");
        require_limit(&error, "immutableTagPatterns", 20);
    };
    neighbour.is_not_held_up("a policy", harmless, writes).await;
    let preview = async |keep_patterns: Vec<String>| {
        let retention = Some(own::Retention { keep_patterns, ..own::Retention::default() });
        let request = own::PreviewRetentionRequest { repo_uid: repo.clone(), retention };
        viewer.grpc::<PreviewRetention>(request).await
    };
    let harmless = async || assert!(preview(vec!["v.*".into()]).await.is_ok());
    let reads = async || {
        let error = preview(many.clone()).await.expect_err("a refusal");
        require_limit(&error, "retention.keepPatterns", 20);
    };
    neighbour.is_not_held_up("a preview", harmless, reads).await;
    let unchanged = inventory(server).await;
    assert_eq!(unchanged.len(), before.len());
}

async fn a_caller_without_the_permission_learns_nothing_about_the_fields(server: &TestServer) {
    let org = server.organization("acme").await;
    let viewer = server.actor("viewer", &org).await;
    for patterns in [patterns(), vec!["(".into()], vec![]] {
        let error = viewer.grpc::<UpdateGroupPolicy>(policy(&org, patterns)).await.expect_err("it is refused");
        assert_eq!(error.code, 7, "{}", error.message);
    }
    let body = json!({ "name": "Not A Name", "description": "d".repeat(10_000) });
    rejected(&viewer, &format!("POST /registry/v2/repos/{org}"), body, 403, "PERMISSION_DENIED").await;
}

async fn an_identity_provider_of_many_scopes_is_refused_at_once(server: &TestServer) {
    let org = server.organization("loud").await;
    let owner = server.actor("owner", &org).await;
    let neighbour = Neighbour::of(server).await;
    let create = async |scopes: usize| {
        let oidc = Oidc {
            issuer: "https://login.example.com".into(),
            client_id: "client".into(),
            additional_scopes: vec![String::new(); scopes],
            ..Oidc::default()
        };
        let provider = IdentityProvider {
            name: "login".into(),
            default_role: server.role("viewer"),
            configuration: Some(Configuration::Oidc(oidc)),
            ..IdentityProvider::default()
        };
        let request = CreateIdentityProviderRequest { parent: org.clone(), identity_provider: Some(provider) };
        owner.grpc::<CreateIdentityProvider>(request).await.expect_err("a refusal")
    };
    let harmless = async || assert!(create(1).await.message.contains("a scope must not be empty"));
    let hostile = async || require_limit(&create(40_000).await, "oidc.additionalScopes", 20);
    neighbour.is_not_held_up("an identity provider", harmless, hostile).await;
}

async fn an_answer_names_a_hundred_wrong_fields_and_counts_the_others(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let body = json!({ "name": "web", "aliases": vec!["no tag"; 1000] });
    let refusal = rejected(&operator, &format!("POST /registry/v2/repos/{org}"), body, 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.violations().len(), 100);
    assert!(refusal.message().ends_with("; and 900 more violations; correct these first"), "{}", refusal.message());
    let masks = vec!["nothing"; 101].join(",");
    let what = format!("PATCH /registry/v2/repos/{}?updateMask={masks}", server.repo(&org, "app").await);
    let refusal = rejected(&operator, &what, json!({}), 400, "INVALID_ARGUMENT").await;
    assert_eq!(refusal.violations(), [("updateMask".to_owned(), "at most 100 paths".to_owned())]);
}

/// Sets patterns of immutable tags for a group or a repository.
async fn set(server: &TestServer, kind: &str, place: &str, patterns: usize) -> (u16, String) {
    let patterns: Vec<String> = (0..patterns).map(|n| format!("v{n}\\..*")).collect();
    let what = format!("PATCH /registrypolicies/v1/{kind}/{place}");
    let reply = call(&server.operator().await, &what, json!({ "immutableTagPatterns": patterns })).await;
    (reply.status, reply.text())
}

async fn patterns_in_force_at_one_repository_have_one_budget(server: &TestServer) {
    let org = server.organization("acme").await;
    let mut groups = vec![org.clone()];
    for level in 1..12 {
        let parent = groups.last().expect("there is one").clone();
        groups.push(server.group(&parent, &format!("level {level}")).await);
    }
    let repo = server.repo(&groups[11], "app").await;
    for group in &groups[1..4] {
        assert_eq!(set(server, "groups", group, 20).await.0, 200);
    }
    let (status, text) = set(server, "groups", &groups[4], 20).await;
    assert_eq!(status, 429, "{text}");
    for part in ["QUOTA_EXCEEDED", "80 immutable tag patterns", "60 of the groups above", "64 are the most"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Below all of them, and above.
    assert_eq!(set(server, "repos", &repo, 4).await.0, 200);
    let (status, text) = set(server, "groups", &org, 1).await;
    assert_eq!(status, 429, "{text}");
    assert!(text.contains("64 of policies below it"), "{text}");
    // Another branch has a budget of its own.
    let other = server.group(&org, "other").await;
    assert_eq!(set(server, "groups", &other, 20).await.0, 200);
    // What lessens them is accepted, whatever there is.
    execute(server, "UPDATE registry_policies SET tag_patterns = NULL", &[]).await;
    assert_eq!(set(server, "groups", &org, 1).await.0, 429, "policies of before are counted as well");
    assert_eq!(set(server, "groups", &groups[2], 19).await.0, 200);
    assert_eq!(set(server, "groups", &org, 1).await.0, 200);
}

async fn there_is_no_preview_of_a_repository_that_is_too_large_for_it(server: &TestServer) {
    let org = server.organization("acme").await;
    let (small, large) = (server.repo(&org, "small").await, server.repo(&org, "large").await);
    let viewer = server.actor("viewer", &org).await;
    let sql = "INSERT INTO manifests (digest, media_type, artifact_type, config_digest, subject, shape, total_size,
                                      annotations, content, created_at)
               WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100000)
               SELECT 'sha256:' || n, '', '', '', '', 1, 0, '{}', m.content, 0 FROM numbers, manifests m";
    store(server, &small, &Manifest { digest: &digest('a'), shape: 1, size: 0, names: &[], config: None }).await;
    execute(server, sql, &[]).await;
    let sql = "INSERT INTO repo_manifests (repo, digest, org, subject, artifact_type, pushed_at)
               SELECT $1, digest, $2, '', '', 0 FROM manifests";
    execute(server, sql, &[&large, &org]).await;
    let preview = |repo: &str| format!("GET /registrypolicies/v1/repos/{repo}:previewRetention");
    ok(&viewer, &preview(&small), Value::Null).await;
    let refusal = rejected(&viewer, &preview(&large), Value::Null, 400, "FAILED_PRECONDITION").await;
    assert!(refusal.message().contains("more than 100000 manifests"), "{}", refusal.message());
}

/// A repository with 20,000 tags of a long name each.
async fn tagged(server: &TestServer, org: &str) -> String {
    let repo = server.repo(org, "tagged").await;
    store(server, &repo, &Manifest { digest: &digest('b'), shape: 1, size: 0, names: &[], config: None }).await;
    let first = json!({ "name": "first", "digest": digest('b') });
    ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), first).await;
    let sql = "INSERT INTO tags (uid, parent, org, name, digest, deprecated, bundles, hidden, created_at, updated_at)
               WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < 20000)
               SELECT uid || n, parent, org, 'bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb' || n, digest, deprecated, bundles,
                      hidden, 0, 0
               FROM numbers, tags WHERE parent = $1 AND name = 'first'";
    execute(server, sql, &[&repo]).await;
    repo
}

async fn previews_that_are_given_up_count_until_they_have_ended(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = tagged(server, &org).await;
    let viewer = server.actor("viewer", &org).await;
    let mut limited = 0;
    for round in 0..100 {
        // Another question each time, so that nothing is remembered of it.
        let keep = format!("b*[ab]{{{}}}[0-9]*", round % 30 + 1);
        let retention = Some(own::Retention { keep_patterns: vec![keep], ..own::Retention::default() });
        let request = own::PreviewRetentionRequest { repo_uid: repo.clone(), retention };
        let call = viewer.grpc::<PreviewRetention>(request);
        match tokio::time::timeout(std::time::Duration::from_millis(30), call).await {
            Ok(Err(error)) if error.code == 8 => {
                assert!(error.message.contains("are under way"), "{}", error.message);
                limited += 1;
            }
            Ok(Err(error)) => panic!("{} {}", error.code, error.message),
            Ok(Ok(_)) | Err(_) => {}
        }
    }
    assert!(limited > 0, "callers who give up begin as many as they like");
}

async fn the_queue_of_costly_requests_is_not_one_organizations(server: &TestServer) {
    let org = server.organization("loud").await;
    let owner = server.actor("owner", &org).await;
    let calls = (0..64).map(|call| {
        let patterns = (0..20).map(|n| format!(r"c{call}-v[0-9]{{1,9}}\.(a|b){{1,9}}-{n}")).collect();
        owner.grpc::<UpdateGroupPolicy>(policy(&org, patterns))
    });
    let answers = futures_util::future::join_all(calls).await;
    let limited = answers.iter().filter_map(|answer| answer.as_ref().err()).filter(|error| error.code == 8).count();
    assert!(limited > 0, "64 costly requests of one organization wait at once");
    assert!(answers.iter().any(Result::is_ok), "those within the limit are answered");
}

each_engine!(
    a_caller_without_the_permission_learns_nothing_about_the_fields,
    an_answer_names_a_hundred_wrong_fields_and_counts_the_others,
    patterns_in_force_at_one_repository_have_one_budget
);

each_engine!(
    multi_thread:
    fifteen_thousand_patterns_are_refused_before_the_first_is_compiled,
    an_identity_provider_of_many_scopes_is_refused_at_once,
    there_is_no_preview_of_a_repository_that_is_too_large_for_it,
    previews_that_are_given_up_count_until_they_have_ended,
    the_queue_of_costly_requests_is_not_one_organizations
);
