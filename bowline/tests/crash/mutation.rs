//! One change that a client asks for, as both transports say it.

use bowline_contract::v2::{iam, registry};
use http::Method;
use prost::Message;
use serde_json::json;

/// The viewer's role.
const ROLE: &str = "viewer";

#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    CreateGroup { parent: String, name: String },
    DeleteGroup { uid: String },
    CreateIdentity { parent: String, name: String },
    CreateBinding { parent: String, identity: String },
    DeleteBinding { uid: String },
    CreateRepo { parent: String, name: String },
    DeleteRepo { uid: String },
}

impl Mutation {
    /// What the mutation deletes; absent for creations.
    pub(crate) fn deletes(&self) -> Option<&str> {
        match self {
            Mutation::DeleteGroup { uid } | Mutation::DeleteBinding { uid } | Mutation::DeleteRepo { uid } => Some(uid),
            _ => None,
        }
    }

    /// Verb, path and body.
    pub(crate) fn rest(&self) -> (Method, String, String) {
        let (verb, path, body) = match self {
            Mutation::CreateGroup { parent, name } => {
                (Method::POST, format!("/iam/v2/groups/{parent}"), json!({ "name": name }))
            }
            Mutation::DeleteGroup { uid } => (Method::DELETE, format!("/iam/v2/groups/{uid}"), json!(null)),
            Mutation::CreateIdentity { parent, name } => {
                let relationship = json!({ "issuer": "https://issuer.example", "subject": name });
                let body = json!({ "name": name, "claimMatch": relationship });
                (Method::POST, format!("/iam/v2/identities/{parent}"), body)
            }
            Mutation::CreateBinding { parent, identity } => {
                let body = json!({ "identityUid": identity, "roleUid": role() });
                (Method::POST, format!("/iam/v2/roleBindings/{parent}"), body)
            }
            Mutation::DeleteBinding { uid } => (Method::DELETE, format!("/iam/v2/roleBindings/{uid}"), json!(null)),
            Mutation::CreateRepo { parent, name } => {
                (Method::POST, format!("/registry/v2/repos/{parent}"), json!({ "name": name }))
            }
            Mutation::DeleteRepo { uid } => (Method::DELETE, format!("/registry/v2/repos/{uid}"), json!(null)),
        };
        (verb, path, if body.is_null() { String::new() } else { body.to_string() })
    }

    /// Path and message.
    pub(crate) fn grpc(&self) -> (String, Vec<u8>) {
        use iam::rpc::groups_service::{CreateGroup, DeleteGroup};
        use iam::rpc::identities_service::CreateIdentity;
        use iam::rpc::role_bindings_service::{CreateRoleBinding, DeleteRoleBinding};
        use registry::rpc::repos_service::{CreateRepo, DeleteRepo};
        match self.clone() {
            Mutation::CreateGroup { parent, name } => {
                let group = Some(iam::Group { name, ..Default::default() });
                call::<CreateGroup>(&iam::CreateGroupRequest { parent, group })
            }
            Mutation::DeleteGroup { uid } => call::<DeleteGroup>(&iam::DeleteGroupRequest { uid }),
            Mutation::CreateIdentity { parent, name } => {
                let identity = Some(identity(name));
                call::<CreateIdentity>(&iam::CreateIdentityRequest { parent, identity })
            }
            Mutation::CreateBinding { parent, identity } => {
                let binding = iam::RoleBinding { identity_uid: identity, role_uid: role(), ..Default::default() };
                call::<CreateRoleBinding>(&iam::CreateRoleBindingRequest { parent, role_binding: Some(binding) })
            }
            Mutation::DeleteBinding { uid } => call::<DeleteRoleBinding>(&iam::DeleteRoleBindingRequest { uid }),
            Mutation::CreateRepo { parent, name } => {
                let repo = Some(registry::Repo { name, ..Default::default() });
                call::<CreateRepo>(&registry::CreateRepoRequest { parent, repo })
            }
            Mutation::DeleteRepo { uid } => call::<DeleteRepo>(&registry::DeleteRepoRequest { uid }),
        }
    }
}

fn call<M: bowline_contract::Method>(request: &M::Request) -> (String, Vec<u8>) {
    let (service, method) = M::FULL_NAME.rsplit_once('.').expect("a full name");
    (format!("/{service}/{method}"), request.encode_to_vec())
}

fn identity(name: String) -> iam::Identity {
    use iam::identity::claim_match::{Iss, Sub};
    let claim_match = iam::identity::ClaimMatch {
        iss: Some(Iss::Issuer("https://issuer.example".into())),
        sub: Some(Sub::Subject(name.clone())),
        ..Default::default()
    };
    let relationship = Some(iam::identity::Relationship::ClaimMatch(claim_match));
    iam::Identity { name, relationship, ..Default::default() }
}

fn role() -> String {
    use std::sync::LazyLock;
    static UID: LazyLock<String> = LazyLock::new(|| {
        let contract = bowline_contract::Contract::load();
        let role = contract.built_in_roles().iter().find(|role| role.name == ROLE);
        role.expect("a built-in role").uid.clone()
    });
    UID.clone()
}
