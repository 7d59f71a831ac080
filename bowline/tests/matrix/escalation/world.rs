//! An organization with one of everything that holds rights, and the little that the attacker has in it from the start.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use bowline_identity::human_uid;
use bowline_testkit::{Actor, TestServer};
use serde_json::{Value as Json, json};

use super::people;
use crate::fixture::{Caller, Standing};

/// What every role of the world gives unless the test says otherwise; the attacker holds it at the organization.
pub(crate) const LITTLE: &str = "repo.list";
/// A client at the issuer whose tokens the attacker receives, also those of the people who sign in there.
pub(crate) const EVIL_CLIENT: &str = "evil-client";

/// A server, and what all its worlds share.
pub(crate) struct Stage<'s> {
    pub(crate) server: &'s TestServer,
    pub(crate) operator: Actor,
    number: AtomicUsize,
}

impl<'s> Stage<'s> {
    pub(crate) async fn new(server: &'s TestServer) -> Stage<'s> {
        people::offer(server).await;
        Stage { server, operator: server.operator().await, number: AtomicUsize::new(0) }
    }

    /// A number that nothing else has.
    pub(crate) fn number(&self) -> usize {
        self.number.fetch_add(1, Ordering::Relaxed)
    }

    /// What the operator does must succeed.
    pub(crate) async fn ok(&self, what: &str, body: Json) -> Json {
        let reply = call(&self.operator, what, body).await;
        assert_eq!(reply.status, 200, "{what}: {}", reply.text());
        reply.json()
    }

    pub(crate) async fn group(&self, parent: &str, name: &str) -> String {
        let what = format!("POST /iam/v2/groups/{parent}");
        uid(&self.ok(what.trim_end_matches('/'), json!({ "name": name })).await)
    }

    pub(crate) async fn role(&self, group: &str, capabilities: &BTreeSet<String>) -> String {
        let body = json!({ "name": format!("role-{}", self.number()), "capabilities": capabilities });
        uid(&self.ok(&format!("POST /iam/v1/roles/{group}"), body).await)
    }

    /// An identity that tokens of the test's issuer with this subject may assume.
    pub(crate) async fn identity(&self, group: &str, subject: &str) -> String {
        let claims = json!({ "issuer": self.server.idp().issuer(), "subject": subject });
        uid(&self
            .ok(&format!("POST /iam/v2/identities/{group}"), json!({ "name": "machine", "claimMatch": claims }))
            .await)
    }

    pub(crate) async fn bind(&self, group: &str, identity: &str, role: &str) -> String {
        let body = json!({ "identityUid": identity, "roleUid": role });
        uid(&self.ok(&format!("POST /iam/v2/roleBindings/{group}"), body).await)
    }

    /// What of this a custom role may hold.
    pub(crate) fn custom(&self, mut capabilities: BTreeSet<String>) -> BTreeSet<String> {
        let all = self.server.server().parts().contract.capabilities();
        for internal in all.names(&all.internal_only()) {
            capabilities.remove(internal);
        }
        capabilities
    }

    /// What a built-in role gives.
    pub(crate) fn built_in(&self, role: &str) -> BTreeSet<String> {
        let contract = &self.server.server().parts().contract;
        let role = contract.built_in_roles().iter().find(|known| known.name == role).expect("a built-in role");
        contract.capabilities().names(&role.capabilities).into_iter().map(String::from).collect()
    }
}

/// Calls `"VERB /path"`.
pub(crate) async fn call(actor: &Actor, what: &str, body: Json) -> bowline_testkit::RestReply {
    let (verb, path) = what.split_once(' ').expect("a verb and a path");
    actor.rest(verb, path, Some(body).filter(|body| !body.is_null())).await
}

/// The UIDP in an answer of either version.
pub(crate) fn uid(resource: &Json) -> String {
    let uid = resource["uid"].as_str().or(resource["id"].as_str());
    uid.unwrap_or_else(|| panic!("no UIDP in {resource}")).into()
}

pub(crate) fn little() -> BTreeSet<String> {
    [LITTLE.to_owned()].into()
}

pub(crate) struct World {
    pub(crate) org: String,
    pub(crate) team: String,
    pub(crate) child: String,
    pub(crate) sibling: String,
    /// The attacker's subject at the issuer.
    pub(crate) evil: String,
    /// The owner's subject at the issuer.
    pub(crate) chief: String,
    /// Bound at the team to the attacker's puppet.
    pub(crate) used: String,
    /// Promised by an invitation whose code the attacker has.
    pub(crate) promised: String,
    /// What a mapping gives to a group of the provider.
    pub(crate) mapped: String,
    /// The default role of the provider.
    pub(crate) default: String,
    /// An identity that the attacker may assume.
    pub(crate) puppet: String,
    pub(crate) puppet_binding: String,
    /// A machine of the team that owns the organization, and the team by a binding of its own.
    pub(crate) boss: String,
    pub(crate) boss_binding: String,
    /// An identity provider at which the attacker has an account.
    pub(crate) provider: String,
    pub(crate) mapping: String,
    /// One at which only people of a directory sign in, and get more than the attacker has.
    pub(crate) directory: String,
    pub(crate) etag: String,
    pub(crate) repo: String,
    pub(crate) invite: String,
    /// What the attacker created last.
    pub(crate) made: String,
    /// Codes of invitations that the attacker has.
    pub(crate) codes: Vec<String>,
    /// Tokens of directories that the attacker has, with the provider.
    pub(crate) directories: Vec<(String, String)>,
    /// What the attacker's puppet, codes and accounts give before anything was done.
    pub(crate) start: Caller,
}

impl World {
    /// A world with everything in it.
    pub(crate) async fn whole(stage: &Stage<'_>) -> World {
        World::with(stage, &|_| true).await
    }

    /// A world with what these requests name, and what it takes to gain from them.
    pub(crate) async fn for_requests(stage: &Stage<'_>, text: &str) -> World {
        World::with(stage, &|names| names.iter().any(|name| text.contains(name))).await
    }

    #[expect(clippy::too_many_lines, reason = "a world with everything in it")]
    async fn with(stage: &Stage<'_>, wants: &dyn Fn(&[&str]) -> bool) -> World {
        let number = stage.number();
        let org = stage.group("", &format!("org-{number}")).await;
        let team = stage.group(&org, "team").await;
        let mut world = World {
            child: stage.group(&team, "child").await,
            sibling: stage.group(&org, "sibling").await,
            evil: format!("evil-{number}"),
            chief: format!("chief-{number}"),
            start: Caller {
                actor: stage.server.anonymous(),
                standing: Standing::Bound(vec![(team.clone(), little())]),
                only: None,
                inside: None,
            },
            org,
            team,
            used: String::new(),
            promised: String::new(),
            mapped: String::new(),
            default: String::new(),
            puppet: String::new(),
            puppet_binding: String::new(),
            boss: String::new(),
            boss_binding: String::new(),
            provider: String::new(),
            mapping: String::new(),
            directory: String::new(),
            etag: String::new(),
            repo: String::new(),
            invite: String::new(),
            made: String::new(),
            codes: Vec::new(),
            directories: Vec::new(),
        };
        if wants(&["{used}", "{puppet"]) {
            world.add_puppet(stage).await;
        }
        if wants(&["{promised}", "{invite}"]) {
            world.add_invitation(stage).await;
        }
        let has_providers = wants(&["identityProviders", "{provider}", "{default}", "{mapp"]);
        if has_providers || wants(&["{boss"]) {
            world.add_owners(stage).await;
        }
        if has_providers {
            world.add_provider(stage).await;
        }
        if wants(&["{directory}"]) {
            world.add_directory(stage).await;
        }
        if wants(&["{associated}"]) {
            let what = format!("POST /iam/v2/accountAssociations/{}", world.child);
            stage.ok(&what, json!({ "name": "accounts" })).await;
        }
        if wants(&["{repo}"]) {
            let what = format!("POST /registry/v2/repos/{}", world.team);
            world.repo = uid(&stage.ok(&what, json!({ "name": "repo" })).await);
        }
        world
    }

    async fn add_puppet(&mut self, stage: &Stage<'_>) {
        self.used = stage.role(&self.team, &little()).await;
        self.puppet = stage.identity(&self.team, &self.evil).await;
        self.puppet_binding = stage.bind(&self.team, &self.puppet, &self.used).await;
        people::request_access(stage.server, &self.puppet, &self.team).await;
    }

    async fn add_invitation(&mut self, stage: &Stage<'_>) {
        self.promised = stage.role(&self.team, &little()).await;
        let invite = json!({ "roleUid": self.promised, "ttl": "3600s" });
        let invite = stage.ok(&format!("POST /iam/v2/groupInvites/{}", self.team), invite).await;
        self.invite = uid(&invite);
        self.codes.push(invite["code"].as_str().expect("a code").into());
    }

    async fn add_owners(&mut self, stage: &Stage<'_>) {
        let owner = stage.server.role("owner");
        let person = human_uid(stage.server.idp().issuer(), &self.chief).as_str().to_owned();
        people::sign_in(stage.server, people::of_operator(), &self.chief, None).await.expect("the chief registers");
        self.boss = stage.identity(&self.team, &format!("boss-of-{}", self.evil)).await;
        for identity in [&person, &self.boss] {
            stage.bind(&self.org, identity, &owner).await;
        }
        stage.bind(&self.team, &person, &owner).await;
        self.boss_binding = stage.bind(&self.team, &self.boss, &owner).await;
    }

    async fn add_provider(&mut self, stage: &Stage<'_>) {
        self.default = stage.role(&self.team, &little()).await;
        self.mapped = stage.role(&self.org, &little()).await;
        self.provider = provider(stage, &self.team, &self.default, "good-client").await;
        let mapping = json!({ "externalGroupId": "crew", "roleUid": self.mapped });
        let what = format!("POST /iam/v2/externalGroupRoleMappings/{}", self.provider);
        self.mapping = uid(&stage.ok(&what, mapping).await);
    }

    async fn add_directory(&mut self, stage: &Stage<'_>) {
        let staff = stage.role(&self.team, &[LITTLE, "repo.update"].map(String::from).into()).await;
        self.directory = provider(stage, &self.team, &staff, "directory-client").await;
        let path = format!("POST /iam/v2/identityProviders/{}", self.directory);
        let etag = stage.ok(&format!("{path}:generateScimToken"), json!({})).await["etag"].clone();
        let body = json!({ "etag": etag, "enabled": true });
        let enabled = stage.ok(&format!("{path}:setScimEnabled"), body).await;
        self.etag = enabled["etag"].as_str().expect("an etag").into();
    }

    /// Puts the world's names into a text.
    pub(crate) fn fill(&self, text: &str, stage: &Stage<'_>) -> String {
        let owner = stage.server.role("owner");
        let name = format!("new-{}", stage.number());
        let names = [
            ("{org}", &self.org),
            ("{team}", &self.team),
            ("{child}", &self.child),
            ("{associated}", &self.child),
            ("{used}", &self.used),
            ("{promised}", &self.promised),
            ("{mapped}", &self.mapped),
            ("{default}", &self.default),
            ("{puppet}", &self.puppet),
            ("{puppet_binding}", &self.puppet_binding),
            ("{boss}", &self.boss),
            ("{boss_binding}", &self.boss_binding),
            ("{provider}", &self.provider),
            ("{mapping}", &self.mapping),
            ("{directory}", &self.directory),
            ("{etag}", &self.etag),
            ("{repo}", &self.repo),
            ("{invite}", &self.invite),
            ("{evil}", &self.evil),
            ("{owner}", &owner),
            ("{made}", &self.made),
            ("{name}", &name),
        ];
        let mut text = text.to_owned();
        for (placeholder, value) in names {
            text = text.replace(placeholder, value);
        }
        let keys = stage.server.idp().jwks().to_string().replace('"', "\\\"");
        text.replace("{issuer}", stage.server.idp().issuer()).replace("{keys}", &keys)
    }
}

async fn provider(stage: &Stage<'_>, group: &str, default: &str, client: &str) -> String {
    let oidc = json!({ "issuer": stage.server.idp().issuer(), "clientId": client, "groupsClaim": "groups" });
    let body = json!({ "name": "login", "defaultRole": default, "oidc": oidc });
    uid(&stage.ok(&format!("POST /iam/v2/identityProviders/{group}"), body).await)
}
