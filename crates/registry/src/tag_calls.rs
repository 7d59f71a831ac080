//! Tags through the API, in both versions: single ones.

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry as methods1;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::tags_service as methods2;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::TAG;
use bowline_store::{ReadTx, WriteTx};

use super::tags::{self, TagRow};
use super::{images, repos};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods2::GetTag>(handler!(get))
        .write::<methods2::CreateTag>(handler!(create_v2))
        .write::<methods2::DeleteTag>(handler!(delete_v2))
        .write::<methods1::CreateTag>(handler!(create_v1))
        .write::<methods1::UpdateTag>(handler!(update_v1))
        .write::<methods1::DeleteTag>(handler!(delete_v1))
}

/// What a caller says of a tag.
struct TagInput {
    name: String,
    /// Empty where the caller leaves open what the tag is at: it stays where it is, or waits for its first push.
    digest: String,
    deprecated: bool,
    bundles: Vec<String>,
}

impl From<v1::Tag> for TagInput {
    fn from(tag: v1::Tag) -> TagInput {
        let v1::Tag { id: _, name, digest, last_updated: _, deprecated, bundles } = tag;
        TagInput { name, digest, deprecated, bundles }
    }
}

impl From<v2::Tag> for TagInput {
    fn from(tag: v2::Tag) -> TagInput {
        let v2::Tag { uid: _, name, digest, update_time: _, deprecated, bundles } = tag;
        TagInput { name, digest, deprecated, bundles }
    }
}

/// The tag of this UIDP.
pub(super) async fn require(tx: &mut ReadTx, uid: &Uidp) -> Result<TagRow> {
    tags::find(tx, uid).await?.ok_or_else(|| Error::not_found(TAG, uid.as_str()))
}

/// The repository that a tag is in. A tag that exists has one, so what has none does not exist.
pub(super) fn repo_of(tag: &Uidp) -> Result<Uidp> {
    tag.parent().ok_or_else(|| Error::not_found(TAG, tag.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v2::GetTagRequest>) -> Result<v2::Tag> {
    Ok(require(tx, call.require_scope()?).await?.to_v2())
}

async fn create_v2(tx: &mut WriteTx, call: &Authorized<v2::CreateTagRequest>) -> Result<Changed<v2::Tag>> {
    let input = call.request().tag.clone().unwrap_or_default().into();
    Ok(create(tx, call, input).await?.map(|row| row.to_v2()))
}

async fn create_v1(tx: &mut WriteTx, call: &Authorized<v1::CreateTagRequest>) -> Result<Changed<v1::Tag>> {
    let tag = call.request().tag.clone();
    // The contract requires the name of a tag, not the tag itself.
    let input = tag.ok_or_else(|| Error::invalid_field("name", "name is required"))?.into();
    Ok(create(tx, call, input).await?.map(|row| row.to_v1()))
}

/// Creates a tag in the checked repository, or overwrites the one that has the name.
async fn create<T>(tx: &mut WriteTx, call: &Authorized<T>, input: TagInput) -> Result<Changed<TagRow>> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    require_pushed(tx, repo, &input.digest).await?;
    let before = tags::find_by_name(tx, repo, &input.name).await?;
    let after = match &before {
        Some(before) if !call.holds(repo.as_str(), Capability::CapTagUpdate) => {
            return Err(Error::already_exists(TAG, &before.name));
        }
        Some(before) => overwrite(tx, call, repo, before, input).await?,
        None => create_new(tx, call, repo, input).await?,
    };
    let event = v1::CreateTagRequest { repo_id: repo.as_str().into(), tag: Some(after.to_v1()) };
    rendered(before.as_ref(), after, |changed, uid| changed.with_event(uid, &event))
}

async fn create_new<T>(tx: &mut WriteTx, call: &Authorized<T>, repo: &Uidp, input: TagInput) -> Result<TagRow> {
    let draw = call.draw();
    let (uid, row) = tags::new_row(repo, &input.name, &input.digest, call.now(), draw);
    let row = TagRow { deprecated: input.deprecated, bundles: input.bundles, ..row };
    tags::insert(tx, repo, &uid, &row, draw).await?;
    Ok(row)
}

/// The result of a write: no change and no event if the tag was as requested.
fn rendered(
    before: Option<&TagRow>,
    after: TagRow,
    with_event: impl FnOnce(Changed<TagRow>, &Uidp) -> Changed<TagRow>,
) -> Result<Changed<TagRow>> {
    if before == Some(&after) {
        return Ok(Changed::nothing(after));
    }
    let uid = tags::uid_of(&after)?;
    let changes = vec![tags::change(before, Some(&after))];
    Ok(with_event(Changed::many(changes, after), &uid))
}

async fn overwrite<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    repo: &Uidp,
    before: &TagRow,
    input: TagInput,
) -> Result<TagRow> {
    let digest = if input.digest.is_empty() { before.digest.clone() } else { input.digest };
    let TagInput { name, deprecated, bundles, .. } = input;
    let mut after = TagRow { name, digest, deprecated, bundles, ..before.clone() };
    if after == *before {
        return Ok(after);
    }
    after.updated_at = call.now();
    tags::save(tx, repo, before, &after, call.draw()).await?;
    Ok(after)
}

/// Refuses a digest that names no manifest of the repository.
async fn require_pushed(tx: &mut WriteTx, repo: &Uidp, digest: &str) -> Result<()> {
    if digest.is_empty() || images::find(tx, repo, digest).await?.is_some() {
        return Ok(());
    }
    Err(Error::precondition(
        "MANIFEST_MISSING",
        digest,
        format!("the repository has no manifest {digest}; push it before a tag is put on it"),
    ))
}

async fn update_v1(tx: &mut WriteTx, call: &Authorized<v1::Tag>) -> Result<Changed<v1::Tag>> {
    let uid = call.require_scope()?;
    let before = require(tx, uid).await?;
    let repo = repo_of(uid)?;
    let input = TagInput::from(call.request().clone());
    require_pushed(tx, &repo, &input.digest).await?;
    if input.name != before.name && tags::find_by_name(tx, &repo, &input.name).await?.is_some() {
        return Err(Error::already_exists(TAG, &input.name));
    }
    let after = overwrite(tx, call, &repo, &before, input).await?;
    let event = after.to_v1();
    Ok(rendered(Some(&before), after, |changed, uid| changed.with_event(uid, &event))?.map(|row| row.to_v1()))
}

async fn delete_v2(tx: &mut WriteTx, call: &Authorized<v2::DeleteTagRequest>) -> Result<Changed<()>> {
    delete(tx, call).await
}

async fn delete_v1(tx: &mut WriteTx, call: &Authorized<v1::DeleteTagRequest>) -> Result<Changed<()>> {
    delete(tx, call).await
}

async fn delete<T>(tx: &mut WriteTx, call: &Authorized<T>) -> Result<Changed<()>> {
    let uid = call.require_scope()?;
    let row = require(tx, uid).await?;
    tags::delete_tag(tx, &repo_of(uid)?, &row.name, call.now(), call.draw()).await?;
    let event = v1::DeleteTagRequest { id: uid.as_str().into() };
    Ok(Changed::many(vec![tags::change(Some(&row), None)], ()).with_event(uid, &event))
}
