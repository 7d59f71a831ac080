//! Image policies: what each rule finds, whom they refuse, and what lets an image pass all the same.

use std::collections::BTreeMap;
use std::time::Duration;

use bowline_core::rfc3339::{self, Digits};
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::documents::{artifact, push};
use crate::image_evidence::*;
use crate::support::*;

fn results(checked: &BTreeMap<String, [String; 3]>) -> Vec<(&str, &str)> {
    checked.iter().map(|(name, [_, result, _])| (name.as_str(), result.as_str())).collect()
}

const ALL_ALLOWED: [(&str, &str); 6] = [
    ("built", "ALLOWED"),
    ("fixed", "ALLOWED"),
    ("free", "ALLOWED"),
    ("fresh", "ALLOWED"),
    ("listed", "ALLOWED"),
    ("signed", "ALLOWED"),
];

/// An organization with an image, its owner, one who may push, and the UIDP of the repository.
struct Scene {
    org: String,
    name: String,
    owner: Actor,
    pusher: Client,
    repo: String,
    image: String,
}

async fn scene(server: &TestServer) -> Scene {
    let (org, pusher) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let image = digest_of(&pusher.image(&name, "1", b"a layer").await);
    let owner = server.actor("owner", &org).await;
    Scene { repo: repo_uid(server, "app").await, org, name, owner, pusher, image }
}

async fn each_rule_is_seen_to_fail_and_to_pass(server: &TestServer) {
    let Scene { org, name, owner, pusher, repo, image } = scene(server).await;
    let (signer, stranger) = (Signer::new(), Signer::new());
    assert!(check(&owner, &repo, &image).await.is_empty(), "no policy");
    set_rules(&owner, &org, &all_rules(&signer)).await;
    let checked = check(&owner, &repo, &image).await;
    let expected = [
        ("built", "DENIED"),
        ("fixed", "ERROR"),
        ("free", "ERROR"),
        ("fresh", "ALLOWED"),
        ("listed", "DENIED"),
        ("signed", "DENIED"),
    ];
    assert_eq!(results(&checked), expected);
    assert_eq!(checked["listed"], ["DRY_RUN", "DENIED", "has no SBOM"]);
    assert_eq!(checked["fixed"], ["ENFORCED", "ERROR", "has no scan report"]);
    assert_eq!(checked["signed"][2], "no signature in a format of Sigstore is attached to the image");
    // Others' keys, other types and other images prove nothing.
    stranger.sign_image(&pusher, &name, &image).await;
    signer.attest(&pusher, &name, &image, "https://example.com/other").await;
    let checked = check(&owner, &repo, &image).await;
    assert_eq!(
        checked["signed"][2],
        "no signature by an accepted signer: an attached document is not by an accepted key"
    );
    assert_eq!(checked["built"][1], "DENIED");
    signer.sign_image(&pusher, &name, &image).await;
    signer.attest(&pusher, &name, &image, PROVENANCE).await;
    attach_sbom(&pusher, &name, &image, "MIT").await;
    report(&owner, &repo, &image, Some("Medium"), "2020-01-01").await;
    assert_eq!(results(&check(&owner, &repo, &image).await), ALL_ALLOWED);
    report(&owner, &repo, &image, Some("High"), "2020-01-01").await;
    assert_eq!(check(&owner, &repo, &image).await["fixed"][1..], ["DENIED", "has CVE-2026-1 in openssl"]);
    report(&owner, &repo, &image, Some("High"), "").await;
    assert_eq!(check(&owner, &repo, &image).await["fixed"][1], "ERROR", "since when there is a fix is unknown");
    attach_sbom(&pusher, &name, &image, "(GPL-3.0-only OR MIT)").await;
    assert_eq!(check(&owner, &repo, &image).await["free"][1], "DENIED");
    server.clock().advance(Duration::from_secs(30 * 86400));
    let later = server.actor("owner", &org).await;
    assert_eq!(check(&later, &repo, &image).await["fresh"][1..], ["DENIED", "was pushed 30 days ago; 30 are allowed"]);
}

async fn what_an_index_is_signed_with_covers_its_images_and_it_is_as_good_as_the_worst(server: &TestServer) {
    let Scene { org, name, owner, pusher, repo, image } = scene(server).await;
    let other = pusher.image(&name, "other", b"another layer").await;
    let members =
        [descriptor(IMAGE, image_bytes(b"a layer").as_bytes()), descriptor(IMAGE, other.to_string().as_bytes())];
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": members });
    assert_eq!(pusher.put(&name, "all", &index).await.status, 201);
    let (index, other) = (digest_of(&index), digest_of(&other));
    let signer = Signer::new();
    set_rules(&owner, &org, &all_rules(&signer)).await;
    signer.sign_image(&pusher, &name, &index).await;
    for digest in [&index, &image, &other] {
        assert_eq!(check(&owner, &repo, digest).await["signed"][1], "ALLOWED", "{digest}");
    }
    report(&owner, &repo, &image, None, "").await;
    assert_eq!(check(&owner, &repo, &image).await["fixed"][1], "ALLOWED");
    let checked = check(&owner, &repo, &index).await;
    assert_eq!(checked["fixed"][1..], ["ERROR".to_owned(), format!("{other}: has no scan report")]);
    report(&owner, &repo, &other, Some("Critical"), "2020-01-01").await;
    assert_eq!(check(&owner, &repo, &index).await["fixed"][1], "DENIED");
}

fn image_bytes(layer: &[u8]) -> String {
    crate::support::image(layer).to_string()
}

async fn an_enforced_rule_refuses_manifests_to_those_who_only_pull(server: &TestServer) {
    let Scene { org, name, owner, pusher, image, repo, .. } = scene(server).await;
    let reader = client(server, "registry.pull", &org).await;
    let signer = Signer::new();
    let signature = signer.sign_image(&pusher, &name, &digest(b"of another image")).await;
    let bundle = signer.attest(&pusher, &name, &image, "https://example.com/other").await;
    let rules =
        |mode| json!([rule("signed", mode, &json!({ "signature": { "signers": { "publicKeys": [signer.pem()] } } }))]);
    let by_tag = format!("/v2/{name}/manifests/1");
    set_rules(&owner, &org, &rules("LOG")).await;
    assert_eq!(reader.get(&by_tag).await.status, 200, "it only logs");
    set_rules(&owner, &org, &rules("ENFORCE")).await;
    for path in [by_tag.clone(), format!("/v2/{name}/manifests/{image}")] {
        let refused = reader.get(&path).await;
        assert_eq!(code(&refused, 403), "DENIED");
        let said = format!(
            "rule \\\"signed\\\" of the image policy of {org}: no signature in a format of Sigstore is attached"
        );
        assert!(refused.text().contains(&said), "{}", refused.text());
        assert_eq!(reader.send(&format!("HEAD {path}"), &[], b"").await.status, 200, "only pulls are refused");
        assert_eq!(pusher.get(&path).await.status, 200, "who may push is not refused");
    }
    for free in [
        format!("manifests/{signature}"),
        format!("manifests/{bundle}"),
        format!("referrers/{image}"),
        format!("blobs/{}", digest(b"a layer")),
    ] {
        assert_eq!(reader.get(&format!("/v2/{name}/{free}")).await.status, 200, "{free}");
    }
    signer.sign_image(&pusher, &name, &image).await;
    assert_eq!(reader.get(&by_tag).await.status, 200, "the kept decision ends with the signature");
    set_rules(&owner, &repo, &json!([rule("scanned", "ENFORCE", &json!({ "vulnerability": { "greatest": "LOW" } }))]))
        .await;
    assert_eq!(code(&reader.get(&by_tag).await, 403), "DENIED", "a policy below adds rules");
    report(&owner, &repo, &image, None, "").await;
    assert_eq!(reader.get(&by_tag).await.status, 200);
    let counts = server.server().parts().registry.gate_counts();
    assert_eq!((counts.logged, counts.refused, counts.spared), (1, 3, 2));
}

async fn what_only_looks_like_a_signature_is_refused(server: &TestServer) {
    let Scene { org, name, owner, pusher, image, .. } = scene(server).await;
    let reader = client(server, "registry.pull", &org).await;
    set_rules(&owner, &org, &json!([rule("listed", "ENFORCE", &json!({ "sbom": {} }))])).await;
    // An image that says it refers to another one, and a layer under the media type of signatures.
    let mut forged = crate::support::image(b"forged");
    forged["subject"] = json!({ "mediaType": IMAGE, "digest": image, "size": 1 });
    let forged = push(&pusher, &name, None, &forged, b"forged").await;
    let layer = [0x1f, 0x8b, 8, 0];
    let disguised = artifact(PLAIN_SIGNATURE, &layer);
    let tag = format!("{}.sig", image.replace(':', "-"));
    let disguised = push(&pusher, &name, Some(&tag), &disguised, &layer).await;
    // An artifact with a config of its own, whose layer a runtime would unpack all the same.
    let mut artifact = crate::support::image(b"a file system");
    artifact["config"]["mediaType"] = json!("application/vnd.example.config.v1+json");
    artifact["subject"] = json!({ "mediaType": IMAGE, "digest": image, "size": 1 });
    let artifact = push(&pusher, &name, None, &artifact, b"a file system").await;
    for digest in [&forged, &disguised, &artifact] {
        assert_eq!(code(&reader.get(&format!("/v2/{name}/manifests/{digest}")).await, 403), "DENIED");
    }
}

async fn who_was_let_through_pulls_again_within_the_grace(server: &TestServer) {
    let Scene { org, name, owner, pusher: _, repo, image } = scene(server).await;
    let path = format!("/v2/{name}/manifests/1");
    let (reader, other) = (client(server, "registry.pull", &org).await, client(server, "registry.pull", &org).await);
    let rules = json!([rule("fixed", "ENFORCE", &json!({ "vulnerability": { "greatest": "LOW" } }))]);
    let reply = set(&owner, &org, &json!({ "rules": rules, "graceDays": 7 })).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    report(&owner, &repo, &image, None, "").await;
    assert_eq!(reader.get(&path).await.status, 200);
    server.server().parts().registry.flush_pulls().await;
    report(&owner, &repo, &image, Some("High"), "2020-01-01").await;
    assert_eq!(reader.get(&path).await.status, 200, "rescheduling does not break");
    assert_eq!(code(&other.get(&path).await, 403), "DENIED");
    server.server().parts().registry.flush_pulls().await;
    let remembered = "SELECT count(*) FROM passed_pulls";
    assert_eq!(number(server, remembered).await, 1, "a pull in the grace does not prolong it");
    execute(server, "UPDATE passed_pulls SET passed_at = passed_at - 8 * 86400000000").await;
    assert_eq!(code(&reader.get(&path).await, 403), "DENIED", "the grace is over");
}

async fn an_exception_is_of_one_policy_until_its_end(server: &TestServer) {
    let Scene { org, name, owner, repo, image, .. } = scene(server).await;
    let reader = client(server, "registry.pull", &org).await;
    let path = format!("/v2/{name}/manifests/1");
    set_rules(&owner, &org, &json!([rule("listed", "ENFORCE", &json!({ "sbom": {} }))])).await;
    assert_eq!(code(&reader.get(&path).await, 403), "DENIED");
    let at = format!("/imagepolicies/v1/scopes/{org}/exceptions");
    let end = |seconds| rfc3339::text((server.clock().seconds() + seconds) * 1_000_000, Digits::Fewest);
    let exception = json!({ "digest": image, "expireTime": end(3000), "justification": "The fix is on its way" });
    let (other, _) = crate::support::pusher(server, "other").await;
    for actor in [server.actor("registry.push", &org).await, server.actor("owner", &other).await] {
        assert_eq!(actor.rest("POST", &at, Some(exception.clone())).await.status, 403);
    }
    // A policy below has exceptions of its own rules alone.
    set_rules(&owner, &repo, &json!([rule("fresh", "ENFORCE", &json!({ "age": { "maxDays": 9 } }))])).await;
    let below = format!("/imagepolicies/v1/scopes/{repo}/exceptions");
    assert_eq!(owner.rest("POST", &below, Some(exception.clone())).await.status, 200);
    assert_eq!(code(&reader.get(&path).await, 403), "DENIED");
    for (field, value) in [
        ("expireTime", json!(end(-1))),
        ("expireTime", json!(end(367 * 86400))),
        ("justification", json!("")),
        ("digest", json!("")),
        ("repoUid", json!("0".repeat(40))),
        ("rules", json!(["unknown"])),
    ] {
        let mut wrong = exception.clone();
        wrong[field] = value;
        let reply = owner.rest("POST", &at, Some(wrong)).await;
        assert_eq!(reply.status, 400, "{field}: {}", reply.text());
    }
    let made = owner.rest("POST", &at, Some(exception)).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json()["exceptions"][0].clone();
    assert!(
        made["grantedBy"].as_str().is_some_and(|by| by.starts_with(&org)) && made["grantTime"].is_string(),
        "{made}"
    );
    assert_eq!(reader.get(&path).await.status, 200);
    let checked = check(&owner, &repo, &image).await;
    assert_eq!(checked["listed"], ["ENFORCED", "ALLOWED", "has no SBOM"]);
    server.clock().advance(Duration::from_secs(3000));
    assert_eq!(code(&reader.get(&path).await, 403), "DENIED", "it has ended");
    let gone = format!("{at}/{}", made["id"].as_str().unwrap_or_default());
    assert_eq!(owner.rest("DELETE", &gone, None).await.status, 200);
    assert_eq!(owner.rest("DELETE", &gone, None).await.status, 404);
    let sent = "SELECT count(*) FROM outbox WHERE event_type LIKE 'dev.bowline.registry.image_%'";
    assert_eq!(number(server, sent).await, 5);
    assert_eq!(number(server, "SELECT count(*) FROM audit WHERE method LIKE '%ImageException'").await, 3);
}

async fn a_policy_that_could_never_be_evaluated_is_refused(server: &TestServer) {
    let Scene { org, owner, .. } = scene(server).await;
    let certificates = json!({ "certificates": [{ "identity": "a", "issuer": "b" }] });
    for (requirement, said) in [
        (json!({}), "exactly one requirement"),
        (json!({ "sbom": {}, "age": { "maxDays": 1 } }), "exactly one requirement"),
        (json!({ "signature": {} }), "at least one public key"),
        (json!({ "signature": { "signers": { "publicKeys": ["no key"] } } }), "no public key in PEM"),
        (json!({ "signature": { "signers": certificates } }), "must be set"),
        (json!({ "license": {} }), "at least one license"),
        (json!({ "age": {} }), "1 to 3650"),
    ] {
        let reply = set(&owner, &org, &json!({ "rules": [rule("one", "ENFORCE", &requirement)] })).await;
        assert!(reply.status == 400 && reply.text().contains(said), "{requirement}: {}", reply.text());
    }
    let twice = rule("one", "LOG", &json!({ "sbom": {} }));
    assert_eq!(set(&owner, &org, &json!({ "rules": [twice, twice] })).await.status, 400);
    let reply = set(&owner, &org, &json!({ "trustedRoot": "{}" })).await;
    assert!(reply.status == 400 && reply.text().contains("trustedRoot"), "{}", reply.text());
}

async fn a_preview_evaluates_a_draft_and_changes_nothing(server: &TestServer) {
    let Scene { org, name, owner, pusher, repo, image } = scene(server).await;
    let other = digest_of(&pusher.image(&name, "2", b"another layer").await);
    report(&owner, &repo, &image, None, "").await;
    let draft = json!({ "rules": [rule("fixed", "ENFORCE", &json!({ "vulnerability": { "greatest": "LOW" } }))] });
    let preview = async |body: Value| {
        let reply = owner.rest("POST", &format!("/imagepolicies/v1/scopes/{org}:preview"), Some(body)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    };
    let mut refused = BTreeMap::new();
    let mut token = String::new();
    loop {
        let page = preview(json!({ "policy": draft, "pageSize": 1, "pageToken": token })).await;
        for verdict in page["verdicts"].as_array().cloned().unwrap_or_default() {
            assert_eq!(verdict["repoUid"], json!(repo));
            refused
                .insert(verdict["digest"].as_str().unwrap_or_default().to_owned(), verdict["refused"] == json!(true));
        }
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(refused, BTreeMap::from([(image.clone(), false), (other.clone(), true)]));
    let one = preview(json!({ "policy": draft, "digest": other })).await;
    assert_eq!(one["verdicts"][0]["rules"][0]["reason"], json!("has no scan report"));
    assert_eq!(one["verdicts"][0]["tags"], json!(["2"]));
    let now = preview(json!({ "digest": other })).await;
    assert_ne!(now["verdicts"][0]["refused"], json!(true), "the current policy has no rules");
    assert_eq!(number(server, "SELECT count(*) FROM image_policies").await, 0);
}

each_engine!(multi_thread:
    each_rule_is_seen_to_fail_and_to_pass,
    what_an_index_is_signed_with_covers_its_images_and_it_is_as_good_as_the_worst,
    an_enforced_rule_refuses_manifests_to_those_who_only_pull,
    what_only_looks_like_a_signature_is_refused,
    who_was_let_through_pulls_again_within_the_grace,
    an_exception_is_of_one_policy_until_its_end,
    a_policy_that_could_never_be_evaluated_is_refused,
    a_preview_evaluates_a_draft_and_changes_nothing,
);
