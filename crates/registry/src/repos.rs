//! Repositories: what images of one name share. One is unique by name in its group.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::registry as v1;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service::{CreateRepo, DeleteRepo, GetRepo, ListRepos, UpdateRepo};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Direction, Handlers, Mask, SortKey, handler};
use bowline_resources::kinds::REPO;
use bowline_resources::list::{self, BY_CREATED, BY_NAME, BY_UID, Filter, Listed, Table, timestamp};
use bowline_resources::references::{require_group, require_room};
use bowline_store::{ErrorKind, ReadTx, Row, Value, WriteTx, tables};
use prost::Message;

use super::content::replication::sources::{self, Settled};
use super::{components, readmes, repo_fields, shapes, stored_bytes, tags};
use crate::tables::TABLES;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetRepo>(handler!(get))
        .read::<ListRepos>(handler!(list))
        .write::<CreateRepo>(handler!(create_v2))
        .write::<UpdateRepo>(handler!(update_v2))
        .write::<DeleteRepo>(handler!(delete))
}

pub(super) const TABLE: Table = Table {
    name: "repos",
    columns: "uid, name, description, spec, created_at, updated_at",
    orders: &[BY_UID, BY_NAME, BY_CREATED],
};

/// A repository as it is stored.
#[derive(Clone, Debug)]
pub(super) struct RepoRow {
    pub(super) uid: String,
    name: String,
    description: String,
    /// The fields that have no column of their own; the others are empty.
    spec: v2::Repo,
    created_at: Micros,
    updated_at: Micros,
}

impl Listed for RepoRow {
    fn read(row: &Row<'_>) -> Result<RepoRow> {
        Ok(RepoRow {
            uid: row.text(0)?,
            name: row.text(1)?,
            description: row.text(2)?,
            spec: v2::Repo::decode(row.bytes(3)?.as_slice()).map_err(Error::internal)?,
            created_at: row.int(4)?,
            updated_at: row.int(5)?,
        })
    }

    fn uid(&self) -> &str {
        &self.uid
    }

    fn sort_key(&self, column: &str) -> SortKey {
        match column {
            "name" => SortKey::Text(self.name.clone()),
            _ => SortKey::Int(self.created_at),
        }
    }
}

impl RepoRow {
    /// What the order of names goes by.
    pub(super) fn name_key(&self) -> SortKey {
        SortKey::Text(self.name.clone())
    }

    pub(super) fn into_v2(self) -> v2::Repo {
        v2::Repo {
            uid: self.uid,
            name: self.name,
            description: self.description,
            create_time: timestamp(self.created_at),
            update_time: timestamp(self.updated_at),
            ..self.spec
        }
    }

    /// Approximate size of the repository in a response, without its read-me.
    pub(super) fn size(&self) -> usize {
        const TIMES_AND_KEYS: usize = 40;
        self.spec.encoded_len() + self.uid.len() + self.name.len() + self.description.len() + TIMES_AND_KEYS
    }
}

/// What a caller says of a repository.
#[derive(Clone, Debug, Default)]
pub(super) struct RepoInput {
    pub(super) repo: v2::Repo,
    /// Absent where the version cannot say it.
    pub(super) readme: Option<String>,
    /// Whether what only the server and the operator set is meant as well.
    pub(super) by_operator: bool,
    /// Whether a taken name is refused rather than overwritten.
    pub(super) prevent_existing: bool,
}

/// A repository as it is now, with its read-me.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) repo: v2::Repo,
    pub(super) readme: String,
}

impl Stored {
    pub(super) fn into_v1(self) -> v1::Repo {
        shapes::to_v1(self.repo, self.readme)
    }

    fn to_v1(&self) -> v1::Repo {
        shapes::to_v1(self.repo.clone(), self.readme.clone())
    }
}

/// The repository of this UIDP.
pub(super) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<v2::Repo> {
    let sql = "SELECT uid, name, description, spec, created_at, updated_at FROM repos WHERE uid = $1";
    let row = tx.query_opt(sql, &[Value::from(uid.as_str())], RepoRow::read).await?;
    row.map(RepoRow::into_v2).ok_or_else(|| Error::not_found(REPO, uid.as_str()))
}

/// Something that repositories are in, or one of them.
pub(super) async fn require_repo_or_group(tx: &mut ReadTx, uid: &Uidp) -> Result<()> {
    if exists(tx, uid).await? { Ok(()) } else { require_group(tx, uid).await }
}

/// Whether there is a repository of this UIDP.
pub(super) async fn exists(tx: &mut ReadTx, uid: &Uidp) -> Result<bool> {
    let sql = "SELECT uid FROM repos WHERE uid = $1";
    let row = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    Ok(row.is_some())
}

/// The repository of this name in a group.
pub(super) async fn find_by_name(tx: &mut ReadTx, parent: &Uidp, name: &str) -> Result<Option<v2::Repo>> {
    let sql = "SELECT uid, name, description, spec, created_at, updated_at FROM repos WHERE parent = $1 AND name = $2";
    let params = [Value::from(parent.as_str()), Value::from(name)];
    Ok(tx.query_opt(sql, &params, RepoRow::read).await?.map(RepoRow::into_v2))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetRepoRequest>) -> Result<v2::Repo> {
    require(tx, call.require_scope()?).await
}

async fn list(tx: &mut ReadTx, call: &Authorized<v2::ListReposRequest>) -> Result<v2::ListReposResponse> {
    let request = call.request();
    let mut selection = list::select(tx, call, call.visible(), request.uidp.as_ref()).await?;
    if let Some(name) = request.name.as_deref().filter(|name| !name.is_empty()) {
        selection.filters.push(Filter { column: "name", value: Value::from(name) });
    }
    let page = list::paging(request);
    let listing = list::page::<_, RepoRow>(tx, call, &TABLE, &selection, &page, (0, Direction::Ascending)).await?;
    Ok(v2::ListReposResponse {
        repos: listing.items.into_iter().map(RepoRow::into_v2).collect(),
        next_page_token: listing.next_page_token,
        total_count: Some(listing.total_count),
        skipped: listing.skipped,
    })
}

async fn create_v2(tx: &mut WriteTx, call: &Authorized<v2::CreateRepoRequest>) -> Result<Changed<v2::Repo>> {
    let repo = call.request().repo.clone().unwrap_or_default();
    let input = RepoInput { repo, prevent_existing: true, ..RepoInput::default() };
    Ok(create(tx, call, input).await?.map(|stored| stored.repo))
}

/// Creates a repository in the checked group, or overwrites the one that has the name.
pub(super) async fn create<T>(tx: &mut WriteTx, call: &Authorized<T>, input: RepoInput) -> Result<Changed<Stored>> {
    let parent = call.require_scope()?;
    require_group(tx, parent).await?;
    let prevent_existing = input.prevent_existing;
    let taken = if prevent_existing { None } else { find_by_name(tx, parent, &input.repo.name).await? };
    let (uid, changed) = match taken {
        Some(before) => overwrite(tx, call, before, &input).await?,
        None => create_new(tx, call, parent, input).await?,
    };
    let repo = Some(changed.response.to_v1());
    let event = v1::CreateRepoRequest { parent_id: parent.as_str().into(), repo, prevent_existing };
    Ok(changed.with_event(&uid, &event))
}

async fn create_new<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    parent: &Uidp,
    input: RepoInput,
) -> Result<(Uidp, Changed<Stored>)> {
    let mut repo = repo_fields::of_new(input.repo, input.by_operator)?;
    let source = sources::settle(tx, call, parent, None, &mut repo).await?;
    create_settled(tx, call, parent, repo, source, input.readme).await
}

/// Creates a repository whose fields and source were checked, in a group where the caller may.
///
/// # Errors
/// The name is taken, or there is no room.
pub(super) async fn create_settled<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    parent: &Uidp,
    repo: v2::Repo,
    source: Option<Settled>,
    readme: Option<String>,
) -> Result<(Uidp, Changed<Stored>)> {
    require_room(tx, parent, "repositories", "repos").await?;
    let uid = call.new_child(parent);
    let (name, description, spec) = columns_and_spec(repo);
    let row =
        RepoRow { uid: uid.as_str().into(), name, description, spec, created_at: call.now(), updated_at: call.now() };
    insert(tx, &uid, &row).await?;
    sources::put(tx, &uid, source).await?;
    let readme = readmes::write_v1(tx, call, &uid, String::new(), readme).await?;
    let repo = row.into_v2();
    let mut changed = Changed::one(REPO, &uid, None, Some(&repo), ());
    changed.changes.extend(readme.change);
    Ok((uid, changed.map(|()| Stored { repo, readme: readme.content })))
}

/// Name, description, and what is stored as a message. Every field is named: a new one has to be decided.
fn columns_and_spec(repo: v2::Repo) -> (String, String, v2::Repo) {
    let v2::Repo {
        uid: _,
        name,
        description,
        create_time: _,
        update_time: _,
        catalog_tier,
        bundles,
        aliases,
        active_tags,
        sync_config,
        custom_overlay,
    } = repo;
    let spec = v2::Repo {
        catalog_tier,
        bundles,
        aliases,
        active_tags,
        sync_config,
        custom_overlay,
        uid: String::new(),
        name: String::new(),
        description: String::new(),
        create_time: None,
        update_time: None,
    };
    (name, description, spec)
}

async fn insert(tx: &mut WriteTx, uid: &Uidp, row: &RepoRow) -> Result<()> {
    let sql = "INSERT INTO repos (uid, parent, org, name, description, spec, created_at, updated_at, source)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";
    let spec = row.spec.encode_to_vec();
    let params = [
        Value::from(uid.as_str()),
        Value::from(uid.parent_str()),
        Value::from(uid.root_str()),
        Value::from(&row.name),
        Value::from(&row.description),
        Value::from(&spec),
        Value::Int(row.created_at),
        Value::Int(row.updated_at),
        Value::from(source(&row.spec)),
    ];
    if tx.execute(sql, &params).await? == 0 {
        return Err(Error::already_exists(REPO, &row.name));
    }
    list::count(tx, &TABLE, uid, 1).await
}

/// A creation that finds the name taken changes what is there, if the caller may.
async fn overwrite<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    before: v2::Repo,
    input: &RepoInput,
) -> Result<(Uidp, Changed<Stored>)> {
    let damaged = |_| Error::internal(format!("repos holds the damaged uid {}", before.uid));
    let uid = Uidp::parse(&before.uid).map_err(damaged)?;
    if !call.holds(uid.as_str(), Capability::CapRepoUpdate) {
        return Err(Error::already_exists(REPO, &before.name));
    }
    let changed = change(tx, call, &uid, before, &Mask::whole(), input).await?;
    Ok((uid, changed))
}

async fn update_v2(tx: &mut WriteTx, call: &Authorized<v2::UpdateRepoRequest>) -> Result<Changed<v2::Repo>> {
    let repo = call.request().repo.clone().unwrap_or_default();
    let input = RepoInput { repo, ..RepoInput::default() };
    Ok(update(tx, call, &call.mask(), &input).await?.map(|stored| stored.repo))
}

/// Changes what the mask covers of the checked repository.
pub(super) async fn update<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    mask: &Mask,
    input: &RepoInput,
) -> Result<Changed<Stored>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?;
    let changed = change(tx, call, uid, before, mask, input).await?;
    let event = changed.response.to_v1();
    Ok(changed.with_event(uid, &event))
}

async fn change<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    uid: &Uidp,
    before: v2::Repo,
    mask: &Mask,
    input: &RepoInput,
) -> Result<Changed<Stored>> {
    let mut after = repo_fields::changed(&before, &input.repo, mask, input.by_operator)?;
    let source = sources::settle(tx, call, uid, Some(&before), &mut after).await?;
    after.update_time = timestamp(call.now());
    save(tx, uid, &before, &after, call.now()).await?;
    sources::put(tx, uid, source).await?;
    let readme = readmes::find(tx, uid).await?;
    let readme = readmes::write_v1(tx, call, uid, readme, input.readme.clone()).await?;
    let mut changed = Changed::one(REPO, uid, Some(&before), Some(&after), ());
    changed.changes.extend(readme.change);
    Ok(changed.map(|()| Stored { repo: after, readme: readme.content }))
}

async fn save(tx: &mut WriteTx, uid: &Uidp, before: &v2::Repo, after: &v2::Repo, now: Micros) -> Result<()> {
    if after.name != before.name {
        require_name_free(tx, uid, &after.name).await?;
    }
    let sql = "UPDATE repos SET name = $2, description = $3, spec = $4, updated_at = $5, source = $6 WHERE uid = $1";
    let (name, description, spec) = columns_and_spec(after.clone());
    let spec = spec.encode_to_vec();
    let params = [
        Value::from(uid.as_str()),
        Value::from(&name),
        Value::from(&description),
        Value::from(&spec),
        Value::Int(now),
        Value::from(source(after)),
    ];
    tx.execute(sql, &params).await.map_err(|error| match error.kind() {
        ErrorKind::UniqueViolation => Error::already_exists(REPO, &after.name),
        _ => error.into(),
    })?;
    Ok(())
}

/// What the repository is synchronized from, empty if it is not.
pub(super) fn source(repo: &v2::Repo) -> &str {
    repo.sync_config.as_ref().map_or("", |sync| &sync.source)
}

async fn require_name_free(tx: &mut WriteTx, uid: &Uidp, name: &str) -> Result<()> {
    let sql = "SELECT uid FROM repos WHERE parent = $1 AND name = $2";
    let params = [Value::from(uid.parent_str()), Value::from(name)];
    match tx.query_opt(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        Some(_) => Err(Error::already_exists(REPO, name)),
        None => Ok(()),
    }
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v2::DeleteRepoRequest>) -> Result<Changed<()>> {
    remove(tx, call).await
}

/// Deletes a repository with its tags and everything else that is in it. The history of the tags stays.
pub(super) async fn remove<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?;
    readmes::delete(tx, uid).await?;
    let tags = tags::delete_tags_of_repo(tx, uid, call.now(), call.draw()).await?;
    stored_bytes::discount_repo(tx, uid).await?;
    components::note_repo(tx, uid).await?;
    tables::delete_rows(tx, TABLES, TABLE.name, uid.as_str()).await?;
    tx.execute("DELETE FROM repos WHERE uid = $1", &[Value::from(uid.as_str())]).await?;
    list::count(tx, &TABLE, uid, -1).await?;
    let event = v1::DeleteRepoRequest { id: uid.as_str().into() };
    let along = tags.iter().map(|tag| tags::change(Some(tag), None)).collect();
    Ok(Changed::one(REPO, uid, Some(&before), None, ()).along(along).with_event(uid, &event))
}
