//! Reports of scanners belong to what was scanned.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bowline_testkit::{TestServer, each_engine};
use serde_json::json;

use crate::support::*;

async fn a_report_of_another_image_is_refused(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let name = format!("{org}/app");
    let first = client.image(&name, "1", b"one").await;
    let second = digest_of(&client.image(&name, "2", b"two").await);
    let index = json!({ "schemaVersion": 2, "mediaType": INDEX, "manifests": [descriptor(IMAGE, first.to_string().as_bytes())] });
    assert_eq!(client.put(&name, "all", &index).await.status, 201);
    let (first, index) = (digest_of(&first), digest_of(&index));
    let (config, other) = (digest(CONFIG_BYTES), digest(b"another"));
    let repo = repo_uid(server, "app").await;
    let operator = server.operator().await;
    for (of, manifest, config, named, is_taken) in [
        (&first, &first, &other, &other, true),
        (&first, &other, &config, &other, true),
        (&first, &other, &other, &first, true),
        (&index, &first, &other, &other, true),
        (&index, &other, &config, &other, true),
        (&first, &other, &other, &other, false),
        (&first, &second, &other, &index, false),
        (&index, &second, &other, &second, false),
    ] {
        let target = json!({ "manifestDigest": manifest, "imageID": config, "repoDigests": [format!("h/a@{named}")] });
        let report = json!({ "matches": [], "source": { "type": "image", "target": target } }).to_string();
        let body = json!({ "digest": of, "scanner": "SCANNER_NAME_GRYPE", "report": STANDARD.encode(&report) });
        let reply = operator.rest("POST", &format!("/scans/v1/repos/{repo}/reports"), Some(body)).await;
        assert_eq!(reply.status, if is_taken { 200 } else { 400 }, "{report}: {}", reply.text());
        assert!(is_taken || reply.text().contains(&format!("is of {manifest}, not of {of}")), "{}", reply.text());
    }
}

each_engine!(multi_thread: a_report_of_another_image_is_refused);
