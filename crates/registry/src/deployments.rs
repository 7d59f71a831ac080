//! Helm charts that deploy the image of a repository. A repository has one deployment, which goes by its UIDP.

use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::{CreateDeployment, GetDeployment, UpdateDeployment};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::DEPLOYMENT;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use super::repos;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<GetDeployment>(handler!(get))
        .write::<CreateDeployment>(handler!(create))
        .write::<UpdateDeployment>(handler!(update))
}

async fn find(tx: &mut ReadTx, repo: &Uidp) -> Result<Option<v1::Deployment>> {
    let sql = "SELECT deployment FROM deployments WHERE repo = $1";
    let found = tx.query_opt(sql, &[Value::from(repo.as_str())], |row| row.bytes(0).map_err(Error::from)).await?;
    found.map(|bytes| v1::Deployment::decode(bytes.as_slice()).map_err(Error::internal)).transpose()
}

async fn require(tx: &mut ReadTx, repo: &Uidp) -> Result<v1::Deployment> {
    find(tx, repo).await?.ok_or_else(|| Error::not_found(DEPLOYMENT, repo.as_str()))
}

async fn get(tx: &mut ReadTx, call: &Authorized<v1::GetDeploymentRequest>) -> Result<v1::Deployment> {
    require(tx, call.require_scope()?).await
}

/// A deployment without charts was cleared, and can be created again.
async fn create(tx: &mut WriteTx, call: &Authorized<v1::CreateDeploymentRequest>) -> Result<Changed<v1::Deployment>> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    let before = find(tx, repo).await?;
    if before.as_ref().is_some_and(|before| !before.charts.is_empty()) {
        return Err(Error::already_exists(DEPLOYMENT, repo.as_str()));
    }
    write(tx, call, before, call.request().charts.clone()).await
}

/// No charts clear the deployment: there is no other way to be rid of it.
async fn update(tx: &mut WriteTx, call: &Authorized<v1::UpdateDeploymentRequest>) -> Result<Changed<v1::Deployment>> {
    let before = require(tx, call.require_scope()?).await?;
    write(tx, call, Some(before), call.request().charts.clone()).await
}

async fn write<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    before: Option<v1::Deployment>,
    charts: Vec<v1::HelmChart>,
) -> Result<Changed<v1::Deployment>> {
    let repo = call.require_scope()?;
    let after = v1::Deployment { id: repo.as_str().into(), charts };
    if before.as_ref() == Some(&after) {
        return Ok(Changed::nothing(after));
    }
    let sql = "INSERT INTO deployments (repo, deployment, updated_at) VALUES ($1, $2, $3)
               ON CONFLICT (repo) DO UPDATE SET deployment = excluded.deployment, updated_at = excluded.updated_at";
    let bytes = after.encode_to_vec();
    let params = [Value::from(repo.as_str()), Value::from(&bytes), Value::Int(call.now())];
    tx.execute(sql, &params).await?;
    Ok(Changed::one(DEPLOYMENT, repo, before.as_ref(), Some(&after), after.clone()))
}
