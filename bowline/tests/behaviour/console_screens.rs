//! What single pages of the web console show, with data: the rows that the API has, in words.

use bowline_libraries::decide::Refusal;
use bowline_libraries::{Language, Mode};
use bowline_testkit::{Browser, TestServer, each_engine};
use serde_json::{Value, json};

use crate::access_requests::requested;
use crate::advisories::{advisory, create, event};
use crate::block_statistics::{block, policy};
use crate::console_support::{browser_of_operator, encoded, page};
use crate::contents::{Manifest, digest, store};
use crate::deliveries::until;
use crate::posture::{DAY, report, tag};
use crate::support::{execute, image, ok, provider, uid_of};

/// The texts of a page's elements, without their markup.
fn words(markup: &str) -> String {
    let mut text = String::new();
    let mut is_tag = false;
    for letter in markup.chars() {
        match letter {
            '<' => is_tag = true,
            '>' => {
                is_tag = false;
                text.push(' ');
            }
            letter if !is_tag => text.push(letter),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The rows of all tables of a page.
fn rows(page: &str) -> Vec<String> {
    let rows = page.split("<tr role=\"row\">").skip(1).filter_map(|rest| rest.split("</tr>").next());
    rows.map(|row| words(&without_actions(row))).collect()
}

/// A part of a page without the links to what can be done there.
fn without_actions(part: &str) -> String {
    let mut parts = part.split("<a class=\"action\"");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, link| shown + link.split_once("</a>").map_or("", |(_, rest)| rest))
}

/// The row that begins with a text.
fn row(page: &str, begins: &str) -> String {
    let all = rows(page);
    let found = all.iter().find(|row| row.starts_with(begins));
    found.unwrap_or_else(|| panic!("no row of {begins} in {all:#?}")).clone()
}

/// The value of a fact.
fn fact(page: &str, name: &str) -> String {
    let value = page.split_once(&format!("<dt>{name}</dt><dd>")).and_then(|(_, rest)| rest.split("</dd>").next());
    words(value.unwrap_or_else(|| panic!("no fact {name} in {page}")))
}

async fn show(browser: &Browser, name: &str, parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    page(browser, &format!("/console/{name}?{}", pairs.join("&"))).await
}

async fn invitations_and_requests_for_access(server: &TestServer) {
    let (org, _, me) = requested(server).await;
    let body =
        json!({ "roleUid": server.role("viewer"), "ttl": "3600s", "email": "bob@acme.example", "singleUse": true });
    let made = ok(&server.operator().await, &format!("POST /iam/v2/groupInvites/{org}"), body).await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "invites", &[("in", &org)]).await;
    let invite = row(&shown, "bob@acme.example");
    assert!(invite.starts_with(&format!("bob@acme.example viewer {org} yes ")), "{invite}");
    let request = rows(&shown).into_iter().find(|row| row.contains("me@acme.example")).expect("the request");
    assert!(request.contains(&me.uid), "{request}");
    let code = made["code"].as_str().expect("a code");
    assert!(!shown.contains(code), "codes are shown when they are made alone");
}

async fn identity_providers_without_their_secrets(server: &TestServer) {
    let org = server.organization("acme").await;
    execute(server, "UPDATE groups SET verified = TRUE WHERE uid = $1", &[&org]).await;
    let uid = provider(server, &org, "main").await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "providers", &[("in", &org)]).await;
    let viewer = server.role("viewer");
    assert_eq!(row(&shown, "main"), format!("main https://login.example.com client none off {viewer} {uid}"));
    assert!(!shown.contains("hush"), "{shown}");
}

async fn upstreams_with_their_last_check(server: &TestServer) {
    let org = server.organization("acme").await;
    let (web, api) = (server.repo(&org, "web").await, server.repo(&org, "api").await);
    let sql = "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, 3, 1000000, $3)";
    execute(server, sql, &[&web, &org, "the upstream answered 502"]).await;
    let sql = "INSERT INTO upstream_syncs (repo, org, status, checked_at, message) VALUES ($1, $2, 2, 1000000, '')";
    execute(server, sql, &[&api, &org]).await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "upstreams", &[("in", &org)]).await;
    assert_eq!(rows(&shown).len(), 3, "{shown}");
    let failed = row(&shown, "web");
    assert!(failed.contains("1970-01-01 00:00 UTC") && failed.ends_with("the upstream answered 502"), "{failed}");
    assert!(row(&shown, "api").ends_with("none"));
    let failing = show(&browser, "upstreams", &[("in", &org), ("failed", "true")]).await;
    assert_eq!(rows(&failing).len(), 2, "{failing}");
}

async fn findings_and_their_numbers_by_day(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    for (character, name) in [('1', "old"), ('2', "latest")] {
        image(server, &repo, &digest(character), 10).await;
        tag(server, &repo, name, &digest(character)).await;
    }
    let first = [("CVE-1", "Critical", "curl", "fixed"), ("CVE-2", "Low", "zlib", "unknown")];
    report(server, &repo, &digest('1'), &first).await;
    server.clock().advance(DAY * 2);
    report(server, &repo, &digest('1'), &first[1..]).await;
    report(server, &repo, &digest('2'), &[("CVE-3", "High", "curl", "fixed")]).await;
    let operator = server.operator().await;
    let about = json!({ "artifactType": "apk", "artifactName": "curl", "aliases": ["CVE-3"] });
    let about = create(&operator, &org, about).await["id"].as_str().expect("an id").to_owned();
    event(&operator, &about, json!({ "fixed": { "fixedVersion": "1.2" } })).await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "findings", &[("in", &org)]).await;
    assert_eq!(rows(&shown).len(), 3, "{shown}");
    let high = row(&shown, "CVE-3");
    assert!(high.starts_with("CVE-3 high curl 1 none web latest BWL-") && high.contains("under review"), "{high}");
    assert!(row(&shown, "CVE-2").starts_with("CVE-2 low zlib 1 none web old none "));
    for (name, value, found) in [
        ("severity", "HIGH", "CVE-3"),
        ("fix", "FIXED", "CVE-3"),
        ("q", "zlib", "CVE-2"),
        ("status", "FINDING_STATUS_NO_ADVISORY", "CVE-2"),
    ] {
        let filtered = show(&browser, "findings", &[("in", &org), (name, value)]).await;
        assert_eq!(rows(&filtered).len(), 2, "{name}: {filtered}");
        row(&filtered, found);
    }
    let posture = show(&browser, "posture", &[("in", &org)]).await;
    assert_eq!(fact(&posture, "Vulnerabilities"), "2");
    assert_eq!(fact(&posture, "Repositories"), "1 of 1 counted");
    let days: Vec<String> = rows(&posture).into_iter().filter(|row| row.starts_with("20")).collect();
    let numbers = |day: &str| day.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect::<Vec<i64>>();
    let open: Vec<Vec<i64>> = days.iter().take(3).map(|day| numbers(day)[..6].to_vec()).collect();
    assert_eq!(open[0], [0, 1, 0, 1, 0, 0], "{days:?}");
    assert_eq!(numbers(&row(&posture, "critical")), [1, 2, 2], "{posture}");
    assert!(posture.contains("2 findings open, as many as on "), "{posture}");
}

async fn the_policy_of_a_repository_with_its_origins(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    let operator = server.operator().await;
    let upstream = json!({ "url": "https://registry.example.com", "tagPatterns": ["v.*"] });
    let of_org = json!({ "byteQuota": "2048", "retention": { "keepLast": 5, "keepDays": 9 }, "upstream": upstream });
    ok(&operator, &format!("PATCH /registrypolicies/v1/groups/{org}"), of_org).await;
    let of_repo = json!({ "public": true, "immutableTagPatterns": ["r.*"] });
    ok(&operator, &format!("PATCH /registrypolicies/v1/repos/{repo}"), of_repo).await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "policy", &[("repo", &repo)]).await;
    assert_eq!(fact(&shown, "Public"), "yes (of this repository)");
    assert_eq!(fact(&shown, "Tags that stay"), "r.* (of this repository)");
    assert_eq!(fact(&shown, "Quotas"), format!("2.0 KiB (of {org} )"));
    assert_eq!(fact(&shown, "Retention keeps"), format!("the last 5, those of 9 days (of {org} )"));
    assert!(fact(&shown, "Upstream").starts_with("https://registry.example.com v.* (of "));
    assert!(shown.contains("Retention has not run here."), "{shown}");
    let rules = json!({ "retention": { "keepPatterns": ["kept"] } });
    ok(&operator, &format!("PATCH /registrypolicies/v1/repos/{repo}"), rules).await;
    for (character, name) in [('1', "kept"), ('2', "gone")] {
        image(server, &repo, &digest(character), 100).await;
        tag(server, &repo, name, &digest(character)).await;
    }
    server.clock().advance(DAY * 2);
    let apply = format!("POST /registrypolicies/v1/repos/{repo}:applyRetention");
    ok(&server.operator().await, &apply, json!({})).await;
    let browser = browser_of_operator(server).await;
    let ran = show(&browser, "policy", &[("repo", &repo)]).await;
    assert!(rows(&ran)[1].ends_with("UTC 1 1 100 B 1"), "{:?}", rows(&ran));
}

async fn what_a_tag_named_as_a_line_and_a_table(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    for character in ['1', '2'] {
        image(server, &repo, &digest(character), 10).await;
    }
    let operator = server.operator().await;
    let made = json!({ "name": "latest", "digest": digest('1') });
    let uid = uid_of(&ok(&operator, &format!("POST /registry/v2/tags/{repo}"), made).await);
    for character in ['2', '1'] {
        server.clock().advance(std::time::Duration::from_secs(60));
        tag(server, &repo, "latest", &digest(character)).await;
    }
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "tag-history", &[("tag", &uid)]).await;
    assert!(shown.contains("3 moves, 2 different digests."), "{shown}");
    assert_eq!(shown.matches("class=\"dot\"").count(), 3, "{shown}");
    let moves = &rows(&shown)[1..];
    assert_eq!(moves.iter().filter(|row| row.ends_with("more than once")).count(), 2, "{moves:?}");
    assert!(moves.iter().any(|row| row.starts_with(&digest('2')) && row.ends_with("none")), "{moves:?}");
}

async fn what_differs_between_two_images(server: &TestServer) {
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "web").await;
    for (character, size, run) in
        [('1', 100, r#"{"User":"a","Env":["X_SECRET=hunter2"]}"#), ('2', 1124, r#"{"User":"b"}"#)]
    {
        let config = Some(("amd64", run));
        store(server, &repo, &Manifest { digest: &digest(character), shape: 1, size, names: &[], config }).await;
    }
    report(server, &repo, &digest('1'), &[("CVE-1", "High", "curl", "fixed")]).await;
    report(server, &repo, &digest('2'), &[("CVE-2", "Low", "zlib", "unknown")]).await;
    let browser = browser_of_operator(server).await;
    let asked = show(&browser, "compare", &[("repo", &repo)]).await;
    assert!(asked.contains("Name two digests"), "{asked}");
    let both = [("repo", repo.as_str()), ("from", &digest('1')), ("to", &digest('2'))];
    let shown = show(&browser, "compare", &both).await;
    assert_eq!(fact(&shown, "Grows by"), "1.0 KiB");
    assert_eq!(fact(&shown, "Size"), "100 B to 1.1 KiB");
    assert_eq!(row(&shown, "User"), "User &quot;a&quot; &quot;b&quot;");
    assert!(!shown.contains("hunter2") && row(&shown, "Env").contains("(not shown)"), "{shown}");
    let listed = |id: &str| {
        let part = shown.split_once(&format!("aria-labelledby=\"{id}\"")).expect("a part").1;
        words(part.split("</section>").next().unwrap_or_default())
    };
    assert!(listed("added").ends_with("CVE-2") && listed("removed").ends_with("CVE-1"), "{shown}");
    let back = show(&browser, "compare", &[("repo", &repo), ("from", &digest('2')), ("to", &digest('1'))]).await;
    assert_eq!(fact(&back, "Grows by"), "-1.0 KiB");
}

async fn why_a_package_is_not_allowed(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let body = json!({ "name": "strict", "blockList": [{ "purl": "pkg:pypi/bad" }] });
    let made = ok(&operator, &format!("POST /libraries/v1/policies/{org}"), body).await;
    let bind = json!({ "policy": made["id"], "ecosystem": "PYTHON", "mode": "LIBRARY_POLICY_BINDING_MODE_ENFORCED" });
    ok(&operator, &format!("POST /libraries/v1/policy-bindings/{org}"), bind).await;
    let other = policy(server, &org, "other").await;
    block(server, &org, &other, (Language::Python, "six", "1", Mode::Enforced, Refusal::Malware), 2).await;
    let browser = browser_of_operator(server).await;
    let shown = show(&browser, "decision", &[("in", &org), ("purl", "pkg:pypi/bad@3")]).await;
    assert_eq!(fact(&shown, "Decision"), "blocked");
    assert_eq!((fact(&shown, "Why"), fact(&shown, "Matched")), ("BLOCK_LIST".into(), "pkg:pypi/bad".into()));
    assert_eq!(fact(&shown, "Policy"), made["id"].as_str().expect("an id"));
    assert_eq!(row(&shown, "MALWARE_DETECTED"), "MALWARE_DETECTED 2 1");
    assert_eq!(row(&shown, "six"), "six 2");
    let allowed = show(&browser, "decision", &[("in", &org), ("purl", "pkg:npm/fine@1.0.0")]).await;
    assert_eq!(fact(&allowed, "Decision"), "allowed");
}

async fn the_server_and_its_organizations(server: &TestServer) {
    let org = server.organization("acme").await;
    server.repo(&org, "web").await;
    server.repo(&org, "api").await;
    let browser = browser_of_operator(server).await;
    let shown = page(&browser, "/console/operator").await;
    assert!(!fact(&shown, "Version").is_empty() && fact(&shown, "Storage") == "has room", "{shown}");
    assert!(rows(&shown).iter().filter(|row| row.ends_with(" fine")).count() > 3, "{shown}");
    let keys = ok(&server.operator().await, "GET /operator/v1/keys", Value::Null).await;
    row(&shown, keys["keys"][0]["kid"].as_str().expect("a key"));
    let counted = format!("acme 0 B 2 {org}");
    let organizations = async || row(&page(&browser, "/console/organizations").await, "acme");
    until("the count of repositories", async || organizations().await == counted).await;
}

async fn advisories_name_their_authors(server: &TestServer) {
    let org = server.organization("acme").await;
    let author = server.actor("owner", &org).await;
    let written = advisory(&author, &org, "nginx", &["CVE-2026-1"]).await;
    event(&author, &written, json!({ "fixed": { "fixedVersion": "1.2.3" } })).await;
    let browser = browser_of_operator(server).await;
    let address = format!("/console/advisory?uid={}", encoded(&written));
    let shown = page(&browser, &address).await;
    let identity =
        ok(&server.operator().await, &format!("GET /iam/v2/identities/{}", author.identity), Value::Null).await;
    let name = identity["name"].as_str().expect("a name");
    assert_eq!(fact(&shown, "Author"), name);
    assert!(words(&shown).contains(&format!("by {name}")), "{shown}");
    assert!(shown.contains(&format!("title=\"{}\"", author.identity)), "the id is in the title: {shown}");
}

each_engine!(
    multi_thread:
    invitations_and_requests_for_access,
    identity_providers_without_their_secrets,
    upstreams_with_their_last_check,
    findings_and_their_numbers_by_day,
    the_policy_of_a_repository_with_its_origins,
    what_a_tag_named_as_a_line_and_a_table,
    what_differs_between_two_images,
    why_a_package_is_not_allowed,
    the_server_and_its_organizations,
    advisories_name_their_authors,
);
