//! SCIM: which owners are the directory's own. Only those whose binding the provider's default role made.

use bowline_core::Uidp;
use bowline_identity::people::Choice;
use bowline_testkit::{TestServer, each_engine};
use serde_json::{Value, json};

use crate::people_support::{CLIENT, people, person, sign_in, vouched};
use crate::scim::{Directory, patch};
use crate::support::{execute, number, ok};

/// A directory whose provider signs people in.
async fn directory(server: &TestServer, org: &str) -> Directory {
    let directory = Directory::new(server, org, 1).await;
    let client = "UPDATE identity_providers SET client_id = $1 WHERE uid = $2";
    execute(server, client, &[CLIENT, &directory.provider]).await;
    directory
}

async fn set_default_role(server: &TestServer, directory: &Directory, role: &str) {
    let sql = "UPDATE identity_providers SET default_role = $1 WHERE uid = $2";
    execute(server, sql, &[role, &directory.provider]).await;
}

/// Provisions a person, who signs in and gets the default role; the path of the user.
async fn admitted(server: &TestServer, directory: &Directory, subject: &str) -> String {
    let id = directory.user(subject, subject).await;
    let uid = Uidp::parse(&directory.provider).expect("a provider");
    let provider = people(server).provider(&Choice::Provider(uid)).await.expect("the directory's provider");
    let upstream = vouched(server, &provider, subject, Value::Null).await;
    sign_in(server, &provider, &upstream).await;
    format!("Users/{id}")
}

/// Refuses every way to end the user's access.
async fn stays(directory: &Directory, user: &str, subject: &str) {
    let deactivate = patch(json!([{ "op": "replace", "path": "active", "value": false }]));
    directory.rejected(&format!("PATCH {user}"), deactivate, 409, "").await;
    let replaced = json!({ "userName": subject, "externalId": subject, "active": false });
    directory.rejected(&format!("PUT {user}"), replaced, 409, "").await;
    let other = patch(json!([{ "op": "replace", "path": "externalId", "value": "other" }]));
    directory.rejected(&format!("PATCH {user}"), other, 409, "").await;
    directory.rejected(&format!("DELETE {user}"), Value::Null, 409, "").await;
}

async fn goes(directory: &Directory, user: &str) {
    directory.ok(&format!("DELETE {user}"), Value::Null, 204).await;
}

async fn an_owner_whom_an_administrator_bound_is_not_the_directorys_own_for_a_default_role(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = directory(server, &org).await;
    set_default_role(server, &directory, &server.role("viewer")).await;
    let ann = admitted(server, &directory, "ann").await;
    server.bind(&person(server, "ann"), &server.role("owner"), &org).await;
    set_default_role(server, &directory, &server.role("owner")).await;
    let ben = admitted(server, &directory, "ben").await;
    assert_eq!(number(server, "SELECT count(*) FROM default_roles_given WHERE binding <> ''").await, 2);
    stays(&directory, &ann, "ann").await;
    // The directory's own owner goes, while another one stays.
    goes(&directory, &ben).await;
    stays(&directory, &ann, "ann").await;
}

async fn an_owner_whose_given_binding_an_administrator_changed_is_not_the_directorys_own(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = directory(server, &org).await;
    set_default_role(server, &directory, &server.role("viewer")).await;
    let ann = admitted(server, &directory, "ann").await;
    let bob = admitted(server, &directory, "bob").await;
    let operator = server.operator().await;
    let list = format!("GET /iam/v2/roleBindings?identity={}", person(server, "ann"));
    let given = ok(&operator, &list, Value::Null).await["roleBindings"][0]["uid"].clone();
    let change = format!("PATCH /iam/v2/roleBindings/{}", given.as_str().expect("a binding"));
    ok(&operator, &change, json!({ "roleUid": server.role("owner") })).await;
    set_default_role(server, &directory, &server.role("owner")).await;
    let ben = admitted(server, &directory, "ben").await;
    stays(&directory, &ann, "ann").await;
    // With another owner whom an administrator bound, the person goes like any other.
    server.bind(&person(server, "bob"), &server.role("owner"), &org).await;
    goes(&directory, &ann).await;
    stays(&directory, &bob, "bob").await;
    goes(&directory, &ben).await;
}

async fn a_default_role_given_before_bindings_were_recorded_makes_no_owner_easier_to_remove(server: &TestServer) {
    let org = server.organization("acme").await;
    let directory = directory(server, &org).await;
    set_default_role(server, &directory, &server.role("owner")).await;
    let ann = admitted(server, &directory, "ann").await;
    let ben = admitted(server, &directory, "ben").await;
    execute(server, "UPDATE default_roles_given SET binding = NULL WHERE provider = $1", &[&directory.provider]).await;
    stays(&directory, &ann, "ann").await;
    stays(&directory, &ben, "ben").await;
    let machine = server.identity(&org, "machine").await;
    server.bind(&machine, &server.role("owner"), &org).await;
    goes(&directory, &ann).await;
    goes(&directory, &ben).await;
}

each_engine!(
    an_owner_whom_an_administrator_bound_is_not_the_directorys_own_for_a_default_role,
    an_owner_whose_given_binding_an_administrator_changed_is_not_the_directorys_own,
    a_default_role_given_before_bindings_were_recorded_makes_no_owner_easier_to_remove
);
