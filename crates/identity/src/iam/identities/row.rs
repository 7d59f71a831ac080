//! An identity as it is stored, and what a caller may say of one.

use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity::Relationship;
use bowline_core::{Micros, Result, Uidp};
use bowline_pipeline::SortKey;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, BY_UID, Listed, Table, timestamp};
use bowline_store::Row;

use crate::iam::relationship;

pub(crate) const TABLE: Table = Table {
    name: "identities",
    columns: "uid, name, description, email, email_unverified, company, relationship_type, relationship, \
              issuer, subject, expires_at, deactivated, last_seen_at, created_at, updated_at",
    orders: &[BY_UID, BY_NAME, BY_CREATED],
};

/// An identity as it is stored.
#[derive(Clone, Debug)]
pub(crate) struct IdentityRow {
    pub(crate) uid: Uidp,
    pub(crate) name: String,
    pub(crate) description: String,
    /// Verified address of a person.
    pub(crate) email: String,
    pub(crate) email_unverified: String,
    pub(crate) company: String,
    /// Number of the relationship type; 0 for people.
    pub(crate) relationship_type: i32,
    /// The relationship, encoded; empty for people.
    pub(crate) stored: Vec<u8>,
    /// Exact issuer, empty where it is a pattern or there is none.
    pub(crate) issuer: String,
    pub(crate) subject: String,
    pub(crate) expires_at: Option<Micros>,
    pub(crate) deactivated: bool,
    pub(crate) last_seen_at: Option<Micros>,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

impl Listed for IdentityRow {
    fn read(row: &Row<'_>) -> Result<IdentityRow> {
        Ok(IdentityRow {
            uid: list::stored_uid(row, &TABLE)?,
            name: row.text(1)?,
            description: row.text(2)?,
            email: row.text(3)?,
            email_unverified: row.text(4)?,
            company: row.text(5)?,
            relationship_type: row.int(6)? as i32,
            stored: row.bytes(7)?,
            issuer: row.text(8)?,
            subject: row.text(9)?,
            expires_at: row.opt_int(10)?,
            deactivated: row.bool(11)?,
            last_seen_at: row.opt_int(12)?,
            created_at: row.int(13)?,
            updated_at: row.int(14)?,
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

impl IdentityRow {
    /// Whether this is a person, not a machine.
    pub(crate) fn is_person(&self) -> bool {
        self.relationship_type == 0 && self.uid.is_root()
    }

    /// How the identity is assumed; people sign in instead.
    pub(crate) fn relationship(&self) -> Result<Option<Relationship>> {
        relationship::decode(&self.stored)
    }

    pub(crate) fn to_v2(&self) -> Result<v2::Identity> {
        Ok(v2::Identity {
            uid: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            email: self.email.clone(),
            email_unverified: self.email_unverified.clone(),
            company: self.company.clone(),
            last_seen_time: self.last_seen_at.and_then(timestamp),
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            relationship: self.relationship()?,
        })
    }

    pub(super) fn set_relationship(&mut self, relationship: &Relationship) {
        let (issuer, subject) = relationship::exact(relationship);
        issuer.clone_into(&mut self.issuer);
        subject.clone_into(&mut self.subject);
        self.relationship_type = relationship::type_of(relationship);
        self.expires_at = relationship::expires_at(relationship);
        self.stored = relationship::encode(relationship);
    }
}

/// What a caller may say of an identity.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdentityInput {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Absent where the version cannot say it.
    pub(crate) company: Option<String>,
    pub(crate) relationship: Option<Relationship>,
}

impl IdentityInput {
    pub(super) fn of(identity: v2::Identity) -> IdentityInput {
        let v2::Identity {
            name,
            description,
            company,
            relationship,
            // Of the server alone.
            uid: _,
            email: _,
            email_unverified: _,
            last_seen_time: _,
            create_time: _,
            update_time: _,
        } = identity;
        IdentityInput { name, description, company: Some(company), relationship }
    }
}
