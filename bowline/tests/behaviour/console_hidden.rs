//! What pages of the web console do not show: secrets in addresses of receivers, and what any message may hold.

use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::audit_log::numbered;
use crate::console_changes_support::{form_at, submit, unlock};
use crate::console_support::{browser_of, links, page, with_provider};
use crate::support::ok;

const CREATE: &str = "chainguard.platform.events.v2.SubscriptionsService.CreateSubscription";
const SECRET: &str = "T0SECRET";

async fn receivers_are_shown_with_their_host(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    unlock(&browser).await;
    let shown = page(&browser, &form_at(CREATE, &[("f.parent", &org)])).await;
    let typed = [("f.subscription.sink", "https://hooks.example/services/T0SECRET")];
    let lines = submit(&browser, &shown, "code", &typed).await.text();
    assert!(lines.contains("holds a secret") && lines.matches(SECRET).count() == 1, "in its field alone: {lines}");
    let plain = submit(&browser, &shown, "code", &[("f.subscription.sink", "https://hooks.example/")]).await.text();
    assert!(plain.contains("-X POST"), "there is nothing to hide: {plain}");
    let done = submit(&browser, &shown, "send", &typed).await;
    assert_eq!(done.status, 200, "{}", done.text());
    assert!(!done.text().contains(SECRET) && done.text().contains("https://hooks.example/(not shown)"));
    let operator = server.operator().await;
    let list = ok(&operator, &format!("GET /events/v2/subscriptions?uidp.descendants_of={org}"), Value::Null).await;
    let uid = list["subscriptions"][0]["uid"].as_str().expect("a subscription").to_owned();
    assert!(list.to_string().contains(SECRET), "the API returns it to who may read it: {list}");
    for path in [format!("/console/subscriptions?in={org}"), format!("/console/deliveries?uid={uid}")] {
        let shown = page(&browser, &path).await;
        assert!(shown.contains("https://hooks.example/(not shown)") && !shown.contains(SECRET), "{path}: {shown}");
    }
    numbered(server).await;
    let audit = page(&browser, &format!("/console/audit?in={org}")).await;
    let entries = links(&audit).into_iter().filter(|link| link.starts_with("/console/audit-entry"));
    let mut seen = String::new();
    for entry in entries {
        seen += &page(&browser, &entry).await;
    }
    assert!(seen.contains("https://hooks.example/(not shown)") && !seen.contains(SECRET), "{seen}");
    assert!(!page(&browser, &format!("/console/home?in={org}")).await.contains(SECRET));
    let refused = browser.get(&form_at(CREATE, &[("f.subscription.sink", "https://hooks.example/T0SECRET")])).await;
    assert!(refused.status == 400 && !refused.text().contains(SECRET), "{}", refused.text());
    assert!(
        page(&browser, &form_at(CREATE, &[("f.subscription.sink", "https://hooks.example")]))
            .await
            .contains("https://hooks.example")
    );
}

async fn no_address_has_what_any_message_may_hold(server: &TestServer) {
    with_provider(server).await;
    let org = server.organization("acme").await;
    let browser = browser_of(server, "ada", "owner", &org).await;
    let request = json!({
        "@type": "type.googleapis.com/chainguard.platform.iam.v2.CreateIdentityProviderRequest",
        "identity_provider": { "oidc": { "client_secret": SECRET } },
    });
    let address = form_at("bowline.preview.v1.Previews.Preview", &[("f.request", &request.to_string())]);
    let refused = browser.get(&address).await;
    assert!(refused.status == 400 && !refused.text().contains(SECRET), "{}", refused.text());
}

each_engine!(multi_thread: receivers_are_shown_with_their_host, no_address_has_what_any_message_may_hold);
