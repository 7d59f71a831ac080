//! The providers: those of the configuration file, those set by command, and those of organizations.

use bowline_core::{Error, Reason, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};

use super::{Choice, ConfiguredProvider, Parts, Provider, Source};

/// A provider of an organization as it is stored.
#[derive(Clone)]
pub(super) struct OrganizationProvider {
    pub(super) uid: Uidp,
    pub(super) name: String,
    pub(super) default_role: String,
    pub(super) issuer: String,
    pub(super) client_id: String,
    client_secret: Vec<u8>,
    additional_scopes: String,
    pub(super) groups_claim: String,
    pub(super) correlation_rule: i32,
    pkce: bool,
    pub(super) scim_enabled: bool,
}

const COLUMNS: &str = "uid, name, default_role, issuer, client_id, client_secret, additional_scopes, groups_claim, \
                       correlation_rule, pkce_enabled, scim_enabled";

impl OrganizationProvider {
    fn read(row: &Row<'_>) -> Result<OrganizationProvider> {
        Ok(OrganizationProvider {
            uid: bowline_resources::list::stored_uid(row, &crate::iam::identity_providers::TABLE)?,
            name: row.text(1)?,
            default_role: row.text(2)?,
            issuer: row.text(3)?,
            client_id: row.text(4)?,
            client_secret: row.bytes(5)?,
            additional_scopes: row.text(6)?,
            groups_claim: row.text(7)?,
            correlation_rule: row.int(8)? as i32,
            pkce: row.bool(9)?,
            scim_enabled: row.bool(10)?,
        })
    }

    fn open(self, parts: &Parts) -> Result<Provider> {
        let context = secret_context(self.uid.as_str());
        Ok(Provider {
            client_secret: open_secret(parts, &context, &self.client_secret)?,
            scopes: scopes(&self.additional_scopes)?,
            source: Source::Organization { uid: self.uid },
            label: self.name,
            issuer: self.issuer,
            client_id: self.client_id,
            pkce: self.pkce,
            groups_claim: self.groups_claim,
            correlation_rule: self.correlation_rule,
        })
    }
}

/// Where the client secret of an organization's provider is sealed for.
pub fn secret_context(uid: &str) -> String {
    format!("identity provider {uid}")
}

/// Where the client secret of a provider of the operator's is sealed for.
pub fn operator_secret_context(id: &str) -> String {
    format!("operator provider {id}")
}

fn open_secret(parts: &Parts, context: &str, sealed: &[u8]) -> Result<Option<String>> {
    if sealed.is_empty() {
        return Ok(None);
    }
    let plain = parts.vault.open(context, sealed)?;
    String::from_utf8(plain).map(Some).map_err(|_| Error::internal(format!("{context}: the secret is no text")))
}

fn scopes(json: &str) -> Result<Vec<String>> {
    serde_json::from_str(json).map_err(|error| Error::internal(format!("stored scopes of a provider: {error}")))
}

fn configured(provider: &ConfiguredProvider) -> Provider {
    Provider {
        source: Source::Operator { id: provider.id.clone() },
        label: provider.label.clone(),
        issuer: provider.issuer.clone(),
        client_id: provider.client_id.clone(),
        client_secret: provider.client_secret.clone(),
        scopes: provider.scopes.clone(),
        pkce: true,
        groups_claim: String::new(),
        correlation_rule: 0,
    }
}

/// The operator's providers: those of the configuration file hide stored ones of the same name.
pub(super) async fn of_operator(parts: &Parts) -> Result<Vec<Provider>> {
    let sql = "SELECT id, label, issuer, client_id, client_secret, scopes FROM operator_providers ORDER BY id";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(((row.text(0)?, row.text(1)?, row.text(2)?, row.text(3)?), row.bytes(4)?, row.text(5)?))
    };
    let rows = parts.db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await })).await?;
    let mut providers: Vec<Provider> = parts.providers.iter().map(configured).collect();
    for ((id, label, issuer, client_id), sealed, json) in rows {
        if parts.providers.iter().any(|known| known.id == id) {
            continue;
        }
        let client_secret = open_secret(parts, &operator_secret_context(&id), &sealed)?;
        let plain = ConfiguredProvider { id, label, issuer, client_id, client_secret, scopes: scopes(&json)? };
        providers.push(configured(&plain));
    }
    Ok(providers)
}

/// Whether the operator offers a provider of this issuer, and of this client where one is named. An issuer
/// that serves many clients asserts who signed in to which; the operator does not vouch for its assertions to
/// other clients.
pub(crate) async fn is_operators(
    tx: &mut ReadTx,
    configured: &[ConfiguredProvider],
    issuer: &str,
    client_id: Option<&str>,
) -> Result<bool> {
    let is_client = |own: &str| client_id.is_none_or(|client_id| client_id == own);
    if configured.iter().any(|provider| provider.issuer == issuer && is_client(&provider.client_id)) {
        return Ok(true);
    }
    // A stored provider whose name the configuration file uses for another is not offered.
    let sql = "SELECT id, client_id FROM operator_providers WHERE issuer = $1 ORDER BY id";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    let stored = tx.query(sql, &[Value::from(issuer)], read).await?;
    let is_hidden = |id: &str| configured.iter().any(|provider| provider.id == id);
    Ok(stored.iter().any(|(id, client_id)| !is_hidden(id) && is_client(client_id)))
}

/// The organization's provider of this UIDP.
pub(super) async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<OrganizationProvider>> {
    let sql = format!("SELECT {COLUMNS} FROM identity_providers WHERE uid = $1");
    tx.query_opt(&sql, &[Value::from(uid)], OrganizationProvider::read).await
}

/// The providers of an organization that have this issuer; a few at most.
pub(super) async fn of_organization(tx: &mut ReadTx, org: &str, issuer: &str) -> Result<Vec<OrganizationProvider>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM identity_providers WHERE issuer = $1 AND org = $2 ORDER BY parent, uid LIMIT 20"
    );
    tx.query(&sql, &[Value::from(issuer), Value::from(org)], OrganizationProvider::read).await
}

/// The first provider of the verified organization of this name: the outermost, oldest first.
pub(super) async fn by_name(tx: &mut ReadTx, name: &str) -> Result<Option<OrganizationProvider>> {
    if name.is_empty() || name.contains('\0') {
        return Ok(None);
    }
    let sql = "SELECT uid FROM groups WHERE name = $1 AND parent = '' AND verified";
    let org = tx.query_opt(sql, &[Value::from(name)], |row| row.text(0).map_err(Error::from)).await?;
    let Some(org) = org else { return Ok(None) };
    let sql =
        format!("SELECT {COLUMNS} FROM identity_providers WHERE org = $1 ORDER BY parent, created_at, uid LIMIT 1");
    tx.query_opt(&sql, &[Value::from(&org)], OrganizationProvider::read).await
}

/// The provider that a caller names.
pub(super) async fn chosen(parts: &Parts, choice: &Choice) -> Result<Provider> {
    let found = match choice {
        Choice::Operator(id) => {
            let is_meant =
                |provider: &Provider| matches!(&provider.source, Source::Operator { id: known } if known == id);
            return of_operator(parts).await?.into_iter().find(is_meant).ok_or_else(not_found);
        }
        Choice::Organization(name) => {
            let name = name.clone();
            parts.db.read(move |tx| Box::pin(async move { by_name(tx, &name).await })).await?
        }
        Choice::Provider(uid) => {
            let uid = uid.clone();
            parts.db.read(move |tx| Box::pin(async move { find(tx, uid.as_str()).await })).await?
        }
    };
    found.ok_or_else(not_found)?.open(parts)
}

/// One text for every case, which does not reveal the names that exist.
fn not_found() -> Error {
    Error::new(Reason::NotFound, "Not found: there is no identity provider of this name; ask your administrator for it")
}
