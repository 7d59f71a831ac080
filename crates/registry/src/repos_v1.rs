//! Repositories as in v1, where the read-me is part of the repository.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{CreateRepo, DeleteRepo, ListRepos, UpdateRepo};
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Changed, Handlers, Mask, handler};
use bowline_resources::list::{self, Filter};
use bowline_store::{ReadTx, Value, WriteTx};

use super::repos::{self, RepoInput, RepoRow, Stored};
use super::{readmes, shapes};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .write::<CreateRepo>(handler!(create))
        .write::<UpdateRepo>(handler!(update))
        .read::<ListRepos>(handler!(list))
        .write::<DeleteRepo>(handler!(delete))
}

fn input<T>(call: &Authorized<T>, repo: v1::Repo, prevent_existing: bool) -> RepoInput {
    let (repo, readme) = shapes::from_v1(repo);
    RepoInput { repo, readme: Some(readme), by_operator: call.is_operator(), prevent_existing }
}

async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateRepoRequest>) -> Result<Changed<v1::Repo>> {
    let request = call.request();
    // The contract requires the name of a repository, not the repository itself.
    let repo = request.repo.clone().ok_or_else(|| Error::invalid_field("name", "name is required"))?;
    let input = input(call, repo, request.prevent_existing);
    Ok(repos::create(tx, call, input).await?.map(Stored::into_v1))
}

async fn update(tx: &mut WriteTx, call: &Authorized<v1::Repo>) -> Result<Changed<v1::Repo>> {
    let input = input(call, call.request().clone(), false);
    Ok(repos::update(tx, call, &Mask::whole(), &input).await?.map(Stored::into_v1))
}

async fn list(tx: &mut ReadTx, call: &Authorized<v1::RepoFilter>) -> Result<v1::RepoList> {
    let filter = call.request();
    let mut selection = list::select_v1(call.visible(), filter.uidp.as_ref(), &filter.id);
    if !filter.name.is_empty() {
        selection.filters.push(Filter { column: "name", value: Value::from(&filter.name) });
    }
    let rows = list::everything(tx, call, &repos::TABLE, &selection, RepoRow::size).await?;
    let mut contents = readmes::of_all(tx, &rows).await?;
    let to_v1 = |row: RepoRow| {
        let readme = contents.remove(&row.uid).unwrap_or_default();
        shapes::to_v1(row.into_v2(), readme)
    };
    Ok(v1::RepoList { items: rows.into_iter().map(to_v1).collect() })
}

async fn delete(tx: &mut WriteTx, call: &Authorized<v1::DeleteRepoRequest>) -> Result<Changed<()>> {
    repos::remove(tx, call).await
}
