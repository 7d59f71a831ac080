//! Who attacks, and with what token.

use std::collections::{BTreeSet, HashMap};

use super::reach::exchanged;
use super::world::{LITTLE, Stage, World};
use crate::fixture::{Caller, Standing};

/// What a caller holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holds {
    Nothing,
    BuiltIn(&'static str),
    /// What the method needs.
    Needed,
    /// That, and what it takes to give the roles of the world.
    NeededAndLittle,
    /// Everything that owners hold, but one.
    AllButOne,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Organization,
    Team,
    Child,
    Sibling,
    AnotherOrganization,
}

/// What may be wrong with a caller's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Credential {
    Good,
    None,
    Expired,
    Deactivated,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) name: &'static str,
    holds: Holds,
    at: At,
    credential: Credential,
}

const fn kind(name: &'static str, holds: Holds, at: At) -> Kind {
    Kind { name, holds, at, credential: Credential::Good }
}

/// The one capability that a caller lacks who holds all others of an owner.
const LACKED: &str = "repo.delete";

pub(super) const KINDS: [Kind; 17] = [
    Kind { credential: Credential::None, ..kind("anonymous", Holds::Nothing, At::Team) },
    Kind { credential: Credential::Expired, ..kind("owner, token expired", Holds::BuiltIn("owner"), At::Team) },
    Kind { credential: Credential::Deactivated, ..kind("owner, deactivated", Holds::BuiltIn("owner"), At::Team) },
    kind("owner of another organization", Holds::BuiltIn("owner"), At::AnotherOrganization),
    kind("member without a role", Holds::Nothing, At::Team),
    kind("viewer", Holds::BuiltIn("viewer"), At::Team),
    kind("editor", Holds::BuiltIn("editor"), At::Team),
    kind("registry.push", Holds::BuiltIn("registry.push"), At::Team),
    kind("owner of the child", Holds::BuiltIn("owner"), At::Child),
    kind("owner of the sibling", Holds::BuiltIn("owner"), At::Sibling),
    kind("what the method needs", Holds::Needed, At::Team),
    kind("that and what small roles give", Holds::NeededAndLittle, At::Team),
    kind("that, at the organization", Holds::NeededAndLittle, At::Organization),
    kind("all of an owner but one", Holds::AllButOne, At::Team),
    kind("all of an owner but one, at the organization", Holds::AllButOne, At::Organization),
    kind("owner", Holds::BuiltIn("owner"), At::Team),
    kind("owner of the organization", Holds::BuiltIn("owner"), At::Organization),
];

/// How a token is narrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Token {
    Whole,
    /// To what the method needs, and what small roles give.
    Capabilities,
    /// To the child of the team.
    Child,
}

pub(super) const TOKENS: [Token; 3] = [Token::Whole, Token::Capabilities, Token::Child];

/// The callers of a world, made when they are first needed.
#[derive(Default)]
pub(super) struct Callers {
    made: HashMap<(usize, BTreeSet<String>), Caller>,
}

impl Callers {
    /// The caller of this kind for a method that needs these capabilities, with this token; absent if there is no such
    /// token, or it would be the whole one again.
    pub(super) async fn get(
        &mut self,
        stage: &Stage<'_>,
        world: &World,
        number: usize,
        needed: &BTreeSet<String>,
        token: Token,
    ) -> Option<Caller> {
        let kind = KINDS[number];
        let by_method = matches!(kind.holds, Holds::Needed | Holds::NeededAndLittle);
        let key = (number, if by_method { needed.clone() } else { BTreeSet::new() });
        if !self.made.contains_key(&key) {
            let made = make(stage, world, kind, needed).await;
            self.made.insert(key.clone(), made);
        }
        let caller = &self.made[&key];
        if token == Token::Whole {
            return Some(Caller {
                actor: caller.actor.clone(),
                standing: caller.standing.clone(),
                only: None,
                inside: None,
            });
        }
        if matches!(caller.standing, Standing::Anonymous) {
            return None;
        }
        narrowed(stage, caller, &with_little(needed), Some(world.child.as_str()).filter(|_| token == Token::Child))
            .await
    }
}

pub(super) fn with_little(needed: &BTreeSet<String>) -> BTreeSet<String> {
    needed.iter().cloned().chain([LITTLE, "roles.list"].map(String::from)).collect()
}

/// The same caller with less: inside a group, or else only these capabilities.
pub(super) async fn narrowed(
    stage: &Stage<'_>,
    caller: &Caller,
    only: &BTreeSet<String>,
    inside: Option<&str>,
) -> Option<Caller> {
    let mut asked = vec![("aud", stage.server.base())];
    match inside {
        Some(group) => asked.push(("scopes", group)),
        None => asked.extend(only.iter().map(|capability| ("cap", capability.as_str()))),
    }
    let token = exchanged(stage, caller.actor.token.as_deref()?, &asked).await?;
    Some(Caller {
        actor: caller.actor.with_token(&token),
        standing: caller.standing.clone(),
        only: Some(only.clone()).filter(|_| inside.is_none()),
        inside: inside.map(String::from),
    })
}

async fn make(stage: &Stage<'_>, world: &World, kind: Kind, needed: &BTreeSet<String>) -> Caller {
    let capabilities = match kind.holds {
        Holds::Nothing => BTreeSet::new(),
        Holds::BuiltIn(role) => stage.built_in(role),
        Holds::Needed => stage.custom(needed.clone()),
        Holds::NeededAndLittle => stage.custom(with_little(needed)),
        Holds::AllButOne => stage.custom(stage.built_in("owner").into_iter().filter(|name| name != LACKED).collect()),
    };
    let group = match kind.at {
        At::Organization => world.org.clone(),
        At::Team => world.team.clone(),
        At::Child => world.child.clone(),
        At::Sibling => world.sibling.clone(),
        At::AnotherOrganization => stage.group("", &format!("foreign-{}", stage.number())).await,
    };
    let role = match kind.holds {
        Holds::BuiltIn(role) => stage.server.role(role),
        Holds::Nothing => String::new(),
        _ if capabilities.is_empty() => String::new(),
        _ => stage.role(group.split('/').next().expect("an organization"), &capabilities).await,
    };
    caller(stage, &group, &role, capabilities, kind).await
}

/// An identity with a role at a group, and its token.
async fn caller(stage: &Stage<'_>, group: &str, role: &str, capabilities: BTreeSet<String>, kind: Kind) -> Caller {
    let server = stage.server;
    if kind.credential == Credential::None {
        return Caller { actor: server.anonymous(), standing: Standing::Anonymous, only: None, inside: None };
    }
    let subject = format!("caller-{}", stage.number());
    let organization = group.split('/').next().expect("an organization");
    let identity = stage.identity(organization, &subject).await;
    if !role.is_empty() {
        stage.bind(group, &identity, role).await;
    }
    let actor = server.sign_in(kind.name, &subject, &identity).await;
    let mut standing = Standing::Bound(vec![(group.to_owned(), capabilities)]);
    match kind.credential {
        Credential::Good | Credential::None => {}
        Credential::Deactivated => {
            super::people::deactivate(server, &identity).await;
            standing = Standing::Anonymous;
        }
        Credential::Expired => {
            let token = server.idp().expired(&subject, server.base());
            return Caller { actor: actor.with_token(&token), standing: Standing::Anonymous, only: None, inside: None };
        }
    }
    Caller { actor, standing, only: None, inside: None }
}

/// A caller who holds exactly these capabilities at the organization.
pub(super) async fn holder(stage: &Stage<'_>, world: &World, capabilities: BTreeSet<String>) -> Caller {
    let role = stage.role(&world.org, &capabilities).await;
    caller(stage, &world.org, &role, capabilities, kind("holder", Holds::Needed, At::Organization)).await
}
