//! The pages of the web console: what they show to whom, and that nothing in them works but what this server wrote.

use bowline_testkit::{Browser, TestServer, each_engine};
use serde_json::{Value, json};

use crate::advisories::{ADVISORIES, advisory, event};
use crate::console_support::{browser_of, browser_of_operator, crawl, encoded, links, page, with_provider};
use crate::contents::{Manifest, digest, store};
use crate::deliveries::subscribe;
use crate::libraries::{BUILT, import, version};
use crate::signin::location;
use crate::support::{number, ok, uid_of};

/// Texts that do something where they are not escaped. Names of most resources are in small letters: the texts are elsewhere.
const HOSTILE: [&str; 8] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\"><svg/onload=alert(1)>",
    "' onfocus='alert(1)' autofocus='",
    "javascript:alert(1)",
    "</main></body><h1>mine</h1>",
    "{{7*7}}${7*7}&lt;b&gt;",
    "\u{202e}desrever\u{200b}",
];

/// What a hostile text would be if it were not escaped.
const LIVE: [&str; 5] = ["<script>alert", "<img src=x", "<svg/onload", "<h1>mine", "href=\"javascript:"];

/// Methods that pages of the world link to the forms of.
const LINKED: [&str; 35] = [
    "Advisories.Create",
    "Advisories.CreateAdvisoryEvent",
    "Advisories.Delete",
    "Advisories.Update",
    "DeliveriesService.Pause",
    "DeliveriesService.Redeliver",
    "DeliveriesService.Resume",
    "DeliveriesService.TestDelivery",
    "GroupInvitesService.CreateGroupInvite",
    "GroupsService.CreateGroup",
    "GroupsService.DeleteGroup",
    "GroupsService.UpdateGroup",
    "IdentitiesService.CreateIdentity",
    "IdentitiesService.DeleteIdentity",
    "IdentitiesService.UpdateIdentity",
    "IdentityProvidersService.CreateIdentityProvider",
    "Images.DeleteImages",
    "Images.PreviewDelete",
    "LibraryPolicies.CreatePolicy",
    "LibraryPolicies.DeletePolicy",
    "LibraryPolicies.UpdatePolicy",
    "LibraryPolicyBindings.CreateBinding",
    "Operator.RunTask",
    "RegistryPolicies.UpdateRepoPolicy",
    "Replication.FetchNow",
    "ReposService.CreateRepo",
    "ReposService.DeleteRepo",
    "ReposService.UpdateRepo",
    "RoleBindingsService.CreateRoleBinding",
    "RoleBindingsService.DeleteRoleBinding",
    "RolesService.UpdateRole",
    "Sessions.EndAllSessions",
    "Sessions.UpdatePreferences",
    "SubscriptionsService.DeleteSubscription",
    "TagsService.DeleteTag",
];

/// The method whose form a page links to with fields filled in: service and name.
fn linked_form(address: &str) -> Option<&str> {
    let query = address.strip_prefix("/console/method?name=")?;
    let (name, rest) = query.split_once('&')?;
    let mut dots = name.rmatch_indices('.');
    dots.next();
    let start = dots.next().map_or(0, |(at, _)| at + 1);
    rest.contains("back=").then(|| &name[start..])
}

/// Where things are.
struct World {
    org: String,
    group: String,
    repo: String,
    advisory: String,
    subscription: String,
}

/// An organization with something on every page, whose texts are hostile wherever a caller may write them.
async fn world(server: &TestServer, name: &str) -> World {
    let operator = server.operator().await;
    let made = |path: String, body: Value| {
        let operator = &operator;
        async move { ok(operator, &format!("POST {path}"), body).await }
    };
    let org = uid_of(&made("/iam/v2/groups".into(), json!({ "name": name, "description": HOSTILE[0] })).await);
    for (at, text) in HOSTILE.iter().enumerate() {
        made(format!("/iam/v2/groups/{org}"), json!({ "name": format!("{name} {at}"), "description": text })).await;
    }
    let group = uid_of(&made(format!("/iam/v2/groups/{org}"), json!({ "name": "inner" })).await);
    let role =
        json!({ "name": format!("{name} role"), "description": HOSTILE[1], "capabilities": ["CAP_IAM_GROUPS_LIST"] });
    made(format!("/iam/v2/roles/{org}"), role).await;
    let claims = json!({ "issuer": "https://issuer.example", "subject": HOSTILE[3], "claims": { "ref": HOSTILE[1] } });
    let identity = json!({ "name": format!("{name} job"), "description": HOSTILE[2], "claimMatch": claims });
    let identity = uid_of(&made(format!("/iam/v2/identities/{org}"), identity).await);
    server.bind(&identity, &server.role("viewer"), &group).await;
    let repo = json!({ "name": format!("{name}-repo"), "description": HOSTILE[2] });
    let repo = uid_of(&made(format!("/registry/v2/repos/{group}"), repo).await);
    image(server, &repo).await;
    made(format!("/registry/v2/tags/{repo}"), json!({ "name": "latest", "digest": digest('0') })).await;
    let advisory = advisory(&operator, &org, &format!("{name}{}", HOSTILE[5]), &["CVE-2026-1"]).await;
    event(&operator, &advisory, json!({ "fixed": { "fixedVersion": "1.2", "note": HOSTILE[0] } })).await;
    let policy = json!({
        "name": format!("{name} policy"), "description": HOSTILE[2], "cooldownDays": 7,
        "blockList": [{ "purl": "pkg:npm/evil" }]
    });
    made(format!("/libraries/v1/policies/{org}"), policy).await;
    let subscription = subscribe(&operator, &org, &format!("http://{name}.example/{}", "a?b=<script>alert(1)")).await;
    import(&operator, &[version("PYTHON", &format!("{name}-package"), "1.0", BUILT)]).await;
    World { org, group, repo, advisory, subscription }
}

async fn image(server: &TestServer, repo: &str) {
    let run = format!(r#"{{"User":"{}","Env":["SECRET=hunter2","A=b"]}}"#, HOSTILE[1]);
    let config = Some(("amd64", run.as_str()));
    store(server, repo, &Manifest { digest: &digest('1'), shape: 1, size: 100, names: &[], config }).await;
    let one = digest('1');
    let names = [(one.as_str(), "amd64")];
    store(server, repo, &Manifest { digest: &digest('0'), shape: 2, size: 9, names: &names, config: None }).await;
}

fn harmless(address: &str, text: &str) {
    for live in LIVE {
        assert!(!text.contains(live), "{address} has {live}: {text}");
    }
}

async fn every_link_answers_and_no_text_works(server: &TestServer) {
    with_provider(server).await;
    let acme = world(server, "acme").await;
    let rows = "SELECT count(*) FROM audit";
    let operator = browser_of_operator(server).await;
    let before = number(server, rows).await;
    let seen = crawl(&operator, harmless).await;
    let dead: Vec<_> = seen.iter().filter(|(_, status)| **status != 200).collect();
    assert!(dead.is_empty(), "{dead:#?}");
    assert_eq!(number(server, rows).await, before, "pages change nothing");
    for path in [
        format!("/console/group?uid={}", encoded(&acme.group)),
        format!("/console/repository?uid={}", encoded(&acme.repo)),
        format!("/console/advisory?uid={}", encoded(&acme.advisory)),
        format!("/console/deliveries?uid={}", encoded(&acme.subscription)),
        format!("/console/policies?in={}", acme.org),
    ] {
        let path = path.replace("%2F", "/");
        let reached = seen.keys().any(|address| address.replace("%2F", "/") == path);
        assert!(reached, "{path} is not among {:#?}", seen.keys());
    }
    let pages: std::collections::BTreeSet<&str> = seen.keys().filter_map(|address| address.split('?').next()).collect();
    for page in ["audit-entry", "history", "identity", "image", "package", "role", "tags", "why", "me"] {
        assert!(pages.contains(format!("/console/{page}").as_str()), "{page} is not among {pages:?}");
    }
    let forms: std::collections::BTreeSet<&str> = seen.keys().filter_map(|address| linked_form(address)).collect();
    let missing: Vec<_> = LINKED.iter().filter(|method| !forms.contains(**method)).collect();
    assert!(missing.is_empty(), "no page links to {missing:?}: {forms:?}");
    let viewer = browser_of(server, "ada", "viewer", &acme.org).await;
    let seen = crawl(&viewer, harmless).await;
    let dead: Vec<_> = seen.iter().filter(|(_, status)| **status != 200).collect();
    assert!(dead.is_empty(), "{} of {}: {dead:#?}", dead.len(), seen.len());
}

async fn other_organizations_stay_hidden(server: &TestServer) {
    with_provider(server).await;
    let acme = world(server, "acme").await;
    let rival = world(server, "zebra").await;
    let viewer = browser_of(server, "ada", "viewer", &acme.org).await;
    let of_rival = |address: &str, text: &str| {
        harmless(address, text);
        // Packages are one catalogue for all.
        let text = text.replace("zebra-package", "");
        assert!(!text.contains("zebra") && !text.contains(&rival.org), "{address}: {text}");
    };
    crawl(&viewer, of_rival).await;
    let absent = format!("{}/00000000000000ff", rival.org);
    for (page, parameter, hidden) in [
        ("group", "uid", &rival.group),
        ("repository", "uid", &rival.repo),
        ("advisory", "uid", &rival.advisory),
        ("deliveries", "uid", &rival.subscription),
        ("tags", "repo", &rival.repo),
        ("history", "resource", &rival.repo),
    ] {
        let answer = async |uid: &str| {
            let reply = viewer.get(&format!("/console/{page}?{parameter}={uid}")).await;
            let id = reply.header("x-request-id").unwrap_or_default().to_owned();
            // What was asked for is in the page, and so is the id of the request.
            let text = reply.text().replace(uid, "UID").replace(&encoded(uid), "UID").replace("%2F", "/");
            let text = text.replace(uid, "UID");
            (reply.status, without_ids(&text.replace(&id, "ID")))
        };
        assert_eq!(answer(hidden).await, answer(&absent).await, "{page}");
    }
    for list in
        ["groups", "identities", "roles", "bindings", "repositories", "advisories", "subscriptions", "audit", "access"]
    {
        let text = viewer.get(&format!("/console/{list}?in={}", rival.org)).await.text();
        assert!(!text.contains("zebra"), "{list}: {text}");
    }
}

/// The page without request ids, which differ.
fn without_ids(page: &str) -> String {
    // Each page has another form to unlock changes.
    let form = page.split_once("name=\"form\" value=\"").and_then(|(_, rest)| rest.split('"').next());
    let page = page.replace(form.unwrap_or("no form"), "FORM");
    match page.split_once("Request id: <code>") {
        Some((before, rest)) => {
            format!("{before}{}", rest.split_once("</code>").map_or("", |(_, after)| after))
        }
        None => page,
    }
}

async fn a_refusal_leads_to_its_explanation(server: &TestServer) {
    with_provider(server).await;
    let (acme, other) = (world(server, "acme").await, server.organization("other").await);
    let viewer = browser_of(server, "ada", "viewer", &acme.org).await;
    let refused = viewer.get(&format!("/console/group?uid={other}")).await;
    assert_eq!(refused.status, 403);
    let why = links(&refused.text()).into_iter().find(|link| link.starts_with("/console/why?method")).expect("a link");
    let explained = page(&viewer, &why).await;
    assert!(explained.contains("denied") && explained.contains("groups.list"), "{explained}");
    let own = format!("/console/why?capabilities=groups.list&scope={}", acme.org);
    let explained = page(&viewer, &own).await;
    assert!(explained.contains(">allowed<") && explained.contains("viewer"), "{explained}");
    let wrong = page(&viewer, &format!("/console/why?capabilities=no.such&scope={}", acme.org)).await;
    assert!(wrong.contains("role=\"alert\""), "{wrong}");
    let operator_only = viewer.get("/console/audit?kind=x").await;
    assert_eq!(operator_only.status, 200, "who may not read the whole log is led to an organization");
}

async fn lists_have_pages_and_a_stale_one_begins_again(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    for number in 0..60 {
        server.group(&org, &format!("team {number:02}")).await;
    }
    let viewer = browser_of(server, "ada", "viewer", &org).await;
    let address = format!("/console/group?uid={org}");
    let first = page(&viewer, &address).await;
    assert!(first.contains("60 in all"), "{first}");
    let next = links(&first).into_iter().find(|link| link.contains("page=")).expect("a next page");
    let second = page(&viewer, &next).await;
    // The last changes name groups as well.
    let list = |page: &str| page.split("id=\"usage\"").next().unwrap_or_default().to_owned();
    let shown = |page: &str| (0..60).filter(|number| list(page).contains(&format!(">team {number:02}<"))).count();
    assert_eq!((shown(&first), shown(&second)), (50, 10));
    assert!(second.contains("First page") && !second.contains("Next page"), "{second}");
    let stale = viewer.get(&format!("{address}&page=broken")).await;
    let again = location(&stale);
    assert_eq!(again.replace("%2F", "/"), format!("{address}&notice=page"));
    assert!(page(&viewer, &again).await.contains("has expired"));
    let filtered = page(&viewer, &format!("/console/groups?in={org}&name=nothing")).await;
    assert!(filtered.contains("Remove the filters"), "{filtered}");
}

/// Every line of a page can be sent as it is, and gives what the page shows.
async fn the_calls_of_a_page_work_elsewhere(server: &TestServer) {
    let acme = world(server, "acme").await;
    let operator = server.operator().await;
    let browser = browser_of_operator(server).await;
    for path in [
        "/console/".to_owned(),
        format!("/console/group?uid={}", acme.group),
        format!("/console/repository?uid={}", acme.repo),
        format!("/console/advisories?in={}&q=CVE-2026", acme.org),
        "/console/search?q=acme".to_owned(),
        "/console/me".to_owned(),
        format!("/console/why?capabilities=groups.list,groups.create&scope={}", acme.org),
    ] {
        let text = page(&browser, &path).await;
        let lines: Vec<String> = text
            .split("<code>curl ")
            .skip(1)
            .filter_map(|rest| rest.split("</code>").next())
            .map(|line| line.replace("&quot;", "\"").replace("&amp;", "&"))
            .collect();
        assert!(!lines.is_empty(), "{path}: {text}");
        for line in lines {
            assert!(line.contains("$(bowline auth token --api ") && !line.contains("eyJ"), "{line}");
            // The token's own option has the address as well.
            let called = line.split_once(")\" ").and_then(|(_, called)| called.split_once(server.base()));
            let (_, address) = called.unwrap_or_else(|| panic!("no address in {line}"));
            let address = address.split(['\'', ' ']).next().unwrap_or_default();
            let body = line.split_once(" -d '").and_then(|(_, rest)| rest.split('\'').next());
            let body = body.map(|body| serde_json::from_str(body).expect("a body of JSON"));
            let verb = if line.contains(" -X POST ") { "POST" } else { "GET" };
            let reply = operator.rest(verb, address, body).await;
            assert_eq!(reply.status, 200, "{line}: {}", reply.text());
        }
        assert!(text.contains("<code>bowline api ") && text.contains("<code>grpcurl -plaintext "), "{path}");
    }
}

async fn what_is_withdrawn_is_gone_from_search(server: &TestServer) {
    with_provider(server).await;
    let acme = world(server, "acme").await;
    let viewer = browser_of(server, "ada", "viewer", &acme.org).await;
    let find = async |browser: &Browser| page(browser, "/console/search?q=acme-repo").await;
    assert!(find(&viewer).await.contains(&acme.repo));
    let operator = server.operator().await;
    ok(&operator, &format!("DELETE /registry/v2/repos/{}", acme.repo), Value::Null).await;
    assert!(!find(&viewer).await.contains(&format!("uid={}", encoded(&acme.repo))));
    let gone = viewer.get(&format!("/console/advisory?uid={}/00000000000000ff", acme.org)).await;
    assert_eq!(gone.status, 404, "{ADVISORIES}");
}

async fn every_method_has_a_page(server: &TestServer) {
    let acme = world(server, "acme").await;
    let browser = browser_of_operator(server).await;
    let contract = &server.server().parts().contract;
    let listed = page(&browser, "/console/methods").await;
    for method in contract.methods().iter().step_by(7) {
        let address = format!("/console/method?name={}", method.full_name);
        assert!(links(&listed).contains(&address), "{address}");
        let shown = page(&browser, &address).await;
        assert!(shown.contains("Full name") && !shown.contains("<h2>Response"), "{shown}");
    }
    let get = "/console/method?name=chainguard.platform.iam.v2.GroupsService.GetGroup";
    let called = page(&browser, &format!("{get}&send=true&f.uid={}", acme.group)).await;
    assert!(called.contains("&quot;inner&quot;") && called.contains("<code>curl "), "{called}");
    assert_eq!(browser.get(&format!("{get}&send=true&f.nothing=x")).await.status, 400);
    assert_eq!(browser.get("/console/method?name=no.Such").await.status, 404);
}

async fn pages_are_data_too(server: &TestServer) {
    let acme = world(server, "acme").await;
    let browser = browser_of_operator(server).await;
    for (path, column, value) in [
        ("/console/?".to_owned(), "\"name\"", "\"acme\""),
        (format!("/console/group?uid={}&", acme.org), "\"uid\"", acme.group.as_str()),
        (format!("/console/repositories?in={}&", acme.org), "\"uid\"", acme.repo.as_str()),
        (format!("/console/advisories?in={}&", acme.org), "\"advisory_id\"", "<h1>mine"),
        (format!("/console/subscriptions?in={}&", acme.org), "\"sink\"", "<script>alert(1)"),
    ] {
        let shown = page(&browser, path.trim_end_matches(['?', '&'])).await;
        for format in ["json", "csv"] {
            let address = format!("{path}format={format}");
            assert!(links(&shown).iter().any(|link| link.replace("%2F", "/") == address), "{address}: {shown}");
            let file = browser.get(&address).await;
            assert_eq!(file.status, 200, "{address}: {}", file.text());
            let header = |name: &str| file.header(name).unwrap_or_default().to_owned();
            assert!(header("content-disposition").starts_with("attachment; filename="), "{address}");
            assert!(header("content-type").contains(format), "{address}");
            assert_eq!(
                (header("x-content-type-options"), header("cache-control")),
                ("nosniff".into(), "no-store".into())
            );
            assert!(file.text().contains(value) && file.text().contains(column), "{address}: {}", file.text());
        }
        let file = browser.get(&format!("{path}format=json")).await.json();
        assert!(file["calls"][0]["method"].as_str().is_some_and(|method| method.contains('.')), "{file}");
        assert_eq!(browser.get(&format!("{path}format=xml")).await.status, 400);
    }
}

each_engine!(
    multi_thread:
    every_method_has_a_page,
    pages_are_data_too,
    every_link_answers_and_no_text_works,
    other_organizations_stay_hidden,
    a_refusal_leads_to_its_explanation,
    lists_have_pages_and_a_stale_one_begins_again,
    the_calls_of_a_page_work_elsewhere,
    what_is_withdrawn_is_gone_from_search,
);
