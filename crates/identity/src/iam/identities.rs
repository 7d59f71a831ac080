//! Identities: who can act. People are roots of their own; machines live in groups.

mod row;

use bowline_authn::crypto::sha256;
use bowline_contract::v1::common::UidpFilter;
use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::identities_service::{
    CreateIdentity, DeleteIdentity, GetIdentity, ListIdentities, LookupIdentity, UpdateIdentity,
};
use bowline_core::{CapabilitySet, Error, Result, UidRange, Uidp, merge};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, Principal, handler};
use bowline_resources::kinds::IDENTITY;
use bowline_resources::list::{self, Filter, Listed};
use bowline_resources::patterns::Validation;
use bowline_resources::references;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx, tables};

pub(crate) use row::{IdentityInput, IdentityRow, TABLE};

use super::relationship::{self, Spelling, V2};
use super::{identities_v1, role_bindings};
use crate::access::iam_changed;
use crate::operators;
use crate::people::sessions;
use crate::tables::TABLES;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetIdentity>(handler!(get))
        .read::<ListIdentities>(handler!(list))
        .read::<LookupIdentity>(|_tx, call| Box::pin(async move { Ok(lookup(call.request())) }))
        .validate_costly::<CreateIdentity>(|request| {
            let given = request.identity.as_ref().and_then(|identity| identity.relationship.as_ref());
            relationship::violations(given, &V2)
        })
        .write::<CreateIdentity>(handler!(create_v2))
        .write::<UpdateIdentity>(handler!(update_v2))
        .write::<DeleteIdentity>(handler!(delete))
}

/// The UIDP that a person has, or will have: the same whenever they come, so that roles can be bound before.
pub fn human_uid(issuer: &str, subject: &str) -> Uidp {
    let digest = sha256(format!("bowline identity\n{issuer}\n{subject}").as_bytes());
    Uidp::root_from(std::array::from_fn(|i| digest[i]))
}

/// The identity of this UIDP.
pub(crate) async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<IdentityRow>> {
    let sql = format!("SELECT {} FROM identities WHERE uid = $1", TABLE.columns);
    tx.query_opt(&sql, &[Value::from(uid)], IdentityRow::read).await
}

/// Enough to see that an issuer and subject belong to several.
const CANDIDATES: i64 = 20;

/// People with exactly this issuer and subject, and claim matches of the organization with both.
pub(crate) async fn find_by_subject(
    tx: &mut ReadTx,
    issuer: &str,
    subject: &str,
    organization: Option<&str>,
) -> Result<Vec<IdentityRow>> {
    // Patterns are stored as ''.
    if issuer.is_empty() || subject.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {} FROM identities
         WHERE issuer = $1 AND subject = $2 AND (relationship_type = 0 OR (relationship_type = 1 AND org = $3))
         ORDER BY relationship_type, uid LIMIT $4",
        TABLE.columns
    );
    // Every claim match lives in an organization, so the empty name finds none.
    let organization = Value::from(organization.unwrap_or_default());
    let params = [Value::from(issuer), Value::from(subject), organization, Value::Int(CANDIDATES)];
    tx.query(&sql, &params, IdentityRow::read).await
}

/// Claim matches in a range that trust exactly this issuer, and this subject, or a pattern if the subject is empty. Only those
/// that have a role at one of some groups, in the order of their UIDPs, `limit` at most.
pub(crate) async fn find_with_roles(
    tx: &mut ReadTx,
    within: &UidRange,
    (issuer, subject): (&str, &str),
    groups: &[&str],
    limit: i64,
) -> Result<Vec<IdentityRow>> {
    // Patterns are stored as ''.
    let mut sql = Sql::new(format!("SELECT {} FROM identities WHERE relationship_type = 1", TABLE.columns));
    sql.bind(" AND issuer = ", issuer).bind(" AND subject = ", subject);
    sql.bind(" AND uid >= ", &within.lower).bind(" AND uid < ", &within.upper);
    sql.push(" AND EXISTS (SELECT 1 FROM role_bindings WHERE role_bindings.identity = identities.uid");
    sql.bind_list(" AND role_bindings.parent IN ", groups.iter().map(|group| Value::from(*group)));
    sql.bind(") ORDER BY uid LIMIT ", limit);
    tx.query(&sql.text, &sql.params, IdentityRow::read).await
}

/// Whether a person or a claim match has exactly this issuer.
pub(crate) async fn trusts_issuer_exactly(tx: &mut ReadTx, issuer: &str) -> Result<bool> {
    if issuer.is_empty() {
        return Ok(false);
    }
    let sql = "SELECT uid FROM identities WHERE issuer = $1 AND relationship_type IN (0, 1) LIMIT 1";
    let found = tx.query_opt(sql, &[Value::from(issuer)], |row| row.text(0).map_err(Error::from)).await?;
    Ok(found.is_some())
}

async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<IdentityRow> {
    find(tx, uid.as_str()).await?.ok_or_else(|| Error::not_found(IDENTITY, uid.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetIdentityRequest>) -> Result<v2::Identity> {
    require(tx, call.require_scope()?).await?.to_v2()
}

/// The scopes at which the caller may see identities. Callers may always read their own identity, so it is
/// included unless the request filters by the hierarchy.
pub(crate) fn visible<T>(call: &Authorized<T>, filter: Option<&UidpFilter>) -> Vec<UidRange> {
    let mut ranges = call.visible();
    let is_elsewhere = filter.is_some_and(|filter| {
        !(filter.descendants_of.is_empty() && filter.children_of.is_empty() && filter.ancestors_of.is_empty())
    });
    if !is_elsewhere {
        ranges.push(UidRange::single(call.principal().subject()));
    }
    merge(ranges)
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListIdentitiesRequest>) -> Result<v2::ListIdentitiesResponse> {
    let request = call.request();
    let visible = visible(call, request.uidp.as_ref());
    let mut selection = list::select(tx, call, visible, request.uidp.as_ref()).await?;
    if !request.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&request.name) });
    }
    if request.relationship_type != 0 {
        selection.filters.push(Filter { column: "relationship_type", value: Value::from(request.relationship_type) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, IdentityRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListIdentitiesResponse {
        identities: listing.items.iter().map(IdentityRow::to_v2).collect::<Result<_>>()?,
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

/// Computed, never looked up: it says nothing of who is registered.
fn lookup(request: &v2::LookupIdentityRequest) -> v2::LookupIdentityResponse {
    v2::LookupIdentityResponse { uid: human_uid(&request.issuer, &request.subject).into() }
}

async fn create_v2(tx: &mut WriteTx, call: &Authorized<v2::CreateIdentityRequest>) -> Result<Changed<v2::Identity>> {
    let identity = call.request().identity.clone().unwrap_or_default();
    answer(create(tx, call, IdentityInput::of(identity), &V2).await?)
}

fn answer(changed: Changed<IdentityRow>) -> Result<Changed<v2::Identity>> {
    let identity = changed.response.to_v2()?;
    Ok(changed.map(|_| identity))
}

/// Creates an identity in the checked group. It can do nothing until a role is bound to it.
pub(crate) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    input: IdentityInput,
    spelling: &Spelling,
) -> Result<Changed<IdentityRow>> {
    let group = references::require_scope(tx, call).await?;
    create_in(tx, call, &group, input, spelling).await
}

/// The same in a group that the method has checked itself.
pub(crate) async fn create_in<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    group: &Uidp,
    input: IdentityInput,
    spelling: &Spelling,
) -> Result<Changed<IdentityRow>> {
    let relationship =
        relationship::settle(input.relationship, None, call.now(), spelling, Validation::in_transaction())?;
    let mut row = IdentityRow {
        uid: call.new_child(group),
        name: input.name,
        description: input.description,
        email: String::new(),
        email_unverified: String::new(),
        company: input.company.unwrap_or_default(),
        relationship_type: 0,
        stored: Vec::new(),
        issuer: String::new(),
        subject: String::new(),
        expires_at: None,
        deactivated: false,
        last_seen_at: Some(call.now()),
        created_at: call.now(),
        updated_at: call.now(),
    };
    row.set_relationship(&relationship);
    insert(tx, &row).await?;
    let event =
        v1::CreateIdentityRequest { parent_id: group.as_str().into(), identity: Some(identities_v1::of(&row)?) };
    let uid = row.uid.clone();
    Ok(Changed::one(IDENTITY, &uid, None, Some(&row.to_v2()?), row).with_event(&uid, &event))
}

/// Stores a new identity: a machine, or a person who registers.
pub(crate) async fn insert(tx: &mut WriteTx, row: &IdentityRow) -> Result<()> {
    let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company, relationship_type,
                                       relationship, issuer, subject, expires_at, deactivated, last_seen_at, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17) ON CONFLICT DO NOTHING";
    // A person belongs to no organization.
    let org = if row.uid.is_root() { "" } else { row.uid.root_str() };
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(org),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::from(&row.email),
        Value::from(&row.email_unverified),
        Value::from(&row.company),
        Value::from(row.relationship_type),
        Value::from(&row.stored),
        Value::from(&row.issuer),
        Value::from(&row.subject),
        Value::from(row.expires_at),
        Value::Bool(row.deactivated),
        Value::from(row.last_seen_at),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(IDENTITY, row.uid.as_str()));
    }
    list::count(tx, &TABLE, &row.uid, 1).await?;
    iam_changed(tx).await
}

async fn update_v2(tx: &mut WriteTx, call: &Authorized<v2::UpdateIdentityRequest>) -> Result<Changed<v2::Identity>> {
    let identity = call.request().identity.clone().unwrap_or_default();
    answer(update(tx, call, &call.mask(), IdentityInput::of(identity), &V2).await?)
}

/// Changes what the mask covers.
pub(crate) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    input: IdentityInput,
    spelling: &Spelling,
) -> Result<Changed<IdentityRow>> {
    let before = require(tx, call.require_scope()?).await?;
    refuse_narrowed_self(call.principal(), &before.uid)?;
    let mut after = before.clone();
    if mask.covers("name") {
        after.name = input.name;
    }
    if mask.covers("description") {
        after.description = input.description;
    }
    if let Some(company) = input.company.filter(|_| mask.covers("company")) {
        after.company = company;
    }
    let stored = before.relationship()?;
    if let Some(chosen) = relationship::chosen(stored.as_ref(), mask, input.relationship, call.contract().pool())? {
        after.set_relationship(&relationship::settle(
            Some(chosen),
            stored.as_ref(),
            call.now(),
            spelling,
            Validation::in_transaction(),
        )?);
    }
    if after.stored != before.stored {
        require_what_it_may(tx, call, &before.uid).await?;
    }
    after.updated_at = call.now();
    save(tx, &after).await?;
    let event = identities_v1::of(&after)?;
    let uid = after.uid.clone();
    Ok(Changed::one(IDENTITY, &uid, Some(&before.to_v2()?), Some(&after.to_v2()?), after).with_event(&uid, &event))
}

/// Otherwise the holder of a narrowed token could come back with a whole one.
pub(crate) fn refuse_narrowed_self(principal: &Principal, uid: &Uidp) -> Result<()> {
    let narrowed = principal.token().is_some_and(|token| token.narrowing.is_narrow());
    if narrowed && principal.subject() == uid.as_str() {
        return Err(Error::permission_denied("Permission denied: a narrowed token cannot change its own identity"));
    }
    Ok(())
}

/// Anyone who changes how an identity is assumed can assume it, so they must hold what it holds, wherever it does.
async fn require_what_it_may<T>(tx: &mut ReadTx, call: &Authorized<T>, uid: &Uidp) -> Result<()> {
    let sql = "SELECT b.parent, r.capabilities FROM role_bindings b JOIN roles r ON r.uid = b.role
               WHERE b.identity = $1 ORDER BY b.parent, b.uid";
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bytes(1)?));
    for (group, bytes) in tx.query(sql, &[Value::from(uid.as_str())], read).await? {
        let capabilities = CapabilitySet::from_bytes(&bytes)
            .ok_or_else(|| Error::internal(format!("a role of {uid} has damaged capabilities")))?;
        call.require_all(&group, &capabilities)?;
    }
    Ok(())
}

async fn save(tx: &mut WriteTx, row: &IdentityRow) -> Result<()> {
    let sql =
        "UPDATE identities SET name = $2, description = $3, company = $4, relationship_type = $5, relationship = $6,
                                     issuer = $7, subject = $8, expires_at = $9, updated_at = $10
               WHERE uid = $1";
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::from(&row.company),
        Value::from(row.relationship_type),
        Value::from(&row.stored),
        Value::from(&row.issuer),
        Value::from(&row.subject),
        Value::from(row.expires_at),
        Value::Int(row.updated_at),
    ];
    tx.execute(sql, &params).await?;
    iam_changed(tx).await
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteIdentityRequest>) -> Result<Changed<()>> {
    remove(tx, call.require_scope()?).await
}

/// Deletes an identity and what was granted to it.
pub(crate) async fn remove(tx: &mut WriteTx, uid: &Uidp) -> Result<Changed<()>> {
    let before = require(tx, uid).await?;
    let bindings = role_bindings::delete_of_identity(tx, uid).await?;
    // Anyone who registers again has the same UIDP, and must not find old sessions alive.
    sessions::end_all_of(tx, uid).await?;
    let roles = operators::remove_if_there(tx, uid).await?;
    tables::delete_rows(tx, TABLES, TABLE.name, uid.as_str()).await?;
    tx.execute("DELETE FROM identities WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    iam_changed(tx).await?;
    let event = v1::DeleteIdentityRequest { id: uid.as_str().into() };
    Ok(Changed::one(IDENTITY, uid, Some(&before.to_v2()?), None, ())
        .along(bindings)
        .along(roles)
        .with_event(uid, &event))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_have_the_same_uid_every_time() {
        let uid = human_uid("https://accounts.google.com", "123");
        assert_eq!(uid, human_uid("https://accounts.google.com", "123"));
        assert!(uid.is_root());
        assert_ne!(uid, human_uid("https://accounts.google.com", "124"));
        assert_ne!(uid, human_uid("https://accounts.google.com1", "23"));
        let digest = sha256(b"bowline identity\nhttps://accounts.google.com\n123");
        assert_eq!(uid, Uidp::root_from(std::array::from_fn(|i| digest[i])));
    }
}
