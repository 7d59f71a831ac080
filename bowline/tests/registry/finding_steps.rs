//! Findings are compared in steps: whatever waits has its turn, and a step takes no more than it can.

use bowline_core::Clock as _;
use bowline_store::Engine;
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::finding_events::{delete, lines};
use crate::matching::{import, matched, push_with, record};
use crate::support::*;

async fn images_that_are_noted_without_end_keep_no_other_waiting(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    for name in ["one", "other"] {
        push_with(&client, &format!("{org}/{name}"), "1", &["pkg:pypi/flask@1.9"]).await;
    }
    matched(server).await;
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    // Before the images of the other repository wait as many as sixteen steps compare, and all of them again and again.
    let first = "INSERT INTO waiting_images (repo, digest, noted)
                 WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
                 SELECT (SELECT min(uid) FROM repos), 'sha256:' || i, 1 FROM n WHERE true
                 ON CONFLICT (repo, digest) DO UPDATE SET noted = waiting_images.noted + 1";
    let open = "SELECT count(*) FROM image_findings WHERE repo = (SELECT max(uid) FROM repos)";
    for _ in 0..60 {
        execute(server, first).await;
        server.server().parts().matching.step(server.clock().now()).await.expect("a step");
    }
    assert_eq!(number(server, open).await, 1);
}

async fn what_an_index_says_of_its_members_is_no_digest_unless_it_looks_like_one(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let member = client.image(&name, "1", b"member").await;
    for about in ["\0".to_owned(), "x".repeat(9000), "sha256:short".to_owned()] {
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [{
                "mediaType": member["mediaType"], "digest": digest_of(&member), "size": member.to_string().len(),
                "annotations": { "vnd.docker.reference.digest": about },
            }],
        });
        let reply = client.put(&name, "index", &index).await;
        assert_eq!(reply.status, 201, "{}", reply.text());
        delete(&client, &name, &digest_of(&index)).await;
    }
    let strange = "SELECT count(*) FROM waiting_images WHERE length(digest) <> 71";
    assert_eq!(number(server, strange).await, 0);
}

async fn more_images_than_a_step_compares_are_all_compared(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    for tag in 0..60 {
        let other = format!("pkg:npm/n{tag}@1");
        push_with(&client, &format!("{org}/app"), &tag.to_string(), &["pkg:pypi/flask@1.9", &other]).await;
    }
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    assert_eq!(lines(server, &mut 0).await.len(), 60);
}

async fn more_sboms_than_a_step_notes_are_all_noted(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:pypi/flask@1.9"]).await;
    matched(server).await;
    // They come before that of the image, and are nowhere else.
    let others = match server.server().parts().storage.db.engine() {
        Engine::Sqlite => {
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2100)
             INSERT INTO version_sboms (package, version, sbom, origin)
             SELECT 'pypi/flask', '1.9', unhex(printf('%08x', i)), '' FROM n"
        }
        Engine::Postgres => {
            "INSERT INTO version_sboms (package, version, sbom, origin)
             SELECT 'pypi/flask', '1.9', decode(lpad(to_hex(i), 8, '0'), 'hex'), '' FROM generate_series(1, 2100) AS i"
        }
    };
    execute(server, others).await;
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    assert_eq!(lines(server, &mut 0).await, ["+ app PYSEC-1 1.9"]);
}

async fn a_step_that_gives_way_leaves_nothing_out(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let names: Vec<String> = (0..20).map(|n| format!("n{n:02}")).collect();
    let components: Vec<String> = names.iter().map(|name| format!("pkg:npm/{name}@1")).collect();
    let components: Vec<&str> = components.iter().map(String::as_str).collect();
    push_with(&client, &format!("{org}/app"), "1", &components).await;
    matched(server).await;
    let records: Vec<_> = names.iter().map(|name| record(&format!("GHSA-{name}"), ("npm", name), "2")).collect();
    import(server, "test", &records, &[], "commit").await;
    // Other writes always wait meanwhile.
    let others = async {
        for _ in 0..100 {
            let write = || execute(server, "UPDATE repos SET uid = uid WHERE false");
            tokio::join!(write(), write(), write(), write());
        }
    };
    let steps = async {
        for _ in 0..20 {
            server.server().parts().matching.step(server.clock().now()).await.expect("a step");
        }
    };
    tokio::join!(others, steps);
    matched(server).await;
    assert_eq!(number(server, "SELECT count(*) FROM package_matches").await, 20);
    assert_eq!(number(server, "SELECT count(*) FROM image_findings").await, 20);
}

async fn the_findings_of_a_deleted_repository_go_in_silence(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    push_with(&client, &format!("{org}/app"), "1", &["pkg:pypi/flask@1.9"]).await;
    import(server, "test", &[record("PYSEC-1", ("PyPI", "flask"), "2")], &[], "commit").await;
    let mut at = 0;
    assert_eq!(lines(server, &mut at).await.len(), 1);
    let repo = repo_uid(server, "app").await;
    // The task may look at an image now, of which it has written nothing.
    execute(server, "INSERT INTO waiting_images (repo, digest, noted) SELECT uid, 'sha256:x', 1 FROM repos").await;
    let reply = server.operator().await.rest("DELETE", &format!("/registry/v2/repos/{repo}"), None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(number(server, "SELECT noted FROM waiting_images WHERE digest = 'sha256:x'").await, 2);
    assert_eq!(lines(server, &mut at).await, [""; 0]);
    assert_eq!(number(server, "SELECT count(*) FROM image_findings").await, 0);
}

each_engine!(
    multi_thread: a_step_that_gives_way_leaves_nothing_out,
    images_that_are_noted_without_end_keep_no_other_waiting,
    what_an_index_says_of_its_members_is_no_digest_unless_it_looks_like_one,
    more_images_than_a_step_compares_are_all_compared,
    more_sboms_than_a_step_notes_are_all_noted,
    the_findings_of_a_deleted_repository_go_in_silence,
);
