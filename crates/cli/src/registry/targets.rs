//! Repositories and images that a person names, as container clients name them or by UIDP.

use bowline_client::{Api, ClientError, LookupKind};
use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::registry_policies as policies;
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::registry as v2;
use bowline_contract::v2::registry::rpc::repos_service::ListRepos;
use bowline_contract::v2::registry::rpc::tags_service::ListTags;
use bowline_core::Uidp;
use bowline_terminal::Form;
use clap::Args;

use crate::error::CliError;
use crate::resolve::{self, only};
use crate::resources::DryRun;
use crate::session::Session;

/// A repository, or a group of them.
#[derive(Args, Clone, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct RepoOrGroup {
    /// Repository: organization/name, organization/group/name, or UIDP
    #[arg(value_name = "REPO")]
    repo: Option<String>,
    /// Organization or group instead, for all repositories below it
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
}

impl RepoOrGroup {
    /// Reads the policy of the group or repository.
    pub(crate) async fn policy(&self, session: &Session, api: &Api) -> Result<own::RegistryPolicy, ClientError> {
        match self.uid(session, api).await? {
            Resolved::Repo(uid) => api.call::<policies::GetRepoPolicy>(&own::GetRepoPolicyRequest { uid }).await,
            Resolved::Group(uid) => api.call::<policies::GetGroupPolicy>(&own::GetGroupPolicyRequest { uid }).await,
        }
    }

    /// Changes the named fields of that policy; absent in a dry run.
    pub(crate) async fn change(
        &self,
        session: &Session,
        api: &Api,
        mut policy: own::RegistryPolicy,
        fields: &[&str],
        (dry_run, form): (DryRun, &Form),
    ) -> Result<Option<own::RegistryPolicy>, CliError> {
        let paths = fields.iter().map(ToString::to_string).collect();
        let update_mask = Some(prost_types::FieldMask { paths });
        match self.uid(session, api).await? {
            Resolved::Repo(uid) => {
                policy.uid = uid;
                let request = own::UpdateRepoPolicyRequest { policy: Some(policy), update_mask };
                dry_run.call::<policies::UpdateRepoPolicy>(api, &request, form).await
            }
            Resolved::Group(uid) => {
                policy.uid = uid;
                let request = own::UpdateGroupPolicyRequest { policy: Some(policy), update_mask };
                dry_run.call::<policies::UpdateGroupPolicy>(api, &request, form).await
            }
        }
    }

    async fn uid(&self, session: &Session, api: &Api) -> Result<Resolved, ClientError> {
        match (&self.repo, &self.group) {
            (Some(path), _) => repo(session, api, path).await.map(Resolved::Repo),
            (None, Some(path)) => resolve::group(api, path).await.map(Resolved::Group),
            (None, None) => Err(ClientError::Usage("name a repository, or a group with --group".into())),
        }
    }
}

enum Resolved {
    Repo(String),
    Group(String),
}

/// UIDP of a repository.
///
/// # Errors
/// The caller sees none of that name, or several; or the server refuses.
pub(crate) async fn repo(session: &Session, api: &Api, text: &str) -> Result<String, ClientError> {
    repo_at(api, session.without_registry(text)).await
}

/// UIDP of a repository that is named without a registry's host.
///
/// # Errors
/// The caller sees none of that name, or several; or the server refuses.
pub(crate) async fn repo_at(api: &Api, path: &str) -> Result<String, ClientError> {
    if Uidp::is_valid(path) {
        return Ok(path.into());
    }
    split(path)?;
    // Names of repositories may have slashes, as `charts/nginx` has: the longest path of groups comes first.
    let mut missing = None;
    for (at, _) in path.rmatch_indices('/') {
        match repo_in(api, path, &path[..at], &path[at + 1..]).await {
            Err(error) if error.is_absent() => missing = missing.or(Some(error)),
            result => return result,
        }
    }
    let none = || ClientError::not_found(LookupKind::Repository, format!("there is no repository {path:?}"));
    Err(missing.unwrap_or_else(none))
}

/// UIDP of the repository of a name in a group.
async fn repo_in(api: &Api, path: &str, group: &str, name: &str) -> Result<String, ClientError> {
    let parent = resolve::group(api, group).await?;
    let request = v2::ListReposRequest {
        name: Some(name.into()),
        uidp: Some(UidpFilter { children_of: parent, ..UidpFilter::default() }),
        ..v2::ListReposRequest::default()
    };
    let found = api.call::<ListRepos>(&request).await?.repos;
    only(path, "repository", found.into_iter().map(|repo| repo.uid).collect())
}

/// The group's path and the repository's name.
pub(crate) fn split(path: &str) -> Result<(&str, &str), ClientError> {
    path.rsplit_once('/').filter(|(group, name)| !group.is_empty() && !name.is_empty()).ok_or_else(|| {
        ClientError::Usage(format!(
            "{path:?} names no repository; it looks like organization/name or organization/group/name"
        ))
    })
}

/// An image as container clients name it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Image<'a> {
    /// The repository, with the registry's host if it was named.
    pub(crate) repo: &'a str,
    /// `latest` where neither a tag nor a digest was named.
    pub(crate) tag: Option<&'a str>,
    /// The manifest's digest.
    pub(crate) digest: Option<&'a str>,
}

impl<'a> Image<'a> {
    /// Reads `repo`, `repo:tag`, `repo@digest` or `repo:tag@digest`.
    pub(crate) fn parse(text: &'a str) -> Image<'a> {
        let (named, digest) = match text.split_once('@') {
            Some((named, digest)) => (named, Some(digest)),
            None => (text, None),
        };
        // The colon of a port has a slash behind it.
        match named.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
            Some((repo, tag)) => Image { repo, tag: Some(tag), digest },
            None => Image { repo: named, tag: digest.is_none().then_some("latest"), digest },
        }
    }
}

/// A tag of a repository.
///
/// # Errors
/// No tag has that name, or the call fails.
pub(crate) async fn tag(api: &Api, repo: &str, name: &str) -> Result<v2::Tag, ClientError> {
    let request = v2::ListTagsRequest {
        name: name.into(),
        uidp: Some(UidpFilter { children_of: repo.into(), ..UidpFilter::default() }),
        // Lists leave these out, and here one is named.
        include_referrers: true,
        include_dates: true,
        include_epochs: true,
        ..v2::ListTagsRequest::default()
    };
    let found = api.call::<ListTags>(&request).await?.tags.into_iter().find(|tag| tag.name == name);
    found.ok_or_else(|| ClientError::not_found(LookupKind::Other, format!("the repository has no tag {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_as_clients_name_them() {
        for (text, repo, tag, digest) in [
            ("acme/nginx", "acme/nginx", Some("latest"), None),
            ("acme/web/nginx:1.2", "acme/web/nginx", Some("1.2"), None),
            ("host:5000/acme/nginx", "host:5000/acme/nginx", Some("latest"), None),
            ("host:5000/acme/nginx:1", "host:5000/acme/nginx", Some("1"), None),
            ("acme/nginx@sha256:ab", "acme/nginx", None, Some("sha256:ab")),
            ("acme/nginx:1@sha256:ab", "acme/nginx", Some("1"), Some("sha256:ab")),
        ] {
            assert_eq!(Image::parse(text), Image { repo, tag, digest }, "{text}");
        }
    }

    #[test]
    fn repositories_have_a_group() {
        assert_eq!(split("acme/web/nginx").unwrap(), ("acme/web", "nginx"));
        for text in ["nginx", "/nginx", "acme/", ""] {
            assert!(split(text).is_err(), "{text}");
        }
    }
}
