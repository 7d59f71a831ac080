//! Forms of the web console, as a browser fills them in and sends them.

use bowline_testkit::{Browser, RestReply};

use crate::console_support::{encoded, page};
use crate::signin::location;

/// The hidden field of the form that is sent to an address.
pub(crate) fn hidden(page: &str, action: &str, name: &str) -> String {
    let form = page.split("<form").find(|form| form.contains(&format!("action=\"{action}\"")));
    let form = form.unwrap_or_else(|| panic!("no form for {action}: {page}"));
    let (_, rest) =
        form.split_once(&format!("name=\"{name}\" value=\"")).unwrap_or_else(|| panic!("no {name}: {form}"));
    rest.split('"').next().unwrap_or_default().replace("&amp;", "&").replace("&quot;", "\"")
}

pub(crate) async fn unlock(browser: &Browser) {
    let shown = page(browser, "/console/me").await;
    let form = hidden(&shown, "/console/unlock", "form");
    let reply = browser.post("/console/unlock", &[("form", &form), ("back", "/console/me")]).await;
    assert_eq!(location(&reply), "/console/me");
}

/// The fields of the form of a method, as a browser would send them.
pub(crate) fn fields_of(page: &str) -> Vec<(String, String)> {
    let form = page.split("<form").find(|form| form.contains("method=\"post\" action=\"/console/method\""));
    let form = form.unwrap_or_else(|| panic!("no form: {page}")).split("</form>").next().unwrap_or_default();
    let mut fields = Vec::new();
    for tag in form.split('<').filter(|tag| tag.contains(" name=\"")) {
        let attribute = |name: &str| {
            let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
            Some(plain(rest.split('"').next().unwrap_or_default()))
        };
        let name = attribute("name").expect("a name");
        let value = match tag.split([' ', '>']).next() {
            Some("input") => attribute("value").unwrap_or_default(),
            Some("textarea") => plain(tag.split_once(">\n").expect("a line end first").1),
            Some("select") => {
                let options = form.split_once(tag).expect("it is here").1.split("</select>").next().unwrap_or_default();
                let chosen = options.split("<option").find(|option| option.contains(" selected"));
                let chosen = chosen.and_then(|option| option.split_once("value=\"")).map_or("", |(_, rest)| rest);
                plain(chosen.split('"').next().unwrap_or_default())
            }
            _ => continue,
        };
        fields.push((name, value));
    }
    fields
}

pub(crate) fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Sends the form of a page with other values for some fields.
pub(crate) async fn submit(browser: &Browser, page: &str, action: &str, with: &[(&str, &str)]) -> RestReply {
    let mut fields = fields_of(page);
    for (name, value) in with {
        match fields.iter_mut().find(|(field, _)| field == name) {
            Some(field) => (*value).clone_into(&mut field.1),
            None => fields.push(((*name).to_owned(), (*value).to_owned())),
        }
    }
    fields.push(("do".into(), action.into()));
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    browser.post("/console/method", &fields).await
}

pub(crate) fn form_at(method: &str, parameters: &[(&str, &str)]) -> String {
    let pairs = parameters.iter().map(|(name, value)| format!("&{name}={}", encoded(value)));
    format!("/console/method?name={method}{}", pairs.collect::<String>())
}

pub(crate) const CREATE_GROUP: &str = "chainguard.platform.iam.v2.GroupsService.CreateGroup";
pub(crate) const UPDATE_GROUP: &str = "chainguard.platform.iam.v2.GroupsService.UpdateGroup";
pub(crate) const DELETE_GROUP: &str = "chainguard.platform.iam.v2.GroupsService.DeleteGroup";
pub(crate) const GROUPS: &str = "SELECT count(*) FROM groups";
