//! Callers of the fixture who are people, or whose identity has ended.

use bowline_contract::bowline::contract::v1::OperatorRole;
use bowline_contract::bowline::operator::v1::GrantOperatorRequest;
use bowline_contract::bowline::operator::v1::rpc::operator::GrantOperator;
use bowline_core::Error;
use bowline_identity::human_uid;
use bowline_store::Value as Sql;
use bowline_testkit::Actor;

use crate::escalation::people;
use crate::fixture::{Caller, Fixture, Kind, Standing, UNSHARED};

impl Fixture<'_> {
    /// An owner whose identity has ended, with a token that has not.
    pub(crate) async fn expired_identity(&self, group: &str) -> Caller {
        let caller = self.caller("expired identity", "owner", group).await;
        let identity = caller.actor.identity.clone();
        let written = self.server.server().parts().storage.db.write(move |tx| {
            let identity = identity.clone();
            Box::pin(async move {
                tx.execute("UPDATE identities SET expires_at = 1 WHERE uid = $1", &[Sql::from(&identity)]).await?;
                bowline_identity::iam_changed(tx).await
            })
        });
        written.await.unwrap_or_else(|error: Error| panic!("the identity ends: {error}"));
        Caller { standing: Standing::Anonymous, ..caller }
    }

    /// A person with a role of an operator, by a token without a session.
    pub(crate) async fn named_operator(&self, role: &'static str) -> Caller {
        let (server, subject) = (self.server, self.name());
        people::sign_in(server, people::of_operator(), &subject, None).await.expect("a person registers");
        let uid = self.note(Kind::Identity, human_uid(server.idp().issuer(), &subject).as_str().into());
        let contract = &server.server().parts().contract;
        let known = contract.operator_roles().iter().find(|known| known.name == role).expect("a role of operators");
        let (granted, standing) = match role {
            "operator.admin" => (OperatorRole::Admin, Standing::Admin),
            _ => (OperatorRole::Viewer, Standing::OperatorViewer(self.names(&known.capabilities))),
        };
        let request = GrantOperatorRequest { identity: uid.clone(), role: granted as i32 };
        self.operator.grpc::<GrantOperator>(request).await.expect("the operator names operators");
        let actor = server.sign_in(role, &subject, &uid).await;
        Caller { actor, standing, only: None, inside: None }
    }

    /// An owner of the organization who signed in with the provider of a group, which gives the role of a viewer.
    pub(crate) async fn person_of_provider(&self, organization: &str, group: &str) -> Caller {
        let provider = self.note(Kind::Provider, self.provider(group, &self.name()).await);
        *self.provider_of_people.lock().expect(UNSHARED) = provider;
        let actor = self.signed_in("person of a provider").await;
        let owner = self.server.bind(&actor.identity, &self.server.role("owner"), organization).await;
        self.note(Kind::Binding, owner);
        let bound = vec![
            (organization.to_owned(), self.capabilities("owner")),
            (group.to_owned(), self.capabilities("viewer")),
        ];
        Caller { actor, standing: Standing::OfProvider(bound), only: None, inside: Some(group.into()) }
    }

    /// A new person of the fixture's provider.
    pub(crate) async fn signed_in(&self, name: &str) -> Actor {
        let (server, subject) = (self.server, self.name());
        let provider = self.provider_of_people.lock().expect(UNSHARED).clone();
        let token = people::sign_in(server, people::of_organization(&provider), &subject, None).await;
        let uid = self.note(Kind::Identity, human_uid(server.idp().issuer(), &subject).as_str().into());
        let mut actor = server.anonymous().with_token(&token.expect("a person signs in")).named(name);
        actor.identity = uid;
        let reply = self.operator.rest("GET", &format!("/iam/v1/access:of?identity={}", actor.identity), None).await;
        for entry in reply.json()["entries"].as_array().expect("entries") {
            self.note(Kind::Binding, entry["binding"].as_str().expect("a binding").into());
        }
        actor
    }
}
