//! The search over everything that has a name: what is found, in which order, and that what is hidden is not there.

use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{about, create};
use crate::contents::digest;
use crate::libraries::{BUILT, import, version};
use crate::support::{call, each, holder, image, ok, rejected};

async fn search(actor: &Actor, query: &str) -> Value {
    ok(actor, &format!("GET /search/v1/results?{query}"), Value::Null).await
}

/// The names of one kind in a response.
fn names(response: &Value, kind: &str) -> Vec<String> {
    let kind = format!("SEARCH_KIND_{kind}");
    let sections = response["sections"].as_array().cloned().unwrap_or_default();
    let section = sections.into_iter().find(|section| section["kind"] == kind.as_str());
    section.map(|section| each(&section["hits"], "name").into_iter().map(String::from).collect()).unwrap_or_default()
}

async fn tag(server: &TestServer, repo: &str, name: &str, digest: &str) -> String {
    let body = json!({ "name": name, "digest": digest });
    let tag = ok(&server.operator().await, &format!("POST /registry/v2/tags/{repo}"), body).await;
    tag["uid"].as_str().expect("a uid").into()
}

async fn names_are_found_by_a_part_and_follow_every_change(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let (web, _, other) =
        (server.repo(&org, "web-front").await, server.repo(&org, "backweb").await, server.repo(&org, "db").await);
    image(server, &web, &digest('1'), 1).await;
    tag(server, &web, "Web-1", &digest('1')).await;
    server.group(&org, "the webs").await;
    server.identity(&org, "webber").await;
    let found = search(&operator, "query=WEB").await;
    assert_eq!(found["form"], "SEARCH_FORM_TEXT");
    assert_eq!(names(&found, "REPO"), ["web-front", "backweb"], "those that begin with it come first");
    assert_eq!(names(&found, "TAG"), ["Web-1"]);
    assert_eq!(names(&found, "GROUP"), ["the webs"]);
    assert_eq!(names(&found, "IDENTITY"), ["webber"]);
    let hit = &found["sections"].as_array().expect("sections").iter().find(|one| one["kind"] == "SEARCH_KIND_TAG");
    let hit = &hit.expect("tags")["hits"][0];
    assert_eq!(
        (&hit["parent"], &hit["parentName"], &hit["digest"]),
        (&json!(web), &json!("web-front"), &json!(digest('1')))
    );

    assert_eq!(names(&search(&operator, "query=we").await, "REPO"), ["web-front"], "two characters begin a name");
    assert_eq!(names(&search(&operator, "query=eb").await, "REPO"), [""; 0]);
    assert_eq!(names(&search(&operator, "query=b-f&kinds=SEARCH_KIND_REPO").await, "REPO"), ["web-front"]);
    for odd in ["%25%25%25", "_eb", "%22web", "web%22%20OR%20%22db", "w*b"] {
        assert_eq!(search(&operator, &format!("query={odd}")).await["sections"], json!([]), "{odd}");
    }

    ok(&operator, &format!("PATCH /registry/v2/repos/{other}"), json!({ "name": "cobweb" })).await;
    assert_eq!(names(&search(&operator, "query=web").await, "REPO"), ["web-front", "backweb", "cobweb"]);
    ok(&operator, &format!("DELETE /registry/v2/repos/{web}"), Value::Null).await;
    let found = search(&operator, "query=web").await;
    assert_eq!((names(&found, "REPO"), names(&found, "TAG")), (vec!["backweb".into(), "cobweb".into()], vec![]));
}

async fn what_is_hidden_is_as_if_it_were_not_there(server: &TestServer) {
    let (org, foreign) = (server.organization("acme").await, server.organization("other").await);
    let team = server.group(&org, "team").await;
    let (seen, hidden) = (server.repo(&team, "shared-web").await, server.repo(&foreign, "secret-web").await);
    for repo in [&seen, &hidden] {
        image(server, repo, &digest('1'), 1).await;
        tag(server, repo, "webtag", &digest('1')).await;
    }
    let bot = holder(server, &org, "bot", &team, &["CAP_REPO_LIST"]).await.actor;
    let found = search(&bot, "query=web").await;
    assert_eq!(names(&found, "REPO"), ["shared-web"]);
    assert_eq!(found["sections"].as_array().map(Vec::len), Some(1), "no tags without tag.list: {found}");
    // The group above is not listable, so that its name is not shown.
    assert_eq!(found["sections"][0]["hits"][0]["parentName"], "");

    let absent = search(&bot, "query=no-such-name").await;
    for query in
        ["query=secret-web".to_owned(), format!("query=web&scope={foreign}"), "query=webtag".into(), "query=bot".into()]
    {
        assert_eq!(search(&bot, &query).await, absent, "{query}");
    }
    for (there, nowhere) in [
        (hidden.clone(), format!("{foreign}/00000000000000ff")),
        ("other/secret-web:webtag".into(), "other/absent:webtag".into()),
        (digest('1'), digest('9')),
    ] {
        let (there, nowhere) =
            (search(&bot, &format!("query={there}")).await, search(&bot, &format!("query={nowhere}")).await);
        assert_eq!(there, nowhere);
    }
    let nothing = search(&server.stranger().await, "query=web").await;
    assert_eq!(nothing, json!({ "form": "SEARCH_FORM_TEXT", "sections": [] }));
    let narrowed = names(&search(&server.operator().await, &format!("query=web&scope={team}")).await, "REPO");
    assert_eq!(narrowed, ["shared-web"]);
}

async fn what_is_pasted_is_resolved(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let repo = server.repo(&org, "web").await;
    image(server, &repo, &digest('1'), 1).await;
    let uid = tag(server, &repo, "1.2", &digest('1')).await;
    import(&operator, &[version("PYTHON", "requests", "2.9.0", BUILT)]).await;
    let advisory = create(&operator, &org, about("openssl", "stdlib", &["CVE-2026-12345"])).await;

    let path = format!("{org}/web");
    for (query, form, kind, name) in [
        (format!("docker pull registry.example:5000/{path}:1.2"), "IMAGE_REFERENCE", "TAG", "1.2"),
        (format!("docker pull registry.example:5000/{path}"), "IMAGE_REFERENCE", "REPO", "web"),
        (format!("{path}@{}", digest('1')), "IMAGE_REFERENCE", "IMAGE", "web"),
        (digest('1'), "DIGEST", "IMAGE", "web"),
        (uid, "UIDP", "TAG", "1.2"),
        (repo.clone(), "UIDP", "REPO", "web"),
        ("pkg:pypi/Requests@2.9.0".into(), "PACKAGE_URL", "PACKAGE", "requests"),
        ("reque".into(), "TEXT", "PACKAGE", "requests"),
        ("quest".into(), "TEXT", "PACKAGE", "requests"),
        ("cve-2026-12345".into(), "VULNERABILITY", "ADVISORY", advisory["advisoryId"].as_str().unwrap_or_default()),
        (
            "pkg:apk/wolfi/openssl".into(),
            "PACKAGE_URL",
            "ADVISORY",
            advisory["advisoryId"].as_str().unwrap_or_default(),
        ),
        ("openss".into(), "TEXT", "ADVISORY", advisory["advisoryId"].as_str().unwrap_or_default()),
    ] {
        let encoded = query.replace(' ', "%20");
        let found = search(&operator, &format!("query={encoded}")).await;
        assert_eq!(found["form"], format!("SEARCH_FORM_{form}"), "{query}");
        assert_eq!(names(&found, kind), [name], "{query}: {found}");
    }
}

async fn each_kind_has_pages_of_its_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    for n in 0..7 {
        server.repo(&org, &format!("{}page-{n}", if n % 2 == 0 { "" } else { "a-" })).await;
    }
    let one = "query=page&kinds=SEARCH_KIND_REPO&page_size=2";
    let (mut all, mut token) = (Vec::new(), String::new());
    for _ in 0..4 {
        let found = search(&operator, &format!("{one}&page_token={token}")).await;
        all.extend(names(&found, "REPO"));
        token = found["sections"][0]["nextPageToken"].as_str().unwrap_or_default().into();
    }
    assert_eq!(token, "");
    assert_eq!(all, ["page-0", "page-2", "page-4", "page-6", "a-page-1", "a-page-3", "a-page-5"]);
    let first = search(&operator, one).await;
    let token = first["sections"][0]["nextPageToken"].as_str().expect("a token");
    for wrong in [
        format!("query=page&page_token={token}"),
        format!("query=other&kinds=SEARCH_KIND_REPO&page_token={token}"),
        format!("query=page&kinds=SEARCH_KIND_TAG&page_token={token}"),
        "query=page&kinds=SEARCH_KIND_UNSPECIFIED".into(),
        "query=page&page_size=-1".into(),
        "query=page&scope=nowhere".into(),
        "query=%00abc".into(),
        "query=".into(),
        format!("query={}", "a".repeat(2049)),
    ] {
        let reply = call(&operator, &format!("GET /search/v1/results?{wrong}"), Value::Null).await;
        assert_eq!(reply.status, 400, "{wrong}: {}", reply.text());
    }
    rejected(&operator, "GET /search/v1/results?query=page&page_token=x", Value::Null, 400, "INVALID_ARGUMENT").await;
}

each_engine!(
    names_are_found_by_a_part_and_follow_every_change,
    what_is_hidden_is_as_if_it_were_not_there,
    what_is_pasted_is_resolved,
    each_kind_has_pages_of_its_own
);
