//! Chains: two and three steps, each of which may be allowed, give no more together.

use std::collections::BTreeSet;

use bowline_testkit::{Actor, Engine, TestServer, by_engine};
use futures_util::stream::{self, StreamExt as _};

use super::attacks::method;
use super::callers::{holder, narrowed, with_little};
use super::reach::{self, Domain, exchanged};
use super::world::{Stage, World};
use super::{AT_ONCE, people, send};
use crate::fixture::{Caller, Standing};
use crate::oracle;

/// A step of a chain.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A request by anyone who of the attackers is let through first.
    Call(&'static str, &'static str),
    /// The attacker's account accepts every invitation.
    Redeem,
    /// The caller exchanges the token for one without narrowing.
    Exchange,
    /// The attacker signs in at the provider with another account.
    SignIn,
}

use Step::{Call, Exchange, Redeem, SignIn};

const WIDE: &str = r#"{"capabilities":["CAP_REPO_LIST","CAP_REPO_DELETE","CAP_IAM_ROLE_BINDINGS_CREATE"]}"#;
const SMALL: &str = r#"{"name":"{name}","capabilities":["CAP_REPO_LIST"]}"#;

const NEW_ROLE: Step = Call("POST /iam/v2/roles/{team}", SMALL);
const WIDEN_NEW: Step = Call("PATCH /iam/v2/roles/{made}", WIDE);
const WIDEN_USED: Step = Call("PATCH /iam/v2/roles/{used}", WIDE);
const WIDEN_PROMISED: Step = Call("PATCH /iam/v2/roles/{promised}", WIDE);
const WIDEN_DEFAULT: Step = Call("PATCH /iam/v2/roles/{default}", WIDE);
const WIDEN_MAPPED: Step = Call("PATCH /iam/v2/roles/{mapped}", WIDE);
const BIND_NEW: Step = Call("POST /iam/v2/roleBindings/{team}", r#"{"identityUid":"{puppet}","roleUid":"{made}"}"#);
const BIND_MADE: Step = Call("POST /iam/v2/roleBindings/{team}", r#"{"identityUid":"{made}","roleUid":"{promised}"}"#);
const BIND_OWNER: Step = Call("POST /iam/v2/roleBindings/{team}", r#"{"identityUid":"{puppet}","roleUid":"{owner}"}"#);
const INVITE: Step = Call("POST /iam/v2/groupInvites/{team}", r#"{"roleUid":"{mapped}","ttl":"3600s"}"#);
const INVITE_NEW: Step = Call("POST /iam/v2/groupInvites/{team}", r#"{"roleUid":"{made}","ttl":"3600s"}"#);
const NEW_IDENTITY: Step = Call(
    "POST /iam/v2/identities/{team}",
    r#"{"name":"{name}","claimMatch":{"issuer":"{issuer}","subject":"{evil}"}}"#,
);
const TAKE_BOSS: Step =
    Call("PATCH /iam/v2/identities/{boss}", r#"{"claimMatch":{"issuer":"{issuer}","subject":"{evil}"}}"#);
const NEW_PROVIDER: Step = Call(
    "POST /iam/v2/identityProviders/{team}",
    r#"{"name":"{name}","defaultRole":"{default}","oidc":{"issuer":"{issuer}","clientId":"evil-client"}}"#,
);
const OTHER_CLIENT: Step = Call("PATCH /iam/v2/identityProviders/{provider}", r#"{"oidc":{"clientId":"evil-client"}}"#);
const OTHER_DEFAULT: Step = Call("PATCH /iam/v2/identityProviders/{provider}", r#"{"defaultRole":"{used}"}"#);
const OTHER_GROUPS: Step =
    Call("PATCH /iam/v2/identityProviders/{provider}", r#"{"oidc":{"groupsClaim":"nicknames"}}"#);
const MAP: Step = Call(
    "POST /iam/v2/externalGroupRoleMappings/{provider}",
    r#"{"externalGroupId":"evil-group","roleUid":"{mapped}"}"#,
);
const DIRECTORY_TOKEN: Step =
    Call("POST /iam/v2/identityProviders/{directory}:regenerateScimToken", r#"{"etag":"{etag}"}"#);
const DIRECTORY_OFF: Step =
    Call("POST /iam/v2/identityProviders/{directory}:setScimEnabled", r#"{"etag":"{etag}","enabled":false}"#);
const NEW_REPO: Step = Call("POST /registry/v2/repos/{team}", r#"{"name":"{name}"}"#);
const SOURCE: Step =
    Call("PATCH /registry/v2/repos/{repo}", r#"{"sync_config":{"source":"registry.example.com/evil"}}"#);
const UPSTREAM: Step =
    Call("PATCH /registrypolicies/v1/repos/{repo}", r#"{"upstream":{"url":"https://registry.example.com/evil"}}"#);
const PUBLIC: Step = Call("PATCH /registrypolicies/v1/groups/{team}", r#"{"public":true}"#);

const STEPS: [Step; 26] = [
    NEW_ROLE,
    WIDEN_NEW,
    WIDEN_USED,
    WIDEN_PROMISED,
    WIDEN_DEFAULT,
    WIDEN_MAPPED,
    BIND_NEW,
    BIND_MADE,
    BIND_OWNER,
    INVITE,
    INVITE_NEW,
    NEW_IDENTITY,
    TAKE_BOSS,
    NEW_PROVIDER,
    OTHER_CLIENT,
    OTHER_DEFAULT,
    OTHER_GROUPS,
    MAP,
    DIRECTORY_TOKEN,
    DIRECTORY_OFF,
    NEW_REPO,
    SOURCE,
    UPSTREAM,
    PUBLIC,
    Redeem,
    SignIn,
];

/// Chains that run always; others are drawn.
const KNOWN: [[Step; 3]; 14] = [
    [INVITE, WIDEN_MAPPED, Redeem],
    [WIDEN_PROMISED, Redeem, BIND_OWNER],
    [NEW_ROLE, BIND_NEW, WIDEN_NEW],
    [NEW_ROLE, INVITE_NEW, WIDEN_NEW],
    [NEW_ROLE, WIDEN_NEW, BIND_NEW],
    [NEW_IDENTITY, BIND_MADE, WIDEN_PROMISED],
    [NEW_PROVIDER, SignIn, BIND_OWNER],
    [OTHER_CLIENT, SignIn, BIND_OWNER],
    [OTHER_DEFAULT, WIDEN_USED, SignIn],
    [MAP, WIDEN_MAPPED, SignIn],
    [WIDEN_DEFAULT, SignIn, BIND_OWNER],
    [DIRECTORY_TOKEN, SignIn, SOURCE],
    [Exchange, INVITE, Redeem],
    [Exchange, BIND_OWNER, Redeem],
];

/// Chains that are drawn, on each engine.
const DRAWN: usize = 36;

/// The chains that run: those that are known, and pairs and triples drawn from all of them, always the same.
fn chains() -> Vec<Vec<Step>> {
    let mut chains: Vec<Vec<Step>> = KNOWN.iter().map(|chain| chain.to_vec()).collect();
    let mut state = 0x5eed_u64;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("31 bits") % below
    };
    for number in 0..DRAWN {
        let length = 2 + number % 2;
        chains.push((0..length).map(|_| STEPS[draw(STEPS.len())]).collect());
    }
    chains
}

async fn chains_of_steps_give_no_more_than_their_caller_held(engine: Engine) {
    let server = TestServer::start(engine).await;
    let every = if engine == Engine::Sqlite { 1 } else { 5 };
    let stage = Stage::new(&server).await;
    let all = chains();
    let runs = all.iter().step_by(every).flat_map(|chain| [false, true].map(|owner| run(&stage, chain, owner)));
    let runs: Vec<Vec<String>> = Box::pin(stream::iter(runs).buffered(AT_ONCE).collect()).await;
    let gains = runs.concat();
    assert!(gains.is_empty(), "{} gains on {engine:?}:\n{}", gains.len(), gains.join("\n"));
    drop(stage);
    server.stop().await;
}

/// Runs a chain by a machine that holds what its steps need, or by an owner whose token is narrowed to that; what was
/// gained.
async fn run(stage: &Stage<'_>, chain: &[Step], by_owner: bool) -> Vec<String> {
    let mut world = World::whole(stage).await;
    let caller = attacker(stage, &world, chain, by_owner).await;
    let mut actors = vec![caller.actor.clone()];
    let mut ended = Vec::new();
    for step in chain {
        ended.push(take(stage, &mut world, *step, &mut actors).await);
    }
    let gains = reach::gains(stage, &world, &caller, &actors, Domain::Both).await;
    let by = if by_owner { "an owner's narrowed token" } else { "a machine" };
    gains.into_iter().map(|gain| format!("{chain:?} by {by}, steps let through {ended:?}: {gain}")).collect()
}

async fn attacker(stage: &Stage<'_>, world: &World, chain: &[Step], by_owner: bool) -> Caller {
    let contract = &stage.server.server().parts().contract;
    let of_step = |step: &Step| match step {
        Call(what, _) => oracle::needed_of(contract, &method(contract, what).full_name),
        Redeem | Exchange | SignIn => BTreeSet::new(),
    };
    let needed = with_little(&chain.iter().flat_map(of_step).collect());
    if !by_owner {
        return holder(stage, world, stage.custom(needed)).await;
    }
    let owner = holder_of_owner(stage, world).await;
    narrowed(stage, &owner, &needed, None).await.expect("a narrowed token")
}

async fn holder_of_owner(stage: &Stage<'_>, world: &World) -> Caller {
    let owner = holder(stage, world, with_little(&BTreeSet::new())).await;
    stage.bind(&world.org, &owner.actor.identity, &stage.server.role("owner")).await;
    Caller { standing: Standing::Bound(vec![(world.org.clone(), stage.built_in("owner"))]), ..owner }
}

/// Takes a step; whether it was let through.
async fn take(stage: &Stage<'_>, world: &mut World, step: Step, actors: &mut Vec<Actor>) -> bool {
    let server = stage.server;
    let token = match step {
        Call(what, body) => {
            for actor in actors.iter() {
                if send(stage, world, what, body, actor).await.status == 200 {
                    return true;
                }
            }
            return false;
        }
        Redeem => {
            let mut token = None;
            for code in &world.codes {
                token = people::sign_in(server, people::of_operator(), &world.evil, Some(code)).await.or(token);
            }
            token
        }
        SignIn => {
            let subject = format!("{}-again", world.evil);
            people::sign_in(server, people::of_organization(&world.provider), &subject, None).await
        }
        Exchange => {
            let token = actors[0].token.clone().expect("a token");
            exchanged(stage, &token, &[("aud", server.base())]).await
        }
    };
    actors.extend(token.iter().map(|token| server.anonymous().with_token(token).named("a step's token")));
    token.is_some()
}

by_engine!(chains_of_steps_give_no_more_than_their_caller_held);
