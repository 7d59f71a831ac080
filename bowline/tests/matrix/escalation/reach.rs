//! What the attacker can do after an attack: everything that is theirs is used, and each token says what it allows.

use std::collections::BTreeSet;

use bowline_contract::v1::auth::rpc::auth::Validate;
use bowline_testkit::Actor;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use serde_json::{Value as Json, json};

use super::people;
use super::world::{EVIL_CLIENT, Stage, World, call, uid};
use crate::fixture::Caller;
use crate::oracle::{self, within};
use crate::table::sources;

/// What was reached, by group, and how.
pub(super) struct Reached {
    how: String,
    group: String,
    capabilities: BTreeSet<String>,
}

/// Where to look for gains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Domain {
    Rights,
    Content,
    Both,
}

/// Everything that the attacker reaches and did not have: empty where nothing was gained.
pub(super) async fn gains(
    stage: &Stage<'_>,
    world: &World,
    caller: &Caller,
    tokens: &[Actor],
    domain: Domain,
) -> Vec<String> {
    let mut reached = Vec::new();
    let others = if domain == Domain::Content { Vec::new() } else { principals(stage, world).await };
    for actor in tokens.iter().cloned().chain(others) {
        reached.extend(allowed(stage, &actor).await);
    }
    if domain != Domain::Rights {
        reached.extend(content(stage, world).await);
    }
    let mut gains = Vec::new();
    for Reached { how, group, capabilities } in reached {
        if !within(&group, &world.org) {
            continue;
        }
        let had = |capability: &String| {
            let one = BTreeSet::from([capability.clone()]);
            oracle::holds(caller, &one, &group) || oracle::holds(&world.start, &one, &group)
        };
        let gained: Vec<&String> = capabilities.iter().filter(|capability| !had(capability)).collect();
        if let Some(first) = gained.first() {
            let place = place(world, &group);
            gains.push(format!("{how}: {} capabilities at {place}, such as {first}", gained.len()));
        }
    }
    gains
}

fn place(world: &World, group: &str) -> &'static str {
    match group {
        group if group == world.org => "the organization",
        group if group == world.team => "the team",
        group if group == world.child => "the child",
        group if group == world.sibling => "the sibling",
        _ => "a group",
    }
}

/// Everyone whom the attacker can act as, apart from the caller.
async fn principals(stage: &Stage<'_>, world: &World) -> Vec<Actor> {
    let server = stage.server;
    let mut actors = Vec::new();
    let mut add = |name: String, token: Option<String>| {
        actors.extend(token.map(|token| server.anonymous().with_token(&token).named(&name)));
    };
    for code in &world.codes {
        people::sign_in(server, people::of_operator(), &world.evil, Some(code)).await;
    }
    for (provider, token) in &world.directories {
        for subject in [world.evil.clone(), newcomer(world, provider)] {
            provision(stage, provider, token, &subject).await;
        }
    }
    let listed =
        stage.ok(&format!("GET /iam/v2/identityProviders?uidp.descendants_of={}", world.org), Json::Null).await;
    for provider in listed["identityProviders"].as_array().into_iter().flatten() {
        let uid = uid(provider);
        for subject in [world.evil.clone(), newcomer(world, &uid)] {
            let token = people::sign_in(server, people::of_organization(&uid), &subject, None).await;
            add("an account at a provider".into(), token);
        }
        // What the chief's program sent to the attacker's client.
        let stolen = server.idp().token(&world.chief, EVIL_CLIENT, Json::Null);
        let asked = [("aud", server.base()), ("identity_provider", uid.as_str())];
        add("the chief's token of the attacker's client".into(), exchanged(stage, &stolen, &asked).await);
    }
    add("the person".into(), people::sign_in(server, people::of_operator(), &world.evil, None).await);
    let tokens = [
        server.idp().token(&world.evil, server.base(), Json::Null),
        server.idp().token(&world.evil, server.base(), json!({ "iss": EVIL_ISSUER })),
    ];
    let listed = stage.ok(&format!("GET /iam/v2/identities?uidp.descendants_of={}", world.org), Json::Null).await;
    for identity in listed["identities"].as_array().into_iter().flatten() {
        let uid = uid(identity);
        for upstream in &tokens {
            let token = exchanged(stage, upstream, &[("aud", server.base()), ("identity", &uid)]).await;
            add("an assumed identity".into(), token);
        }
    }
    actors
}

/// Another account of the attacker's, which signs in here first: only newcomers get a default role.
fn newcomer(world: &World, provider: &str) -> String {
    format!("{}-{}", world.evil, provider.rsplit('/').next().unwrap_or_default())
}

/// An issuer of the attacker's own, whose keys are those of the test's.
pub(super) const EVIL_ISSUER: &str = "https://evil.example";

pub(super) async fn exchanged(stage: &Stage<'_>, token: &str, asked: &[(&str, &str)]) -> Option<String> {
    let reply = stage.server.exchange(token, asked).await;
    (reply.status == 200).then(|| reply.json()["token"].as_str().expect("a token").into())
}

/// Lists the attacker's account in a directory, where its token is good.
async fn provision(stage: &Stage<'_>, provider: &str, token: &str, subject: &str) {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/scim+json"));
    let path = format!("/scim/v2/{}/Users", provider.replace('/', "."));
    let body = json!({ "userName": subject, "externalId": subject }).to_string();
    stage.server.anonymous().with_token(token).rest_with("POST", &path, headers, body.into_bytes()).await;
}

/// What a token allows, by its own account.
async fn allowed(stage: &Stage<'_>, actor: &Actor) -> Vec<Reached> {
    let Ok(who) = actor.grpc::<Validate>(()).await else { return Vec::new() };
    let held = who.capabilities.into_iter().map(|held| Reached {
        how: actor.name.clone(),
        group: held.group.map(|group| group.id).unwrap_or_default(),
        capabilities: match held.role {
            Some(role) => stage.built_in(&role.name),
            None => held.capabilities.into_iter().collect(),
        },
    });
    held.collect()
}

/// What anyone gets, and the server does, without a token, because it was set so at a place.
async fn content(stage: &Stage<'_>, world: &World) -> Vec<Reached> {
    let mut reached = Vec::new();
    let mut add = |how: &str, group: &str, methods: &[&str]| {
        let needed =
            methods.iter().flat_map(|method| oracle::needed_of(&stage.server.server().parts().contract, method));
        reached.push(Reached { how: how.into(), group: group.into(), capabilities: needed.collect() });
    };
    let repos = stage.ok(&format!("GET /registry/v2/repos?uidp.descendants_of={}", world.org), Json::Null).await;
    let mut policies = Vec::new();
    for repo in repos["repos"].as_array().into_iter().flatten() {
        let uid = uid(repo);
        if repo["sync_config"]["source"].as_str().is_some_and(|source| !source.is_empty()) {
            add("a source supplies images", &uid, sources::PUSH);
        }
        policies.push(format!("repos/{uid}"));
    }
    policies.extend([format!("groups/{}", world.org), format!("groups/{}", world.team)]);
    for path in policies {
        let Ok(policy) = ok_or_gone(stage, &format!("GET /registrypolicies/v1/{path}")).await else { continue };
        let place = path.split_once('/').expect("a kind and a UIDP").1;
        if policy["public"] == true {
            add("anybody pulls", place, PULL);
        }
        if policy["upstream"]["url"].as_str().is_some_and(|url| !url.is_empty()) {
            add("an upstream supplies images", place, sources::PUSH);
        }
        let keeps = ["keepLast", "keepDays"].iter().any(|rule| policy["retention"][rule].as_i64().unwrap_or(0) > 0);
        if keeps {
            add("retention deletes", place, DELETE);
        }
    }
    for group in [&world.org, &world.team] {
        let Ok(settings) = ok_or_gone(stage, &format!("GET /advisorysettings/v1/groups/{group}")).await else {
            continue;
        };
        if settings["public"] == true {
            add("anybody reads advisories", group, READ_ADVISORIES);
        }
    }
    reached
}

async fn ok_or_gone(stage: &Stage<'_>, what: &str) -> Result<Json, u16> {
    let reply = call(&stage.operator, what, Json::Null).await;
    if reply.status == 200 { Ok(reply.json()) } else { Err(reply.status) }
}

/// What pulling needs.
const PULL: &[&str] = &[
    "bowline.registry.v1.Content.PullManifest",
    "bowline.registry.v1.Content.PullBlob",
    "bowline.registry.v1.Content.ListTags",
    "bowline.registry.v1.Content.ListReferrers",
];
/// What retention does.
const DELETE: &[&str] = &["bowline.registry.v1.RegistryPolicies.ApplyRetention"];
/// What is read of public advisories.
const READ_ADVISORIES: &[&str] = &["chainguard.platform.vulnerabilities.v1.Advisories.List"];
