//! Named operators: people of the operator's providers who have a role of an operator.

use bowline_contract::bowline::contract::v1::OperatorRole;
use bowline_contract::bowline::operator::v1;
use bowline_contract::bowline::operator::v1::rpc::operator::{GrantOperator, ListOperators, RevokeOperator};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, OPERATOR, handler};
use bowline_resources::kinds::IDENTITY;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Value, WriteTx};

use crate::access::iam_changed;

/// A named operator in the audit log, by the UIDP of the person.
pub(crate) const KIND: &str = "bowline.dev/Operator";

/// Named operators that there may be.
const MAX_OPERATORS: i64 = 1000;
/// Stored providers of the operator's that are listed.
const MAX_PROVIDERS: i64 = 1000;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListOperators>(handler!(list))
        .write::<GrantOperator>(handler!(grant))
        .write::<RevokeOperator>(handler!(revoke))
}

const SELECT: &str = "
SELECT o.identity, o.role, i.email, i.issuer, o.granted_by, o.granted_at
FROM operators o JOIN identities i ON i.uid = o.identity";

fn read(row: &Row<'_>) -> Result<v1::NamedOperator> {
    let role = row.text(1)?;
    let role = [OperatorRole::Viewer, OperatorRole::Admin].into_iter().find(|known| name(*known) == role);
    Ok(v1::NamedOperator {
        identity: row.text(0)?,
        role: role.unwrap_or(OperatorRole::Unspecified) as i32,
        email: row.text(2)?,
        issuer: row.text(3)?,
        granted_by: row.text(4)?,
        grant_time: timestamp(row.int(5)?),
    })
}

fn name(role: OperatorRole) -> &'static str {
    match role {
        OperatorRole::Unspecified => "",
        OperatorRole::Viewer => "operator.viewer",
        OperatorRole::Admin => "operator.admin",
    }
}

async fn list(tx: &mut ReadTx, _: &Authorized<v1::ListOperatorsRequest>) -> Result<v1::ListOperatorsResponse> {
    let sql = format!("{SELECT} ORDER BY o.identity LIMIT $1");
    Ok(v1::ListOperatorsResponse { operators: tx.query(&sql, &[Value::Int(MAX_OPERATORS)], read).await? })
}

async fn find(tx: &mut ReadTx, identity: &str) -> Result<Option<v1::NamedOperator>> {
    tx.query_opt(&format!("{SELECT} WHERE o.identity = $1"), &[Value::from(identity)], read).await
}

async fn grant(tx: &mut WriteTx, call: &Authorized<v1::GrantOperatorRequest>) -> Result<Changed<v1::NamedOperator>> {
    let request = call.request();
    require_person(tx, call, &request.identity).await?;
    let before = find(tx, &request.identity).await?;
    let role = request.role();
    if let Some(before) = before.clone().filter(|before| before.role() == role) {
        return Ok(Changed::nothing(before));
    }
    if before.is_none() {
        require_room(tx).await?;
    }
    let sql = "INSERT INTO operators (identity, role, granted_by, granted_at) VALUES ($1, $2, $3, $4)
               ON CONFLICT (identity) DO UPDATE SET role = excluded.role, granted_by = excluded.granted_by,
                 granted_at = excluded.granted_at";
    let params = [
        Value::from(&request.identity),
        Value::from(name(role)),
        Value::from(call.principal().subject()),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    iam_changed(tx).await?;
    let after = find(tx, &request.identity).await?;
    let after = after.ok_or_else(|| Error::internal("a named operator is not there after the grant"))?;
    let uid = Uidp::parse(&request.identity).map_err(Error::internal)?;
    Ok(Changed::one(KIND, &uid, before.as_ref(), Some(&after), after.clone()).with_event(&uid, request))
}

/// A person who is there, and whose issuer is that of a provider of the operator's.
async fn require_person(tx: &mut ReadTx, call: &Authorized<v1::GrantOperatorRequest>, identity: &str) -> Result<()> {
    let sql = "SELECT issuer, EXISTS (SELECT 1 FROM operator_providers p WHERE p.issuer = i.issuer), parent
               FROM identities i WHERE uid = $1";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bool(1)?, row.text(2)?));
    let row = tx.query_opt(sql, &[Value::from(identity)], read).await?;
    let Some((issuer, is_stored, parent)) = row else { return Err(Error::not_found(IDENTITY, identity)) };
    let is_person = parent.is_empty() && identity != OPERATOR && !identity.contains('/');
    if is_person && (is_stored || call.settings().operator_issuers.contains(&issuer)) {
        return Ok(());
    }
    let why = "an operator must be a person of an identity provider of the operator's: add the provider, and have the person sign in";
    Err(Error::precondition(IDENTITY, identity, why))
}

async fn require_room(tx: &mut ReadTx) -> Result<()> {
    let sql = "SELECT count(*) FROM operators";
    let count = tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await?.unwrap_or(0);
    if count < MAX_OPERATORS {
        return Ok(());
    }
    Err(Error::quota(OPERATOR, format!("a server has {MAX_OPERATORS} named operators at most; revoke some first")))
}

async fn revoke(
    tx: &mut WriteTx,
    call: &Authorized<v1::RevokeOperatorRequest>,
) -> Result<Changed<v1::RevokeOperatorResponse>> {
    let request = call.request();
    let uid = Uidp::parse(&request.identity).map_err(Error::internal)?;
    let changes = remove_if_there(tx, &uid).await?;
    if changes.is_empty() {
        return Ok(Changed::nothing(v1::RevokeOperatorResponse {}));
    }
    Ok(Changed::many(changes, v1::RevokeOperatorResponse {}).with_event(&uid, request))
}

/// Takes the role of an operator from a person, who may have none.
pub(crate) async fn remove_if_there(tx: &mut WriteTx, person: &Uidp) -> Result<Vec<Change>> {
    let Some(before) = find(tx, person.as_str()).await? else { return Ok(Vec::new()) };
    tx.execute("DELETE FROM operators WHERE identity = $1", &[Value::from(person.as_str())]).await?;
    iam_changed(tx).await?;
    Ok(Changed::one(KIND, person, Some(&before), None, ()).changes)
}

/// The stored providers of the operator's, without their secrets.
///
/// # Errors
/// The database is unavailable.
pub async fn stored_providers(tx: &mut ReadTx) -> Result<Vec<v1::OperatorProvider>> {
    let sql = "SELECT id, label, issuer, client_id, scopes, length(client_secret) > 0 FROM operator_providers
               ORDER BY id LIMIT $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(v1::OperatorProvider {
            id: row.text(0)?,
            label: row.text(1)?,
            issuer: row.text(2)?,
            client_id: row.text(3)?,
            scopes: serde_json::from_str(&row.text(4)?).map_err(Error::internal)?,
            has_secret: row.bool(5)?,
            configured: false,
        })
    };
    tx.query(sql, &[Value::Int(MAX_PROVIDERS)], read).await
}
