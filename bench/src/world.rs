//! An organization with someone in it who holds a token of the server.

use bowline_contract::Method;
use bowline_contract::v1::oidc;
use bowline_contract::v2::iam;
use bytes::Bytes;
use prost::Message as _;

use crate::Outcome;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane};
use crate::server::Server;

const SUBJECT: &str = "somebody";

pub(crate) struct World {
    pub(crate) org: String,
    pub(crate) identity: String,
    /// The identity's token, narrowed to nothing.
    pub(crate) token: String,
    pub(crate) lane: Lane,
}

impl World {
    /// Makes the identity an owner of the organization, a new one where none is given.
    pub(crate) async fn prepare(server: &Server, issuer: &Issuer, org: Option<String>) -> Outcome<World> {
        let operator = server.operator_token()?;
        let mut lane = Lane::grpc(server.api).await?;
        let org = match org {
            Some(org) => org,
            None => create_group(&mut lane, &operator, "", "bench").await?,
        };
        let identity = create_identity(&mut lane, &operator, &org, &issuer.url(), SUBJECT).await?;
        bind(&mut lane, &operator, &org, &identity, "owner").await?;
        let presented = issuer.token(SUBJECT, &server.url(), 0)?;
        let request = oidc::ExchangeRequest {
            aud: vec![server.url()],
            identity: identity.clone(),
            ..oidc::ExchangeRequest::default()
        };
        let token = call::<oidc::rpc::security_token_service::Exchange>(&mut lane, &presented, &request).await?.token;
        Ok(World { org, identity, token, lane })
    }

    pub(crate) async fn group(&mut self, name: &str) -> Outcome<String> {
        create_group(&mut self.lane, &self.token, &self.org, name).await
    }

    /// A registry token of a new identity that may pull everything in the organization, and nothing else.
    pub(crate) async fn puller(&mut self, server: &Server, issuer: &Issuer) -> Outcome<String> {
        self.narrow(server, issuer, ("puller", "registry.pull"), server.api.to_string()).await
    }

    /// The same for the Python packages of the organization.
    pub(crate) async fn installer(&mut self, server: &Server, issuer: &Issuer) -> Outcome<String> {
        let audience = format!("{}/libraries", server.url());
        self.narrow(server, issuer, ("installer", "libraries.python.pull"), audience).await
    }

    /// One that publishes generic files, by the role of crates.
    pub(crate) async fn publisher(&mut self, server: &Server, issuer: &Issuer) -> Outcome<String> {
        let audience = format!("{}/libraries", server.url());
        self.narrow(server, issuer, ("publisher", "libraries.cargo.push"), audience).await
    }

    /// A token for an audience of a new identity with one role.
    async fn narrow(
        &mut self,
        server: &Server,
        issuer: &Issuer,
        (subject, role): (&str, &str),
        audience: String,
    ) -> Outcome<String> {
        let identity = create_identity(&mut self.lane, &self.token, &self.org, &issuer.url(), subject).await?;
        bind(&mut self.lane, &self.token, &self.org, &identity, role).await?;
        let presented = issuer.token(subject, &server.url(), 0)?;
        let aud = vec![audience];
        let request = oidc::ExchangeRequest { aud, identity, ..oidc::ExchangeRequest::default() };
        let exchanged = call::<oidc::rpc::security_token_service::Exchange>(&mut self.lane, &presented, &request);
        Ok(exchanged.await?.token)
    }

    pub(crate) async fn call<M: Method>(&mut self, request: &M::Request) -> Outcome<M::Response> {
        call::<M>(&mut self.lane, &self.token, request).await
    }

    /// Tokens of the issuer for the identity, to be exchanged.
    pub(crate) fn presented(server: &Server, issuer: &Issuer, n: u64) -> Outcome<String> {
        issuer.token(SUBJECT, &server.url(), n)
    }
}

/// One gRPC call.
pub(crate) async fn call<M: Method>(lane: &mut Lane, token: &str, request: &M::Request) -> Outcome<M::Response> {
    let body: Bytes = lane.send(Ask::grpc::<M>(request, token)?).await?;
    Ok(M::Response::decode(body.get(5..).unwrap_or_default())?)
}

async fn create_group(lane: &mut Lane, token: &str, parent: &str, name: &str) -> Outcome<String> {
    let group = Some(iam::Group { name: name.into(), ..iam::Group::default() });
    let request = iam::CreateGroupRequest { parent: parent.into(), group };
    Ok(call::<iam::rpc::groups_service::CreateGroup>(lane, token, &request).await?.uid)
}

async fn create_identity(lane: &mut Lane, token: &str, org: &str, issuer: &str, subject: &str) -> Outcome<String> {
    use iam::identity::claim_match::{Iss, Sub};
    let claim_match = iam::identity::ClaimMatch {
        iss: Some(Iss::Issuer(issuer.into())),
        sub: Some(Sub::Subject(subject.into())),
        ..iam::identity::ClaimMatch::default()
    };
    let identity = iam::Identity {
        name: subject.into(),
        relationship: Some(iam::identity::Relationship::ClaimMatch(claim_match)),
        ..iam::Identity::default()
    };
    let request = iam::CreateIdentityRequest { parent: org.into(), identity: Some(identity) };
    Ok(call::<iam::rpc::identities_service::CreateIdentity>(lane, token, &request).await?.uid)
}

async fn bind(lane: &mut Lane, token: &str, org: &str, identity: &str, role: &str) -> Outcome<()> {
    let contract = bowline_contract::Contract::load();
    let found = contract.built_in_roles().iter().find(|built_in| built_in.name == role);
    let role_uid = found.ok_or_else(|| format!("no role is called {role}"))?.uid.clone();
    let binding = iam::RoleBinding { identity_uid: identity.into(), role_uid, ..iam::RoleBinding::default() };
    let request = iam::CreateRoleBindingRequest { parent: org.into(), role_binding: Some(binding) };
    call::<iam::rpc::role_bindings_service::CreateRoleBinding>(lane, token, &request).await?;
    Ok(())
}
