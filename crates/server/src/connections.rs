//! How many connections the listeners take, and for how long these may be silent.

use std::time::Duration;

use bowline_rpc::{ListenerOptions, TrustedProxies};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::error::StartError;
use crate::limits;
use crate::options::Options;

/// Descriptors for everything but public connections: the admin listener, the database, deliveries.
const RESERVED: u64 = 256;
/// Descriptors of one connection: its socket, and the file of a blob that it reads or writes.
const DESCRIPTORS_EACH: u64 = 2;
/// Maximum number of public connections where nothing is configured.
const DEFAULT_CONNECTIONS: usize = 10_000;
/// Maximum number of public connections of one address where nothing is configured.
const DEFAULT_BY_ADDRESS: usize = 512;
/// Connections of the admin listener: probes and a collector of metrics, each a few.
const ADMIN_CONNECTIONS: usize = 64;
const ADMIN_BY_ADDRESS: usize = 32;
/// Calls of the admin listener that may still end when the server stops.
const ADMIN_DRAIN: Duration = Duration::from_secs(5);
/// Longest time that the options take.
const LONGEST: i64 = 86_400;

/// Limits of the public listener.
///
/// # Errors
/// A time is invalid, or there are more connections than the process may have descriptors.
pub(crate) fn public(options: &Options) -> Result<ListenerOptions, StartError> {
    let possible = possible(raised_descriptor_limit());
    let connections = match options.max_connections {
        None => possible.min(DEFAULT_CONNECTIONS),
        Some(requested) if (1..=possible).contains(&requested) => requested,
        Some(requested) => {
            return Err(StartError::Option(format!(
                "--max-connections {requested}: between 1 and {possible}, half of what the limit of open files leaves \
                 (each connection may need two); raise the hard limit (`ulimit -Hn`, LimitNOFILE=) for more"
            )));
        }
    };
    let connections_by_address = match options.max_connections_per_address {
        None => DEFAULT_BY_ADDRESS.min(connections.div_ceil(2)),
        Some(0) => usize::MAX,
        Some(requested) => requested,
    };
    let time = |flag, given: &Option<String>, default| limits::time(flag, given.as_deref(), default, LONGEST);
    Ok(ListenerOptions {
        connections,
        connections_by_address,
        proxies: TrustedProxies::new(options.trusted_proxies.clone()),
        header_bytes: 64 << 10,
        concurrent_streams: 250,
        first_request: time("first-request-timeout", &options.first_request_timeout, Duration::from_secs(10))?,
        idle: time("idle-timeout", &options.idle_timeout, Duration::from_mins(3))?,
        drain: limits::drain(options)?,
    })
}

/// Limits of the admin listener, whose descriptors no public connection takes.
pub(crate) fn admin(public: &ListenerOptions) -> ListenerOptions {
    ListenerOptions {
        connections: ADMIN_CONNECTIONS,
        connections_by_address: ADMIN_BY_ADDRESS,
        proxies: TrustedProxies::default(),
        concurrent_streams: 16,
        drain: public.drain.min(ADMIN_DRAIN),
        ..public.clone()
    }
}

/// The public connections that so many descriptors allow.
fn possible(descriptors: u64) -> usize {
    let reserved = RESERVED.min(descriptors / 2);
    usize::try_from((descriptors - reserved) / DESCRIPTORS_EACH).unwrap_or(usize::MAX).max(1)
}

/// Raises the soft limit of descriptors to the hard one, and returns what then holds.
fn raised_descriptor_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "limit of open files not raised");
    }
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_everything_else() {
        assert_eq!([0, 256, 1024, 20_000].map(possible), [1, 64, 384, 9872]);
        let limit = raised_descriptor_limit();
        assert_eq!(getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX), limit, "the hard limit holds");
        let public = public(&Options::default()).unwrap();
        assert!(public.connections <= DEFAULT_CONNECTIONS);
        assert!(public.connections_by_address < public.connections, "one address does not take all");
        let descriptors = (public.connections as u64) * DESCRIPTORS_EACH + ADMIN_CONNECTIONS as u64;
        assert!(descriptors < limit, "{descriptors} of {limit}");
    }

    #[test]
    fn more_connections_than_descriptors_are_refused() {
        let options = Options { max_connections: Some(usize::MAX), ..Options::default() };
        // Without a limit of the system there is nothing to exceed.
        if raised_descriptor_limit() < u64::MAX {
            assert!(public(&options).unwrap_err().to_string().contains("LimitNOFILE="));
        }
        let options = Options { max_connections: Some(0), ..Options::default() };
        assert!(public(&options).unwrap_err().to_string().starts_with("--max-connections 0: "));
        let options = Options { shutdown_timeout: Some("2m".into()), ..Options::default() };
        assert_eq!(public(&options).unwrap().drain, Duration::from_mins(2));
        let options = Options { idle_timeout: Some("soon".into()), ..Options::default() };
        assert!(public(&options).unwrap_err().to_string().starts_with("--idle-timeout soon: "));
    }
}
