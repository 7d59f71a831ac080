//! Account associations as in v1.

use bowline_contract::v1::iam as v1;
use bowline_contract::v1::iam::account_associations as v1_parts;
use bowline_contract::v1::iam::rpc::group_account_associations::{Check, Create, Delete, List, Update};
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::account_association as v2_parts;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list::{self, Filter};
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::account_associations::{self, AssociationRow, Provider, standing};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<Create>(handler!(create))
        .write::<Update>(handler!(update))
        .read::<List>(handler!(list))
        .write::<Delete>(handler!(delete))
        .read::<Check>(handler!(check))
}

/// The row as v1 has it.
pub(crate) fn of(row: &AssociationRow) -> v1::AccountAssociations {
    let given = row.given.clone();
    v1::AccountAssociations {
        group: row.uid.as_str().into(),
        name: given.name,
        description: given.description,
        amazon: given.amazon.map(|part| v1_parts::Amazon { account: part.account }),
        google: given
            .google
            .map(|part| v1_parts::Google { project_id: part.project_id, project_number: part.project_number }),
        chainguard: given.chainguard.map(|part| v1_parts::Chainguard { service_bindings: part.service_bindings }),
        azure: given.azure.map(|part| v1_parts::Azure { tenant_id: part.tenant_id, client_ids: part.client_ids }),
        github: given.github.map(down),
    }
}

/// A request of v1 in the form of v2.
fn input(given: v1::AccountAssociations) -> v2::AccountAssociation {
    v2::AccountAssociation {
        name: given.name,
        description: given.description,
        amazon: given.amazon.map(|part| v2_parts::Amazon { account: part.account }),
        google: given
            .google
            .map(|part| v2_parts::Google { project_id: part.project_id, project_number: part.project_number }),
        chainguard: given.chainguard.map(|part| v2_parts::Chainguard { service_bindings: part.service_bindings }),
        azure: given.azure.map(|part| v2_parts::Azure { tenant_id: part.tenant_id, client_ids: part.client_ids }),
        github: given.github.map(up),
        ..v2::AccountAssociation::default()
    }
}

fn up(apps: v1_parts::GitHub) -> v2_parts::GitHub {
    let installation = |one: v1_parts::GitHubInstallation| v2_parts::GitHubInstallation {
        installation_id: one.installation_id,
        name: one.name,
    };
    let installations = |app: v1_parts::GitHubAppInstallations| v2_parts::GitHubAppInstallations {
        installations: app.installations.into_iter().map(installation).collect(),
    };
    let apps = apps.app_installations.into_iter();
    v2_parts::GitHub { app_installations: apps.map(|(id, app)| (id, installations(app))).collect() }
}

fn down(apps: v2_parts::GitHub) -> v1_parts::GitHub {
    let installation = |one: v2_parts::GitHubInstallation| v1_parts::GitHubInstallation {
        installation_id: one.installation_id,
        name: one.name,
    };
    let installations = |app: v2_parts::GitHubAppInstallations| v1_parts::GitHubAppInstallations {
        installations: app.installations.into_iter().map(installation).collect(),
    };
    let apps = apps.app_installations.into_iter();
    v1_parts::GitHub { app_installations: apps.map(|(id, app)| (id, installations(app))).collect() }
}

async fn create(
    tx: &mut WriteTx,
    call: &Authorized<v1::AccountAssociations>,
) -> Result<Changed<v1::AccountAssociations>> {
    let given = input(call.request().clone());
    Ok(account_associations::create(tx, call, given).await?.map(|row| of(&row)))
}

async fn update(
    tx: &mut WriteTx,
    call: &Authorized<v1::AccountAssociations>,
) -> Result<Changed<v1::AccountAssociations>> {
    let given = input(call.request().clone());
    Ok(account_associations::update(tx, call, &Mask::whole(), given).await?.map(|row| of(&row)))
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v1::AccountAssociationsFilter>,
) -> Result<v1::AccountAssociationsList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), None, &filter.group);
    if !filter.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&filter.name) });
    }
    let size = |row: &AssociationRow| of(row).encoded_len();
    let rows = list::everything(tx, call, &account_associations::TABLE, &selection, size).await?;
    Ok(v1::AccountAssociationsList { items: rows.iter().map(of).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteAccountAssociationsRequest>) -> Result<Changed<()>> {
    account_associations::remove(tx, call.require_scope()?).await
}

async fn check(
    tx: &mut ReadTx,
    call: &Authorized<v1::AccountAssociationsCheckRequest>,
) -> Result<v1::AccountAssociationsStatus> {
    use v1::account_associations_check_request::AccountType;
    use v1::account_associations_status::State;
    let provider = match call.request().account_type() {
        AccountType::Google => Provider::Google,
        AccountType::Amazon => Provider::Amazon,
        AccountType::Azure => Provider::Azure,
        AccountType::Unknown => return Err(Error::invalid_field("accountType", "accountType is required")),
    };
    let standing = standing(tx, call, provider).await?;
    let state = if standing.is_ready { State::Ready } else { State::NotReady };
    Ok(v1::AccountAssociationsStatus { ready: state as i32, reason: standing.reason.into(), message: standing.message })
}
