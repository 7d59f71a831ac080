use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

/// Proxies whose `X-Forwarded-For` is believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Believes connections from these networks.
    pub fn new(networks: Vec<IpNet>) -> TrustedProxies {
        TrustedProxies(networks)
    }

    /// Whether a connection from that address is a proxy's.
    pub(crate) fn trusts(&self, address: &IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Who called: the last address that no trusted proxy has, read from the right. What is left of an entry that is no
    /// address is not believed: anyone could have written it.
    pub(crate) fn client(&self, connected: IpAddr, headers: &HeaderMap) -> IpAddr {
        // A listener of both families shows IPv4 callers as ::ffff:a.b.c.d.
        let connected = connected.to_canonical();
        if !self.trusts(&connected) {
            return connected;
        }
        let values: Vec<_> = headers.get_all("x-forwarded-for").iter().collect();
        let entries = values.into_iter().rev().flat_map(|value| value.as_bytes().rsplit(|byte| *byte == b','));
        let believed = entries.map_while(address).find(|address| !self.trusts(address));
        believed.unwrap_or(connected)
    }
}

/// An entry of the header; some proxies write the port too.
fn address(entry: &[u8]) -> Option<IpAddr> {
    let entry = str::from_utf8(entry).ok()?.trim();
    let address = entry.parse().or_else(|_| entry.parse().map(|socket: SocketAddr| socket.ip())).ok()?;
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(connected: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        for value in forwarded {
            headers.append("x-forwarded-for", value.parse().unwrap());
        }
        proxies.client(connected.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed() {
        assert_eq!(client("10.1.1.1", &["1.1.1.1, 2.2.2.2, 10.0.0.9"]), "2.2.2.2");
        assert_eq!(client("10.1.1.1", &["1.1.1.1", "2.2.2.2", "10.0.0.9"]), "2.2.2.2");
        assert_eq!(client("9.9.9.9", &["1.1.1.1, 2.2.2.2, 10.0.0.9"]), "9.9.9.9");
        assert_eq!(client("10.1.1.1", &[]), "10.1.1.1");
    }

    #[test]
    fn nothing_left_of_an_unreadable_entry_is_believed() {
        assert_eq!(client("10.1.1.1", &["1.1.1.1, unknown"]), "10.1.1.1");
        assert_eq!(client("10.1.1.1", &["1.1.1.1, unknown, 10.0.0.9"]), "10.1.1.1");
        assert_eq!(client("10.1.1.1", &["unknown, 2.2.2.2"]), "2.2.2.2");
    }

    #[test]
    fn ports_and_mapped_addresses_are_read() {
        assert_eq!(client("10.1.1.1", &["2.2.2.2:4711"]), "2.2.2.2");
        assert_eq!(client("10.1.1.1", &["[2001:db8::1]:4711, ::ffff:10.0.0.9"]), "2001:db8::1");
        assert_eq!(client("::ffff:10.1.1.1", &["2.2.2.2"]), "2.2.2.2");
        assert_eq!(client("::ffff:9.9.9.9", &["2.2.2.2"]), "9.9.9.9");
    }
}
