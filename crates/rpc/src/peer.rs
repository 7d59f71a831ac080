use std::net::IpAddr;

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

    /// Who called: the last address that no trusted proxy has, read from the right.
    pub(crate) fn client(&self, connected: IpAddr, headers: &HeaderMap) -> IpAddr {
        let trusts = |address: &IpAddr| self.0.iter().any(|network| network.contains(address));
        if !trusts(&connected) {
            return connected;
        }
        let forwarded = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let mut addresses: Vec<IpAddr> =
            forwarded.flat_map(|value| value.split(',')).filter_map(|part| part.trim().parse().ok()).collect();
        while let Some(address) = addresses.pop() {
            if !trusts(&address) {
                return address;
            }
        }
        connected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", "1.1.1.1, 2.2.2.2, 10.0.0.9".parse().unwrap());
        let client = |connected: &str| proxies.client(connected.parse().unwrap(), &headers).to_string();
        assert_eq!(client("10.1.1.1"), "2.2.2.2");
        assert_eq!(client("9.9.9.9"), "9.9.9.9");
    }
}
