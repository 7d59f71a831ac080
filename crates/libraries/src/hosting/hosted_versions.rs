//! Versions of the packages that groups published in the other ecosystems: listed, withdrawn, deleted. A change does what the
//! same change by the protocol of the ecosystem does, and is recorded in the same form.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::bowline::libraries::v1::rpc::{
    cargo_packages, generic_packages, go_packages, java_packages, javascript_packages,
};
use bowline_core::{Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, PageRequest, handler};
use bowline_resources::list::timestamp;
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, WriteTx};
use prost::Message;

use super::protocols::{Cargo, Generic, Go, Maven, Npm, Protocol};
use super::versions::{self, VersionRow};
use super::{cargo_changes, generic_changes, go_changes, java_changes, javascript_versions};
use crate::ecosystems::Language;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<javascript_packages::ListVersions>(handler!(list::<Npm>))
        .write::<javascript_packages::DeprecateVersion>(handler!(deprecate))
        .write::<javascript_packages::UndeprecateVersion>(handler!(undeprecate))
        .write::<javascript_packages::DeleteVersion>(handler!(delete_javascript))
        .read::<java_packages::ListVersions>(handler!(list::<Maven>))
        .write::<java_packages::DeleteVersion>(handler!(delete_java))
        .read::<go_packages::ListVersions>(handler!(list::<Go>))
        .write::<go_packages::DeleteVersion>(handler!(delete_go))
        .read::<cargo_packages::ListVersions>(handler!(list::<Cargo>))
        .write::<cargo_packages::YankVersion>(handler!(yank))
        .write::<cargo_packages::UnyankVersion>(handler!(unyank))
        .write::<cargo_packages::DeleteVersion>(handler!(delete_crate))
        .read::<generic_packages::ListVersions>(handler!(list::<Generic>))
        .write::<generic_packages::DeleteVersion>(handler!(delete_generic))
}

fn shown(row: &VersionRow, group: &Uidp, language: Language) -> own::HostedVersion {
    let warning = row.yanked.as_deref().filter(|_| language == Language::JavaScript);
    own::HostedVersion {
        parent: group.as_str().into(),
        package: row.package.clone(),
        version: row.version.clone(),
        license: row.license.clone(),
        yanked: row.yanked.is_some() && language != Language::JavaScript,
        deprecated: warning.unwrap_or_default().into(),
        file_count: row.files(),
        size_bytes: row.size_bytes,
        create_time: timestamp(row.created_at),
    }
}

async fn list<P: Protocol>(
    tx: &mut ReadTx,
    call: &Authorized<own::ListHostedVersionsRequest>,
) -> Result<own::ListHostedVersionsResponse> {
    let (group, request) = (call.require_scope()?, call.request());
    let rest = own::ListHostedVersionsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: rest.encode_to_vec(),
        ..PageRequest::default()
    };
    let (rows, next_page_token) = versions::page(tx, call, (P::LANGUAGE, &request.package), &page).await?;
    let versions = rows.iter().map(|row| shown(row, group, P::LANGUAGE)).collect();
    Ok(own::ListHostedVersionsResponse { versions, next_page_token })
}

/// A change with the version as it is after it.
async fn with_version(
    tx: &mut ReadTx,
    group: &Uidp,
    language: Language,
    of: (&str, &str),
    changed: Changed<()>,
) -> Result<Changed<own::HostedVersion>> {
    let (_, after) = versions::require(tx, group, language, of).await?;
    Ok(changed.map(|()| shown(&after, group, language)))
}

async fn deprecate(
    tx: &mut WriteTx,
    call: &Authorized<own::DeprecateVersionRequest>,
) -> Result<Changed<own::HostedVersion>> {
    let request = call.request();
    set_warning(tx, call, (&request.package, &request.version), &request.deprecated).await
}

async fn undeprecate(
    tx: &mut WriteTx,
    call: &Authorized<own::HostedVersionRequest>,
) -> Result<Changed<own::HostedVersion>> {
    let request = call.request();
    set_warning(tx, call, (&request.package, &request.version), "").await
}

async fn set_warning<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    of: (&str, &str),
    warning: &str,
) -> Result<Changed<own::HostedVersion>> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let changed = javascript_versions::set_warning(tx, group, of, warning, call.now()).await?;
    with_version(tx, group, Npm::LANGUAGE, of, changed).await
}

async fn delete_javascript(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    javascript_versions::remove_version(tx, group, (&request.package, &request.version), call.now()).await
}

async fn delete_java(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    java_changes::remove(tx, group, (&request.package, &request.version), call.now()).await
}

async fn delete_go(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    go_changes::remove(tx, group, (&request.package, &request.version), call.now()).await
}

async fn yank(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<own::HostedVersion>> {
    set_yanked(tx, call, true).await
}

async fn unyank(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<own::HostedVersion>> {
    set_yanked(tx, call, false).await
}

async fn set_yanked(
    tx: &mut WriteTx,
    call: &Authorized<own::HostedVersionRequest>,
    yanked: bool,
) -> Result<Changed<own::HostedVersion>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    let (name, version) = (Cargo::LANGUAGE.normalized(&request.package), request.version.as_str());
    let changed = cargo_changes::set_yanked(tx, (group, &name, version), yanked, call.now()).await?;
    with_version(tx, group, Cargo::LANGUAGE, (&name, version), changed).await
}

async fn delete_crate(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    let name = Cargo::LANGUAGE.normalized(&request.package);
    cargo_changes::remove(tx, (group, &name, &request.version), call.now()).await
}

async fn delete_generic(tx: &mut WriteTx, call: &Authorized<own::HostedVersionRequest>) -> Result<Changed<()>> {
    let (group, request) = (call.require_scope()?, call.request());
    require_group(tx, group).await?;
    generic_changes::remove(tx, group, (&request.package, &request.version), call.now()).await
}
