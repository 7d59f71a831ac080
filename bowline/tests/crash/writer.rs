//! A client that changes things until its server dies.

use crate::client::{Client, Reply};
use crate::mutation::Mutation;
use crate::random::Random;
use crate::server::Addresses;

/// A request that left the client, and how it went.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) request_id: String,
    pub(crate) mutation: Mutation,
    pub(crate) reply: Reply,
}

/// What exists before the first kill: groups to write into, and an identity to bind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ground {
    pub(crate) groups: Vec<String>,
    pub(crate) identity: String,
}

/// One writer over all rounds: it deletes only what it knows to be there.
pub(crate) struct Writer {
    name: String,
    random: Random,
    sent: u64,
    /// Groups without anything in them.
    groups: Vec<String>,
    bindings: Vec<String>,
    repos: Vec<String>,
    pub(crate) log: Vec<Sent>,
}

impl Writer {
    pub(crate) fn new(name: String, random: Random) -> Writer {
        Writer { name, random, sent: 0, groups: Vec::new(), bindings: Vec::new(), repos: Vec::new(), log: Vec::new() }
    }

    /// Writes until no answer comes.
    pub(crate) async fn work(mut self, addresses: Addresses, is_grpc: bool, token: String, ground: Ground) -> Writer {
        let Ok(mut client) = Client::connect(addresses.api, is_grpc, &token).await else {
            return self;
        };
        loop {
            let mutation = self.choose(&ground);
            self.sent += 1;
            let request_id = format!("{}-{}", self.name, self.sent);
            let reply = client.send(&request_id, &mutation).await;
            let is_lost = reply == Reply::Lost;
            self.remember(&mutation, &reply);
            self.log.push(Sent { request_id, mutation, reply });
            if is_lost {
                return self;
            }
        }
    }

    fn choose(&mut self, ground: &Ground) -> Mutation {
        let parent = ground.groups[self.random.below(ground.groups.len() as u64) as usize].clone();
        let name = format!("{}-{}", self.name, self.sent);
        let chosen = match self.random.below(10) {
            0 | 1 => self.random.take(&mut self.repos).map(|uid| Mutation::DeleteRepo { uid }),
            2 => self.random.take(&mut self.groups).map(|uid| Mutation::DeleteGroup { uid }),
            3 => self.random.take(&mut self.bindings).map(|uid| Mutation::DeleteBinding { uid }),
            // The deletion of a group takes its bindings along without a row of their own in the audit
            // log, so a group that ever had one is not deleted here.
            4 | 5 => self
                .random
                .take(&mut self.groups)
                .map(|group| Mutation::CreateBinding { parent: group, identity: ground.identity.clone() }),
            6 | 7 => Some(Mutation::CreateGroup { parent: parent.clone(), name: name.clone() }),
            _ => None,
        };
        chosen.unwrap_or(Mutation::CreateRepo { parent, name })
    }

    fn remember(&mut self, mutation: &Mutation, reply: &Reply) {
        let Reply::Done(uid) = reply else { return };
        match mutation {
            Mutation::CreateGroup { .. } => self.groups.push(uid.clone()),
            Mutation::CreateBinding { .. } => self.bindings.push(uid.clone()),
            Mutation::CreateRepo { .. } => self.repos.push(uid.clone()),
            _ => {}
        }
    }
}
