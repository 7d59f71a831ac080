use std::collections::BTreeMap;

use bowline_client::Api;
use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_contract::v1::auth::{WhoAmI, who_am_i};
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::role_bindings_service::ListRoleBindings;
use bowline_terminal::{Form, Output, Table};
use clap::Args;
use serde_json::json;

use crate::error::CliError;
use crate::print;
use crate::session::{Access, OPERATOR, Session};

/// `bowline auth status`.
#[derive(Args)]
#[command(after_help = "Example:\n  bowline auth status -o jsonpath='{.identity}'")]
pub struct StatusCommand {
    #[command(flatten)]
    access: Access,
    #[command(flatten)]
    output: Output,
    /// Only say by the exit code whether someone is signed in: 0 yes, 3 no
    #[arg(long)]
    quick: bool,
}

pub(crate) async fn run(command: StatusCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let api = session.api().await?;
    let who = api.call::<Validate>(&()).await?;
    if command.quick {
        return Ok(());
    }
    let left = who.expiry.as_ref().map_or(0, |expiry| expiry.seconds - Session::now());
    let form = command.output.form();
    if matches!(form, Form::Json | Form::Yaml | Form::Name | Form::JsonPath(_)) {
        return print(&form.document(&json(&session, &who, left))?);
    }
    let table = roles(&api, &who).await;
    if matches!(form, Form::Csv) {
        return print(&form.render(&table, || Ok(serde_json::Value::Null))?);
    }
    print(&format!("{}\n{}", person(&session, &who, left), reach(&who, &table)))
}

fn person(session: &Session, who: &WhoAmI, left: i64) -> String {
    let mut text = format!("API       {}\nissuer    {}\nidentity  {}\n", session.api, who.issuer, who.subject);
    if !who.email.is_empty() {
        text.push_str(&format!("e-mail    {}\n", who.email));
    }
    text.push_str(&format!("token     good for {} minutes\n", left / 60));
    text
}

fn reach(who: &WhoAmI, table: &Table) -> String {
    match (who.subject.as_str(), who.capabilities.is_empty()) {
        (OPERATOR, _) => "the operator, who may do everything everywhere\n".into(),
        (subject, true) => format!(
            "no role anywhere; an owner can grant one: bowline iam role-bindings create --parent GROUP --role ROLE --identity {subject}\n"
        ),
        _ => table.text(),
    }
}

/// Which roles are held where. The response has one name at most for each group; bindings have them all.
async fn roles(api: &Api, who: &WhoAmI) -> Table {
    let bound = bound(api, &who.subject).await;
    let mut table = Table::new(&["role", "group", "uidp"]);
    for held in &who.capabilities {
        let (uidp, name) = held.group.as_ref().map_or(("", ""), |group| (group.id.as_str(), group.name.as_str()));
        let name = if name.is_empty() { "-" } else { name };
        let own = || vec![held.role.as_ref().map_or_else(|| several_roles(held), |role| role.name.clone())];
        let roles = bound.get(uidp).cloned().unwrap_or_else(own);
        for role in roles {
            table.push([role, name.to_owned(), uidp.to_owned()]);
        }
    }
    table
}

fn several_roles(held: &who_am_i::Capability) -> String {
    format!("(several roles, {} capabilities)", held.capabilities.len())
}

/// Names of the roles that an identity is bound to, by group, as far as it may list its bindings.
async fn bound(api: &Api, identity: &str) -> BTreeMap<String, Vec<String>> {
    let request = v2::ListRoleBindingsRequest {
        identity: identity.into(),
        page_size: 200,
        ..v2::ListRoleBindingsRequest::default()
    };
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for binding in api.call::<ListRoleBindings>(&request).await.map(|page| page.role_bindings).unwrap_or_default() {
        let group = binding.uid.rsplit_once('/').map_or(String::new(), |(group, _)| group.to_owned());
        names.entry(group).or_default().extend(binding.role.map(|role| role.name));
    }
    names
}

fn json(session: &Session, who: &WhoAmI, left: i64) -> serde_json::Value {
    let held: Vec<_> = who
        .capabilities
        .iter()
        .map(|held| {
            json!({
                "group": held.group.as_ref().map(|group| &group.id),
                "name": held.group.as_ref().map(|group| &group.name),
                "role": held.role.as_ref().map(|role| &role.name),
                "capabilities": held.capabilities,
            })
        })
        .collect();
    json!({
        "api": session.api, "issuer": who.issuer, "identity": who.subject, "email": who.email,
        "audience": who.audience, "expires_in": left, "capabilities": held,
    })
}
