//! The operations on users.

use std::sync::Arc;

use bowline_contract::Contract;
use bowline_core::{Micros, Uidp};
use bowline_pipeline::{Actor, Change, record_audit};
use bowline_resources::kinds::SCIM_USER;
use bowline_store::{Db, ReadTx, Value, WriteTx};
use serde_json::{Map, Value as Json};

use super::access::{Directory, Presented, admit};
use super::attributes::Attributes;
use super::filter::{self, Condition};
use super::leave::{end_sessions, leave, require_other_owner};
use super::listing::{SCAN, page, scan};
use super::patch;
use super::refusal::{Refusal, Result, ScimError};
use super::rows::{self, UserRow};
use crate::access::iam_changed;
use crate::iam::owners::Lockout;

/// Maximum number of users of one response.
pub const MAX_COUNT: usize = 100;

/// The users that directories provision.
#[derive(Clone)]
pub struct ScimUsers {
    db: Db,
    contract: Arc<Contract>,
}

/// A user as a directory sees them.
#[derive(Clone, Debug)]
pub struct User {
    /// Last segment of the UIDP.
    pub id: String,
    /// All attributes but `id`, `meta` and `schemas`.
    pub attributes: Map<String, Json>,
    /// When the directory made them.
    pub created: Micros,
    /// When they changed last.
    pub updated: Micros,
    pub version: String,
}

/// What a writing request brings besides its body.
#[derive(Clone, Debug)]
pub struct Changing {
    /// The time, the same for all attempts.
    pub now: Micros,
    /// Id of the request, for the audit log.
    pub request_id: String,
    /// Entity tags one of which the user must have; absent for any.
    pub versions: Option<Vec<String>>,
}

/// Parameters of a list.
#[derive(Clone, Debug)]
pub struct Query {
    /// The filter, absent for all.
    pub filter: Option<String>,
    /// Position of the first wanted user, from 0.
    pub offset: usize,
    /// Maximum number of users of one page.
    pub count: usize,
}

impl Query {
    /// Whether the response takes reading every user: e-mail addresses are in no column.
    pub fn reads_all(&self) -> bool {
        let conditions = self.filter.as_deref().map(filter::read);
        conditions.is_some_and(|read| read.is_ok_and(|conditions| looks_for_email(&conditions)))
    }
}

fn looks_for_email(conditions: &[Condition]) -> bool {
    conditions.iter().any(|condition| matches!(condition, Condition::Email(_)))
}

/// A part of a list.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The users, by UIDP.
    pub users: Vec<User>,
    /// How many there are in all.
    pub total: usize,
}

impl From<UserRow> for User {
    fn from(row: UserRow) -> User {
        User {
            id: row.id().into(),
            version: row.version(),
            created: row.created_at,
            updated: row.updated_at,
            attributes: row.attributes,
        }
    }
}

/// What is to be done with one user.
#[derive(Clone)]
enum Edit {
    Replace(Attributes),
    Patch(Json),
    Delete,
}

impl Edit {
    fn method(&self) -> &'static str {
        match self {
            Edit::Replace(_) => "scim Users.replace",
            Edit::Patch(_) => "scim Users.patch",
            Edit::Delete => "scim Users.delete",
        }
    }

    /// The attributes of the user after the edit; absent for one that is deleted.
    fn attributes(self, before: &UserRow) -> Result<Option<Attributes>> {
        match self {
            Edit::Replace(attributes) => Ok(Some(attributes)),
            Edit::Patch(message) => {
                let mut attributes = before.attributes.clone();
                patch::apply(&mut attributes, &message)?;
                Attributes::read(attributes).map(Some)
            }
            Edit::Delete => Ok(None),
        }
    }
}

impl ScimUsers {
    /// The users in this database.
    pub fn new(db: Db, contract: Arc<Contract>) -> ScimUsers {
        ScimUsers { db, contract }
    }

    /// Lets a directory in. Every operation does so again in its own transaction.
    pub async fn admit(&self, presented: &Presented, now: Micros) -> Result<Directory> {
        let presented = presented.clone();
        self.db.read(move |tx| Box::pin(async move { admit(tx, &presented, now).await })).await
    }

    pub async fn get(&self, presented: &Presented, id: &str, now: Micros) -> Result<User> {
        let (presented, id) = (presented.clone(), id.to_owned());
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let directory = admit(tx, &presented, now).await?;
                require(tx, &directory, &id).await
            })
        });
        read.await.map(User::from)
    }

    /// Adds a user. `drawn` becomes the id.
    pub async fn create(&self, presented: &Presented, body: Json, drawn: [u8; 8], changing: Changing) -> Result<User> {
        let input = (presented.clone(), read_resource(body)?, changing, self.contract.clone());
        let write = self.db.write(move |tx| {
            let (presented, attributes, changing, contract) = input.clone();
            Box::pin(async move {
                let directory = admit(tx, &presented, changing.now).await?;
                create(tx, &contract, &directory, attributes, drawn, &changing).await
            })
        });
        write.await.map(User::from)
    }

    /// Replaces all attributes of a user.
    pub async fn replace(&self, presented: &Presented, id: &str, body: Json, changing: Changing) -> Result<User> {
        let edit = Edit::Replace(read_resource(body)?);
        self.edit(presented, id, edit, changing).await
    }

    /// Changes some attributes of a user.
    pub async fn patch(&self, presented: &Presented, id: &str, body: Json, changing: Changing) -> Result<User> {
        self.edit(presented, id, Edit::Patch(body), changing).await
    }

    /// Deletes a user, and what the person may do in the organization.
    pub async fn delete(&self, presented: &Presented, id: &str, changing: Changing) -> Result<()> {
        self.edit(presented, id, Edit::Delete, changing).await.map(|_| ())
    }

    async fn edit(&self, presented: &Presented, id: &str, edit: Edit, changing: Changing) -> Result<User> {
        // Revoking works on a full disk.
        let revokes = matches!(edit, Edit::Delete)
            || (self.db.is_full() && self.deactivates(presented, id, &edit, changing.now).await?);
        let db = if revokes { self.db.from_reserve() } else { self.db.clone() };
        let input = (presented.clone(), id.to_owned(), edit, changing, self.contract.clone());
        let write = db.write(move |tx| {
            let (presented, id, edit, changing, contract) = input.clone();
            Box::pin(async move {
                let directory = admit(tx, &presented, changing.now).await?;
                let before = require(tx, &directory, &id).await?;
                let version = before.version();
                if changing.versions.as_ref().is_some_and(|versions| !versions.contains(&version)) {
                    let detail = format!("the user has the version {version} now; read it again");
                    return Err(ScimError::refuse(Refusal::VersionMismatch, detail));
                }
                change(tx, &contract, &directory, before, edit, &changing).await
            })
        });
        write.await.map(User::from)
    }

    /// Whether the edit ends the access of a user who has it, or repeats that. Other edits of a deactivated user would
    /// use up the reserve of a full disk.
    async fn deactivates(&self, presented: &Presented, id: &str, edit: &Edit, now: Micros) -> Result<bool> {
        let (presented, id, edit) = (presented.clone(), id.to_owned(), edit.clone());
        let read = self.db.read(move |tx| {
            Box::pin(async move {
                let directory = admit(tx, &presented, now).await?;
                let before = require(tx, &directory, &id).await?;
                let Some(attributes) = edit.attributes(&before)? else { return Ok(true) };
                let mut after = before.clone();
                after.set(attributes, before.person.clone());
                Ok(!after.active && (before.active || after == before))
            })
        });
        read.await
    }

    /// Users that fit a filter.
    pub async fn list(&self, presented: &Presented, query: &Query, now: Micros) -> Result<Listing> {
        let conditions = query.filter.as_deref().map(filter::read).transpose()?.unwrap_or_default();
        if looks_for_email(&conditions) {
            return self.search(presented, &conditions, query, now).await;
        }
        let (presented, query) = (presented.clone(), query.clone());
        self.db
            .read(move |tx| {
                Box::pin(async move {
                    let directory = admit(tx, &presented, now).await?;
                    page(tx, &directory, &conditions, &query).await
                })
            })
            .await
    }

    /// Reads all users, some at a time: e-mail addresses are in no column.
    async fn search(
        &self,
        presented: &Presented,
        conditions: &[Condition],
        query: &Query,
        now: Micros,
    ) -> Result<Listing> {
        let mut listing = Listing { users: Vec::new(), total: 0 };
        let mut after = String::new();
        loop {
            let input = (presented.clone(), conditions.to_vec(), after);
            let read = self.db.read(move |tx| {
                Box::pin(async move {
                    let (presented, conditions, after) = input;
                    let directory = admit(tx, &presented, now).await?;
                    scan(tx, &directory, &conditions, &after).await
                })
            });
            let rows = read.await?;
            let is_last = (rows.len() as i64) < SCAN;
            after = rows.last().map(|row| row.uid.as_str().to_owned()).unwrap_or_default();
            for row in rows {
                if conditions.iter().all(|condition| condition.fits(&row.attributes)) {
                    if listing.total >= query.offset && listing.users.len() < query.count {
                        listing.users.push(row.into());
                    }
                    listing.total += 1;
                }
            }
            if is_last {
                return Ok(listing);
            }
        }
    }
}

fn read_resource(body: Json) -> Result<Attributes> {
    match body {
        Json::Object(members) => Attributes::read(members),
        _ => Err(ScimError::refuse(Refusal::InvalidSyntax, "the body must be an object")),
    }
}

async fn require(tx: &mut ReadTx, directory: &Directory, id: &str) -> Result<UserRow> {
    let uid = format!("{}/{id}", directory.provider);
    let missing = || ScimError::refuse(Refusal::NotFound, format!("there is no user with the id {id:?}"));
    // Only an id of this server goes to the store; one with a slash would reach below a user.
    if !Uidp::is_valid(&uid) || id.contains('/') {
        return Err(missing());
    }
    rows::find(tx, &uid).await?.ok_or_else(missing)
}

async fn create(
    tx: &mut WriteTx,
    contract: &Contract,
    directory: &Directory,
    attributes: Attributes,
    drawn: [u8; 8],
    changing: &Changing,
) -> Result<UserRow> {
    let mut row = UserRow {
        uid: directory.provider.child_from(drawn),
        external_id: String::new(),
        user_name: String::new(),
        person: String::new(),
        active: true,
        attributes: Map::new(),
        created_at: changing.now,
        updated_at: changing.now,
    };
    let person = directory.person(&attributes.external_id);
    row.set(attributes, person);
    if !row.active {
        require_other_owner(tx, contract, &directory.provider, &row.person, Lockout::Deactivation, changing.now)
            .await?;
    }
    rows::insert(tx, &row).await?;
    if !row.active {
        end_sessions(tx, &directory.provider, &row.person).await?;
    }
    iam_changed(tx).await?;
    let change = Change { kind: SCIM_USER, uid: row.uid.as_str().into(), before: None, after: Some(row.snapshot()) };
    record(tx, directory, "scim Users.create", changing, &[change]).await?;
    Ok(row)
}

async fn change(
    tx: &mut WriteTx,
    contract: &Contract,
    directory: &Directory,
    before: UserRow,
    edit: Edit,
    changing: &Changing,
) -> Result<UserRow> {
    let method = edit.method();
    let Some(attributes) = edit.attributes(&before)? else {
        return delete(tx, contract, directory, before, changing).await;
    };
    let is_same_person = attributes.external_id == before.external_id;
    let person = if is_same_person { before.person.clone() } else { directory.person(&attributes.external_id) };
    let mut after = before.clone();
    after.set(attributes, person);
    if after == before {
        return Ok(before);
    }
    let (provider, now) = (&directory.provider, changing.now);
    if !is_same_person {
        require_other_owner(tx, contract, provider, &before.person, Lockout::Removal, now).await?;
    }
    if !after.active {
        require_other_owner(tx, contract, provider, &after.person, Lockout::Deactivation, now).await?;
    }
    after.updated_at = changing.now;
    rows::update(tx, &after).await?;
    // The person whom the entry meant before is not in the directory any more.
    let mut changes = if is_same_person { Vec::new() } else { leave(tx, &directory.provider, &before.person).await? };
    if !after.active {
        end_sessions(tx, &directory.provider, &after.person).await?;
    }
    iam_changed(tx).await?;
    let uid = after.uid.as_str().into();
    let snapshots = (Some(before.snapshot()), Some(after.snapshot()));
    changes.insert(0, Change { kind: SCIM_USER, uid, before: snapshots.0, after: snapshots.1 });
    record(tx, directory, method, changing, &changes).await?;
    Ok(after)
}

async fn delete(
    tx: &mut WriteTx,
    contract: &Contract,
    directory: &Directory,
    before: UserRow,
    changing: &Changing,
) -> Result<UserRow> {
    require_other_owner(tx, contract, &directory.provider, &before.person, Lockout::Removal, changing.now).await?;
    tx.execute("DELETE FROM scim_users WHERE uid = $1", &[Value::from(before.uid.as_str())]).await?;
    let mut changes = leave(tx, &directory.provider, &before.person).await?;
    iam_changed(tx).await?;
    let uid = before.uid.as_str().into();
    changes.insert(0, Change { kind: SCIM_USER, uid, before: Some(before.snapshot()), after: None });
    record(tx, directory, Edit::Delete.method(), changing, &changes).await?;
    Ok(before)
}

async fn record(
    tx: &mut WriteTx,
    directory: &Directory,
    method: &str,
    changing: &Changing,
    changes: &[Change],
) -> Result<()> {
    let actor = Actor { subject: directory.provider.as_str(), request_id: &changing.request_id, method };
    for change in changes {
        record_audit(tx, changing.now, &actor, change).await?;
    }
    Ok(())
}
