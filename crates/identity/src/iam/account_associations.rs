//! Account associations: what belongs to a group at cloud providers and elsewhere. A group has at most one, and
//! it goes by the group's UIDP.

mod check;
mod merge;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::account_associations_service::{
    CheckAccountAssociation, CreateAccountAssociation, DeleteAccountAssociation, GetAccountAssociation,
    ListAccountAssociations, UpdateAccountAssociation,
};
use bowline_core::{Error, FieldViolation, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, EventBody, Handlers, Mask, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::ACCOUNT_ASSOCIATION;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, Filter, Listed, Order, Table, timestamp};
use bowline_resources::references;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use prost::{Message, Name};

pub(crate) use check::{Provider, standing};

use super::account_associations_v1;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetAccountAssociation>(handler!(get))
        .read::<ListAccountAssociations>(handler!(list))
        .write::<CreateAccountAssociation>(handler!(create_v2))
        .write::<UpdateAccountAssociation>(handler!(update_v2))
        .write::<DeleteAccountAssociation>(handler!(delete))
        .read::<CheckAccountAssociation>(handler!(check::check_v2))
}

/// The UIDP is the group's.
const BY_GROUP: Order = Order { names: &["group", "uid", "id"], column: "uid" };

pub(crate) const TABLE: Table = Table {
    name: "account_associations",
    columns: "uid, name, description, spec, created_at, updated_at",
    orders: &[BY_GROUP, BY_NAME, BY_CREATED],
};

/// An association as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct AssociationRow {
    /// UIDP of the group.
    pub(crate) uid: Uidp,
    /// What the caller said: name, description and the accounts.
    pub(crate) given: v2::AccountAssociation,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

impl Listed for AssociationRow {
    fn read(row: &Row<'_>) -> Result<AssociationRow> {
        let uid = row.text(0)?;
        let damaged = |what: &str| Error::internal(format!("the account association {uid} has a damaged {what}"));
        let accounts =
            v2::AccountAssociation::decode(row.bytes(3)?.as_slice()).map_err(|error| damaged(&error.to_string()))?;
        Ok(AssociationRow {
            uid: Uidp::parse(&uid).map_err(|_| damaged("uid"))?,
            given: v2::AccountAssociation { name: row.text(1)?, description: row.text(2)?, ..accounts },
            created_at: row.int(4)?,
            updated_at: row.int(5)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "name" => SortKey::Text(self.given.name.clone()),
            _ => SortKey::Int(self.created_at),
        }
    }
}

impl AssociationRow {
    pub(crate) fn to_v2(&self) -> v2::AccountAssociation {
        v2::AccountAssociation {
            uid: self.uid.as_str().into(),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            ..self.given.clone()
        }
    }

    /// The accounts alone, as the column `spec` has them.
    fn spec(&self) -> Vec<u8> {
        accounts(v2::AccountAssociation { name: String::new(), description: String::new(), ..self.given.clone() })
            .encode_to_vec()
    }
}

/// An association without what the server sets.
fn accounts(association: v2::AccountAssociation) -> v2::AccountAssociation {
    v2::AccountAssociation { uid: String::new(), create_time: None, update_time: None, ..association }
}

/// The association of this group.
pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<AssociationRow>> {
    let sql = format!("SELECT {} FROM account_associations WHERE uid = $1", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(uid.as_str())], AssociationRow::read).await
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<AssociationRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(ACCOUNT_ASSOCIATION, uid.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetAccountAssociationRequest>) -> Result<v2::AccountAssociation> {
    Ok(require(tx, call.require_scope()?).await?.to_v2())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<v2::ListAccountAssociationsRequest>,
) -> Result<v2::ListAccountAssociationsResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    let page = list::paging(request);
    let default = (0, Direction::Ascending);
    let listing = list::page::<_, AssociationRow>(tx, call, &TABLE, &selection, &page, default).await?;
    Ok(v2::ListAccountAssociationsResponse {
        account_associations: listing.items.iter().map(AssociationRow::to_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateAccountAssociationRequest>,
) -> Result<Changed<v2::AccountAssociation>> {
    let given = call.request().account_association.clone().unwrap_or_default();
    Ok(create(tx, call, given).await?.map(|row| row.to_v2()))
}

/// Creates the association of the checked group.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    given: v2::AccountAssociation,
) -> Result<Changed<AssociationRow>> {
    let uid = references::require_scope(tx, call).await?;
    let given = accounts(given);
    validate(call, &given)?;
    let row = AssociationRow { uid, given, created_at: call.now(), updated_at: call.now() };
    insert(tx, &row).await?;
    let event = rendered(&row.uid, &account_associations_v1::of(&row));
    let changed = Changed::one(ACCOUNT_ASSOCIATION, &row.uid, None, Some(&row.to_v2()), row.clone());
    Ok(Changed { event: Some(event), ..changed })
}

/// Checks an association as v2 does a new one, whichever version and mask it came by: what is
/// stored is complete.
fn validate<T>(call: &Authorized<T>, given: &v2::AccountAssociation) -> Result<()> {
    let rules = call.contract().field_rules();
    let violations = rules.validate(&v2::AccountAssociation::full_name(), &given.encode_to_vec(), None, None);
    let violations: Vec<FieldViolation> = violations
        .list
        .into_iter()
        .map(|wrong| FieldViolation { field: wrong.field, description: wrong.description })
        .collect();
    if violations.is_empty() { Ok(()) } else { Err(Error::invalid(violations)) }
}

/// The event is about the group itself, so that its subscriptions see it.
fn rendered<M: Message + Name>(group: &Uidp, request: &M) -> EventBody {
    EventBody {
        subject: group.as_str().into(),
        group: group.as_str().into(),
        body: ResourceSnapshot::of(request),
        extensions: Vec::new(),
    }
}

async fn insert(tx: &mut WriteTx, row: &AssociationRow) -> Result<()> {
    let sql = "INSERT INTO account_associations (uid, parent, org, name, description, spec, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    let spec = row.spec();
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.given.name),
        Value::from(&row.given.description),
        Value::from(&spec),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(ACCOUNT_ASSOCIATION, row.uid.as_str()));
    }
    list::count(tx, &TABLE, &row.uid, 1).await
}

async fn update_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::UpdateAccountAssociationRequest>,
) -> Result<Changed<v2::AccountAssociation>> {
    let given = call.request().account_association.clone().unwrap_or_default();
    Ok(update(tx, call, &call.mask(), given).await?.map(|row| row.to_v2()))
}

/// Changes what the mask covers: a provider's part as a whole, or parts of it.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    given: v2::AccountAssociation,
) -> Result<Changed<AssociationRow>> {
    let before = require(tx, call.require_scope()?).await?;
    let mut after = before.clone();
    after.given = merge::merged(&before.given, &accounts(given), mask, call.contract().pool())?;
    validate(call, &after.given)?;
    after.updated_at = call.now();
    save(tx, &after).await?;
    let event = rendered(&after.uid, &account_associations_v1::of(&after));
    let (old, new) = (before.to_v2(), after.to_v2());
    let changed = Changed::one(ACCOUNT_ASSOCIATION, &after.uid, Some(&old), Some(&new), after.clone());
    Ok(Changed { event: Some(event), ..changed })
}

async fn save(tx: &mut WriteTx, row: &AssociationRow) -> Result<()> {
    let sql = "UPDATE account_associations SET name = $2, description = $3, spec = $4, updated_at = $5 WHERE uid = $1";
    let spec = row.spec();
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.given.name),
        Value::from(&row.given.description),
        Value::from(&spec),
        Value::Int(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteAccountAssociationRequest>) -> Result<Changed<()>> {
    remove(tx, call.require_scope()?).await
}

/// Deletes the association of a group; succeeds if there is none.
pub(crate) async fn remove(tx: &mut WriteTx, group: &Uidp) -> Result<Changed<()>> {
    let changes = delete_of_group(tx, group).await?;
    if changes.is_empty() {
        return Ok(Changed::nothing(()));
    }
    let event = rendered(group, &v1::DeleteAccountAssociationsRequest { group: group.as_str().into() });
    Ok(Changed { event: Some(event), ..Changed::many(changes, ()) })
}

/// Deletes the association of a group, if it has one.
pub(crate) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let Some(before) = find(tx, group).await? else {
        return Ok(Vec::new());
    };
    tx.execute("DELETE FROM account_associations WHERE uid = $1", &[Value::from(group.as_str())]).await?;
    list::count(tx, &TABLE, group, -1).await?;
    let before = Some(ResourceSnapshot::of(&before.to_v2()));
    Ok(vec![Change { kind: ACCOUNT_ASSOCIATION, uid: group.as_str().into(), before, after: None }])
}
