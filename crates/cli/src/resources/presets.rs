//! `bowline iam identities create github|gitlab|kubernetes|aws|oidc`: what identifies workloads of well-known issuers.

use bowline_client::{Api, ClientError};
use bowline_contract::Contract;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::rpc::identities_service::{CreateIdentity, DeleteIdentity};
use bowline_contract::v2::iam::rpc::role_bindings_service::BatchCreateRoleBindings;
use bowline_formats::workloads::{
    AwsPrincipal, Expectation, GithubIds, GithubJobs, GithubSubject, GitlabJobs, OidcSubject, TokenTrust,
    WorkloadProblem,
};
use bowline_terminal::{Output, Table, note, say};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::kubernetes::Kubernetes;
use super::names;
use super::preview::{self, DryRun};
use super::table::Kind;

use crate::error::CliError;
use crate::session::{Access, Session};
use crate::{dynamic, print, resolve};

/// Identities of well-known issuers.
#[derive(Subcommand)]
pub(super) enum PresetCommand {
    /// Jobs of GitHub Actions
    #[command(
        after_help = "Example:\n  bowline iam identities create github acme/site --repo acme/site --branch main --role editor"
    )]
    Github(Box<Preset<Github>>),
    /// Jobs of GitLab CI
    #[command(
        after_help = "Example:\n  bowline iam identities create gitlab acme/app --project acme/app --branch main --role editor"
    )]
    Gitlab(Box<Preset<Gitlab>>),
    /// A service account of a Kubernetes cluster
    #[command(
        after_help = "Example:\n  bowline iam identities create kubernetes acme/puller --cluster-issuer https://k8s.example.com \
        --namespace prod --service-account default --role registry.pull"
    )]
    Kubernetes(Box<Preset<Kubernetes>>),
    /// A role or user of AWS
    #[command(
        after_help = "Example:\n  bowline iam identities create aws acme/batch --account 123456789012 --role-name batch --role viewer"
    )]
    Aws(Box<Preset<Aws>>),
    /// A subject of any OpenID Connect issuer
    #[command(
        after_help = "Example:\n  bowline iam identities create oidc acme/build --oidc-issuer https://ci.example.com --subject build --role viewer"
    )]
    Oidc(Box<Preset<Oidc>>),
}

/// What every preset takes, and its own claims.
#[derive(Args)]
pub(super) struct Preset<C: Args> {
    #[command(flatten)]
    access: Access,
    /// Path of the new identity: its group's path and its name, such as acme/build
    #[arg(value_name = "PATH")]
    path: String,
    /// What it is for
    #[arg(long, value_name = "TEXT", default_value = "")]
    description: String,
    /// Roles that it gets at its group, by name, path or UIDP
    #[arg(long = "role", value_name = "NAME,...", value_delimiter = ',')]
    roles: Vec<String>,
    #[command(flatten)]
    claims: C,
    #[command(flatten)]
    dry_run: DryRun,
    #[command(flatten)]
    output: Output,
}

/// A repository of GitHub, and which of its jobs.
#[derive(Args)]
pub(super) struct Github {
    /// Repository: owner/name
    #[arg(long, value_name = "OWNER/NAME")]
    repo: String,
    /// Only jobs on this branch [default: all jobs of the repository]
    #[arg(long, conflicts_with_all = ["tag", "environment"])]
    branch: Option<String>,
    /// Only jobs on this tag
    #[arg(long, conflicts_with = "environment")]
    tag: Option<String>,
    /// Only jobs of this environment
    #[arg(long)]
    environment: Option<String>,
    /// Host of GitHub Enterprise Server
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Audience that the job asks for [default: the server's own address]
    #[arg(long)]
    audience: Option<String>,
}

/// A project of GitLab, and which of its jobs.
#[derive(Args)]
pub(super) struct Gitlab {
    /// Project: group/name
    #[arg(long, value_name = "GROUP/NAME")]
    project: String,
    /// Only jobs on this branch [default: all jobs of the project]
    #[arg(long, conflicts_with = "tag")]
    branch: Option<String>,
    /// Only jobs on this tag
    #[arg(long)]
    tag: Option<String>,
    /// Host of GitLab
    #[arg(long, value_name = "HOST", default_value = "gitlab.com")]
    host: String,
    /// Audience of the job's token [default: the server's own address]
    #[arg(long)]
    audience: Option<String>,
}

/// A principal of AWS.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("principal").required(true).args(["role_name", "user_name"])))]
pub(super) struct Aws {
    /// Number of the account
    #[arg(long, value_name = "NUMBER")]
    account: String,
    /// Name of the role that workloads assume
    #[arg(long, value_name = "NAME")]
    role_name: Option<String>,
    /// Name of the user
    #[arg(long, value_name = "NAME")]
    user_name: Option<String>,
    /// Id of the role or user, such as AROA...: a new one of the same name is another
    #[arg(long, value_name = "ID")]
    principal_id: Option<String>,
    /// Partition of AWS
    #[arg(long, default_value = "aws")]
    partition: String,
}

/// A subject of an issuer.
#[derive(Args)]
#[command(group(clap::ArgGroup::new("who").required(true).args(["subject", "subject_pattern"])))]
pub(super) struct Oidc {
    /// Issuer of the tokens
    #[arg(long, value_name = "URL")]
    oidc_issuer: String,
    /// Subject of the tokens
    #[arg(long)]
    subject: Option<String>,
    /// Regular expression that the whole subject matches
    #[arg(long, value_name = "REGEX")]
    subject_pattern: Option<String>,
    /// Audience of the tokens [default: the server's own address]
    #[arg(long)]
    audience: Option<String>,
}

/// The relationship of an identity: a member of its message.
pub(super) trait Claims {
    fn relationship(&self) -> Result<Value, ClientError>;

    /// Roles of an identity for which none is named.
    fn default_roles(&self) -> &'static [&'static str] {
        &[]
    }

    /// Before anything is created.
    fn prepare(&self) -> Result<(), CliError> {
        Ok(())
    }

    /// After the identity was created.
    fn finish(&self, _session: &Session, _identity: &str) -> Result<(), CliError> {
        Ok(())
    }
}

impl Claims for Github {
    fn relationship(&self) -> Result<Value, ClientError> {
        let branch = self.branch.as_deref().map(GithubSubject::Branch);
        let tag = self.tag.as_deref().map(GithubSubject::Tag);
        let environment = self.environment.as_deref().map(GithubSubject::Environment);
        let jobs = GithubJobs {
            repo: &self.repo,
            subject: branch.or(tag).or(environment).unwrap_or(GithubSubject::All),
            ids: GithubIds::Names,
            host: self.host.as_deref(),
            audience: self.audience.as_deref(),
        };
        jobs.trust().map(|trust| claim_match(&trust)).map_err(|problem| usage(&problem, &self.repo))
    }
}

impl Claims for Gitlab {
    fn relationship(&self) -> Result<Value, ClientError> {
        let jobs = GitlabJobs {
            project: &self.project,
            branch: self.branch.as_deref(),
            tag: self.tag.as_deref(),
            host: &self.host,
            audience: self.audience.as_deref(),
        };
        jobs.trust().map(|trust| claim_match(&trust)).map_err(|problem| usage(&problem, &self.project))
    }
}

impl Claims for Aws {
    fn relationship(&self) -> Result<Value, ClientError> {
        let principal = AwsPrincipal {
            account: &self.account,
            role_name: self.role_name.as_deref(),
            user_name: self.user_name.as_deref(),
            principal_id: self.principal_id.as_deref(),
            partition: &self.partition,
        };
        let trust = principal.trust().map_err(|problem| usage(&problem, &self.account))?;
        Ok(json!({ "aws_identity": object(trust.members()) }))
    }
}

impl Claims for Oidc {
    fn relationship(&self) -> Result<Value, ClientError> {
        let pattern = || Expectation::Pattern(self.subject_pattern.clone().unwrap_or_default());
        let subject = OidcSubject {
            issuer: &self.oidc_issuer,
            subject: self.subject.clone().map_or_else(pattern, Expectation::Exact),
            audience: self.audience.as_deref(),
        };
        Ok(claim_match(&subject.trust()))
    }
}

/// The relationship of an identity that trusts these tokens.
pub(super) fn claim_match(trust: &TokenTrust) -> Value {
    json!({ "claim_match": object(trust.members()) })
}

fn object(members: Vec<(&'static str, String)>) -> Map<String, Value> {
    members.into_iter().map(|(name, value)| (name.to_owned(), Value::from(value))).collect()
}

fn usage(problem: &WorkloadProblem, text: &str) -> ClientError {
    ClientError::Usage(format!("--{} {text}: {}", problem.field, problem.description))
}

/// Creates the identity with its roles; if a role cannot be bound, the identity is deleted again.
pub(super) async fn run(command: PresetCommand) -> Result<(), CliError> {
    match command {
        PresetCommand::Github(preset) => create(*preset).await,
        PresetCommand::Gitlab(preset) => create(*preset).await,
        PresetCommand::Kubernetes(preset) => create(*preset).await,
        PresetCommand::Aws(preset) => create(*preset).await,
        PresetCommand::Oidc(preset) => create(*preset).await,
    }
}

async fn create<C: Args + Claims>(preset: Preset<C>) -> Result<(), CliError> {
    let mut identity = preset.claims.relationship()?;
    let no_group =
        || ClientError::Usage(format!("{:?} names no group: write its path first, as acme/build", preset.path));
    let (group, name) = preset.path.rsplit_once('/').ok_or_else(no_group)?;
    identity["name"] = name.into();
    identity["description"] = preset.description.clone().into();
    let session = preset.access.session()?;
    let api = session.api().await?;
    let parent = resolve::group(&api, group).await?;
    let defaults = preset.claims.default_roles().iter().filter(|_| preset.roles.is_empty()).copied();
    let role_names: Vec<&str> = preset.roles.iter().map(String::as_str).chain(defaults).collect();
    let mut roles = Vec::new();
    for role in &role_names {
        roles.push(names::uidp(&api, Kind::Role, role).await?);
    }
    let request = json!({ "parent": parent, "identity": identity });
    let Value::Object(request) = request else { return Ok(()) };
    let contract = Contract::load();
    let method = dynamic::method(&contract, <CreateIdentity as bowline_contract::Method>::FULL_NAME)?;
    if preset.dry_run.is_on() {
        // No binding of an identity that is not there can be previewed.
        let listed = if role_names.is_empty() { "none".to_owned() } else { role_names.join(", ") };
        note(&format!("roles that it would get: {listed}\n"));
        return preview::show(&api, method, &request, preset.output.form()).await;
    }
    preset.claims.prepare()?;
    let made = dynamic::call(&api, method, &request).await?;
    let uid = made.get("uid").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Err(error) = bind(&api, &parent, &uid, roles).await {
        // An identity without its roles would be a partial result.
        let removed = api.call::<DeleteIdentity>(&v2::DeleteIdentityRequest { uid: uid.clone() }).await;
        if let Err(error) = removed {
            say(&format!("the identity {uid} could not be removed again: {error}\n"));
        }
        return Err(error.into());
    }
    let mut table = Table::without_head();
    table.push([uid.clone()]);
    print(&preset.output.form().render(&table, || Ok(made))?)?;
    preset.claims.finish(&session, &uid)
}

/// Binds all roles, or none.
async fn bind(api: &Api, parent: &str, identity: &str, roles: Vec<String>) -> Result<(), ClientError> {
    if roles.is_empty() {
        return Ok(());
    }
    let binding = |role_uid| v2::RoleBinding { identity_uid: identity.into(), role_uid, ..v2::RoleBinding::default() };
    let request = |role| v2::CreateRoleBindingRequest { parent: parent.into(), role_binding: Some(binding(role)) };
    let request = v2::BatchCreateRoleBindingsRequest {
        parent: parent.into(),
        requests: roles.into_iter().map(request).collect(),
        role_uid: String::new(),
    };
    api.call::<BatchCreateRoleBindings>(&request).await.map(|_| ())
}
