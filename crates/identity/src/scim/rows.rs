//! Users as they are stored.

use bowline_authn::crypto::sha256;
use bowline_core::{Error, Micros, Uidp, hex};
use bowline_pipeline::ResourceSnapshot;
use bowline_store::{ErrorKind, ReadTx, Row, Sql, Value, WriteTx};
use prost::Message as _;
use prost_types::value::Kind;
use serde_json::{Map, Value as Json};

use super::attributes::Attributes;
use super::filter::Condition;
use super::refusal::{Refusal, Result, ScimError};

pub(super) const COLUMNS: &str = "uid, external_id, user_name, person, active, resource, created_at, updated_at";

#[derive(Clone, Debug, PartialEq)]
pub(super) struct UserRow {
    pub(super) uid: Uidp,
    pub(super) external_id: String,
    /// The text, in lower case.
    pub(super) user_name: String,
    /// UIDP of the person, `''` until it is known.
    pub(super) person: String,
    pub(super) active: bool,
    pub(super) attributes: Map<String, Json>,
    pub(super) created_at: Micros,
    pub(super) updated_at: Micros,
}

impl UserRow {
    pub(super) fn read(row: &Row<'_>) -> Result<UserRow> {
        let uid = row.text(0)?;
        let damaged = || ScimError::Failed(Error::internal(format!("scim_users holds the damaged row {uid}")));
        let Ok(Json::Object(attributes)) = serde_json::from_str(&row.text(5)?) else { return Err(damaged()) };
        Ok(UserRow {
            uid: Uidp::parse(&uid).map_err(|_| damaged())?,
            external_id: row.text(1)?,
            user_name: row.text(2)?,
            person: row.text(3)?,
            active: row.bool(4)?,
            attributes,
            created_at: row.int(6)?,
            updated_at: row.int(7)?,
        })
    }

    /// Takes over what a client said.
    pub(super) fn set(&mut self, mut attributes: Attributes, person: String) {
        // No one is let in again by leaving the word out.
        let active = attributes.active.unwrap_or(self.active);
        attributes.set_active(active);
        self.user_name = attributes.user_name.to_lowercase();
        self.external_id = attributes.external_id;
        self.person = person;
        self.active = active;
        self.attributes = attributes.all;
    }

    /// The SCIM id: the last segment of the UIDP.
    pub(super) fn id(&self) -> &str {
        let uid = self.uid.as_str();
        uid.rsplit_once('/').map_or(uid, |(_, id)| id)
    }

    /// The version of the resource, as an entity tag.
    pub(super) fn version(&self) -> String {
        let json = Json::Object(self.attributes.clone()).to_string();
        format!("W/\"{}\"", hex(&sha256(json.as_bytes())[..8]))
    }

    /// The snapshot for the audit log: the directory's attributes, and the matched person.
    pub(super) fn snapshot(&self) -> ResourceSnapshot {
        let mut members = self.attributes.clone();
        members.insert("id".into(), self.id().into());
        if !self.person.is_empty() {
            members.insert("person".into(), self.person.as_str().into());
        }
        ResourceSnapshot { type_name: "google.protobuf.Struct".into(), bytes: structure(&members).encode_to_vec() }
    }
}

fn structure(members: &Map<String, Json>) -> prost_types::Struct {
    prost_types::Struct { fields: members.iter().map(|(name, value)| (name.clone(), protobuf(value))).collect() }
}

fn protobuf(value: &Json) -> prost_types::Value {
    let kind = match value {
        Json::Null => Kind::NullValue(0),
        Json::Bool(flag) => Kind::BoolValue(*flag),
        Json::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Json::String(text) => Kind::StringValue(text.clone()),
        Json::Array(list) => Kind::ListValue(prost_types::ListValue { values: list.iter().map(protobuf).collect() }),
        Json::Object(members) => Kind::StructValue(structure(members)),
    };
    prost_types::Value { kind: Some(kind) }
}

/// The user of this UIDP.
pub(super) async fn find(tx: &mut ReadTx, uid: &str) -> Result<Option<UserRow>> {
    let sql = format!("SELECT {COLUMNS} FROM scim_users WHERE uid = $1");
    tx.query_opt(&sql, &[Value::from(uid)], UserRow::read).await
}

pub(super) async fn insert(tx: &mut WriteTx, row: &UserRow) -> Result<()> {
    let sql = "INSERT INTO scim_users
                 (uid, provider, org, external_id, user_name, person, active, resource, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) ON CONFLICT DO NOTHING";
    let resource = Json::Object(row.attributes.clone()).to_string();
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(row.uid.parent_str()),
        Value::from(row.uid.root_str()),
        Value::from(&row.external_id),
        Value::from(&row.user_name),
        Value::from(&row.person),
        Value::from(row.active),
        Value::from(&resource),
        Value::from(row.created_at),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(taken(row));
    }
    Ok(())
}

pub(super) async fn update(tx: &mut WriteTx, row: &UserRow) -> Result<()> {
    let sql = "SELECT uid FROM scim_users
               WHERE provider = $1 AND (user_name = $2 OR external_id = $3) AND uid <> $4 LIMIT 1";
    let params = [
        Value::from(row.uid.parent_str()),
        Value::from(&row.user_name),
        Value::from(&row.external_id),
        Value::from(row.uid.as_str()),
    ];
    if tx.query_opt(sql, &params, |found| found.text(0)).await?.is_some() {
        return Err(taken(row));
    }
    let sql = "UPDATE scim_users
               SET external_id = $2, user_name = $3, person = $4, active = $5, resource = $6, updated_at = $7
               WHERE uid = $1";
    let resource = Json::Object(row.attributes.clone()).to_string();
    let params = [
        Value::from(row.uid.as_str()),
        Value::from(&row.external_id),
        Value::from(&row.user_name),
        Value::from(&row.person),
        Value::from(row.active),
        Value::from(&resource),
        Value::from(row.updated_at),
    ];
    // Another transaction may have taken the name since.
    tx.execute(sql, &params).await.map_err(|error| match error.kind() {
        ErrorKind::UniqueViolation => taken(row),
        _ => error.into(),
    })?;
    Ok(())
}

fn taken(row: &UserRow) -> ScimError {
    let detail =
        format!("the userName {:?} or the externalId {:?} belongs to another user", row.user_name, row.external_id);
    ScimError::refuse(Refusal::Uniqueness, detail)
}

/// Selects from the users of a provider for whom all of these hold; `uids` has the UIDPs that conditions on ids mean.
pub(super) fn select<'a>(columns: &str, provider: &'a str, conditions: &'a [Condition], uids: &'a [String]) -> Sql<'a> {
    let mut sql = Sql::new(format!("SELECT {columns} FROM scim_users"));
    sql.bind(" WHERE provider = ", provider);
    let mut uids = uids.iter();
    for condition in conditions {
        match condition {
            Condition::UserName(name) => sql.bind(" AND user_name = ", name),
            Condition::ExternalId(id) => sql.bind(" AND external_id = ", id),
            Condition::Id(_) => sql.bind(" AND uid = ", uids.next().map_or("", String::as_str)),
            Condition::Active(active) => sql.bind(" AND active = ", *active),
            Condition::Email(_) => continue,
        };
    }
    sql
}
