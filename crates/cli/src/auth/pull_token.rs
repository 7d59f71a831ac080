use bowline_client::{Api, ClientError, PullToken, PullTokenKey};
use bowline_contract::chainguard::platform::common::UidpFilter;
use bowline_contract::v2::iam as v2;
use bowline_contract::v2::iam::identity::{Relationship, StaticKeys};
use bowline_contract::v2::iam::rpc::identities_service::{CreateIdentity, DeleteIdentity, GetIdentity, ListIdentities};
use bowline_contract::v2::iam::rpc::role_bindings_service::BatchCreateRoleBindings;
use bowline_contract::v2::iam::rpc::roles_service::ListRoles;
use bowline_core::hex;
use bowline_terminal::{Table, confirm, say, seconds};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use crate::error::CliError;
use crate::print;
use crate::resolve;
use crate::session::{Access, Session};

/// `bowline auth pull-token`.
#[derive(Subcommand)]
pub enum PullTokenCommand {
    /// Create a pull token; it is shown once
    Create(Box<CreateCommand>),
    /// List the pull tokens of an organization
    List(Box<ListCommand>),
    /// Revoke a pull token
    Delete(DeleteCommand),
}

/// What a pull token is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Repository {
    /// Container images
    Oci,
    /// Packages of the operating system
    Apk,
    /// Java libraries
    Java,
    /// JavaScript libraries
    Javascript,
    /// Go modules
    Go,
    /// Crates of Rust
    Cargo,
    /// Python libraries
    Python,
    /// All of them
    All,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Env,
}

#[derive(Args)]
pub struct CreateCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group, by path or UIDP
    #[arg(long, value_name = "UIDP|NAME")]
    parent: String,
    /// What it is for; may be repeated or joined with commas
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', default_value = "oci")]
    repository: Vec<Repository>,
    /// How long it lives, such as 720h or 30d; a year at most
    #[arg(long, value_name = "TIME", default_value = "720h")]
    ttl: String,
    /// Name of the identity
    #[arg(long, default_value = "pull-token")]
    name: String,
    /// Description of the identity
    #[arg(long, default_value = "")]
    description: String,
    /// Issuer that the token names [default: https://pulltoken.<host of the issuer>]
    #[arg(long, value_name = "URL")]
    token_issuer: Option<String>,
    /// Form of the answer
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: Output,
}

#[derive(Args)]
pub struct ListCommand {
    #[command(flatten)]
    access: Access,
    /// Organization or group, by UIDP or name; all that the caller may see where none is named
    #[arg(long, value_name = "UIDP|NAME")]
    parent: Option<String>,
    /// Only those that have expired, or that have not
    #[arg(long)]
    expired: Option<bool>,
    #[command(flatten)]
    output: bowline_terminal::Output,
}

#[derive(Args)]
pub struct DeleteCommand {
    #[command(flatten)]
    access: Access,
    /// UIDP of the identity, which is the user name of the credential
    #[arg(value_name = "UIDP")]
    uid: String,
}

/// Prefix of the subjects of pull tokens.
const SUBJECTS: &str = "pull-token-";

/// Longest lifetime in seconds: a year.
const LONGEST: i64 = 365 * 24 * 3600;

pub(crate) async fn run(command: PullTokenCommand) -> Result<(), CliError> {
    match command {
        PullTokenCommand::Create(command) => create(*command).await,
        PullTokenCommand::List(command) => list(*command).await,
        PullTokenCommand::Delete(command) => delete(command).await,
    }
}

async fn create(command: CreateCommand) -> Result<(), CliError> {
    let lifetime = seconds("ttl", &command.ttl, LONGEST)?;
    let session = command.access.session()?;
    let api = session.api().await?;
    let roles = role_uids(&api, &command.repository).await?;
    let issuer = command.token_issuer.clone().unwrap_or_else(|| default_issuer(session.issuer.url()));
    let nonce: String = hex(&bowline_authn::crypto::random_bytes::<16>());
    let key = PullTokenKey::new(&issuer, &nonce)?;
    let (now, ends) = (Session::now(), Session::now() + lifetime);
    let parent = resolve::group(&api, &command.parent).await?;
    let identity = create_identity(&api, &command, parent, &issuer, &key, ends).await?;
    if let Err(error) = bind(&api, &identity, roles).await {
        // Without its roles the identity is useless.
        let removed = api.call::<DeleteIdentity>(&v2::DeleteIdentityRequest { uid: identity.clone() }).await;
        if let Err(error) = removed {
            say(&format!("the identity {identity} could not be removed again: {error}\n"));
        }
        return Err(error.into());
    }
    let token = key.sign(&identity, session.issuer.url(), now, ends);
    print(&shown(&token, command.output))
}

/// A subdomain of the issuer's host. Nothing is served there: the identity stores the keys.
fn default_issuer(issuer: &str) -> String {
    let host = url::Url::parse(issuer).ok().and_then(|url| url.host_str().map(String::from));
    format!("https://pulltoken.{}", host.unwrap_or_else(|| "localhost".into()))
}

async fn create_identity(
    api: &Api,
    command: &CreateCommand,
    parent: String,
    issuer: &str,
    key: &PullTokenKey,
    ends: i64,
) -> Result<String, ClientError> {
    let keys = StaticKeys {
        issuer: issuer.into(),
        subject: key.subject().into(),
        issuer_keys: key.key_set(),
        expiration_time: Some(prost_types::Timestamp { seconds: ends, nanos: 0 }),
        audiences: Vec::new(),
    };
    let identity = v2::Identity {
        name: command.name.clone(),
        description: command.description.clone(),
        relationship: Some(Relationship::StaticKeys(keys)),
        ..v2::Identity::default()
    };
    let request = v2::CreateIdentityRequest { parent, identity: Some(identity) };
    Ok(api.call::<CreateIdentity>(&request).await?.uid)
}

/// Binds all roles at the identity's parent, or none.
async fn bind(api: &Api, identity: &str, roles: Vec<String>) -> Result<(), ClientError> {
    let parent = identity.rsplit_once('/').map_or(identity, |(parent, _)| parent);
    let requests = roles.into_iter().map(|role| v2::CreateRoleBindingRequest {
        parent: parent.into(),
        role_binding: Some(v2::RoleBinding {
            identity_uid: identity.into(),
            role_uid: role,
            ..v2::RoleBinding::default()
        }),
    });
    let request = v2::BatchCreateRoleBindingsRequest {
        parent: parent.into(),
        requests: requests.collect(),
        role_uid: String::new(),
    };
    api.call::<BatchCreateRoleBindings>(&request).await.map(|_| ())
}

fn role_names(kinds: &[Repository]) -> Vec<&'static str> {
    let every = [
        Repository::Oci,
        Repository::Apk,
        Repository::Java,
        Repository::Javascript,
        Repository::Go,
        Repository::Cargo,
        Repository::Python,
    ];
    let wanted = every.into_iter().filter(|kind| kinds.contains(kind) || kinds.contains(&Repository::All));
    let name = |kind| match kind {
        Repository::Oci | Repository::All => "registry.pull",
        Repository::Apk => "apk.pull",
        Repository::Java => "libraries.java.pull",
        Repository::Javascript => "libraries.javascript.pull",
        Repository::Go => "libraries.go.pull",
        Repository::Cargo => "libraries.cargo.pull",
        Repository::Python => "libraries.python.pull",
    };
    wanted.map(name).collect()
}

async fn role_uids(api: &Api, kinds: &[Repository]) -> Result<Vec<String>, ClientError> {
    let mut uids = Vec::new();
    for name in role_names(kinds) {
        let request = v2::ListRolesRequest { name: name.into(), ..v2::ListRolesRequest::default() };
        let found = api.call::<ListRoles>(&request).await?.roles;
        // A custom role of the same name has a parent.
        let built_in = found.into_iter().find(|role| !role.uid.contains('/'));
        let missing = || ClientError::Usage(format!("the server has no role {name}"));
        uids.push(built_in.ok_or_else(missing)?.uid);
    }
    Ok(uids)
}

fn shown(token: &PullToken, output: Output) -> String {
    let PullToken { identity, token } = token;
    match output {
        Output::Text => format!("Username: {identity}\nPassword: {token}\n"),
        Output::Json => format!("{}\n", json!({ "identity_id": identity, "token": token })),
        Output::Env => format!("export CHAINGUARD_IDENTITY_ID={identity}\nexport CHAINGUARD_TOKEN={token}\n"),
    }
}

async fn list(command: ListCommand) -> Result<(), CliError> {
    let session = command.access.session()?;
    let (api, now) = (session.api().await?, Session::now());
    let uidp = match &command.parent {
        Some(parent) => {
            Some(UidpFilter { descendants_of: resolve::group(&api, parent).await?, ..UidpFilter::default() })
        }
        None => None,
    };
    let mut request = v2::ListIdentitiesRequest {
        uidp,
        relationship_type: v2::RelationshipType::Static as i32,
        page_size: 200,
        ..v2::ListIdentitiesRequest::default()
    };
    let mut table = Table::new(&["uidp", "name", "expires", "description", "expire time"]);
    loop {
        let page = api.call::<ListIdentities>(&request).await?;
        for identity in page.identities {
            let Some(Relationship::StaticKeys(keys)) = identity.relationship else { continue };
            let ends = keys.expiration_time.map_or(i64::MAX, |time| time.seconds);
            let is_pull_token = keys.subject.starts_with(SUBJECTS);
            if is_pull_token && command.expired.is_none_or(|expired| expired == (ends <= now)) {
                let left = if ends <= now { "expired".into() } else { format!("in {}", remaining(ends - now)) };
                let time = keys.expiration_time.map(|time| time.to_string()).unwrap_or_default();
                table.push([identity.uid, identity.name, left, identity.description, time]);
            }
        }
        if page.next_page_token.is_empty() {
            return print(&command.output.list(&table)?);
        }
        request.page_token = page.next_page_token;
    }
}

/// A time in the largest unit that has two of it: an hour is 60 minutes, and a day is 24 hours.
fn remaining(seconds: i64) -> String {
    match seconds {
        days if days >= 2 * 86400 => format!("{} days", days / 86400),
        hours if hours >= 2 * 3600 => format!("{} hours", hours / 3600),
        minutes if minutes >= 2 * 60 => format!("{} minutes", minutes / 60),
        seconds => format!("{seconds} seconds"),
    }
}

async fn delete(command: DeleteCommand) -> Result<(), CliError> {
    let api = command.access.session()?.api().await?;
    let identity = api.call::<GetIdentity>(&v2::GetIdentityRequest { uid: command.uid.clone() }).await?;
    // The command deletes pull tokens only: a mistyped UIDP must not delete another identity.
    match identity.relationship {
        Some(Relationship::StaticKeys(keys)) if keys.subject.starts_with(SUBJECTS) => {}
        _ => return Err(ClientError::Usage(format!("{} is no pull token", command.uid)).into()),
    }
    confirm(&format!("End the pull token {} ({})", identity.name, command.uid))?;
    api.call::<DeleteIdentity>(&v2::DeleteIdentityRequest { uid: command.uid.clone() }).await?;
    say(&format!("the pull token {} ({}) is deleted\n", identity.name, command.uid));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_roles() {
        assert_eq!(role_names(&[Repository::Oci]), ["registry.pull"]);
        assert_eq!(role_names(&[Repository::Python, Repository::Oci]), ["registry.pull", "libraries.python.pull"]);
        assert_eq!(role_names(&[Repository::All]).len(), 7);
    }

    #[test]
    fn the_issuer_is_a_host_of_its_own() {
        assert_eq!(default_issuer("http://127.0.0.1:8080"), "https://pulltoken.127.0.0.1");
        assert_eq!(default_issuer("https://issuer.example/x"), "https://pulltoken.issuer.example");
    }

    #[test]
    fn every_form_has_both_parts() {
        let token = PullToken { identity: "id".into(), token: "jwt".into() };
        for output in [Output::Text, Output::Json, Output::Env] {
            let text = shown(&token, output);
            assert!(text.contains("id") && text.contains("jwt") && text.ends_with('\n'), "{text}");
        }
    }
}
