//! A group as it is stored, and what a caller may say of one.

use std::collections::BTreeMap;

use bowline_contract::v1::iam as v1;
use bowline_contract::v2::iam as v2;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::SortKey;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, BY_UID, Listed, Table, timestamp};
use bowline_store::Row;

pub(crate) const TABLE: Table = Table {
    name: "groups",
    columns: "uid, parent, name, description, verified, kind, status, resource_limits, created_at, updated_at",
    orders: &[BY_UID, BY_NAME, BY_CREATED],
};

/// A group as it is stored.
#[derive(Clone, Debug)]
pub struct GroupRow {
    /// Its UIDP, which contains those of the groups above.
    pub uid: Uidp,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) verified: bool,
    pub(crate) kind: i32,
    pub(crate) status: i32,
    pub(crate) resource_limits: BTreeMap<String, i32>,
    pub(crate) created_at: Micros,
    pub(crate) updated_at: Micros,
}

impl Listed for GroupRow {
    fn read(row: &Row<'_>) -> Result<GroupRow> {
        let limits = row.text(7)?;
        Ok(GroupRow {
            uid: list::stored_uid(row, &TABLE)?,
            name: row.text(2)?,
            description: row.text(3)?,
            verified: row.bool(4)?,
            kind: row.int(5)? as i32,
            status: row.int(6)? as i32,
            resource_limits: serde_json::from_str(&limits).map_err(Error::internal)?,
            created_at: row.int(8)?,
            updated_at: row.int(9)?,
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

impl GroupRow {
    pub(crate) fn to_v2(&self) -> v2::Group {
        v2::Group {
            uid: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            resource_limits: self.resource_limits.clone(),
            verified: self.verified,
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            kind: self.kind,
            status: self.status,
        }
    }

    pub(crate) fn to_v1(&self) -> v1::Group {
        v1::Group {
            id: self.uid.as_str().into(),
            name: self.name.clone(),
            description: self.description.clone(),
            resource_limits: self.resource_limits.clone(),
            verified: self.verified,
            kind: self.kind,
            status: self.status,
        }
    }
}

/// The fields of a group that a request sets.
#[derive(Clone, Debug, Default)]
pub struct GroupInput {
    /// Its name, unique among its siblings.
    pub name: String,
    pub description: String,
    /// Whether its name is reserved for it; the operator's to set, on organizations alone.
    pub verified: bool,
    /// `GroupKind` of the contract; the operator's to set.
    pub kind: i32,
    /// Limits by collection; absent where the version has no field for them.
    pub resource_limits: Option<BTreeMap<String, i32>>,
    /// `OrgStatus` of the contract; absent where the version has no field for it.
    pub status: Option<i32>,
}
