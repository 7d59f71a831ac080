//! Which texts are issuers.

use std::net::IpAddr;

/// Why an issuer cannot be one. Issuers are compared as text, so they have to be written properly.
pub(crate) fn issuer_problem(issuer: &str) -> Option<&'static str> {
    const NO_URL: Option<&str> = Some("must be an https URL without user, query and fragment");
    if issuer.is_empty() {
        return Some("issuer is required");
    }
    if issuer.contains(['?', '#', '\\']) || !issuer.bytes().all(|byte| byte.is_ascii_graphic()) {
        return NO_URL;
    }
    let (rest, is_http) = match (issuer.strip_prefix("https://"), issuer.strip_prefix("http://")) {
        (Some(rest), _) => (rest, false),
        (None, Some(rest)) => (rest, true),
        (None, None) => return NO_URL,
    };
    match host(rest.split('/').next().unwrap_or(rest)) {
        None => NO_URL,
        Some(host) if is_http && !is_loopback(host) => Some("must be an https URL; http is only for loopback hosts"),
        Some(_) => None,
    }
}

/// The host of `host`, `host:port` or `[address]:port`.
fn host(authority: &str) -> Option<&str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, if port.is_empty() { None } else { Some(port.strip_prefix(':')?) })
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_named = host.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':'));
    let is_reached =
        port.is_none_or(|port| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok());
    (!host.is_empty() && is_named && is_reached).then_some(host)
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}
