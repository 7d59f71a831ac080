//! Other package indexes that an organization takes packages from: listed, set, deleted.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::package_upstreams::{DeleteUpstream, ListUpstreams, SetUpstream};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, Vault, handler};
use bowline_registry::content::package_files;
use bowline_registry::content::replication::credentials::{self, Account, Password, WrongAccount};
use bowline_resources::kinds::PACKAGE_UPSTREAM;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use url::{Host, Url};

use super::known_versions;
use super::repositories::stored;
use crate::ecosystems::{Language, MUST_HAVE_UPSTREAMS};
use crate::require_organization;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListUpstreams>(handler!(list))
        .validate::<SetUpstream>(|request| violations(request.upstream.as_ref()))
        .write::<SetUpstream>(handler!(set))
        .write::<DeleteUpstream>(handler!(delete))
}

/// Upstreams that an organization may have.
const MAX_IN_ORGANIZATION: usize = 20;
/// Files of a deleted upstream that one transaction removes.
const AT_ONCE: i64 = 200;

/// An upstream as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct UpstreamRow {
    pub(super) uid: Uidp,
    pub(super) language: Language,
    pub(super) name: String,
    pub(super) url: String,
    pub(super) username: String,
    /// Sealed; empty without one.
    password: Vec<u8>,
    position: i64,
    created_at: Micros,
    updated_at: Micros,
}

const COLUMNS: &str = "uid, ecosystem, name, url, username, password, rank, created_at, updated_at";

impl UpstreamRow {
    fn read(row: &Row<'_>) -> Result<UpstreamRow> {
        Ok(UpstreamRow {
            uid: stored(&row.text(0)?)?,
            language: Language::of_number(row.int(1)?)?,
            name: row.text(2)?,
            url: row.text(3)?,
            username: row.text(4)?,
            password: row.bytes(5)?,
            position: row.int(6)?,
            created_at: row.int(7)?,
            updated_at: row.int(8)?,
        })
    }

    fn shown(&self) -> own::PackageUpstream {
        own::PackageUpstream {
            name: self.name.clone(),
            ecosystem: self.language.own() as i32,
            url: self.url.clone(),
            username: self.username.clone(),
            password: String::new(),
            has_password: !self.password.is_empty(),
            position: i32::try_from(self.position).unwrap_or(i32::MAX),
            uid: self.uid.as_str().into(),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
        }
    }

    /// The password of the account; absent for anonymous requests.
    pub(super) fn password(&self, vault: &Vault) -> Result<Option<String>> {
        if self.password.is_empty() {
            return Ok(None);
        }
        let plain = vault.open(&context(self.uid.as_str()), &self.password)?;
        String::from_utf8(plain).map(Some).map_err(|_| Error::internal("the password of an upstream is no text"))
    }
}

/// The context for which the password of an upstream is sealed.
pub fn context(uid: &str) -> String {
    format!("package upstream {uid}")
}

/// The upstreams of an organization, in the order in which they are requested.
pub(super) async fn of_organization(tx: &mut ReadTx, organization: &str) -> Result<Vec<UpstreamRow>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM package_upstreams WHERE parent = $1 AND deleted_at IS NULL
         ORDER BY ecosystem, rank, name"
    );
    tx.query(&sql, &[Value::from(organization)], UpstreamRow::read).await
}

/// Whether the upstream has not been deleted.
pub(super) async fn is_there(tx: &mut ReadTx, uid: &Uidp) -> Result<bool> {
    let sql = "SELECT 1 FROM package_upstreams WHERE uid = $1 AND deleted_at IS NULL";
    Ok(tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.int(0).map_err(Error::from)).await?.is_some())
}

fn violations(given: Option<&own::PackageUpstream>) -> Vec<FieldViolation> {
    let Some(given) = given else { return Vec::new() };
    let mut violations = Vec::new();
    let mut refuse =
        |field: &str, text: &str| violations.push(FieldViolation { field: field.into(), description: text.into() });
    if Language::required_with_upstreams("upstream.ecosystem", given.ecosystem).is_err() {
        refuse("upstream.ecosystem", MUST_HAVE_UPSTREAMS);
    }
    if let Err(text) = validate_address(&given.url) {
        refuse("upstream.url", text);
    }
    violations
}

/// What is wrong with the address of an index. Plain http is for tests on one machine: the client refuses it unless the
/// operator allows it.
fn validate_address(text: &str) -> std::result::Result<(), &'static str> {
    let url = Url::parse(text).map_err(|_| "must be an https address")?;
    let is_loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        _ => false,
    };
    if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback) || url.host_str().is_none_or(str::is_empty) {
        return Err("must be an https address");
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err("must have no user, password, query or fragment; give the account in username and password");
    }
    Ok(())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListPackageUpstreamsRequest>,
) -> Result<own::ListPackageUpstreamsResponse> {
    let organization = require_organization(tx, call).await?;
    let rows = of_organization(tx, organization.as_str()).await?;
    Ok(own::ListPackageUpstreamsResponse { upstreams: rows.iter().map(UpstreamRow::shown).collect() })
}

async fn set(
    tx: &mut WriteTx,
    call: &Authorized<own::SetPackageUpstreamRequest>,
) -> Result<Changed<own::PackageUpstream>> {
    let organization = require_organization(tx, call).await?;
    let given = call.request().upstream.clone().unwrap_or_default();
    let language = Language::required_with_upstreams("upstream.ecosystem", given.ecosystem)?;
    let all = of_organization(tx, organization.as_str()).await?;
    let before = all.iter().find(|row| row.name == given.name);
    if before.is_none() && all.len() >= MAX_IN_ORGANIZATION {
        let text = format!("an organization may have {MAX_IN_ORGANIZATION} package upstreams; delete some");
        return Err(Error::quota(organization.as_str(), text));
    }
    if before.is_some_and(|before| before.language != language) {
        let text = "cannot change: its files belong to an ecosystem; delete the upstream, or choose another name";
        return Err(Error::invalid_field("upstream.ecosystem", text));
    }
    let uid = before.map_or_else(|| call.new_child(&organization), |before| before.uid.clone());
    let after = UpstreamRow {
        password: sealed(call.vault(), &uid, before, &given)?,
        uid: uid.clone(),
        language,
        name: given.name,
        url: given.url,
        username: given.username,
        position: given.position.into(),
        created_at: before.map_or(call.now(), |before| before.created_at),
        updated_at: before.map_or(call.now(), |before| before.updated_at),
    };
    if before == Some(&after) {
        return Ok(Changed::nothing(after.shown()));
    }
    let after = UpstreamRow { updated_at: call.now(), ..after };
    if let Some(before) = before {
        drop_documents(tx, before, &after).await?;
    }
    store(tx, &organization, &after).await?;
    let shown = after.shown();
    let event = own::SetPackageUpstreamRequest { parent: organization.as_str().into(), upstream: Some(shown.clone()) };
    let changed =
        Changed::one(PACKAGE_UPSTREAM, &uid, before.map(UpstreamRow::shown).as_ref(), Some(&after.shown()), shown);
    Ok(changed.with_event(&uid, &event))
}

/// Drops what an upstream answered that has another address or account from now on: another index answers for itself, and an index
/// may show more to one account than to another. Which versions an index had, it had for both. Stored files keep their names and
/// digests.
async fn drop_documents(tx: &mut WriteTx, before: &UpstreamRow, after: &UpstreamRow) -> Result<()> {
    if (&before.url, &before.username) == (&after.url, &after.username) {
        return Ok(());
    }
    let tables: &[&str] = if before.url == after.url {
        known_versions::add_latest(tx, &after.uid, after.language, after.updated_at).await?;
        &["upstream_documents", "upstream_requirements"]
    } else {
        &["upstream_documents", "upstream_requirements", "upstream_known_versions"]
    };
    for table in tables {
        let sql = format!("DELETE FROM {table} WHERE upstream = $1");
        tx.execute(&sql, &[Value::from(after.uid.as_str())]).await?;
    }
    Ok(())
}

/// The sealed password that an upstream has from now on.
fn sealed(vault: &Vault, uid: &Uidp, before: Option<&UpstreamRow>, given: &own::PackageUpstream) -> Result<Vec<u8>> {
    let stored = before.filter(|before| !before.password.is_empty());
    let account = stored.map(|before| Account { url: &before.url, username: &before.username });
    let after = Account { url: &given.url, username: &given.username };
    let refused = |text| Err(Error::invalid_field("upstream.password", text));
    match (credentials::change(account, after, given.password.clone()), stored) {
        (Ok(Password::Gone), _) => Ok(Vec::new()),
        (Ok(Password::Given(password)), Some(before)) if before.password(vault)?.as_ref() == Some(&password) => {
            Ok(before.password.clone())
        }
        (Ok(Password::Given(password)), _) => Ok(vault.seal(&context(uid.as_str()), password.as_bytes())),
        (Ok(Password::Unchanged), before) => Ok(before.map(|before| before.password.clone()).unwrap_or_default()),
        (Err(WrongAccount::NoUsername), _) => refused("must be given together with upstream.username"),
        (Err(WrongAccount::NoPassword), _) => {
            refused("must be given together with upstream.username; leave both out for anonymous requests")
        }
        (Err(WrongAccount::Other), _) => refused(
            "must be given again together with another address or user name: the stored one is for those of before",
        ),
    }
}

async fn store(tx: &mut WriteTx, organization: &Uidp, row: &UpstreamRow) -> Result<()> {
    let sql = "INSERT INTO package_upstreams (uid, parent, ecosystem, name, url, username, password, rank,
                                              created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
               ON CONFLICT (uid) DO UPDATE SET url = excluded.url, username = excluded.username,
                 password = excluded.password, rank = excluded.rank, updated_at = excluded.updated_at";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(organization.as_str()),
        Value::Int(row.language.number()),
        Value::from(&row.name),
        Value::from(&row.url),
        Value::from(&row.username),
        Value::from(&row.password),
        Value::Int(row.position),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn delete(tx: &mut WriteTx, call: &Authorized<own::DeletePackageUpstreamRequest>) -> Result<Changed<()>> {
    let organization = require_organization(tx, call).await?;
    let request = call.request();
    let all = of_organization(tx, organization.as_str()).await?;
    let before = all.into_iter().find(|row| row.name == request.name);
    let before = before.ok_or_else(|| Error::not_found(PACKAGE_UPSTREAM, &request.name))?;
    let sql = "UPDATE package_upstreams SET deleted_at = $2, password = $3 WHERE uid = $1";
    let no_password: &[u8] = &[];
    let params = [Value::from(before.uid.as_str()), Value::Int(call.now()), Value::from(no_password)];
    tx.execute(sql, &params).await?;
    let shown = before.shown();
    let changed = Changed::one(PACKAGE_UPSTREAM, &before.uid, Some(&shown), None::<&own::PackageUpstream>, ());
    Ok(changed.with_event(&before.uid, request))
}

/// Removes some files of a deleted upstream, or its last rows. False if there is nothing to remove.
pub(super) async fn remove_some(tx: &mut WriteTx) -> Result<bool> {
    let sql = "SELECT uid FROM package_upstreams WHERE deleted_at IS NOT NULL ORDER BY deleted_at LIMIT 1";
    let found = tx.query_opt(sql, &[], |row| row.text(0).map_err(Error::from)).await?;
    let Some(uid) = found.map(|uid| stored(&uid)).transpose()? else { return Ok(false) };
    if package_files::unlink_some(tx, &uid, AT_ONCE).await? > 0 {
        return Ok(true);
    }
    for table in ["upstream_files", "upstream_documents", "upstream_known_versions", "upstream_requirements"] {
        let sql = format!(
            "DELETE FROM {table} WHERE upstream = $1 AND package IN
               (SELECT package FROM {table} WHERE upstream = $1 ORDER BY package LIMIT $2)"
        );
        if tx.execute(&sql, &[Value::from(uid.as_str()), Value::Int(AT_ONCE)]).await? > 0 {
            return Ok(true);
        }
    }
    tx.execute("DELETE FROM package_upstreams WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_without_an_account() {
        for good in ["https://pypi.org/simple/", "https://a.example:8443/x", "http://127.0.0.1:80/", "http://[::1]/"] {
            assert_eq!(validate_address(good), Ok(()), "{good}");
        }
        for bad in [
            "",
            "pypi.org",
            "http://pypi.org/simple/",
            "http://10.0.0.1/",
            "ftp://127.0.0.1/",
            "https://me@a.example/",
            "https://a.example/?x",
            "https://a.example/#x",
        ] {
            assert!(validate_address(bad).is_err(), "{bad}");
        }
    }
}
