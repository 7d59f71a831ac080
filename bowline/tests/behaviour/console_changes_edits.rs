//! What forms of the web console do to what is there: edits, deletions, previews, secrets.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::console::{COOKIE, headers};
use crate::console_changes_support::{
    CREATE_GROUP, DELETE_GROUP, GROUPS, UPDATE_GROUP, fields_of, form_at, plain, submit, unlock,
};
use crate::console_support::{browser_of, encoded, links, page, with_provider};
use crate::support::{number, ok};

/// What a form says that a link of others filled in.
const NOT_OURS: &str = "A link that is not of your pages filled in this form";

/// Methods that take something away by a POST.
async fn what_takes_something_away_is_confirmed(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let repo = server.repo(&org, "nginx").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    for (method, filled, confirmed) in [
        ("bowline.registry.v1.Images.DeleteImages", &[("f.repo_uid", repo.as_str())][..], repo.as_str()),
        ("bowline.people.v1.Sessions.EndAllSessions", &[], "Sessions.EndAllSessions"),
    ] {
        let shown = page(&browser, &form_at(method, filled)).await;
        assert!(shown.contains(&format!("<code>{confirmed}</code>")), "{method}: {shown}");
        let refused = submit(&browser, &shown, "send", &[]).await;
        assert_eq!(refused.status, 422, "{method}: {}", refused.text());
        assert!(refused.text().contains("href=\"#f-confirm\""), "{}", refused.text());
    }
}

async fn deletions_are_confirmed(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let group = server.group(&org, "rockets").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let shown = page(&browser, &form_at(DELETE_GROUP, &[("f.uid", &group)])).await;
    assert!(shown.contains("<code>rockets</code>") && shown.contains(&format!("<code>{group}</code>")), "{shown}");
    let before = number(server, GROUPS).await;
    for confirm in ["", "rocket", "acme"] {
        let refused = submit(&browser, &shown, "send", &[("confirm", confirm)]).await;
        assert_eq!(refused.status, 422, "{confirm}: {}", refused.text());
        assert!(refused.text().contains("href=\"#f-confirm\""), "{}", refused.text());
    }
    let prefilled = page(&browser, &form_at(DELETE_GROUP, &[("f.uid", &group), ("confirm", "rockets")])).await;
    let fields = fields_of(&prefilled);
    assert!(fields.contains(&("confirm".into(), String::new())), "no address confirms: {prefilled}");
    assert_eq!(number(server, GROUPS).await, before);
    let done = submit(&browser, &shown, "send", &[("confirm", "rockets")]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(number(server, GROUPS).await, before - 1);
}

async fn an_update_that_others_overtook_is_shown(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let group = server.group(&org, "rockets").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let address = form_at(UPDATE_GROUP, &[("f.group.uid", &group), ("edit", "1")]);
    let shown = page(&browser, &address).await;
    assert!(shown.contains("value=\"rockets\"") && !shown.contains("Update mask"), "{shown}");
    let same = submit(&browser, &shown, "send", &[]).await;
    assert!(same.status == 400 && same.text().contains("Nothing is different"), "{}", same.text());
    let operator = server.operator().await;
    let patch = format!("PATCH /iam/v2/groups/{group}");
    ok(&operator, &patch, json!({ "description": "theirs" })).await;
    let lost = submit(&browser, &shown, "send", &[("f.group.name", "mine")]).await;
    assert_eq!(lost.status, 409, "{}", lost.text());
    let text = lost.text();
    for part in ["theirs", "mine", "Theirs", "Yours", "It was", "Send yours", "Keep theirs"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let read = async || ok(&operator, &format!("GET /iam/v2/groups/{group}"), Value::Null).await;
    assert_eq!(read().await["name"], "rockets");
    let again = links(&text).into_iter().find(|link| link.contains("edit=1")).expect("a link");
    assert!(page(&browser, &again).await.contains("theirs"), "the other choice");
    let done = submit(&browser, &text, "send", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let group = read().await;
    assert_eq!((&group["name"], &group["description"]), (&json!("mine"), &json!("theirs")), "{group}");
}

async fn secrets_are_shown_once_and_in_no_line(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let invite = "chainguard.platform.iam.v2.GroupInvitesService.CreateGroupInvite";
    let shown = page(&browser, &form_at(invite, &[("f.parent", &org)])).await;
    let viewer = server.role("viewer");
    let typed = [("f.group_invite.role_uid", viewer.as_str()), ("f.group_invite.ttl", "3600s")];
    let done = submit(&browser, &shown, "send", &typed).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let text = plain(&done.text());
    let (_, rest) = text.split_once("<code>code</code>:</p>").unwrap_or_else(|| panic!("no code: {text}"));
    let code = rest.split_once("<code>").and_then(|(_, rest)| rest.split('<').next()).unwrap_or_default();
    assert!(code.len() > 8 && text.matches(code).count() == 1, "{code} once: {text}");
    assert!(text.contains("\"code\": \"(above)\""), "{text}");
    assert!(text.contains("shown this once") && done.header("cache-control") == Some("no-store"), "{text}");
    let provider = "chainguard.platform.iam.v2.IdentityProvidersService.CreateIdentityProvider";
    let shown = page(&browser, &form_at(provider, &[("f.parent", &org)])).await;
    assert!(shown.contains("type=\"password\""), "{shown}");
    let typed = [("f.identity_provider.name", "x"), ("f.identity_provider.oidc.client_secret", "hunter2hunter2")];
    for action in ["preview", "send"] {
        let reply = submit(&browser, &shown, action, &typed).await.text();
        let (_, code) = reply.split_once("Show as code").unwrap_or(("", ""));
        assert!(!code.is_empty() && !code.contains("hunter2") && code.contains("holds a secret"), "{reply}");
    }
}

async fn a_preview_changes_nothing(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let bob = server.identity(&org, "bob").await;
    let bind = "chainguard.platform.iam.v2.RoleBindingsService.CreateRoleBinding";
    let shown = page(&browser, &form_at(bind, &[("f.parent", &org)])).await;
    let rows = "SELECT count(*) FROM role_bindings";
    let (before, audit) = (number(server, rows).await, number(server, "SELECT count(*) FROM audit").await);
    let viewer = server.role("viewer");
    let typed = [("f.role_binding.identity_uid", bob.as_str()), ("f.role_binding.role_uid", viewer.as_str())];
    let preview = submit(&browser, &shown, "preview", &typed).await;
    assert_eq!(preview.status, 200, "{}", preview.text());
    let text = preview.text();
    for part in ["nothing was changed", "groups.list", "created", "role_binding"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("value=\"{bob}\"")), "the form is there to be sent: {text}");
    assert_eq!((number(server, rows).await, number(server, "SELECT count(*) FROM audit").await), (before, audit));
}

async fn what_a_list_has_is_edited_as_a_whole(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let operator = server.operator().await;
    let policy =
        json!({ "name": "strict", "description": "one", "cooldownDays": 7, "blockList": [{ "purl": "pkg:npm/evil" }] });
    let policy = ok(&operator, &format!("POST /libraries/v1/policies/{org}"), policy).await;
    let id = policy["id"].as_str().expect("an id").to_owned();
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let list = page(&browser, &format!("/console/policies?in={org}")).await;
    let link = links(&list).into_iter().find(|link| link.contains("LibraryPolicies.UpdatePolicy")).expect("a link");
    let shown = page(&browser, &link).await;
    assert!(shown.contains("value=\"strict\"") && shown.contains("pkg:npm/evil"), "{shown}");
    let read = async || {
        let list = ok(&operator, &format!("GET /libraries/v1/policies?parent_id={org}"), Value::Null).await;
        list["items"]
            .as_array()
            .and_then(|items| items.iter().find(|item| item["id"] == id.as_str()).cloned())
            .expect("it")
    };
    let mut theirs = read().await;
    theirs["description"] = json!("theirs");
    ok(&operator, &format!("PUT /libraries/v1/policies/{id}"), theirs).await;
    let lost = submit(&browser, &shown, "send", &[("f.cooldown_days", "14")]).await;
    assert_eq!(lost.status, 409, "{}", lost.text());
    let done = submit(&browser, &lost.text(), "send", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let now = read().await;
    assert_eq!((&now["cooldownDays"], &now["description"]), (&json!(14), &json!("theirs")), "{now}");
    assert_eq!(now["blockList"][0]["purl"], "pkg:npm/evil", "what was not touched stays");
}

async fn addresses_fill_in_and_do_nothing(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let before = number(server, "SELECT count(*) FROM groups").await;
    let address = form_at(
        CREATE_GROUP,
        &[
            ("f.parent", &org),
            ("f.group.name", "rockets"),
            ("do", "send"),
            ("send", "true"),
            ("json", "{\"parent\":\"x\"}"),
        ],
    );
    let shown = page(&browser, &address).await;
    assert!(shown.contains("value=\"rockets\"") && shown.contains(NOT_OURS), "{shown}");
    let unlocked = submit(&browser, &shown, "unlock", &[]).await.text();
    assert!(unlocked.contains(NOT_OURS), "the warning stays: {unlocked}");
    let own = links(&page(&browser, &format!("/console/group?uid={}", encoded(&org))).await);
    let own = own.into_iter().find(|link| link.contains(CREATE_GROUP)).expect("a link").replace("&amp;", "&");
    assert!(own.contains("f.parent=") && !page(&browser, &own).await.contains(NOT_OURS), "{own}");
    let changed = page(&browser, &format!("{own}&f.group.name=evil")).await;
    assert!(changed.contains(NOT_OURS), "a seal is of one link: {changed}");
    assert!(fields_of(&shown).contains(&("json".into(), String::new())), "no address fills in what is not looked at");
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let foreign = [("cookie", cookie.as_str()), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    let foreign = headers(&[foreign[0], foreign[1], foreign[2], ("sec-fetch-dest", "document")]);
    let led = server.anonymous().rest_with("GET", &address, foreign, Vec::new()).await;
    assert!(led.text().contains(NOT_OURS), "{}", led.text());
    assert_eq!(number(server, "SELECT count(*) FROM groups").await, before);
    let provider = "chainguard.platform.iam.v2.IdentityProvidersService.CreateIdentityProvider";
    let secret = browser.get(&form_at(provider, &[("f.identity_provider.oidc.client_secret", "hunter2")])).await;
    assert!(secret.status == 400 && !secret.text().contains("hunter2"), "{}", secret.text());
    let many: Vec<(String, String)> = (0..500).map(|number| (format!("x{number}"), String::new())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let refused = server.browser().post("/console/method", &many).await;
    assert!(refused.status >= 400 && !refused.text().contains("x499"), "{}", refused.text());
}

each_engine!(
    multi_thread:
    what_takes_something_away_is_confirmed,
    deletions_are_confirmed,
    an_update_that_others_overtook_is_shown,
    secrets_are_shown_once_and_in_no_line,
    a_preview_changes_nothing,
    what_a_list_has_is_edited_as_a_whole,
    addresses_fill_in_and_do_nothing,
);
