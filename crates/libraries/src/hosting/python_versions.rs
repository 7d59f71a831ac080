//! Versions of the Python packages that groups published: listed, withdrawn, deleted.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::python_packages::{
    DeleteVersion, ListVersions, UnyankVersion, YankVersion,
};
use bowline_core::{Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, PageRequest, handler};
use bowline_resources::kinds::PACKAGE_VERSION;
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::summaries;
use super::versions::{self, VersionRow};
use crate::ecosystems::Language;

const LANGUAGE: Language = Language::Python;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<ListVersions>(handler!(list))
        .write::<YankVersion>(handler!(yank))
        .write::<UnyankVersion>(handler!(unyank))
        .write::<DeleteVersion>(handler!(delete))
}

fn shown(row: &VersionRow, group: &Uidp) -> own::PythonVersion {
    own::PythonVersion {
        parent: group.as_str().into(),
        package: row.package.clone(),
        version: row.version.clone(),
        license: row.license.clone(),
        yanked: row.yanked.is_some(),
        yanked_reason: row.yanked.clone().unwrap_or_default(),
        file_count: row.files(),
        size_bytes: row.size_bytes,
        create_time: timestamp(row.created_at),
    }
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListPythonVersionsRequest>,
) -> Result<own::ListPythonVersionsResponse> {
    let (group, request) = (call.require_scope()?, call.request());
    let rest = own::ListPythonVersionsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let (rows, next_page_token) = versions::page(tx, call, (LANGUAGE, &request.package), &page).await?;
    let versions = rows.iter().map(|row| shown(row, group)).collect();
    Ok(own::ListPythonVersionsResponse { versions, next_page_token })
}

async fn yank(
    tx: &mut WriteTx,
    call: &Authorized<own::YankPythonVersionRequest>,
) -> Result<Changed<own::PythonVersion>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = versions::require(tx, group, LANGUAGE, (&request.package, &request.version)).await?;
    let after = VersionRow { yanked: Some(request.reason.clone()), ..before.clone() };
    set_yanked(tx, call, &repository, (&before, &after)).await
}

async fn unyank(
    tx: &mut WriteTx,
    call: &Authorized<own::UnyankPythonVersionRequest>,
) -> Result<Changed<own::PythonVersion>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = versions::require(tx, group, LANGUAGE, (&request.package, &request.version)).await?;
    let after = VersionRow { yanked: None, ..before.clone() };
    set_yanked(tx, call, &repository, (&before, &after)).await
}

async fn set_yanked<M: Message + prost::Name>(
    tx: &mut WriteTx,
    call: &Authorized<M>,
    repository: &Uidp,
    (before, after): (&VersionRow, &VersionRow),
) -> Result<Changed<own::PythonVersion>> {
    let group = call.require_scope()?;
    let (before_shown, response) = (shown(before, group), shown(after, group));
    if before == after {
        return Ok(Changed::nothing(response));
    }
    versions::set_yanked(tx, repository, (&after.package, &after.sort_key), after.yanked.as_deref()).await?;
    summaries::note_change(tx, (repository, LANGUAGE), &after.package, 0, call.now()).await?;
    let changed = Changed::one(PACKAGE_VERSION, repository, Some(&before_shown), Some(&response), response.clone());
    Ok(changed.with_event(group, call.request()))
}

async fn delete(tx: &mut WriteTx, call: &Authorized<own::DeletePythonVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    let (repository, before) = versions::require(tx, group, LANGUAGE, (&request.package, &request.version)).await?;
    let gone = versions::remove(tx, &repository, (&before.package, &before.sort_key), call.now()).await?;
    summaries::note_change(tx, (&repository, LANGUAGE), &before.package, -gone, call.now()).await?;
    let before = shown(&before, group);
    let changed = Changed::one(PACKAGE_VERSION, &repository, Some(&before), None::<&own::PythonVersion>, ());
    Ok(changed.with_event(group, request))
}
