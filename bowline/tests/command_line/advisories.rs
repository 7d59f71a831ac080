//! Advisories at the terminal: made, checked, reviewed, published.

use bowline_testkit::{Engine, TestServer};
use serde_json::json;

use crate::support::{Terminal, ended, text};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_advisory_from_its_making_to_its_publication() {
    let server = TestServer::start(Engine::Sqlite).await;
    let organization = server.organization("acme").await;
    let terminal = Terminal::new(&server);
    terminal.sign_in_as(&server.actor("owner", &organization).await);
    let create =
        ["advisories", "create", "acme", "--artifact", "curl", "--alias", "CVE-2026-1,GHSA-1", "--component", "tls"];
    let id = ended(&terminal.run(&create).await, 0);
    assert!(id.starts_with("BWL-"), "{id}");
    ended(&terminal.run(&create).await, 1);

    for (kind, missing) in [("fixed", "--version"), ("patched", "--version"), ("not-affected", "--reason")] {
        let refused = terminal.run(&["advisories", "event", &id, kind]).await;
        ended(&refused, 2);
        assert!(text(&refused.stderr).contains(missing), "{}", text(&refused.stderr));
    }
    let detection = ended(&terminal.run(&["advisories", "event", &id, "detection", "--approved"]).await, 0);
    // What happens at one moment has no order.
    server.clock().advance(std::time::Duration::from_secs(1));
    let event = ["advisories", "event", &id, "fixed", "--version", "8.1-r0", "--note", "upstream"];
    let fixed = ended(&terminal.run(&event).await, 0);
    let listed = ended(&terminal.run(&["advisories", "list", "acme", "--pending"]).await, 0);
    assert!(listed.contains(&format!("{id}\tcurl\ttls\tCVE-2026-1,GHSA-1\tdetection\t")), "{listed}");

    let review = |event: &str, decision: &str| ["advisories", "review", event, decision].map(String::from);
    for (decision, state) in [("request-changes", "request-changes"), ("resubmit", "pending"), ("approve", "approved")]
    {
        let arguments = review(&fixed, decision);
        let shown = ended(&terminal.run(&arguments.each_ref().map(String::as_str)).await, 0);
        assert!(shown.contains(&format!("{fixed}\t{state}\t")), "{shown}");
    }
    let arguments = review(&detection, "reject");
    let refused = terminal.run(&arguments.each_ref().map(String::as_str)).await;
    ended(&refused, 1);
    assert!(text(&refused.stderr).contains("final"), "{}", text(&refused.stderr));

    let shown = ended(&terminal.run(&["advisories", "get", &id]).await, 0);
    assert!(shown.contains("latest\tfixed") && shown.contains("8.1-r0 upstream"), "{shown}");
    let got = terminal.json(&["advisories", "get", &id]).await;
    assert_eq!((&got["advisoryId"], &got["aliases"]), (&json!(id), &json!(["CVE-2026-1", "GHSA-1"])));
    for (filter, count) in [
        (["--latest", "fixed"], 1),
        (["--latest", "patched"], 0),
        (["--alias", "CVE-2026-1"], 1),
        (["--query", "CUR"], 1),
        (["--artifact", "wget,curl"], 1),
        (["--component", "ssl"], 0),
    ] {
        let listed = terminal.json(&[&["advisories", "list"][..], &filter].concat()).await;
        assert_eq!(listed.as_array().map(Vec::len), Some(count), "{filter:?}");
    }
    let refused = terminal.run(&["advisories", "get", "BWL-2222-2222-2222"]).await;
    ended(&refused, 6);
    assert!(text(&refused.stderr).contains("no advisory \"BWL-2222-2222-2222\""), "{}", text(&refused.stderr));

    let settings = terminal.json(&["advisories", "settings", "acme", "--second-reviewer", "true"]).await;
    assert_eq!((&settings["public"], &settings["secondReviewerRequired"]), (&json!(false), &json!(true)));
    let settings = ended(&terminal.run(&["advisories", "settings", "acme", "--public", "true"]).await, 0);
    assert!(settings.contains("\ttrue\ttrue"), "{settings}");
    let own = ended(&terminal.run(&["advisories", "event", &id, "affected"]).await, 0);
    let arguments = review(&own, "approve");
    ended(&terminal.run(&arguments.each_ref().map(String::as_str)).await, 1);
    server.stop().await;
}
