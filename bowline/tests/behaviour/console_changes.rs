//! What people change in the web console: nothing before they unlock changes, and then what their own forms ask for.

use std::time::Duration;

use bowline_contract::v2::iam::{CreateGroupRequest, Group};
use bowline_core::Code;
use bowline_pipeline::{ConsoleCall, ConsolePipeline, HeldToken, Unlocked};
use bowline_testkit::{Browser, RestReply, TestServer, each_engine};
use http::HeaderMap;
use prost::Message as _;

use crate::console::{COOKIE, headers};
use crate::console_changes_support::{
    CREATE_GROUP, DELETE_GROUP, GROUPS, UPDATE_GROUP, fields_of, form_at, hidden, submit, unlock,
};
use crate::console_support::{browser_of, browser_of_operator, enter_at, links, page, with_provider};
use crate::people_support::person;
use crate::signin::location;
use crate::support::number;

async fn is_unlocked(browser: &Browser) -> bool {
    page(browser, "/console/me").await.contains("Changes are unlocked until")
}

async fn a_session_rests_reading_only(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    rests_reading_only(server, &browser_of(server, "ada", "owner", &org).await).await;
    rests_reading_only(server, &browser_of_operator(server).await).await;
}

async fn rests_reading_only(server: &TestServer, browser: &Browser) {
    assert!(!is_unlocked(browser).await);
    unlock(browser).await;
    assert!(is_unlocked(browser).await);
    let shown = page(browser, "/console/groups?name=a").await;
    assert_eq!(hidden(&shown, "/console/lock", "back"), "/console/groups?name=a");
    let token = hidden(&shown, "/console/lock", "token");
    let locked = browser.post("/console/lock", &[("token", &token), ("back", "https://evil.example/")]).await;
    assert_eq!(location(&locked), "/console/", "a form leads to pages of the console alone");
    assert!(!is_unlocked(browser).await);
    unlock(browser).await;
    server.clock().advance(Duration::from_secs(8 * 60));
    assert!(is_unlocked(browser).await);
    server.clock().advance(Duration::from_secs(8 * 60));
    assert!(!is_unlocked(browser).await, "a quarter of an hour is over");
}

async fn nobody_else_unlocks_a_session(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let (browser, other) =
        (browser_of(server, "ada", "owner", &org).await, browser_of(server, "bob", "owner", &org).await);
    let shown = page(&browser, "/console/me").await;
    let token = hidden(&shown, "/console/unlock", "form");
    let sign_out = hidden(&shown, "/console/sign-out", "token");
    let foreign = hidden(&page(&other, "/console/me").await, "/console/unlock", "form");
    let own = || headers(&[("sec-fetch-site", "same-origin")]);
    let sent: Vec<(HeaderMap, &str)> = vec![
        (own(), ""),
        (own(), "guessed"),
        (own(), &sign_out),
        (own(), &foreign),
        (headers(&[("sec-fetch-site", "cross-site")]), &token),
        (headers(&[("sec-fetch-site", "same-site")]), &token),
        (headers(&[("origin", "https://evil.example")]), &token),
        (headers(&[]), &token),
    ];
    for (sent, token) in sent {
        let reply = browser.post_with("/console/unlock", sent.clone(), &[("form", token)]).await;
        assert_eq!(reply.status, 403, "{sent:?}: {}", reply.text());
    }
    let path = format!("/console/unlock?form={token}");
    let cookie = format!("{COOKIE}={}", browser.cookies()[COOKIE]);
    let got: RestReply = server.anonymous().rest_with("GET", &path, headers(&[("cookie", &cookie)]), Vec::new()).await;
    assert!(matches!(got.status, 404 | 405), "{}", got.status);
    assert!(!is_unlocked(&browser).await);
    let once = [("form", token.as_str())];
    assert_eq!(browser.post("/console/unlock", &once).await.status, 303);
    let lock = hidden(&page(&browser, "/console/me").await, "/console/lock", "token");
    assert_eq!(browser.post("/console/lock", &[("token", &lock)]).await.status, 303);
    assert_eq!(browser.post("/console/unlock", &once).await.status, 400, "an old page does not unlock again");
    assert!(!is_unlocked(&browser).await);
}

async fn a_form_is_sent_once_and_by_its_own_page(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let other = browser_of(server, "bob", "owner", &org).await;
    let before = number(server, GROUPS).await;
    let typed = [("f.parent", org.as_str()), ("f.group.name", "rockets"), ("f.group.description", "<b>\r\nof \"two\"")];
    let address = form_at(CREATE_GROUP, &[("f.parent", &org), ("back", "/console/groups")]);
    let shown = page(&browser, &address).await;
    assert!(shown.contains("value=\"unlock\"") && !shown.contains("value=\"send\""), "it only reads: {shown}");
    let locked = submit(&browser, &shown, "send", &typed).await;
    assert_eq!(locked.status, 400, "{}", locked.text());
    assert!(locked.text().contains("changes are locked") && locked.text().contains("value=\"rockets\""));
    let unlocked = submit(&browser, &shown, "unlock", &typed).await.text();
    assert!(unlocked.contains("Nothing was sent yet") && unlocked.contains("value=\"rockets\""), "{unlocked}");
    assert_eq!(
        fields_of(&unlocked).iter().find(|(name, _)| name == "f.group.description").expect("the field").1,
        "<b>\nof \"two\""
    );
    assert_eq!(number(server, GROUPS).await, before);
    let foreign = hidden(&page(&other, &address).await, "/console/method", "form");
    let of_another = hidden(&page(&browser, &form_at(UPDATE_GROUP, &[])).await, "/console/method", "form");
    for id in ["", "guessed", &foreign, &of_another, &hidden(&shown, "/console/method", "form")] {
        let refused = submit(&browser, &unlocked, "send", &[("form", id)]).await;
        assert_eq!(refused.status, 422, "{id}: {}", refused.text());
        assert!(refused.text().contains("Nothing was sent") && refused.text().contains("value=\"rockets\""));
    }
    let cross = headers(&[("sec-fetch-site", "cross-site")]);
    let fields = fields_of(&unlocked);
    let mut fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    fields.push(("do", "send"));
    assert_eq!(browser.post_with("/console/method", cross, &fields).await.status, 403);
    assert_eq!(number(server, GROUPS).await, before, "nothing was sent");
    let done = submit(&browser, &unlocked, "send", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(done.text().contains("Done.") && done.text().contains("href=\"/console/groups\""), "{}", done.text());
    assert_eq!(done.header("cache-control"), Some("no-store"));
    assert_eq!(number(server, GROUPS).await, before + 1);
    let again = submit(&browser, &unlocked, "send", &[]).await;
    assert_eq!(again.status, 422);
    assert!(again.text().contains("sent before") && again.text().contains("value=\"rockets\""), "{}", again.text());
    let by =
        format!("SELECT count(*) FROM audit WHERE method = '{CREATE_GROUP}' AND actor = '{}'", person(server, "ada"));
    assert_eq!(number(server, by.leak()).await, 1, "it is recorded as hers");
    let old = page(&browser, &address).await;
    server.clock().advance(Duration::from_secs(16 * 60));
    unlock(&browser).await;
    server.clock().advance(Duration::from_secs(14 * 60 + 1));
    let stale = submit(&browser, &old, "send", &[("f.group.name", "late")]).await;
    assert_eq!(stale.status, 422);
    assert!(stale.text().contains("older than half an hour") && stale.text().contains("value=\"late\""));
    assert_eq!(number(server, GROUPS).await, before + 1);
}

async fn nothing_typed_is_lost_when_a_session_ends(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let before = number(server, GROUPS).await;
    let shown = page(&browser, &form_at(CREATE_GROUP, &[("f.parent", &org)])).await;
    server.clock().advance(Duration::from_secs(31 * 60));
    let typed = [("f.group.name", "rockets"), ("f.group.description", "one\r\ntwo <script>alert(1)</script>")];
    let ended = submit(&browser, &shown, "send", &typed).await;
    assert_eq!(ended.status, 401, "{}", ended.text());
    assert!(ended.header("location").is_none() && ended.text().contains("target=\"_blank\""), "{}", ended.text());
    assert!(ended.text().contains("rockets") && !ended.text().contains("<script>alert"), "{}", ended.text());
    let still = submit(&browser, &ended.text(), "continue", &[]).await;
    assert_eq!(still.status, 401, "it stays as often as needed");
    enter_at(server, &browser, "ada", "/console/").await;
    let back = submit(&browser, &still.text(), "continue", &[]).await;
    assert_eq!(back.status, 422, "{}", back.text());
    let kept = fields_of(&back.text());
    let value = |name: &str| kept.iter().find(|(field, _)| field == name).map(|(_, value)| value.clone());
    assert_eq!(value("f.group.name").as_deref(), Some("rockets"));
    assert_eq!(value("f.group.description").as_deref(), Some("one\ntwo <script>alert(1)</script>"));
    assert_eq!(number(server, GROUPS).await, before, "nothing is sent by itself");
    let unlocked = submit(&browser, &back.text(), "unlock", &[]).await.text();
    let done = submit(&browser, &unlocked, "send", &[]).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert_eq!(number(server, GROUPS).await, before + 1);
}

async fn errors_are_at_their_fields_and_refusals_are_explained(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let owner = browser_of(server, "ada", "owner", &org).await;
    unlock(&owner).await;
    let shown = page(&owner, &form_at(CREATE_GROUP, &[("f.parent", &org)])).await;
    let wrong = submit(&owner, &shown, "send", &[("f.group.name", "x".repeat(900).as_str())]).await;
    assert_eq!(wrong.status, 422, "{}", wrong.text());
    assert!(wrong.text().contains("href=\"#f-group-name\"") && wrong.text().contains("aria-invalid=\"true\""));
    let wrong = submit(&owner, &wrong.text(), "send", &[("json", "{\"parent\":")]).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.text().contains("href=\"#f-json\"") && wrong.text().contains("is no JSON"), "{}", wrong.text());
    let viewer = browser_of(server, "bob", "viewer", &org).await;
    unlock(&viewer).await;
    let before = number(server, GROUPS).await;
    let refused = submit(&viewer, &shown_to(&viewer, &org).await, "send", &[("f.group.name", "rockets")]).await;
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("value=\"rockets\""), "{}", refused.text());
    let why = links(&refused.text()).into_iter().find(|link| link.starts_with("/console/why?method=")).expect("a link");
    assert!(page(&viewer, &why).await.contains("groups.create"));
    assert_eq!(number(server, GROUPS).await, before);
    assert_eq!(owner.get("/console/method?name=no.such.Method").await.status, 404);
    assert_eq!(owner.get(&form_at(CREATE_GROUP, &[("f.group.nothing", "x")])).await.status, 400);
    let huge = submit(&owner, &shown, "send", &[("f.group.description", &"x".repeat(300 << 10))]).await;
    assert!(huge.status >= 400 && huge.text().contains("256 KiB"), "{} {}", huge.status, huge.text());
    let huge = submit(&owner, &shown, "send", &[("f.group.description", &"x".repeat(900 << 10))]).await;
    assert!(huge.status >= 400 && huge.text().contains("256 KiB"), "{} {}", huge.status, huge.text());
}

async fn shown_to(browser: &Browser, org: &str) -> String {
    page(browser, &form_at(CREATE_GROUP, &[("f.parent", org)])).await
}

async fn every_method_can_be_reached(server: &TestServer) {
    let browser = browser_of_operator(server).await;
    let all = page(&browser, "/console/methods").await;
    let links = links(&all);
    let rows = number(server, "SELECT count(*) FROM audit").await;
    for method in server.server().parts().pipeline.contract.methods() {
        let address = format!("/console/method?name={}", method.full_name);
        assert!(links.contains(&address), "{address}");
        let shown = page(&browser, &address).await;
        let is_form = shown.contains("action=\"/console/method\"");
        let command = format!("bowline api {}", method.full_name);
        assert!(is_form || shown.contains(&command), "{}: {shown}", method.full_name);
        assert!(shown.len() < 256 << 10, "{} has {} bytes", method.full_name, shown.len());
    }
    assert_eq!(number(server, "SELECT count(*) FROM audit").await, rows);
    let shown = page(&browser, &form_at(CREATE_GROUP, &[])).await;
    let lines = submit(&browser, &shown, "code", &[("f.group.name", "rockets")]).await.text();
    assert!(lines.contains("-X POST") && lines.contains("Nothing was sent"), "{lines}");
}

async fn the_pipeline_takes_a_proof_for_one_call(server: &TestServer) {
    let pipeline = &server.server().parts().pipeline;
    let api = ConsolePipeline::new(pipeline.clone());
    let token = HeldToken::new(server.operator().await.token.clone().expect("a token"));
    let index = |name: &str| pipeline.contract.by_full_name(name).expect("a method").index;
    let (create, delete) = (index(CREATE_GROUP), index(DELETE_GROUP));
    let group = Group { name: "rockets".into(), ..Group::default() };
    let payload: bytes::Bytes = CreateGroupRequest { parent: String::new(), group: Some(group) }.encode_to_vec().into();
    let peer = [127, 0, 0, 1].into();
    let call = || ConsoleCall { method: create, payload: payload.clone(), token: &token, peer, request_id: "x" };
    let before = number(server, GROUPS).await;
    let later = api.now() + 1_000_000_000;
    let over = api.change(call(), Unlocked::by_form(create, api.now())).await;
    assert_eq!(over.result.map(|_| ()).expect_err("the time is over").code(), Code::FailedPrecondition);
    let other = api.change(call(), Unlocked::by_form(delete, later)).await;
    assert_eq!(other.result.map(|_| ()).expect_err("a proof for another method").code(), Code::Internal);
    let preview = api.preview(call()).await;
    assert_eq!(preview.result.map(|_| ()).expect_err("not the method that previews").code(), Code::Internal);
    assert_eq!(number(server, GROUPS).await, before);
    api.change(call(), Unlocked::by_form(create, later)).await.result.map(|_| ()).expect("it is allowed");
    assert_eq!(number(server, GROUPS).await, before + 1);
}

each_engine!(
    multi_thread:
    a_session_rests_reading_only,
    nobody_else_unlocks_a_session,
    a_form_is_sent_once_and_by_its_own_page,
    nothing_typed_is_lost_when_a_session_ends,
    errors_are_at_their_fields_and_refusals_are_explained,
    every_method_can_be_reached,
    the_pipeline_takes_a_proof_for_one_call,
);
