//! Audiences: those that a token may be requested for, and those that a presented token may have.

use bowline_core::{Detail, Error, FieldViolation, Reason, Result};

/// The requested audiences, all of them accepted. Clients send them repeated or joined with commas.
///
/// # Errors
/// INVALID_ARGUMENT if none is requested, or one that no front of this server accepts.
pub(crate) fn requested(names: &[String], accepted: &[&str]) -> Result<Vec<String>> {
    let mut audiences: Vec<String> = Vec::new();
    for audience in names.iter().flat_map(|joined| joined.split(',')).map(str::trim).filter(|one| !one.is_empty()) {
        if !accepted.contains(&audience) {
            let list = accepted.join(", ");
            return Err(Error::invalid_field(
                "aud",
                format!("{audience:?} is no audience of this server; ask for one of: {list}"),
            ));
        }
        if !audiences.iter().any(|known| known == audience) {
            audiences.push(audience.into());
        }
    }
    if audiences.is_empty() {
        return Err(unspecified());
    }
    Ok(audiences)
}

/// Clients look for this very text.
fn unspecified() -> Error {
    let violation = FieldViolation { field: "aud".into(), description: "Audience must be specified".into() };
    Error::new(Reason::InvalidArgument, "Audience must be specified").with(Detail::BadRequest(vec![violation]))
}

/// The `aud` values that a presented token may have if the identity names none: this issuer's URL, its host
/// and port, or its host.
pub(crate) fn defaults(auth_url: &str) -> Vec<String> {
    let mut audiences = vec![auth_url.to_owned()];
    let (authority, host) = host_of(auth_url);
    for name in [authority, host] {
        if !name.is_empty() && !audiences.iter().any(|known| known == name) {
            audiences.push(name.to_owned());
        }
    }
    audiences
}

/// The audience that npm has CI systems sign tokens for, to publish at a registry.
pub(super) fn of_npm(libraries_url: &str) -> String {
    format!("npm:{}", host_of(libraries_url).1)
}

/// The host of an address with its port, and without.
fn host_of(url: &str) -> (&str, &str) {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = after_scheme.split('/').next().unwrap_or_default();
    // The colons inside an IPv6 address are none of a port.
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => host,
        _ => authority,
    };
    (authority, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCEPTED: [&str; 3] = ["https://api.example", "registry.example:5000", "https://api.example/libraries"];

    fn ask(names: &[&str]) -> Result<Vec<String>> {
        let names: Vec<String> = names.iter().map(|one| (*one).to_owned()).collect();
        requested(&names, &ACCEPTED)
    }

    #[test]
    fn repeated_and_joined_audiences_are_the_same() {
        let both = ["https://api.example".to_owned(), "registry.example:5000".to_owned()];
        assert_eq!(ask(&["https://api.example", "registry.example:5000"]).unwrap(), both);
        assert_eq!(ask(&["https://api.example, registry.example:5000,"]).unwrap(), both);
        assert_eq!(ask(&["https://api.example", "https://api.example"]).unwrap(), both[..1]);
    }

    #[test]
    fn none_at_all_has_a_text_of_its_own() {
        for names in [&[][..], &[""][..], &[" , "][..]] {
            let refused = ask(names).unwrap_err();
            assert_eq!(refused.message(), "Audience must be specified");
            assert_eq!(refused.reason(), Reason::InvalidArgument);
        }
    }

    #[test]
    fn near_misses_are_refused_by_name() {
        for names in
            ["https://api.example/", "HTTPS://api.example", "api.example", "registry.example", "https://api.example,x"]
        {
            let refused = ask(&[names]).unwrap_err();
            assert_eq!(refused.reason(), Reason::InvalidArgument);
            assert!(refused.message().contains("aud") && refused.message().contains("registry.example:5000"));
        }
    }

    #[test]
    fn defaults_are_the_url_the_authority_and_the_host() {
        assert_eq!(defaults("https://issuer.example"), ["https://issuer.example", "issuer.example"]);
        assert_eq!(defaults("http://127.0.0.1:8080"), ["http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1"]);
        assert_eq!(defaults("http://[::1]:8080"), ["http://[::1]:8080", "[::1]:8080", "[::1]"]);
        assert_eq!(defaults("http://[::1]"), ["http://[::1]", "[::1]"]);
        assert_eq!(defaults("https://a.example/auth"), ["https://a.example/auth", "a.example"]);
    }
}
