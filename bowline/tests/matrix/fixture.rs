//! A hierarchy with something of everything in it, and everyone who calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_contract::v2::registry as registry2;
use bowline_contract::v2::registry::rpc::tags_service::CreateTag;
use bowline_core::CapabilitySet;
use bowline_testkit::{Actor, TestServer};

use crate::contents;
use crate::escalation::people;
use crate::fixture_libraries::is_of_organizations;
pub(crate) use crate::standing::{Caller, Standing};

/// What lives in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Group,
    Repo,
    Role,
    Identity,
    Binding,
    Invite,
    /// Goes by the UIDP of its group.
    Association,
    Provider,
    /// A provider with a SCIM token.
    Provisioned,
    Mapping,
    Subscription,
    /// Lives in a repository of its own.
    Tag,
    Advisory,
    /// Lives in an advisory of its own.
    AdvisoryEvent,
    Entitlement,
    LibraryPolicy,
    LibraryPolicyBinding,
}

pub(crate) const KINDS: [Kind; 17] = [
    Kind::Group,
    Kind::Repo,
    Kind::Role,
    Kind::Identity,
    Kind::Binding,
    Kind::Invite,
    Kind::Association,
    Kind::Provider,
    Kind::Provisioned,
    Kind::Mapping,
    Kind::Subscription,
    Kind::Tag,
    Kind::Advisory,
    Kind::AdvisoryEvent,
    Kind::Entitlement,
    Kind::LibraryPolicy,
    Kind::LibraryPolicyBinding,
];

/// No one holds a lock while panicking.
pub(crate) const UNSHARED: &str = "no other thread";

/// A group, or a UIDP where there is none.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) group: String,
    pub(crate) exists: bool,
    /// One of each kind that stays; of groups and associations, the place itself.
    pub(crate) lasting: BTreeMap<Kind, String>,
    /// Of each kind one that the next delete takes.
    doomed: Mutex<BTreeMap<Kind, String>>,
}

pub(crate) struct Fixture<'s> {
    pub(crate) server: &'s TestServer,
    pub(crate) operator: Actor,
    pub(crate) places: Vec<Place>,
    pub(crate) callers: Vec<Caller>,
    /// Every UIDP of each kind, built-in roles aside.
    pub(crate) all: Mutex<BTreeMap<Kind, BTreeSet<String>>>,
    /// Entity tags that the providers with a token require for a change.
    pub(crate) etags: Mutex<BTreeMap<String, String>>,
    /// The provider with which the fixture's people sign in who are no operators.
    pub(crate) provider_of_people: Mutex<String>,
    number: AtomicUsize,
}

impl Place {
    /// Says that a delete took what was doomed.
    pub(crate) fn spend(&self, kind: Kind) {
        self.doomed.lock().expect(UNSHARED).remove(&kind);
    }
}

impl<'s> Fixture<'s> {
    pub(crate) async fn new(server: &'s TestServer) -> Fixture<'s> {
        let mut fixture = Fixture {
            server,
            operator: server.operator().await,
            places: Vec::new(),
            callers: Vec::new(),
            all: Mutex::default(),
            etags: Mutex::default(),
            provider_of_people: Mutex::default(),
            number: AtomicUsize::new(0),
        };
        let organization = fixture.note(Kind::Group, server.organization("matrix").await);
        let own = fixture.note(Kind::Group, server.group(&organization, "own").await);
        let child = fixture.note(Kind::Group, server.group(&own, "child").await);
        let sibling = fixture.note(Kind::Group, server.group(&organization, "sibling").await);
        let other = fixture.note(Kind::Group, server.organization("other").await);
        for (name, group) in [
            ("parent", &organization),
            ("own", &own),
            ("child", &child),
            ("sibling", &sibling),
            ("other organization", &other),
        ] {
            let place = fixture.furnished(name, group).await;
            fixture.places.push(place);
        }
        for (name, above) in [("absent", &own), ("absent sibling", &organization)] {
            let place = fixture.nowhere(name, format!("{above}/{}", fixture.segment(16)));
            fixture.places.push(place);
        }
        let place = fixture.nowhere("absent organization", fixture.segment(40));
        fixture.places.push(place);
        people::offer(server).await;
        let expired = fixture.expired(&own).await;
        fixture.operator = server.operator().await;
        fixture.callers = fixture.everybody(&organization, &own, &child, &sibling, &other).await;
        fixture.callers.push(expired);
        fixture
    }

    pub(crate) fn place(&self, name: &str) -> &Place {
        self.places.iter().find(|place| place.name == name).expect("a place of the fixture")
    }

    pub(crate) fn note(&self, kind: Kind, uid: String) -> String {
        self.all.lock().expect(UNSHARED).entry(kind).or_default().insert(uid.clone());
        uid
    }

    /// A name that nothing has yet.
    pub(crate) fn name(&self) -> String {
        format!("thing-{}", self.number.fetch_add(1, Ordering::Relaxed))
    }

    /// A segment, or with `length` 40 a root, that nothing has yet.
    pub(crate) fn segment(&self, length: usize) -> String {
        format!("{:0length$x}", 0xfeed_0000 + self.number.fetch_add(1, Ordering::Relaxed))
    }

    async fn furnished(&self, name: &'static str, group: &str) -> Place {
        let mut lasting = BTreeMap::from([(Kind::Group, group.to_owned())]);
        let made_apart = [Kind::Group, Kind::Association];
        for kind in KINDS.into_iter().filter(|kind| !made_apart.contains(kind)) {
            lasting.insert(kind, self.made(kind, group).await);
        }
        self.deployment(&lasting[&Kind::Repo]).await;
        lasting.insert(Kind::Association, self.note(Kind::Association, self.association(group).await));
        // One that lies below the place, so that lists of what is below show it.
        self.made(Kind::Association, group).await;
        Place { name, group: group.into(), exists: true, lasting, doomed: Mutex::default() }
    }

    fn nowhere(&self, name: &'static str, group: String) -> Place {
        let below = |kind: Kind| match kind {
            Kind::Group | Kind::Association => group.clone(),
            _ => format!("{group}/{}", self.segment(16)),
        };
        let lasting = KINDS.map(|kind| (kind, below(kind))).into();
        Place { name, group, exists: false, lasting, doomed: Mutex::default() }
    }

    /// A new resource in a group.
    async fn made(&self, kind: Kind, group: &str) -> String {
        if is_of_organizations(kind) && group.contains('/') {
            return format!("{group}/{}", self.segment(16));
        }
        let (server, name) = (self.server, self.name());
        let uid = match kind {
            Kind::Group => server.group(group, &name).await,
            Kind::Repo => self.repo(group, &name).await,
            Kind::Tag => self.tag(group, &name).await,
            Kind::Role => self.role(group, &name, &[Capability::CapIamGroupsList]).await,
            Kind::Identity => server.identity(group, &name).await,
            Kind::Subscription => self.subscription(group).await,
            Kind::Binding => server.bind(&self.segment(40), &server.role("viewer"), group).await,
            Kind::Invite => self.invite(group).await,
            Kind::Advisory => self.advisory(group).await,
            Kind::AdvisoryEvent => {
                let advisory = self.note(Kind::Advisory, self.advisory(group).await);
                self.advisory_event(&advisory).await
            }
            Kind::Association => {
                let below = self.note(Kind::Group, server.group(group, &name).await);
                self.association(&below).await
            }
            Kind::Provider => self.provider(group, &name).await,
            Kind::Entitlement => self.entitlement(group).await,
            Kind::LibraryPolicy => self.library_policy(group, &name).await,
            Kind::LibraryPolicyBinding => {
                let policy = self.note(Kind::LibraryPolicy, self.library_policy(group, &name).await);
                self.library_policy_binding(group, &policy).await
            }
            Kind::Provisioned => {
                let provider = self.note(Kind::Provider, self.provider(group, &name).await);
                self.provision(&provider).await;
                provider
            }
            Kind::Mapping => {
                let provider = self.note(Kind::Provider, self.provider(group, &name).await);
                self.mapping(&provider, &name).await
            }
        };
        self.note(kind, uid)
    }

    /// A repository with an image in it.
    async fn repo(&self, group: &str, name: &str) -> String {
        let repo = self.server.repo(group, name).await;
        let digest = contents::digest('a');
        let config = Some(("amd64", "{}"));
        let image = contents::Manifest { digest: &digest, shape: 1, size: 1, names: &[], config };
        contents::store(self.server, &repo, &image).await;
        repo
    }

    async fn tag(&self, group: &str, name: &str) -> String {
        let repo = self.note(Kind::Repo, self.repo(group, name).await);
        let tag = registry2::Tag { name: name.into(), digest: contents::digest('a'), ..registry2::Tag::default() };
        let request = registry2::CreateTagRequest { parent: repo, tag: Some(tag) };
        self.operator.grpc::<CreateTag>(request).await.expect("the operator tags").uid
    }

    /// What a delete may take: the same until one took it.
    pub(crate) async fn doomed(&self, place: &Place, kind: Kind) -> String {
        let known = place.doomed.lock().expect(UNSHARED).get(&kind).cloned();
        if let Some(uid) = known {
            return uid;
        }
        let uid = if place.exists {
            self.made(kind, &place.group).await
        } else {
            format!("{}/{}", place.group, self.segment(16))
        };
        place.doomed.lock().expect(UNSHARED).insert(kind, uid.clone());
        uid
    }

    /// What a built-in role allows, by name.
    pub(crate) fn capabilities(&self, role: &str) -> BTreeSet<String> {
        let contract = &self.server.server().parts().contract;
        let role = contract.built_in_roles().iter().find(|known| known.name == role).expect("a built-in role");
        self.names(&role.capabilities)
    }

    pub(crate) fn names(&self, set: &CapabilitySet) -> BTreeSet<String> {
        let contract = &self.server.server().parts().contract;
        contract.capabilities().names(set).into_iter().map(String::from).collect()
    }

    /// Someone with a built-in role at a group.
    pub(crate) async fn caller(&self, name: &str, role: &str, group: &str) -> Caller {
        let (organization, subject) = (group.split('/').next().expect("a split has a first part"), self.name());
        let identity = self.note(Kind::Identity, self.server.identity(organization, &subject).await);
        self.note(Kind::Binding, self.server.bind(&identity, &self.server.role(role), group).await);
        let actor = self.server.sign_in(name, &subject, &identity).await;
        let standing = Standing::Bound(vec![(group.into(), self.capabilities(role))]);
        Caller { actor, standing, only: None, inside: None }
    }

    async fn stranger(&self) -> Caller {
        let (name, subject) = (self.name(), self.name());
        let organization = self.note(Kind::Group, self.server.organization(&name).await);
        let identity = self.note(Kind::Identity, self.server.identity(&organization, &subject).await);
        let actor = self.server.sign_in("stranger", &subject, &identity).await;
        Caller { actor, standing: Standing::Bound(Vec::new()), only: None, inside: None }
    }

    /// An owner with a token that has ended, as have all others by then.
    async fn expired(&self, group: &str) -> Caller {
        let caller = self.caller("expired", "owner", group).await;
        // Used once while it was good, so that the server may have it in its cache.
        caller.actor.grpc::<Validate>(()).await.expect("the token is good at first");
        self.server.clock().advance(Duration::from_secs(3601));
        Caller { standing: Standing::Anonymous, ..caller }
    }

    async fn everybody(&self, organization: &str, own: &str, child: &str, sibling: &str, other: &str) -> Vec<Caller> {
        let server = self.server;
        let owner = self.caller("owner", "owner", own).await;
        let elsewhere = server.server().parts().settings.registry_audience.clone();
        let other_audience = self.exchanged(&owner, "other audience", &[("aud", &elsewhere)]).await;
        let base = ("aud", server.base());
        // May bind and invite, but not to what the role gives.
        let few = [
            "groups.list",
            "repo.list",
            "identity.delete",
            "role_bindings.create",
            "role_bindings.update",
            "group_invites.create",
        ];
        let narrowed = few.map(|name| ("cap", name)).into_iter().chain([base]).collect::<Vec<_>>();
        let by_capability = self.exchanged(&owner, "owner narrowed to a few capabilities", &narrowed).await;
        let by_scope = self.exchanged(&owner, "owner narrowed to the child", &[base, ("scopes", child)]).await;
        vec![
            Caller { actor: server.anonymous(), standing: Standing::Anonymous, only: None, inside: None },
            self.expired_identity(own).await,
            Caller { standing: Standing::Anonymous, ..other_audience },
            self.stranger().await,
            self.caller("viewer", "viewer", own).await,
            self.caller("editor", "editor", own).await,
            self.caller("puller", "registry.pull", own).await,
            self.caller("owner of the child", "owner", child).await,
            self.caller("owner of the sibling", "owner", sibling).await,
            self.caller("owner of the parent", "owner", organization).await,
            self.caller("viewer of the other organization", "viewer", other).await,
            self.caller("owner of the other organization", "owner", other).await,
            self.person_of_provider(organization, own).await,
            self.named_operator("operator.viewer").await,
            self.named_operator("operator.admin").await,
            Caller { actor: self.operator.clone(), standing: Standing::Operator, only: None, inside: None },
            Caller { only: Some(few.map(String::from).into()), ..by_capability },
            Caller { inside: Some(child.into()), ..by_scope },
            owner,
        ]
    }

    /// The same identity with another token.
    async fn exchanged(&self, caller: &Caller, name: &str, params: &[(&str, &str)]) -> Caller {
        let token = caller.actor.token.as_deref().expect("a caller with a token");
        let reply = self.server.exchange(token, params).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text());
        let actor = caller.actor.with_token(reply.json()["token"].as_str().expect("a token")).named(name);
        Caller { actor, standing: caller.standing.clone(), only: None, inside: None }
    }
}
