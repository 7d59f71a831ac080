//! Invitations: a code lets anyone who presents it join a group with a role.
//!
//! The code is shown once and not stored. The row decides what it is good for.

mod code;
mod input;
mod redeem;

use std::collections::HashMap;

use bowline_contract::Contract;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::group_invites_service::{
    CreateGroupInvite, DeleteGroupInvite, GetGroupInvite, ListGroupInvites,
};
use bowline_core::{CapabilitySet, Error, Micros, Result, Uidp};
use bowline_pipeline::{
    Authorized, Change, Changed, Direction, Handlers, Narrowing, ResourceSnapshot, SortKey, handler,
};
use bowline_resources::kinds::GROUP_INVITE;
use bowline_resources::list::{self, BY_CREATED, BY_UID, Filter, Listed, Table, timestamp};
use bowline_resources::references;
use bowline_store::{ReadTx, Row, Value, WriteTx};

pub(crate) use code::code;
pub use code::{InviteCode, read_code};
pub(crate) use input::{InviteInput, V1, V2, violations};
pub use redeem::{Redeemed, Redeemer, redeem};

use super::role_bindings::{promise, readable_roles};
use super::roles::RoleRow;
use crate::access::load_grants;
use crate::oidc::narrowing;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetGroupInvite>(handler!(get))
        .read::<ListGroupInvites>(handler!(list))
        .validate::<CreateGroupInvite>(|request| violations(&input_v2(request), &V2))
        .write::<CreateGroupInvite>(handler!(create_v2))
        .write::<DeleteGroupInvite>(handler!(delete))
}

pub(crate) const TABLE: Table = Table {
    name: "group_invites",
    columns: "uid, role, email, key_id, single_use, inviter, expires_at, used_at, created_at, promised, narrowing",
    orders: &[BY_UID, BY_CREATED],
};

/// An invitation as it is stored; its group is its parent.
#[derive(Clone, Debug)]
pub(crate) struct InviteRow {
    pub(crate) uid: Uidp,
    pub(crate) role: String,
    /// The only address that may accept, its ASCII letters in lower case; empty for any.
    pub(crate) email: String,
    pub(crate) key_id: String,
    pub(crate) single_use: bool,
    pub(crate) inviter: String,
    /// Capabilities of the role when the invitation was made; absent in invitations from before this was
    /// stored.
    pub(crate) promised: Option<CapabilitySet>,
    /// Narrowing of the inviter's token.
    pub(crate) narrowing: Narrowing,
    pub(crate) expires_at: Micros,
    pub(crate) used_at: Option<Micros>,
    pub(crate) created_at: Micros,
}

impl Listed for InviteRow {
    fn read(row: &Row<'_>) -> Result<InviteRow> {
        let damaged = || Error::internal("an invitation promises a damaged capability set");
        Ok(InviteRow {
            uid: list::stored_uid(row, &TABLE)?,
            role: row.text(1)?,
            email: row.text(2)?,
            key_id: row.text(3)?,
            single_use: row.bool(4)?,
            inviter: row.text(5)?,
            expires_at: row.int(6)?,
            used_at: row.opt_int(7)?,
            created_at: row.int(8)?,
            promised: row
                .opt_bytes(9)?
                .map(|bytes| CapabilitySet::from_bytes(&bytes).ok_or_else(damaged))
                .transpose()?,
            narrowing: narrowing::from_text(&row.text(10)?)?,
        })
    }

    fn uid(&self) -> &str {
        self.uid.as_str()
    }

    fn sort_key(&self, _column: &str) -> SortKey {
        SortKey::Int(self.created_at)
    }
}

impl InviteRow {
    pub(crate) fn group(&self) -> &str {
        self.uid.parent_str()
    }

    /// The invitation as the audit log has it: without its code, and with nothing but a UIDP for its role.
    pub(crate) fn to_v2(&self) -> v2::GroupInvite {
        v2::GroupInvite {
            uid: self.uid.as_str().into(),
            role_uid: self.role.clone(),
            role: None,
            email: self.email.clone(),
            ttl: None,
            expiration_time: timestamp(self.expires_at),
            single_use: self.single_use,
            code: String::new(),
            key_id: self.key_id.clone(),
            create_time: timestamp(self.created_at),
        }
    }

    fn filled(&self, contract: &Contract, roles: &HashMap<String, RoleRow>) -> v2::GroupInvite {
        let role = roles.get(&self.role).map(|role| v2::GroupInviteRole {
            uid: self.role.clone(),
            name: role.name.clone(),
            description: role.description.clone(),
            capabilities: contract.capabilities().numbers(&role.capabilities),
        });
        v2::GroupInvite { role, ..self.to_v2() }
    }
}

pub(crate) async fn find(tx: &mut ReadTx, uid: &Uidp) -> Result<Option<InviteRow>> {
    let sql = format!("SELECT {} FROM group_invites WHERE uid = $1", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(uid.as_str())], InviteRow::read).await
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<InviteRow> {
    find(tx, uid).await?.ok_or_else(|| Error::not_found(GROUP_INVITE, uid.as_str()))
}

/// The invitations with their roles filled in as far as the caller may read them.
async fn filled<T>(tx: &mut ReadTx, call: &Authorized<T>, rows: &[InviteRow]) -> Result<Vec<v2::GroupInvite>> {
    let roles = readable_roles(tx, call, rows.iter().map(|row| row.role.as_str())).await?;
    Ok(rows.iter().map(|row| row.filled(call.contract(), &roles)).collect())
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetGroupInviteRequest>) -> Result<v2::GroupInvite> {
    let row = require(tx, call.require_scope()?).await?;
    let roles = readable_roles(tx, call, std::iter::once(row.role.as_str())).await?;
    Ok(row.filled(call.contract(), &roles))
}

const DEFAULT_ORDER: (usize, Direction) = (1, Direction::Descending);

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListGroupInvitesRequest>) -> Result<v2::ListGroupInvitesResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if !request.key_id.is_empty() {
        selection.filters.push(Filter { column: "key_id", value: Value::from(&request.key_id) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, InviteRow>(tx, call, &TABLE, &selection, &page, DEFAULT_ORDER).await?;
    Ok(v2::ListGroupInvitesResponse {
        group_invites: filled(tx, call, &listing.items).await?,
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

fn input_v2(request: &v2::CreateGroupInviteRequest) -> InviteInput {
    let invite = request.group_invite.clone().unwrap_or_default();
    InviteInput { role: invite.role_uid, email: invite.email, ttl: invite.ttl, single_use: invite.single_use }
}

async fn create_v2(
    tx: &mut WriteTx,
    call: &Authorized<v2::CreateGroupInviteRequest>,
) -> Result<Changed<v2::GroupInvite>> {
    let group = references::require_scope(tx, call).await?;
    let changed = create(tx, call, &group, input_v2(call.request()), V2.role).await?;
    let roles = readable_roles(tx, call, std::iter::once(changed.response.role.as_str())).await?;
    Ok(changed.map(|row| v2::GroupInvite { code: code(call.vault(), &row), ..row.filled(call.contract(), &roles) }))
}

/// Creates an invitation into a group. `role_field` is what the caller calls the role.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    group: &Uidp,
    input: InviteInput,
    role_field: &str,
) -> Result<Changed<InviteRow>> {
    let promised = promise(tx, call, group, &input.role, role_field).await?;
    require_lasting(tx, call, group, &promised).await?;
    let row = InviteRow {
        uid: call.new_child(group),
        email: input.email.to_ascii_lowercase(),
        key_id: bowline_core::hex(&call.draw()[..16]),
        single_use: input.single_use,
        inviter: call.principal().subject().into(),
        promised: Some(promised),
        narrowing: call.principal().token().map(|token| token.narrowing.clone()).unwrap_or_default(),
        expires_at: call.now() + input.lasts()?,
        used_at: None,
        created_at: call.now(),
        role: input.role,
    };
    insert(tx, &row).await?;
    let event = v1::GroupInviteRequest {
        group: group.as_str().into(),
        ttl: input.ttl,
        role: row.role.clone(),
        email: row.email.clone(),
        single_use: row.single_use,
    };
    Ok(Changed::one(GROUP_INVITE, &row.uid, None, Some(&row.to_v2()), row.clone()).with_event(&row.uid, &event))
}

/// Rejects an inviter who holds the role only while signed in: the invitation could not be accepted
/// afterwards.
async fn require_lasting<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    group: &Uidp,
    promised: &CapabilitySet,
) -> Result<()> {
    let lasting = load_grants(tx, call.principal().subject(), None).await?;
    if lasting.is_some_and(|grants| grants.allows(group.as_str(), promised)) {
        return Ok(());
    }
    Err(Error::permission_denied(
        "Permission denied: an invitation needs an inviter who holds its role by a role binding; groups of your \
         identity provider give it to you while you are signed in only",
    ))
}

async fn insert(tx: &mut WriteTx, row: &InviteRow) -> Result<()> {
    let sql = "INSERT INTO group_invites (uid, parent, org, role, email, key_id, single_use, inviter, expires_at, used_at, created_at,
                                          promised, narrowing)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
    let promised = row.promised.map(|set| set.to_bytes());
    let narrowing = narrowing::to_text(&row.narrowing);
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.group()),
        Value::from(row.uid.root_str()),
        Value::from(&row.role),
        Value::from(&row.email),
        Value::from(&row.key_id),
        Value::Bool(row.single_use),
        Value::from(&row.inviter),
        Value::Int(row.expires_at),
        Value::from(row.used_at),
        Value::Int(row.created_at),
        Value::OptBytes(promised.as_ref().map(<[u8; 32]>::as_slice)),
        Value::from(&narrowing),
    ];
    tx.execute(sql, &params).await?;
    list::count(tx, &TABLE, &row.uid, 1).await
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteGroupInviteRequest>) -> Result<Changed<()>> {
    remove(tx, call.require_scope()?).await
}

pub(crate) async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<Changed<()>> {
    let before = require(tx, uid).await?;
    delete_row(tx, uid).await?;
    let event = v1::DeleteGroupInviteRequest { id: uid.as_str().into() };
    Ok(Changed::one(GROUP_INVITE, uid, Some(&before.to_v2()), None, ()).with_event(uid, &event))
}

async fn delete_row(tx: &mut WriteTx, uid: &Uidp) -> Result<()> {
    tx.execute("DELETE FROM group_invites WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await
}

/// Deletes all invitations of a group in batches; each becomes an entry of the audit log.
pub(crate) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<Vec<Change>> {
    let sql = format!("SELECT {} FROM group_invites WHERE parent = $1 ORDER BY uid LIMIT 500", TABLE.columns);
    let mut changes = Vec::new();
    loop {
        let found = tx.query(&sql, &[Value::from(group.as_str())], InviteRow::read).await?;
        if found.is_empty() {
            return Ok(changes);
        }
        for row in found {
            delete_row(tx, &row.uid).await?;
            let before = Some(ResourceSnapshot::of(&row.to_v2()));
            changes.push(Change { kind: GROUP_INVITE, uid: row.uid.as_str().into(), before, after: None });
        }
    }
}
