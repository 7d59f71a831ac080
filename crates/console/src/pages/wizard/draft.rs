//! What a person typed so far: everything is in the address, and nothing of it is secret.

use bowline_formats::workloads::{
    AwsPrincipal, AwsTrust, Expectation, GithubIds, GithubJobs, GithubSubject, GitlabJobs, KubernetesAccount,
    OidcSubject, SampleTokens, TokenTrust, WorkloadProblem,
};

use crate::method::UNREAD;
use crate::query::Query;

/// Where a workload can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Platform {
    Github,
    Gitlab,
    Kubernetes,
    Aws,
    Oidc,
}

/// All platforms, with their names in addresses and on pages, and what their workloads prove themselves with.
pub(super) const PLATFORMS: [(Platform, &str, &str, &str); 5] = [
    (Platform::Github, "github", "GitHub Actions", "Jobs of a repository, by the token that GitHub gives each job."),
    (Platform::Gitlab, "gitlab", "GitLab CI", "Jobs of a project, on gitlab.com or a host of your own."),
    (
        Platform::Kubernetes,
        "kubernetes",
        "Kubernetes",
        "Pods of a service account, and the kubelets that pull for them.",
    ),
    (Platform::Aws, "aws", "Amazon Web Services", "A role or user, by a request that it signs. There is no token."),
    (Platform::Oidc, "oidc", "Another OpenID Connect issuer", "Any program that gets tokens of an issuer."),
];

impl Platform {
    /// The platform that the address names.
    pub(super) fn of(query: &Query) -> Option<Platform> {
        let name = query.get("platform")?;
        PLATFORMS.iter().find(|(_, key, ..)| *key == name).map(|(platform, ..)| *platform)
    }

    pub(super) fn title(self) -> &'static str {
        PLATFORMS.iter().find(|(platform, ..)| *platform == self).map_or("", |(_, _, title, _)| title)
    }

    /// Roles that its workloads usually need, the narrowest first.
    pub(super) fn roles(self) -> &'static [&'static str] {
        match self {
            Platform::Kubernetes => &["registry.pull", "viewer"],
            _ => &["registry.pull", "registry.push", "viewer", "editor"],
        }
    }
}

/// Parameters of the wizard that are carried from page to page.
pub(super) const CARRIED: &[&str] = &[
    UNREAD,
    "in",
    "platform",
    "name",
    "description",
    "repo",
    "project",
    "jobs",
    "ref",
    "numbers",
    "owner-id",
    "repository-id",
    "host",
    "cluster-issuer",
    "namespace",
    "service-account",
    "keys",
    "account",
    "role-name",
    "user-name",
    "principal-id",
    "partition",
    "oidc-issuer",
    "subject",
    "match",
    "audience",
    "role",
    "at",
    "identity",
];

/// What an identity trusts, and tokens to compare it with.
pub(super) enum Workload {
    Token {
        trust: TokenTrust,
        samples: SampleTokens,
        /// Key set of an issuer that this server cannot reach.
        keys: Option<String>,
    },
    Aws(AwsTrust),
}

/// Reads what was typed.
///
/// # Errors
/// A field is empty, or not what the platform has.
pub(super) fn workload(platform: Platform, query: &Query) -> Result<Workload, WorkloadProblem> {
    require(query, "name")?;
    let audience = query.get("audience");
    match platform {
        Platform::Github => {
            let jobs = github(query, audience)?;
            Ok(Workload::Token { trust: jobs.trust()?, samples: jobs.samples(), keys: None })
        }
        Platform::Gitlab => {
            let (kind, name) = reference(query)?;
            let named = |wanted: &str| (kind == wanted).then_some(name);
            let jobs = GitlabJobs {
                project: require(query, "project")?,
                branch: named("branch"),
                tag: named("tag"),
                host: query.get("host").unwrap_or("gitlab.com"),
                audience,
            };
            Ok(Workload::Token { trust: jobs.trust()?, samples: jobs.samples(), keys: None })
        }
        Platform::Kubernetes => {
            let account = KubernetesAccount {
                issuer: require(query, "cluster-issuer")?,
                namespace: require(query, "namespace")?,
                name: query.get("service-account").unwrap_or("default"),
                audience,
            };
            let keys = query.get("keys").map(str::to_owned);
            Ok(Workload::Token { trust: account.trust(), samples: account.samples(), keys })
        }
        Platform::Aws => aws(query).map(Workload::Aws),
        Platform::Oidc => {
            let subject = require(query, "subject")?.to_owned();
            let is_pattern = query.get("match") == Some("pattern");
            let subject = OidcSubject {
                issuer: require(query, "oidc-issuer")?,
                subject: if is_pattern { Expectation::Pattern(subject) } else { Expectation::Exact(subject) },
                audience,
            };
            Ok(Workload::Token { trust: subject.trust(), samples: subject.samples(), keys: None })
        }
    }
}

fn github<'q>(query: &'q Query, audience: Option<&'q str>) -> Result<GithubJobs<'q>, WorkloadProblem> {
    let (kind, name) = reference(query)?;
    let subject = match kind {
        "tag" => GithubSubject::Tag(name),
        "environment" => GithubSubject::Environment(name),
        "all" => GithubSubject::All,
        _ => GithubSubject::Branch(name),
    };
    let (owner, repository) =
        (query.get("owner-id").unwrap_or_default(), query.get("repository-id").unwrap_or_default());
    let ids = match query.get("numbers") {
        Some("numbers") => GithubIds::Numbers { owner, repository },
        Some("both") => GithubIds::Both { owner, repository },
        _ => GithubIds::Names,
    };
    Ok(GithubJobs { repo: require(query, "repo")?, subject, ids, host: query.get("host"), audience })
}

fn aws(query: &Query) -> Result<AwsTrust, WorkloadProblem> {
    let principal = AwsPrincipal {
        account: require(query, "account")?,
        role_name: query.get("role-name"),
        user_name: query.get("user-name"),
        principal_id: query.get("principal-id"),
        partition: query.get("partition").unwrap_or("aws"),
    };
    principal.trust()
}

/// Which jobs, and the branch, tag or environment.
fn reference(query: &Query) -> Result<(&str, &str), WorkloadProblem> {
    match query.get("jobs").unwrap_or("branch") {
        "all" => Ok(("all", "")),
        kind => Ok((kind, require(query, "ref")?)),
    }
}

fn require<'q>(query: &'q Query, field: &'static str) -> Result<&'q str, WorkloadProblem> {
    query.get(field).ok_or(WorkloadProblem { field, description: "must not be empty" })
}

impl Workload {
    /// The fields of the form that creates the identity.
    pub(super) fn fields(&self, query: &Query) -> Vec<(String, String)> {
        let mut fields = vec![
            ("parent".to_owned(), query.text("in")),
            ("identity.name".to_owned(), query.text("name")),
            ("identity.description".to_owned(), query.text("description")),
        ];
        match self {
            Workload::Aws(trust) => fields.extend(within("identity.aws_identity", trust.members())),
            Workload::Token { trust, keys: None, .. } => {
                fields.extend(within("identity.claim_match", trust.members()));
            }
            Workload::Token { trust, keys: Some(keys), .. } => {
                let (Expectation::Exact(subject) | Expectation::Pattern(subject)) = &trust.subject;
                let audiences = trust.audience.clone().unwrap_or_default();
                let members = vec![
                    ("issuer", trust.issuer.clone()),
                    ("subject", subject.clone()),
                    ("issuer_keys", keys.clone()),
                    ("audiences", audiences),
                ];
                fields.extend(within("identity.static_keys", members));
            }
        }
        fields.retain(|(_, value)| !value.is_empty());
        fields
    }
}

/// Members with the path of their message before their names.
pub(super) fn within(path: &str, members: Vec<(&'static str, String)>) -> Vec<(String, String)> {
    members.into_iter().map(|(name, value)| (format!("{path}.{name}"), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_become_the_fields_of_an_identity() {
        let fields = |platform, pairs: &[(&str, &str)]| {
            let query = Query::of(&[&[("in", "g"), ("name", "build")], pairs].concat());
            workload(platform, &query).map(|workload| workload.fields(&query)).map_err(|problem| problem.field)
        };
        let has = |fields: &[(String, String)], path: &str, value: &str| {
            assert!(fields.contains(&(path.to_owned(), value.to_owned())), "{path} {value}: {fields:?}");
        };
        let made = fields(Platform::Github, &[("repo", "acme/site"), ("ref", "main")]).unwrap();
        has(&made, "parent", "g");
        has(&made, "identity.claim_match.subject", "repo:acme/site:ref:refs/heads/main");
        assert_eq!(fields(Platform::Github, &[("ref", "main")]), Err("repo"));
        assert_eq!(fields(Platform::Github, &[("repo", "acme/site")]), Err("ref"));
        let all = fields(Platform::Gitlab, &[("project", "acme/site"), ("jobs", "all")]).unwrap();
        has(&all, "identity.claim_match.subject_pattern", "project_path:acme/site:ref_type:(branch|tag):ref:.+");
        let keys = [("cluster-issuer", "https://k"), ("namespace", "prod"), ("keys", "{}"), ("audience", "a")];
        let made = fields(Platform::Kubernetes, &keys).unwrap();
        has(&made, "identity.static_keys.issuer_keys", "{}");
        has(&made, "identity.static_keys.audiences", "a");
        let made = fields(Platform::Aws, &[("account", "123456789012"), ("user-name", "ada")]).unwrap();
        has(&made, "identity.aws_identity.arn", "arn:aws:iam::123456789012:user/ada");
        let pattern = [("oidc-issuer", "https://i"), ("subject", "a|b"), ("match", "pattern")];
        has(&fields(Platform::Oidc, &pattern).unwrap(), "identity.claim_match.subject_pattern", "a|b");
        for (platform, key, ..) in PLATFORMS {
            assert_eq!(Platform::of(&Query::of(&[("platform", key)])), Some(platform));
        }
    }
}
