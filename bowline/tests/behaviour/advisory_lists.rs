//! Lists of advisories: every filter, alone and together, in every order, page by page.

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Actor, Engine, TestServer, by_engine, each_engine, on_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, about, create, event, validate};
use crate::support::{call, each, each_of, machine, ok, pages, role};

/// The names of the artifacts on a page of v2, in their order.
async fn names(actor: &Actor, query: &str) -> Vec<String> {
    let list = ok(actor, &format!("GET /vulnerabilities/v2/advisories?{query}"), Value::Null).await;
    each(&list["advisories"], "artifactName").into_iter().map(String::from).collect()
}

/// The same of v1.
async fn names1(actor: &Actor, query: &str) -> Vec<String> {
    let list = ok(actor, &format!("GET {ADVISORIES}?{query}"), Value::Null).await;
    each(&list["items"], "artifactName").into_iter().map(String::from).collect()
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort();
    names
}

/// Three advisories: of curl, of libfoo and of foo.
async fn three(server: &TestServer) -> (String, Actor) {
    let org = server.organization("acme").await;
    let bot = validate(server, &org, "bot", &["CREATE", "LIST", "UPDATE", "APPROVE"]).await;
    let operator = server.operator().await;
    let mut curl = about("curl", "Stdlib", &["CVE-2026-1", "GHSA-aaaa-bbbb-cccc"]);
    curl["legacyAdvisoryID"] = json!("OLD-1");
    let curl = create(&operator, &org, curl).await["id"].as_str().expect("an id").to_owned();
    let mut lib = about("libfoo", "gnu_tls%", &["CVE-2026-2"]);
    (lib["artifactType"], lib["artifactArchitecture"]) = (json!("image"), json!("aarch64"));
    (lib["componentType"], lib["componentLocation"]) = (json!("python"), json!("/lib/b"));
    let lib = create(&bot, &org, lib).await["id"].as_str().expect("an id").to_owned();
    let last = create(&operator, &org, about("foo", "stdlib", &["CVE-2026-3"])).await;
    let last = last["id"].as_str().expect("an id").to_owned();
    event(&operator, &curl, json!({ "fixed": { "fixedVersion": "1" }, "status": "APPROVED" })).await;
    event(&bot, &curl, json!({ "fixNotPlanned": {} })).await;
    event(&bot, &lib, json!({ "fixed": { "fixedVersion": "1" } })).await;
    let scan = json!({ "scanner": "grype", "subpackageName": "libfoo" });
    event(&operator, &last, json!({ "detection": { "scanv1": scan } })).await;
    (org, bot)
}

async fn each_filter_keeps_what_it_names(server: &TestServer) {
    let (org, bot) = three(server).await;
    let operator = server.operator().await;
    let list = ok(&operator, "GET /vulnerabilities/v2/advisories", Value::Null).await;
    assert_eq!(list["totalCount"], json!("3"));
    let of = |name: &str, member: &str| {
        let items = list["advisories"].as_array().expect("a list");
        let found = items.iter().find(|item| item["artifactName"] == name).expect("an advisory");
        found[member].as_str().unwrap_or_default().to_owned()
    };
    let bot_uid = of("libfoo", "author");
    let reviewer = of("curl", "author");
    let public = of("curl", "advisoryId");
    for (query, query1, expected) in [
        (format!("advisoryIds={public}"), format!("advisoryIds={public}"), "curl"),
        ("legacyAdvisoryIds=OLD-1".into(), "legacyAdvisoryIds=OLD-1".into(), "curl"),
        ("artifactNames=curl&artifactNames=foo".into(), "artifactName=curl&artifactName=foo".into(), "curl foo"),
        ("artifactTypes=apk".into(), "artifactType=apk".into(), "curl foo"),
        ("artifactArchitectures=aarch64".into(), "artifactArchitecture=aarch64".into(), "libfoo"),
        ("componentNames=stdlib".into(), "componentName=stdlib".into(), "foo"),
        ("componentTypes=python".into(), "componentType=python".into(), "libfoo"),
        ("componentLocations=/lib/b".into(), "componentLocation=/lib/b".into(), "libfoo"),
        ("aliases=cve-2026-1&aliases=CVE-2026-2".into(), "aliases=CVE-2026-1&aliases=cve-2026-2".into(), "curl libfoo"),
        ("origin=foo&artifactNames=curl".into(), "origin=foo&artifactName=curl".into(), "foo libfoo"),
        ("eventReviewStates=REVIEW_STATE_APPROVED".into(), "eventStatuses=APPROVED".into(), "curl"),
        (format!("eventAuthors={bot_uid}"), format!("eventAuthor={bot_uid}"), "curl libfoo"),
        (format!("excludeEventAuthors={bot_uid}"), format!("excludeEventAuthor={bot_uid}"), "foo"),
        (format!("eventReviewers={reviewer}"), format!("eventReviewer={reviewer}"), "curl"),
        ("eventTypes=EVENT_TYPE_FILTER_FIXED".into(), "eventTypes=EVENT_TYPE_FILTER_FIXED".into(), "curl libfoo"),
        ("latestEventType=EVENT_TYPE_FILTER_FIXED".into(), "latestEventType=EVENT_TYPE_FILTER_FIXED".into(), "curl"),
        // One and the same event.
        (
            "eventTypes=EVENT_TYPE_FILTER_FIXED&eventReviewStates=REVIEW_STATE_PENDING".into(),
            "eventTypes=EVENT_TYPE_FILTER_FIXED&eventStatuses=PENDING".into(),
            "libfoo",
        ),
        // All filters together.
        ("artifactTypes=apk&componentNames=stdlib".into(), "artifactType=apk&componentName=stdlib".into(), "foo"),
        ("artifactTypes=apk&componentTypes=python".into(), "artifactType=apk&componentType=python".into(), ""),
        (
            format!("uidp.childrenOf={org}&artifactTypes=apk"),
            format!("uidp.childrenOf={org}&artifactType=apk"),
            "curl foo",
        ),
    ] {
        let expected: Vec<String> = expected.split_whitespace().map(String::from).collect();
        assert_eq!(sorted(names(&operator, &query).await), expected, "{query}");
        assert_eq!(sorted(names(&bot, &query).await), expected, "{query}, as seen from the organization");
        assert_eq!(sorted(names1(&operator, &query1).await), expected, "{query1}");
    }
    for bad in ["eventTypes=NOTHING", "orderBy=nothing", "pageSize=-1", "skip=-1", "query=a%0Ab", "eventTypes=99"] {
        let reply = call(&operator, &format!("GET /vulnerabilities/v2/advisories?{bad}"), Value::Null).await;
        assert_eq!(reply.status, 400, "{bad}: {}", reply.text());
    }
    let many = (0..201).map(|n| format!("aliases=CVE-{n}")).collect::<Vec<_>>().join("&");
    assert_eq!(call(&operator, &format!("GET {ADVISORIES}?{many}"), Value::Null).await.status, 400);
}

async fn free_text_matches_within_words_and_in_any_case(server: &TestServer) {
    let (_, bot) = three(server).await;
    for (query, expected) in [
        ("foo", "foo libfoo"),
        ("CURL", "curl"),
        ("STDLIB", "curl foo"),
        ("2026-1", "curl"),
        ("aAaA-bBbB", "curl"),
        ("cve-2026", "curl foo libfoo"),
        ("nu_tl", "libfoo"),
        ("tls%", "libfoo"),
        ("t_s", ""),
        ("%", "libfoo"),
        ("\"", ""),
        ("foo\"", ""),
        ("fo", "foo libfoo"),
        ("curlstd", ""),
        ("nothing", ""),
    ] {
        let expected: Vec<String> = expected.split_whitespace().map(String::from).collect();
        let query: String = url::form_urlencoded::byte_serialize(query.as_bytes()).collect();
        assert_eq!(sorted(names(&bot, &format!("query={query}")).await), expected, "{query}");
    }
    let uid =
        ok(&bot, "GET /vulnerabilities/v2/advisories?query=curl", Value::Null).await["advisories"][0]["uid"].clone();
    let put = format!("PUT {ADVISORIES}/{}", uid.as_str().expect("an id"));
    ok(&bot, &put, about("wget", "Stdlib", &["CVE-2026-9"])).await;
    assert_eq!(names(&bot, "query=curl").await, [""; 0]);
    assert_eq!(names(&bot, "query=2026-9").await, ["wget"]);
}

async fn pages_in_every_order_bring_every_advisory_once(server: &TestServer) {
    let org = server.organization("acme").await;
    let groups = [server.group(&org, "one").await, server.group(&org, "two").await];
    let operator = server.operator().await;
    for n in 0..14 {
        let alias = format!("CVE-{}", 90 - n);
        let created = create(&operator, &groups[n % 2], about(&format!("a{n:02}"), "c", &[&alias])).await;
        if n >= 10 {
            let delete = format!("DELETE {ADVISORIES}/{}", created["id"].as_str().expect("an id"));
            ok(&operator, &delete, Value::Null).await;
        }
        server.clock().advance(std::time::Duration::from_secs(1));
    }
    for (order, order1, expected) in [
        ("create_time", "CREATED_AT_ASC", 0..10),
        ("create_time%20desc", "CREATED_AT_DESC", 0..10),
        ("update_time", "UPDATED_AT_ASC", 0..10),
        ("aliases%20desc", "ALIASES_DESC", 0..10),
        ("aliases", "ALIASES_ASC", 0..10),
        ("delete_time", "DELETED_AT_ASC", 10..14),
    ] {
        let mut wanted: Vec<String> = expected.map(|n| format!("a{n:02}")).collect();
        // The later ones have the smaller aliases.
        if order.contains("desc") != order.contains("aliases") {
            wanted.reverse();
        }
        for filter in ["", "&artifactTypes=apk", "&query=cve"] {
            let list = format!("GET /vulnerabilities/v2/advisories?orderBy={order}&page_size=3{filter}");
            let seen = pages(&operator, &list).await;
            let total = json!(wanted.len().to_string());
            assert!(seen.iter().all(|page| page["totalCount"] == total), "{order}{filter}");
            assert_eq!(each_of(&seen, "advisories", "artifactName"), wanted, "{order}{filter}");
            let skipped = names(&operator, &format!("orderBy={order}&skip=2&pageSize=1{filter}")).await;
            assert_eq!(skipped, wanted[2..3], "{order}{filter}");
        }
        assert_eq!(names1(&operator, &format!("orderBy={order1}")).await, wanted, "{order1}");
    }
    let by_id = ok(&operator, &format!("GET {ADVISORIES}?orderBy=ID_DESC&pageSize=200"), Value::Null).await;
    let ids = each(&by_id["items"], "id");
    assert!(ids.is_sorted_by(|a, b| a > b) && ids.len() == 10);
}

/// Advisories of a group with these numbers in their names and words. Every hundredth is about an image, every thousandth
/// is marked as deleted, and the last seventh is about a component of Go, not of Python.
async fn many(server: &TestServer, group: &str, count: i64) {
    let (group, org) = (group.to_owned(), group.split('/').next().expect("an organization").to_owned());
    let written = server.server().parts().storage.db.write(move |tx| {
        let (group, org) = (group.clone(), org.clone());
        Box::pin(async move {
            let sql = "INSERT INTO advisories (uid, parent, org, advisory_id, legacy_id, artifact_name, artifact_type,
                         artifact_architecture, component_name, component_location, component_type, aliases, first_alias,
                         author, latest_event_type, latest_judgement_type, latest_event_at, event_count, event_bytes,
                         created_at, updated_at, deleted_at)
                       VALUES ($1, $2, $3, $1, '', $4, $5, 'x86_64', '', '', $6, '[]', '', 'bot', 2, 2, 0, 0, 0, $7, $7, $8)";
            for n in 0..count {
                let (uid, name) = (format!("{group}/{n:016x}"), format!("n{n:05}"));
                let kind = if n % 100 == 0 { "image" } else { "apk" };
                let component = if n >= count - count / 7 { "go" } else { "python" };
                let deleted = (n % 1000 == 1).then_some(1);
                let params = [
                    Sql::from(&uid),
                    Sql::from(&group),
                    Sql::from(&org),
                    Sql::from(&name),
                    Sql::from(kind),
                    Sql::from(component),
                    Sql::Int(n),
                    Sql::OptInt(deleted),
                ];
                tx.execute(sql, &params).await.map_err(Error::from)?;
                let words = format!("everything {name}");
                let sql = "INSERT INTO advisory_words (advisory, words) VALUES ($1, $2)";
                tx.execute(sql, &[Sql::from(&uid), Sql::from(&words)]).await.map_err(Error::from)?;
            }
            // Two events alike: an index has an advisory as often as that.
            let sql = "INSERT INTO advisory_events
                         (uid, advisory, org, type, state, author, reviewer, at, created_at, body)
                       SELECT a.uid || '/' || e.segment, a.uid, a.org, 1, 1, 'bot', '', 0, 0, $2
                       FROM advisories a
                       CROSS JOIN (SELECT '0000000000000001' AS segment UNION ALL SELECT '0000000000000002') e
                       WHERE a.parent = $1";
            tx.execute(sql, &[Sql::from(&group), Sql::Bytes(&[])]).await.map_err(Error::from)?;
            Ok::<_, Error>(())
        })
    });
    written.await.expect("the database takes it");
}

async fn pages_of_what_very_many_match_bring_every_advisory_once(engine: Engine) {
    const COUNT: i64 = 2800;
    on_engine(engine, async |server| {
        let org = server.organization("acme").await;
        let group = server.group(&org, "one").await;
        many(server, &group, COUNT).await;
        let operator = server.operator().await;
        let is_go = |n: i64| n >= COUNT - COUNT / 7;
        let validators: [(&str, &dyn Fn(i64) -> bool); 10] = [
            ("componentTypes=python", &|n| !is_go(n)),
            ("componentTypes=go&componentTypes=python", &|_| true),
            ("componentTypes=go", &is_go),
            ("componentTypes=python&artifactTypes=apk", &|n| !is_go(n) && n % 100 != 0),
            ("componentTypes=python&componentTypes=none&artifactTypes=apk", &|n| !is_go(n) && n % 100 != 0),
            ("artifactTypes=apk&artifactTypes=image&componentTypes=python&componentTypes=none", &|n| !is_go(n)),
            ("eventReviewStates=REVIEW_STATE_PENDING", &|_| true),
            ("eventReviewStates=REVIEW_STATE_PENDING&componentTypes=python", &|n| !is_go(n)),
            ("latestEventType=EVENT_TYPE_FILTER_TRUE_POSITIVE_DETERMINATION&componentTypes=go", &is_go),
            (
                &format!("uidp.childrenOf={group}&latestEventType=EVENT_TYPE_FILTER_TRUE_POSITIVE_DETERMINATION"),
                &|_| true,
            ),
        ];
        for (filter, is_wanted) in validators {
            for order in ["", "&orderBy=uid%20desc"] {
                let wanted = (0..COUNT).filter(|n| n % 1000 != 1 && is_wanted(*n)).map(|n| format!("n{n:05}"));
                let mut wanted: Vec<String> = wanted.collect();
                if !order.is_empty() {
                    wanted.reverse();
                }
                let list = format!("GET /vulnerabilities/v2/advisories?{filter}{order}&page_size=190");
                let seen = pages(&operator, &list).await;
                let total = if wanted.len() > 2000 { Value::Null } else { json!(wanted.len().to_string()) };
                assert!(seen.iter().all(|page| page["totalCount"] == total), "{filter}{order}");
                assert_eq!(each_of(&seen, "advisories", "artifactName"), wanted, "{filter}{order}");
                for skip in [7, 300] {
                    let skipped = names(&operator, &format!("{filter}{order}&skip={skip}&pageSize=2")).await;
                    assert_eq!(skipped, wanted[skip..skip + 2], "{filter}{order}, {skip}");
                }
            }
        }
    })
    .await;
}

async fn free_text_is_found_however_many_have_its_parts(server: &TestServer) {
    let org = server.organization("acme").await;
    let group = server.group(&org, "one").await;
    many(server, &group, 620).await;
    let operator = server.operator().await;
    let numbers = |numbers: &[i64]| numbers.iter().map(|n| format!("n{n:05}")).collect::<Vec<_>>();
    // Parts that all have, parts that some have, and parts that are nowhere one behind the other.
    for (query, count, first) in [
        ("everything", 619, [0, 2]),
        ("rything%20n00", 619, [0, 2]),
        ("n0012", 10, [120, 121]),
        ("everything%20n006", 20, [600, 601]),
        ("g%20n0061", 10, [610, 611]),
    ] {
        let list = format!("GET /vulnerabilities/v2/advisories?query={query}&pageSize=2");
        let page = ok(&operator, &list, Value::Null).await;
        assert_eq!(page["totalCount"], json!(count.to_string()), "{query}");
        assert_eq!(each(&page["advisories"], "artifactName"), numbers(&first), "{query}");
    }
    for query in ["thingevery", "n00every", "n0012%20everything", "everythingeverything"] {
        assert_eq!(names(&operator, &format!("query={query}")).await, [""; 0], "{query}");
    }
}

async fn pages_of_what_very_many_match_leave_out_what_lies_between(engine: Engine) {
    const COUNT: i64 = 1300;
    on_engine(engine, async |server| {
        let org = server.organization("acme").await;
        let mut groups = Vec::new();
        for name in ["one", "two", "three"] {
            groups.push(server.group(&org, name).await);
        }
        groups.sort();
        for group in &groups {
            many(server, group, COUNT).await;
        }
        let machine = machine(server, &org, "around").await;
        let role = role(server, &org, "reader", &["CAP_ADVISORIES_LIST"]).await;
        for group in [&groups[0], &groups[2]] {
            server.bind(&machine.uid, &role, group).await;
        }
        let reader = server.sign_in("around", "around", &machine.uid).await;
        for order in ["uid", "uid%20desc"] {
            let query = format!("orderBy={order}&artifactArchitectures=x86_64&page_size=190");
            let seen = pages(&reader, &format!("GET /vulnerabilities/v2/advisories?{query}")).await;
            assert!(seen.iter().all(|page| page["totalCount"].is_null()), "{query}");
            let seen = each_of(&seen, "advisories", "uid");
            let shown = (0..COUNT).filter(|n| n % 1000 != 1);
            let shown: Vec<String> = shown.map(|n| format!("{n:016x}")).collect();
            let mut wanted: Vec<String> =
                [0, 2].iter().flat_map(|at| shown.iter().map(|n| format!("{}/{n}", groups[*at]))).collect();
            if order != "uid" {
                wanted.reverse();
            }
            assert_eq!(seen, wanted, "{order}");
        }
    })
    .await;
}

each_engine!(
    free_text_matches_within_words_and_in_any_case,
    pages_in_every_order_bring_every_advisory_once,
    free_text_is_found_however_many_have_its_parts,
    each_filter_keeps_what_it_names,
);

by_engine!(
    pages_of_what_very_many_match_bring_every_advisory_once,
    pages_of_what_very_many_match_leave_out_what_lies_between
);
