//! Which addresses a request may leave for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Which addresses besides the public internet may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddressPolicy {
    /// Networks that the operator named.
    pub allow: Vec<IpNet>,
    /// Loopback addresses, and plain http to them: only while the server itself listens on loopback only.
    pub allow_loopback_and_http: bool,
}

impl AddressPolicy {
    /// Whether a connection to that address is allowed.
    pub fn allows(&self, address: IpAddr) -> bool {
        is_public(address)
            || self.allow.iter().any(|net| net.contains(&address))
            || (self.allow_loopback_and_http && address.is_loopback())
    }

    /// Whether plain http to that address is allowed.
    pub fn allows_http(&self, address: IpAddr) -> bool {
        self.allow_loopback_and_http && address.is_loopback()
    }
}

/// Special-purpose IPv4 networks (IANA registry), multicast, and metadata services on public-looking addresses.
static REFUSED_V4: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| {
    [
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
        // Azure's host agent.
        "168.63.129.16/32",
    ]
    .iter()
    .map(|net| net.parse().expect("a constant network"))
    .collect()
});

/// Inside 2000::/3, the rest of which is global unicast: IETF assignments with Teredo and ORCHID, documentation, 6to4.
static REFUSED_V6: LazyLock<Vec<Ipv6Net>> = LazyLock::new(|| {
    ["2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"]
        .iter()
        .map(|net| net.parse().expect("a constant network"))
        .collect()
});

/// Whether the address is on the public internet. NAT64 (64:ff9b::/96) is checked by the IPv4 address in it; other
/// embedded forms (mapped, compatible, 6to4, Teredo) are never public.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !REFUSED_V4.iter().any(|net| net.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if segments[..6] == [0x64, 0xff9b, 0, 0, 0, 0] {
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    segments[0] & 0xe000 == 0x2000 && !REFUSED_V6.iter().any(|net| net.contains(&address))
}
