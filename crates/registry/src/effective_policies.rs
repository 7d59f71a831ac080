//! The effective policy of a repository: its own, and those of the groups above it.

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::registry_policies::{GetEffectivePolicy, GetGroupPolicy};
use bowline_contract::v2::registry::rpc::repos_service::ListRepos;
use bowline_contract::{Auth, Method};
use bowline_core::{Result, Uidp};
use bowline_pipeline::{Authorized, Handlers, handler};
use bowline_store::ReadTx;

use super::content::replication::sources::{self, Source};
use super::{limits, repos, retention};

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetEffectivePolicy>(handler!(get))
}

type Call = Authorized<own::GetEffectivePolicyRequest>;

async fn get(tx: &mut ReadTx, call: &Call) -> Result<own::EffectivePolicy> {
    let repo = call.require_scope()?;
    repos::require(tx, repo).await?;
    // From the organization down to the repository.
    let holding = limits::policies(tx, repo).await?;
    let nearest = holding.last();
    let rules = holding.iter().rev().find_map(|policy| Some((policy, rules_of(policy)?)));
    Ok(own::EffectivePolicy {
        repo_uid: repo.as_str().into(),
        public: nearest.is_some_and(|policy| policy.public),
        public_from: nearest.map(|policy| policy.uid.clone()).unwrap_or_default(),
        immutable_tag_patterns: holding.iter().filter_map(patterns_of).collect(),
        byte_quotas: holding.iter().filter_map(quota_of).collect(),
        retention: rules.map(|(_, retention)| retention.clone()),
        retention_from: rules.map(|(policy, _)| policy.uid.clone()).unwrap_or_default(),
        upstream: upstream_of(tx, call, repo, &holding).await?,
    })
}

fn rules_of(policy: &own::RegistryPolicy) -> Option<&own::Retention> {
    policy.retention.as_ref().filter(|retention| retention::has_rules(retention))
}

fn patterns_of(policy: &own::RegistryPolicy) -> Option<own::EffectivePatterns> {
    let patterns = policy.immutable_tag_patterns.clone();
    (!patterns.is_empty()).then(|| own::EffectivePatterns { patterns, from: policy.uid.clone() })
}

fn quota_of(policy: &own::RegistryPolicy) -> Option<own::EffectiveQuota> {
    (policy.byte_quota > 0).then(|| own::EffectiveQuota { bytes: policy.byte_quota, from: policy.uid.clone() })
}

/// The repository's own source, else the upstream of the nearest policy. Its address is shown to those who may read it
/// where it is set.
async fn upstream_of(
    tx: &mut ReadTx,
    call: &Call,
    repo: &Uidp,
    holding: &[own::RegistryPolicy],
) -> Result<Option<own::EffectiveUpstream>> {
    if let Some(source) = sources::of(tx, repo, call.now()).await? {
        let is_shown = match &source {
            Source::Here(uid) => holds::<ListRepos>(call, uid.as_str()),
            Source::There(_) => true,
        };
        let url = if is_shown { source.text().to_owned() } else { String::new() };
        return Ok(Some(own::EffectiveUpstream { url, tag_patterns: Vec::new(), from: repo.as_str().into() }));
    }
    let set = holding.iter().rev().find_map(|policy| Some((&policy.uid, policy.upstream.as_ref()?)));
    Ok(set.map(|(from, upstream)| {
        let is_shown = from == repo.as_str() || holds::<GetGroupPolicy>(call, from);
        let (url, tag_patterns) =
            if is_shown { (upstream.url.clone(), upstream.tag_patterns.clone()) } else { Default::default() };
        own::EffectiveUpstream { url, tag_patterns, from: from.clone() }
    }))
}

/// Whether the caller holds what the method needs, there.
fn holds<M: Method>(call: &Call, scope: &str) -> bool {
    match call.contract().by_full_name(M::FULL_NAME).map(|method| &method.auth) {
        Some(Auth::Capabilities { needed, .. }) => call.grants().allows(scope, needed),
        _ => false,
    }
}
