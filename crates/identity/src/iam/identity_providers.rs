//! Identity providers: where an organization's people sign in.

mod fields;
mod grants;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity_provider::{Configuration, Oidc, Scim};
use bowline_contract::v2::iam::rpc::identity_providers_service::{
    CreateIdentityProvider, DeleteIdentityProvider, GetIdentityProvider, ListIdentityProviders, UpdateIdentityProvider,
};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, SortKey, handler};
use bowline_resources::kinds::IDENTITY_PROVIDER;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, BY_UID, Filter, Listed, Table, timestamp};
use bowline_resources::references;
use bowline_resources::references::require_room;
use bowline_store::{ReadTx, Row, Value, WriteTx, tables};

pub(crate) use fields::violations;
pub(in crate::iam) use grants::require_all_given;

use super::{external_group_role_mappings, identity_providers_v1, scim_tokens};
use crate::access::iam_changed;
use crate::tables::TABLES;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetIdentityProvider>(handler!(get))
        .read::<ListIdentityProviders>(handler!(list))
        .validate::<CreateIdentityProvider>(|request| {
            request.identity_provider.as_ref().map(violations).unwrap_or_default()
        })
        .write::<CreateIdentityProvider>(handler!(create_v2))
        .write::<UpdateIdentityProvider>(handler!(update_v2))
        .write::<DeleteIdentityProvider>(handler!(delete))
}

pub(crate) const TABLE: Table = Table {
    name: "identity_providers",
    columns: "uid, name, description, default_role, issuer, client_id, client_secret, additional_scopes, \
              groups_claim, correlation_rule, pkce_enabled, scim_enabled, created_at, updated_at",
    orders: &[BY_UID, BY_NAME, BY_CREATED],
};

/// An identity provider as it is stored; its group is its parent.
#[derive(Clone, Debug)]
pub(crate) struct ProviderRow {
    pub(crate) uid: Uidp,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) default_role: String,
    /// How people sign in; the secret in it is always empty.
    pub(crate) oidc: Oidc,
    /// The client's secret, sealed for [`secret_context`]; empty if there is none.
    pub(crate) sealed_secret: Vec<u8>,
    pub(crate) scim_enabled: bool,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

/// What the client's secret of this provider is sealed for.
pub(crate) fn secret_context(uid: &Uidp) -> String {
    format!("identity provider {uid}")
}

impl Listed for ProviderRow {
    fn read(row: &Row<'_>) -> Result<ProviderRow> {
        let oidc = Oidc {
            issuer: row.text(4)?,
            client_id: row.text(5)?,
            client_secret: String::new(),
            additional_scopes: serde_json::from_str(&row.text(7)?).map_err(Error::internal)?,
            groups_claim: row.text(8)?,
            correlation_rule: row.int(9)? as i32,
            pkce_enabled: row.bool(10)?,
        };
        Ok(ProviderRow {
            uid: list::stored_uid(row, &TABLE)?,
            name: row.text(1)?,
            description: row.text(2)?,
            default_role: row.text(3)?,
            oidc,
            sealed_secret: row.bytes(6)?,
            scim_enabled: row.bool(11)?,
            created_at: row.int(12)?,
            updated_at: row.int(13)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "name" => SortKey::Text(self.name.clone()),
            _ => SortKey::Int(self.created_at),
        }
    }
}

impl ProviderRow {
    /// The provider with this state of provisioning, and without its secret.
    pub(crate) fn to_v2(&self, scim: Scim) -> v2::IdentityProvider {
        v2::IdentityProvider {
            uid: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            default_role: self.default_role.clone(),
            scim: Some(scim),
            configuration: Some(Configuration::Oidc(self.oidc.clone())),
        }
    }

    /// The provider as lists have it: without the state of the SCIM token.
    pub(crate) fn to_listed<T>(&self, call: &Authorized<T>) -> v2::IdentityProvider {
        self.to_v2(scim_tokens::to_scim_summary(call, self))
    }
}

/// The provider of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<ProviderRow>> {
    let sql = format!("SELECT {} FROM identity_providers WHERE uid = $1", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(uid.as_str())], ProviderRow::read).await
}

pub(crate) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<ProviderRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(IDENTITY_PROVIDER, uid.as_str()))
}

/// The provider as one alone is answered: with the state of its SCIM token.
pub(crate) async fn whole<T>(tx: &mut ReadTx, call: &Authorized<T>, row: &ProviderRow) -> Result<v2::IdentityProvider> {
    Ok(row.to_v2(scim_tokens::status(tx, call, row).await?))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetIdentityProviderRequest>) -> Result<v2::IdentityProvider> {
    let row = require(tx, call.require_scope()?).await?;
    whole(tx, call, &row).await
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListIdentityProvidersRequest>,
) -> Result<v2::ListIdentityProvidersResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, ProviderRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListIdentityProvidersResponse {
        identity_providers: listing.items.iter().map(|row| row.to_listed(call)).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateIdentityProviderRequest>,
) -> Result<Changed<v2::IdentityProvider>> {
    let given = call.request().identity_provider.clone().unwrap_or_default();
    create(tx, call, given).await
}

/// Creates a provider in the checked group.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    given: v2::IdentityProvider,
) -> Result<Changed<v2::IdentityProvider>> {
    let group = references::require_scope(tx, call).await?;
    let uid = call.new_child(&group);
    let mut oidc = fields::oidc_of(&given);
    let secret = std::mem::take(&mut oidc.client_secret);
    let row = ProviderRow {
        sealed_secret: sealed(call, &uid, &secret),
        uid,
        name: given.name,
        description: given.description,
        default_role: given.default_role,
        oidc,
        scim_enabled: false,
        created_at: call.now(),
        updated_at: call.now(),
    };
    grants::require_default_role(tx, call, &row).await?;
    grants::require_owner(call, &row)?;
    require_room(tx, &group, "idps", TABLE.name).await?;
    insert(tx, &row).await?;
    let provider = whole(tx, call, &row).await?;
    let event = v1::CreateIdentityProviderRequest {
        parent_id: group.as_str().into(),
        identity_provider: Some(identity_providers_v1::rendered(&provider)),
    };
    Ok(Changed::one(IDENTITY_PROVIDER, &row.uid, None, Some(&provider.clone()), provider).with_event(&row.uid, &event))
}

/// The secret as it is stored: no one but the sign-in reads it again.
fn sealed<T>(call: &Authorized<T>, uid: &Uidp, secret: &str) -> Vec<u8> {
    if secret.is_empty() { Vec::new() } else { call.vault().seal(&secret_context(uid), secret.as_bytes()) }
}

async fn insert(tx: &mut WriteTx, row: &ProviderRow) -> Result<()> {
    let sql = "INSERT INTO identity_providers (uid, parent, org, name, description, default_role, issuer, client_id, client_secret,
                                               additional_scopes, groups_claim, correlation_rule, pkce_enabled, scim_enabled, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) ON CONFLICT DO NOTHING";
    let scopes = serde_json::to_string(&row.oidc.additional_scopes).map_err(Error::internal)?;
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::from(&row.default_role),
        Value::from(&row.oidc.issuer),
        Value::from(&row.oidc.client_id),
        Value::from(&row.sealed_secret),
        Value::from(&scopes),
        Value::from(&row.oidc.groups_claim),
        Value::from(row.oidc.correlation_rule),
        Value::from(row.oidc.pkce_enabled),
        Value::from(row.scim_enabled),
        Value::from(row.created_at),
        Value::from(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(IDENTITY_PROVIDER, row.uid.as_str()));
    }
    list::count(tx, &TABLE, &row.uid, 1).await
}

async fn update_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::UpdateIdentityProviderRequest>,
) -> Result<Changed<v2::IdentityProvider>> {
    let given = call.request().identity_provider.clone().unwrap_or_default();
    update(tx, call, &call.mask(), &given).await
}

/// Changes what the mask covers.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    given: &v2::IdentityProvider,
) -> Result<Changed<v2::IdentityProvider>> {
    let before = require(tx, call.require_scope()?).await?;
    let mut after = fields::changed(&before, given, mask)?;
    grants::require_may_change(tx, call, &before, &after).await?;
    let secret = fields::new_secret(given, mask);
    if secret.is_none() && !before.sealed_secret.is_empty() && after.oidc.issuer != before.oidc.issuer {
        // The stored one would be shown to the new issuer.
        return Err(Error::invalid_field(
            "oidc.clientSecret",
            "oidc.clientSecret must be given together with another oidc.issuer",
        ));
    }
    if let Some(secret) = secret {
        after.sealed_secret = sealed(call, &after.uid, &secret);
    }
    let is_elsewhere = (&after.oidc.issuer, &after.oidc.client_id) != (&before.oidc.issuer, &before.oidc.client_id);
    if is_elsewhere {
        scim_tokens::require_no_provisioned_users(tx, &after.uid).await?;
    }
    // A session keeps the groups that it began with, by the claim of then.
    if is_elsewhere || after.oidc.groups_claim != before.oidc.groups_claim {
        end_sessions(tx, &after.uid).await?;
        iam_changed(tx).await?;
    }
    after.updated_at = call.now();
    save(tx, &after).await?;
    let scim = scim_tokens::status(tx, call, &after).await?;
    let provider = after.to_v2(scim.clone());
    let event = identity_providers_v1::rendered(&provider);
    Ok(Changed::one(IDENTITY_PROVIDER, &after.uid, Some(&before.to_v2(scim)), Some(&provider.clone()), provider)
        .with_event(&after.uid, &event))
}

async fn save(tx: &mut WriteTx, row: &ProviderRow) -> Result<()> {
    let sql = "UPDATE identity_providers SET name = $2, description = $3, default_role = $4, issuer = $5, client_id = $6, client_secret = $7,
                                             additional_scopes = $8, groups_claim = $9, pkce_enabled = $10, updated_at = $11
               WHERE uid = $1";
    let scopes = serde_json::to_string(&row.oidc.additional_scopes).map_err(Error::internal)?;
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::from(&row.default_role),
        Value::from(&row.oidc.issuer),
        Value::from(&row.oidc.client_id),
        Value::from(&row.sealed_secret),
        Value::from(&scopes),
        Value::from(&row.oidc.groups_claim),
        Value::from(row.oidc.pkce_enabled),
        Value::from(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteIdentityProviderRequest>) -> Result<Changed<()>> {
    remove(tx, call).await
}

/// Deletes a provider with all that hangs on it: mappings, provisioning, and the sessions that began there.
pub(crate) async fn remove<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let before = require(tx, call.require_scope()?).await?;
    let provider = whole(tx, call, &before).await?;
    let uid = &before.uid;
    let mappings = external_group_role_mappings::delete_of_provider(tx, uid).await?;
    // The deletion also removes the record of whom the directory had deactivated.
    let left = scim_tokens::delete_of_provider(tx, uid).await?;
    end_sessions(tx, uid).await?;
    tables::delete_rows(tx, TABLES, TABLE.name, uid.as_str()).await?;
    tx.execute("DELETE FROM identity_providers WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    iam_changed(tx).await?;
    let event = v1::DeleteIdentityProviderRequest { id: uid.as_str().into() };
    Ok(Changed::one(IDENTITY_PROVIDER, uid, Some(&provider), None, ())
        .along(mappings)
        .along(left)
        .with_event(uid, &event))
}

async fn end_sessions(tx: &mut WriteTx, provider: &Uidp) -> Result<()> {
    for sql in [
        "DELETE FROM refresh_tokens WHERE session IN (SELECT id FROM sessions WHERE provider = $1)",
        "DELETE FROM session_groups WHERE session IN (SELECT id FROM sessions WHERE provider = $1)",
        "DELETE FROM sessions WHERE provider = $1",
    ] {
        tx.execute(sql, &[Value::from(provider.as_str())]).await?;
    }
    Ok(())
}
