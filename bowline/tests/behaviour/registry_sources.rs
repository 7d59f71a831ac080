//! Sources and upstreams bring images like a push: who may set them.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::support::{call, holder, inventory, ok, uid_of};

/// What the methods themselves need.
const METHODS: [&str; 6] = [
    "CAP_REPO_CREATE",
    "CAP_REPO_LIST",
    "CAP_REPO_UPDATE",
    "CAP_IAM_GROUPS_CREATE",
    "CAP_REGISTRY_SETTINGS_LIST",
    "CAP_REGISTRY_SETTINGS_UPDATE",
];
/// What a push needs, and its names in errors.
const PUSH: [(&str, &str); 3] =
    [("CAP_MANIFEST_CREATE", "manifest.create"), ("CAP_TAG_CREATE", "tag.create"), ("CAP_TAG_UPDATE", "tag.update")];

/// An organization with a plain repository and a synchronized one, and upstreams at the plain one and at the group.
struct Place {
    org: String,
    plain: String,
    synchronized: String,
}

async fn place(server: &TestServer) -> Place {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let plain = server.repo(&org, "plain").await;
    let body = json!({ "name": "synchronized", "sync_config": { "source": "registry.example.com/app" } });
    let synchronized = uid_of(&ok(&operator, &format!("POST /registry/v2/repos/{org}"), body).await);
    for path in [format!("repos/{plain}"), format!("groups/{org}")] {
        let body = json!({ "upstream": { "url": "https://registry.example.com", "tagPatterns": ["1"] } });
        ok(&operator, &format!("PATCH /registrypolicies/v1/{path}"), body).await;
    }
    Place { org, plain, synchronized }
}

impl Place {
    /// Every write that changes a source or an upstream.
    fn changes(&self) -> Vec<(String, Value)> {
        let Place { org, plain, synchronized } = self;
        let evil = json!({ "source": "registry.evil.example/app" });
        let upstream = |url: &str| json!({ "upstream": { "url": url, "tagPatterns": ["1"] } });
        let mut changes = vec![
            (format!("POST /registry/v2/repos/{org}"), json!({ "name": "new2", "sync_config": evil })),
            (format!("POST /registry/v1/repos/{org}"), json!({ "name": "new1", "sync_config": evil })),
            (format!("POST /registry/v1/repos/{org}"), json!({ "name": "plain", "sync_config": evil })),
            (format!("PATCH /registry/v2/repos/{plain}"), json!({ "sync_config": evil })),
            (
                format!("PATCH /registry/v2/repos/{synchronized}?updateMask=sync_config.source"),
                json!({ "sync_config": evil }),
            ),
            (format!("PATCH /registry/v2/repos/{synchronized}?updateMask=sync_config"), json!({})),
            (format!("PUT /registry/v1/repos/{plain}"), json!({ "name": "plain", "sync_config": evil })),
            (format!("PUT /registry/v1/repos/{synchronized}"), json!({ "name": "synchronized" })),
            (format!("POST /registry/v1/repos/{org}:addChart"), json!({ "sourceRepoId": plain })),
            (format!("POST /registry/v1/repos/{org}:addChart"), json!({ "sourceRepoId": plain, "dryRun": true })),
        ];
        for path in [format!("repos/{plain}"), format!("groups/{org}")] {
            let path = format!("PATCH /registrypolicies/v1/{path}");
            changes.extend([
                (path.clone(), upstream("https://registry.evil.example")),
                (path.clone(), json!({ "upstream": { "url": "https://registry.example.com" } })),
                (format!("{path}?updateMask=upstream"), json!({})),
            ]);
        }
        changes
    }

    /// Writes beside a source and an upstream, or that repeat them.
    fn others(&self) -> Vec<(String, Value)> {
        let Place { org, plain, synchronized } = self;
        let same = json!({ "source": "registry.example.com/app", "google": "g@example.com" });
        let upstream = json!({ "url": "https://registry.example.com", "tagPatterns": ["1"] });
        vec![
            (format!("POST /registry/v2/repos/{org}"), json!({ "name": "other2" })),
            (format!("POST /registry/v1/repos/{org}"), json!({ "name": "other1" })),
            (format!("PATCH /registry/v2/repos/{synchronized}"), json!({ "description": "d", "sync_config": same })),
            (
                format!("PUT /registry/v1/repos/{synchronized}"),
                json!({ "name": "synchronized", "description": "e", "sync_config": same }),
            ),
            (
                format!("POST /registry/v1/repos/{org}"),
                json!({ "name": "synchronized", "description": "f", "sync_config": same }),
            ),
            (format!("PATCH /registrypolicies/v1/repos/{plain}"), json!({ "byteQuota": "9000", "upstream": upstream })),
            (format!("PATCH /registrypolicies/v1/groups/{org}"), json!({ "byteQuota": "9000", "upstream": upstream })),
        ]
    }
}

/// Every change is refused, names what is missing, and leaves nothing behind.
async fn all_rejected(server: &TestServer, place: &Place, actor: &Actor, missing: &str) {
    let before = inventory(server).await;
    for (what, body) in place.changes() {
        let reply = call(actor, &what, body.clone()).await;
        assert_eq!(reply.status, 403, "{what} {body} by {}: {}", actor.name, reply.text());
        let message = reply.json()["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(missing) && message.contains("registry.push"), "{what}: {message}");
    }
    assert_eq!(inventory(server).await, before);
}

async fn a_source_or_an_upstream_is_changed_with_the_capabilities_of_a_push_alone(server: &TestServer) {
    let place = place(server).await;
    let org = &place.org;
    for (lacking, name) in PUSH {
        let rest = PUSH.iter().map(|(capability, _)| *capability).filter(|capability| *capability != lacking);
        let capabilities: Vec<&str> = METHODS.into_iter().chain(rest).collect();
        let almost = holder(server, org, &format!("without {name}"), org, &capabilities).await.actor;
        all_rejected(server, &place, &almost, name).await;
    }
    let clerk = holder(server, org, "clerk", org, &METHODS).await.actor;
    all_rejected(server, &place, &clerk, "manifest.create, tag.create, tag.update").await;
    for (what, body) in place.others() {
        ok(&clerk, &what, body).await;
    }
    // A push elsewhere does not count here.
    let team = server.group(org, "team").await;
    let elsewhere = holder(server, org, "elsewhere", org, &METHODS).await;
    server.bind(&elsewhere.uid, &server.role("registry.push"), &team).await;
    all_rejected(server, &place, &elsewhere.actor, "manifest.create").await;
}

async fn a_token_narrowed_to_less_than_a_push_changes_no_source_and_no_upstream(server: &TestServer) {
    let place = place(server).await;
    let owner = server.actor("owner", &place.org).await;
    let names = ["repo.create", "repo.update", "groups.create", "registry.settings.update", "tag.create"];
    let params: Vec<(&str, &str)> = names.iter().map(|name| ("cap", *name)).chain([("aud", server.base())]).collect();
    let narrowed = server.exchange(owner.token.as_deref().expect("a token"), &params).await;
    assert_eq!(narrowed.status, 200, "{}", narrowed.text());
    let narrowed = owner.with_token(narrowed.json()["token"].as_str().expect("a token"));
    all_rejected(server, &place, &narrowed, "manifest.create, tag.update").await;
}

async fn who_may_push_sets_sources_and_upstreams(server: &TestServer) {
    let place = place(server).await;
    let org = &place.org;
    let push = PUSH.map(|(capability, _)| capability);
    let pusher = holder(server, org, "pusher", org, &[&METHODS[..], &push].concat()).await.actor;
    for (what, body) in place.changes() {
        let status = call(&pusher, &what, body.clone()).await.status;
        // There is no chart to add.
        let expected = if what.ends_with(":addChart") { 400 } else { 200 };
        assert_eq!(status, expected, "{what} {body}");
    }
    // A source here may be repeated by its name.
    let source = server.repo(org, "base").await;
    let reader = ["CAP_MANIFEST_LIST", "CAP_REPO_BLOBS_GET"];
    let clerk = holder(server, org, "clerk", org, &[&METHODS[..], &reader].concat()).await.actor;
    let plain = format!("/registry/v1/repos/{}", place.plain);
    let of = |source: &str| json!({ "name": "plain", "sync_config": { "source": source } });
    ok(&server.operator().await, &format!("PUT {plain}"), of(&source)).await;
    ok(&clerk, &format!("PUT {plain}"), of(&format!("{org}/base"))).await;
}

each_engine!(
    a_source_or_an_upstream_is_changed_with_the_capabilities_of_a_push_alone,
    a_token_narrowed_to_less_than_a_push_changes_no_source_and_no_upstream,
    who_may_push_sets_sources_and_upstreams
);
