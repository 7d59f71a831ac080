//! The home of an organization in the web console: its tiles, what needs attention, and the first steps.

use bowline_libraries::decide::Refusal;
use bowline_libraries::{Language, Mode};

use bowline_store::activity::ActivityKind;
use bowline_testkit::{Browser, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{advisory, event};
use crate::block_statistics::{block, policy};
use crate::console_support::{browser_of, browser_of_operator, encoded, enter_at, links, page, with_provider};
use crate::contents::digest;
use crate::deliveries::{create_group, subscribe, until};
use crate::people_support::person;
use crate::posture::{DAY, report, tag};
use crate::statistics::happened;
use crate::support::{execute, image, ok, role};

/// A text between two others, without markup.
fn between<'p>(page: &'p str, from: &str, to: &str) -> &'p str {
    let (_, rest) = page.split_once(from).unwrap_or_else(|| panic!("no {from} in {page}"));
    rest.split_once(to).map_or(rest, |(text, _)| text)
}

/// The part of a page with this heading's id.
fn tile<'p>(page: &'p str, id: &str) -> &'p str {
    between(page, &format!("aria-labelledby=\"{id}\""), "</section>")
}

async fn home(browser: &Browser, org: &str) -> String {
    page(browser, &format!("/console/home?in={}", encoded(org))).await
}

/// An organization in which everything needs attention, and its repository.
async fn troubled(server: &TestServer) -> (String, String) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    image(server, &repo, &digest('1'), 10).await;
    tag(server, &repo, "latest", &digest('1')).await;
    let found =
        [("CVE-1", "Critical", "a", "fixed"), ("CVE-2", "Low", "b", "unknown"), ("CVE-3", "High", "c", "fixed")];
    report(server, &repo, &digest('1'), &found).await;
    server.clock().advance(DAY * 3);
    let bytes = "INSERT INTO count_deltas (collection, uid, delta) VALUES ('blob_bytes', $1, 900)";
    execute(server, bytes, &[&repo]).await;
    let operator = server.operator().await;
    ok(&operator, &format!("PATCH /registrypolicies/v1/groups/{org}"), json!({ "byteQuota": "1000" })).await;
    let failed =
        "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, 3, 1000000, 'no')";
    execute(server, failed, &[&repo, &org]).await;
    let advisory = advisory(&operator, &org, "curl", &["CVE-9"]).await;
    event(&operator, &advisory, json!({ "fixed": { "fixedVersion": "1.2" } })).await;
    let policy = policy(server, &org, "strict").await;
    let refusal = || Refusal::License("MIT".into());
    block(server, &org, &policy, (Language::Java, "a:b", "1", Mode::Enforced, refusal()), 3).await;
    happened(server, (&repo, "", ActivityKind::Pulls), 1, 7).await;
    subscribe(&operator, &org, "http://127.0.0.1:9/hook").await;
    create_group(&operator, &org, "team").await;
    (org, repo)
}

async fn everything_that_needs_attention_is_named(server: &TestServer) {
    let (org, repo) = troubled(server).await;
    let browser = browser_of_operator(server).await;
    until("a failing delivery", async || home(&browser, &org).await.contains("fail since")).await;
    let shown = home(&browser, &org).await;
    let attention = tile(&shown, "attention");
    for text in [
        "The quota is used to 90 %: 900 B of 1000 B",
        "1 advisory</bdi></a> has events that wait for a reviewer",
        "The last check of ",
        "1 upstream</bdi></a> failed",
        "1 critical finding</bdi></a> has a fix",
    ] {
        assert!(attention.contains(text), "{text}: {attention}");
    }
    let open = tile(&shown, "open");
    assert!(open.contains("3 findings open, as many as on ") && open.contains("url(#open-chart-hatch)"), "{open}");
    assert_eq!(open.matches("<tr role=\"row\">").count(), 91, "90 days and the heads");
    let pulls = tile(&shown, "pulls");
    assert!(pulls.contains("7 pulls in 30 days, most of them on ") && pulls.contains(": 7</title>"), "{pulls}");
    let stored = tile(&shown, "stored");
    assert!(stored.contains("900 B of 1000 B (90 %)") && stored.contains("class=\"full\"") && stored.contains(">web<"));
    let blocked = tile(&shown, "blocked");
    assert!(blocked.contains("3 attempts, 1 package<") && blocked.contains(">license<"), "{blocked}");
    assert!(tile(&shown, "recent").contains("by <span class=\"badge plain\">operator"), "{shown}");
    let data = browser.get(&format!("/console/home?in={org}&format=json")).await.json();
    let calls = data["calls"].as_array().expect("calls").len();
    assert!((11..=12).contains(&calls), "{calls} calls, one of them for all names: {data}");
    // Each number leads to the list that it counts.
    let rows = async |link: &str| {
        let list = page(&browser, link).await;
        between(&list, "<tbody", "</tbody>").matches("<tr").count()
    };
    for (start, number) in [
        ("/console/findings?", 1),
        ("/console/upstreams?", 1),
        ("/console/advisories?", 1),
        ("/console/repositories?", 1),
    ] {
        let found: Vec<String> = links(attention).into_iter().filter(|link| link.starts_with(start)).collect();
        assert_eq!(found.len(), 1, "{start}: {attention}");
        assert_eq!(rows(&found[0]).await, number, "{}", found[0]);
    }
    let of_repo = page(&browser, &format!("/console/repository?uid={}", encoded(&repo))).await;
    assert!(tile(&of_repo, "pulls").contains("7 pulls in 30 days"), "{of_repo}");
    let posture = page(&browser, &format!("/console/posture?in={org}")).await;
    assert!(tile(&posture, "days").contains("role=\"img\""), "{posture}");
}

async fn a_refused_tile_is_a_sentence(server: &TestServer) {
    with_provider(server).await;
    let (org, _) = troubled(server).await;
    let browser = server.browser();
    enter_at(server, &browser, "ada", "/console/").await;
    let narrow = role(server, &org, "narrow", &["CAP_IAM_GROUPS_LIST"]).await;
    server.bind(&person(server, "ada"), &narrow, &org).await;
    let shown = home(&browser, &org).await;
    for id in ["open", "pulls", "stored", "blocked"] {
        let tile = tile(&shown, id);
        assert!(tile.contains("You may not see this: it needs ") && tile.contains("/console/why?"), "{id}: {tile}");
        assert!(!tile.contains("role=\"img\""), "{id}: {tile}");
    }
    assert!(tile(&shown, "attention").contains("Not looked at: "), "{shown}");
    assert!(!shown.contains("fail since") && !shown.contains(">web<") && !shown.contains("wait for"), "{shown}");
}

async fn an_empty_organization_shows_its_first_steps(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let organizations = page(&browser, "/console/").await;
    assert!(links(&organizations).contains(&format!("/console/home?in={org}")), "{organizations}");
    let shown = home(&browser, &org).await;
    let steps = tile(&shown, "first-steps");
    assert_eq!((steps.matches(">to do<").count(), steps.matches(">done<").count()), (5, 0), "{steps}");
    for command in [
        &format!("bowline iam invites create --parent {org} --role viewer"),
        "bowline iam identities create github acme/build",
        &format!("bowline auth login --api {}", server.base()),
        "bowline auth configure-docker",
        &format!("/{org}/app:latest"),
        "bowline registry scan-report put acme/app:latest --file report.json",
        &format!("bowline events subscriptions create --parent {org} "),
    ] {
        assert!(steps.contains(command), "{command}: {steps}");
    }
    let operator = server.operator().await;
    subscribe(&operator, &org, "http://127.0.0.1:9/hook").await;
    server.identity(&org, "build").await;
    let invite = json!({ "roleUid": server.role("viewer"), "ttl": "3600s" });
    ok(&operator, &format!("POST /iam/v2/groupInvites/{org}"), invite).await;
    let steps_now = home(&browser, &org).await;
    assert_eq!(tile(&steps_now, "first-steps").matches(">done<").count(), 3, "{steps_now}");
    server.repo(&org, "web").await;
    let filled = home(&browser, &org).await;
    assert!(!filled.contains("First steps") && tile(&filled, "open").contains("No image here was scanned"), "{filled}");
    ok(&operator, &format!("POST /iam/v2/groups/{org}"), json!({ "name": "team one" })).await;
    let groups = ok(&operator, &format!("GET /iam/v2/groups?uidp.childrenOf={org}"), Value::Null).await;
    let team = groups["groups"][0]["uid"].as_str().expect("a uid").to_owned();
    let below = home(&browser, &team).await;
    assert!(!below.contains("aria-labelledby=\"blocked\"") && below.contains("PATH/app:latest"), "{below}");
    assert!(page(&browser, "/console/home").await.contains("choose one"));
}

each_engine!(
    multi_thread:
    everything_that_needs_attention_is_named,
    a_refused_tile_is_a_sentence,
    an_empty_organization_shows_its_first_steps,
);
