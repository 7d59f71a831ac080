use bowline_contract::bowline::operator::v1::rpc::operator::{
    GetHealth, GetStorage, ListKeys, ListOperators, ListOrganizations, ListProviders, ListTasks, RevokeOperator,
    RunTask,
};
use bowline_contract::bowline::operator::v1::{
    GetHealthRequest, GetStorageRequest, Key, ListKeysRequest, ListOperatorsRequest, ListOrganizationsRequest,
    ListProvidersRequest, ListTasksRequest, NamedOperator, OperatorProvider, OrganizationUsage, Storage, Task,
};
use bowline_core::Result;
use maud::{Markup, html};

use super::part;
use crate::components::{List, action, facts, link, refused, section, table};
use crate::shell::Content;
use crate::values::{badge, bytes, code, none, text, time, yes};
use crate::visit::{ROWS, Visit};

/// The state of the server: only operators may read it, which the refusal says.
pub(super) async fn show(visit: &mut Visit) -> Result<Content> {
    let health = visit.call::<GetHealth>(GetHealthRequest {}).await?;
    let storage = visit.call::<GetStorage>(GetStorageRequest {}).await?;
    let tasks = visit.call::<ListTasks>(ListTasksRequest {}).await?;
    let keys = visit.call::<ListKeys>(ListKeysRequest {}).await?;
    let providers = part(visit.call::<ListProviders>(ListProvidersRequest {}).await)?;
    let providers_method = visit.last_method().map(str::to_owned);
    let operators = part(visit.call::<ListOperators>(ListOperatorsRequest {}).await)?;
    let operators_method = visit.last_method().map(str::to_owned);
    let about = facts(&[
        ("Version", code(&health.version)),
        ("Database", text(&health.engine)),
        ("Schema", text(&health.schema_version.to_string())),
        ("Replica", code(&health.replica)),
        ("Started", time(health.start_time.as_ref())),
        ("Storage", if health.storage_full { badge("bad", "full") } else { badge("good", "has room") }),
    ]);
    let task_heads = ["Task", "Last run", "Next run", "State", "Actions"];
    let key_heads = ["Id", "Algorithm", "Published", "Signs since", "Ends"];
    let body = html! {
        (about)
        (section("storage", "Storage", &storage_of(&storage)))
        (section("tasks", "Periodic tasks", &table("Tasks", &task_heads, &rows(&tasks.tasks, |one| task(visit, one)))))
        (section("keys", "Signing keys", &table("Keys", &key_heads, &rows(&keys.keys, key))))
        (section("providers", "Identity providers of the server", &match &providers {
            Ok(response) if response.providers.is_empty() => html! { p.empty { "There is no provider." } },
            Ok(response) => table(
                "Providers", &["Label", "Id", "Issuer", "Client", "Has a secret"], &rows(&response.providers, provider),
            ),
            Err(error) => refused(error, providers_method.as_deref()),
        }))
        (section("operators", "Operators by name", &match &operators {
            Ok(response) if response.operators.is_empty() => html! { p.empty { "There is no operator by name." } },
            Ok(response) => table(
                "Operators", &["E-mail", "Identity", "Issuer", "Since", "Actions"],
                &rows(&response.operators, |one| operator(visit, one)),
            ),
            Err(error) => refused(error, operators_method.as_deref()),
        }))
    };
    Ok(Content::new("The server", body).below("/console/organizations".to_owned(), "Organizations by size"))
}

fn rows<T>(items: &[T], row: impl Fn(&T) -> Vec<Markup>) -> Vec<Vec<Markup>> {
    items.iter().map(row).collect()
}

fn storage_of(storage: &Storage) -> Markup {
    facts(&[
        ("Database", text(&bytes(storage.database_bytes))),
        ("Blobs", text(&format!("{} in {}", bytes(storage.blob_bytes), storage.blobs))),
        ("Blobs counted", time(storage.blob_count_time.as_ref())),
        ("Free", text(&bytes(storage.free_bytes))),
        ("Kept back", text(&bytes(storage.reserve_bytes))),
    ])
}

fn task(visit: &Visit, task: &Task) -> Vec<Markup> {
    let state = if task.running {
        badge("plain", "running")
    } else if task.error.is_empty() {
        badge("good", "fine")
    } else {
        html! { (badge("bad", "failed")) " " (text(&task.error)) }
    };
    let run =
        html! { @if task.runnable { (action::<RunTask>(visit, "Run", &[("name", &task.name)])) } @else { (none()) } };
    vec![text(&task.name), time(task.last_run_time.as_ref()), time(task.next_run_time.as_ref()), state, run]
}

fn key(key: &Key) -> Vec<Markup> {
    vec![
        code(&key.kid),
        text(&key.algorithm),
        time(key.publish_time.as_ref()),
        time(key.sign_time.as_ref()),
        time(key.retire_time.as_ref()),
    ]
}

fn provider(provider: &OperatorProvider) -> Vec<Markup> {
    vec![
        text(&provider.label),
        code(&provider.id),
        code(&provider.issuer),
        code(&provider.client_id),
        yes(provider.has_secret),
    ]
}

fn operator(visit: &Visit, operator: &NamedOperator) -> Vec<Markup> {
    vec![
        if operator.email.is_empty() { none() } else { text(&operator.email) },
        link("/console/identity", &[("uid", &operator.identity)], &operator.identity),
        code(&operator.issuer),
        time(operator.grant_time.as_ref()),
        action::<RevokeOperator>(visit, "Remove", &[("identity", &operator.identity)]),
    ]
}

/// Organizations by what they store.
pub(super) async fn organizations(visit: &mut Visit) -> Result<Content> {
    let request = ListOrganizationsRequest { page_size: ROWS, page_token: visit.query.text("page") };
    let response = visit.call::<ListOrganizations>(request).await?;
    let row = |one: &OrganizationUsage| {
        vec![
            link("/console/group", &[("uid", &one.organization)], &one.name),
            text(&bytes(one.blob_bytes)),
            text(&one.repositories.to_string()),
            code(&one.organization),
        ]
    };
    let list = List {
        caption: "Organizations by size",
        heads: &["Name", "Stored", "Repositories", "Id"],
        rows: response.organizations.iter().map(row).collect(),
        next: &response.next_page_token,
        total: None,
        empty: "There is no organization yet.",
        filters: &[],
    };
    Ok(Content::new("Organizations by size", list.render(visit)).below("/console/operator".to_owned(), "The server"))
}
