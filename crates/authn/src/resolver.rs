//! Name resolution of the guarded client.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::addresses::AddressPolicy;

/// Turns a host name into addresses. Tests bring their own.
pub trait Resolver: Send + Sync + 'static {
    /// All addresses of the name.
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>>;
}

/// The operating system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|a| a.ip()).collect()) })
    }
}

/// Why a name was not used; found again in the error chain of the HTTP client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("refused address")]
    Refused,
    #[error("unknown host")]
    Unknown,
}

/// Resolves, checks every address, and hands on exactly those: the connection uses no other.
pub(crate) struct GuardedResolver {
    pub(crate) inner: Arc<dyn Resolver>,
    pub(crate) policy: Arc<AddressPolicy>,
    pub(crate) http: bool,
}

impl GuardedResolver {
    fn allows(policy: &AddressPolicy, http: bool, address: IpAddr) -> bool {
        if http { policy.allows_http(address) } else { policy.allows(address) }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let answer = self.inner.resolve(name.as_str().to_owned());
        let (policy, http) = (Arc::clone(&self.policy), self.http);
        Box::pin(async move {
            let addresses = answer.await.map_err(|_| Unusable::Unknown)?;
            if addresses.is_empty() {
                return Err(Unusable::Unknown.into());
            }
            // One refused address among several refuses the name: such a response is an attack or a mistake.
            if !addresses.iter().all(|a| Self::allows(&policy, http, *a)) {
                return Err(Unusable::Refused.into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}
