//! Sources and upstreams: requests that change where images come from need what a push needs.

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::content::PushManifest;
use bowline_contract::bowline::registry::v1::rpc::registry_policies as policies;
use bowline_contract::v1::registry as r1;
use bowline_contract::v1::registry::rpc::registry as repos1;
use bowline_contract::v2::registry as r2;
use bowline_contract::v2::registry::rpc::repos_service as repos2;
use bowline_contract::v2::registry::rpc::tags_service::CreateTag;

use super::{Aim, Row, at, default, mask};
use crate::fixture::Kind;

/// What a push needs.
pub(crate) const PUSH: &[&str] = &[PushManifest::FULL_NAME, CreateTag::FULL_NAME, repos1::UpdateTag::FULL_NAME];

pub(super) fn rows() -> Vec<Row> {
    fn supplies<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
        Row { also: PUSH, ..at::<M>(build) }
    }
    // Another one each time, so that each request is a change.
    let source = |aim: &Aim<'_>| format!("registry.example.com/{}", aim.name());
    let sync1 = move |aim: &Aim<'_>| Some(r1::SyncConfig { source: source(aim), ..default() });
    let sync2 = move |aim: &Aim<'_>| Some(r2::SyncConfig { source: source(aim), ..default() });
    let policy = move |uid: String, aim: &Aim<'_>| {
        let upstream = own::Upstream { url: format!("https://{}", source(aim)), ..default() };
        Some(own::RegistryPolicy { uid, upstream: Some(upstream), ..default() })
    };
    vec![
        supplies::<repos2::CreateRepo>(move |aim| r2::CreateRepoRequest {
            parent: aim.group(),
            repo: Some(r2::Repo { name: aim.name(), sync_config: sync2(aim), ..default() }),
        }),
        supplies::<repos2::UpdateRepo>(move |aim| r2::UpdateRepoRequest {
            repo: Some(r2::Repo { uid: aim.uid(Kind::Repo), sync_config: sync2(aim), ..default() }),
            update_mask: Some(mask("sync_config.source")),
        }),
        supplies::<repos1::CreateRepo>(move |aim| r1::CreateRepoRequest {
            parent_id: aim.group(),
            repo: Some(r1::Repo { name: aim.name(), sync_config: sync1(aim), ..default() }),
            prevent_existing: true,
        }),
        supplies::<repos1::UpdateRepo>(move |aim| r1::Repo {
            id: aim.uid(Kind::Repo),
            name: aim.name(),
            sync_config: sync1(aim),
            ..default()
        }),
        supplies::<policies::UpdateRepoPolicy>(move |aim| own::UpdateRepoPolicyRequest {
            policy: policy(aim.uid(Kind::Repo), aim),
            update_mask: Some(mask("upstream")),
        }),
        supplies::<policies::UpdateGroupPolicy>(move |aim| own::UpdateGroupPolicyRequest {
            policy: policy(aim.group(), aim),
            update_mask: Some(mask("upstream")),
        }),
    ]
}
