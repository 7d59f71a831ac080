//! Bytes of forms that are in memory while they arrive and are read.
//!
//! What a session sends counts for its caller and the organization of that; those of one organization share a limit, since
//! identities cost it nothing. What comes without a session counts for its network, and has a small limit of its own, so
//! that it takes nothing from those who are signed in.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bowline_core::{Detail, Error, Reason, Result};
use bowline_pipeline::{Full, Lease, Quota, network};

/// Maximum bytes of all forms of sessions, of one organization's, and of one caller's.
const OF_SESSIONS: usize = 32 << 20;
const OF_ORGANIZATION: usize = 8 << 20;
const OF_CALLER: usize = 4 << 20;
/// Maximum bytes of all forms without a session, and of those of one network.
const OF_STRANGERS: usize = 4 << 20;
const OF_NETWORK: usize = 1 << 20;
/// Time in which a form without a session must arrive.
pub(crate) const STRANGERS_TIME: Duration = Duration::from_secs(5);

/// Bytes of forms in memory.
pub(crate) struct Bodies {
    callers: Arc<Quota<String>>,
    organizations: Arc<Quota<String>>,
    networks: Arc<Quota<IpAddr>>,
}

/// Bytes of one form, given back on drop.
pub(crate) enum HeldBytes {
    OfSession { _caller: Lease<String>, _organization: Lease<String> },
    OfNetwork { _network: Lease<IpAddr> },
}

impl Bodies {
    pub(crate) fn new() -> Bodies {
        Bodies {
            callers: Quota::new(OF_SESSIONS, OF_CALLER),
            organizations: Quota::new(usize::MAX, OF_ORGANIZATION),
            networks: Quota::new(OF_STRANGERS, OF_NETWORK),
        }
    }

    /// Takes the bytes that a form of this caller may grow to.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED: a limit is reached.
    pub(crate) fn of_session(&self, subject: &str, bytes: usize) -> Result<HeldBytes> {
        let organization = subject.split('/').next().unwrap_or_default().to_owned();
        let of_caller = |full| too_many(if full == Full::Total { "all" } else { "your" });
        let caller = self.callers.take(Some(subject.to_owned()), bytes).map_err(of_caller)?;
        let taken = self.organizations.take(Some(organization), bytes);
        let organization = taken.map_err(|_| too_many("your organization's"))?;
        Ok(HeldBytes::OfSession { _caller: caller, _organization: organization })
    }

    /// The same without a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED: a limit is reached.
    pub(crate) fn of_network(&self, address: IpAddr, bytes: usize) -> Result<HeldBytes> {
        let taken = self.networks.take(Some(network(address)), bytes);
        Ok(HeldBytes::OfNetwork { _network: taken.map_err(|_| too_many("unknown"))? })
    }
}

fn too_many(whose: &str) -> Error {
    let text = format!("Resource exhausted: too many bytes of {whose} forms are under way; send it again in a moment");
    Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(Duration::from_secs(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_organization_takes_a_part_and_strangers_take_a_small_one() {
        let bodies = Bodies::new();
        let of = |subject: &str| bodies.of_session(subject, OF_CALLER);
        let error = |taken: Result<HeldBytes>| taken.map(|_| ()).unwrap_err().message().to_owned();
        let first = of("a/1").unwrap();
        assert!(error(bodies.of_session("a/1", 1)).contains("bytes of your forms"));
        let _second = of("a/2").unwrap();
        assert!(error(bodies.of_session("a/3", 1)).contains("your organization's"));
        let _others: Vec<_> = ["b/1", "b/2", "c/1", "c/2", "d/1", "d/2"].map(|one| of(one).unwrap()).into();
        assert!(error(bodies.of_session("e/1", 1)).contains("bytes of all forms"));
        drop(first);
        assert!(bodies.of_session("e/1", OF_CALLER).is_ok(), "what was held is given back");
        let network = |last: u8| bodies.of_network(IpAddr::from([10, 0, 0, last]), OF_NETWORK);
        let held: Vec<_> = (0..4).map(|last| network(last).unwrap()).collect();
        assert!(network(4).is_err() && of("f/1").is_ok(), "networks fill what is theirs");
        drop(held);
        let _one = network(0).unwrap();
        assert!(bodies.of_network(IpAddr::from([10, 0, 0, 0]), 1).is_err());
    }
}
