/// What a host name serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Api,
    Auth,
    Other,
}

/// The public host names of the server's roles.
///
/// While all roles share one host, any `Host` serves everything. With different hosts, each serves its own
/// paths, and an unknown one nothing.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    api: String,
    auth: String,
    /// Hosts of the registry and the libraries.
    others: Vec<String>,
}

/// Whether a request may go on.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Served,
    OtherRole,
    UnknownHost,
}

impl Hosts {
    /// From the public addresses; a path after the host does not count.
    pub fn new(api_url: &str, auth_url: &str, others: &[&str]) -> Hosts {
        Hosts {
            api: host_of(api_url),
            auth: host_of(auth_url),
            others: others.iter().map(|url| host_of(url)).collect(),
        }
    }

    fn is_shared(&self) -> bool {
        self.api == self.auth && self.others.iter().all(|other| *other == self.api)
    }

    /// Judges a request by its host and path.
    pub(crate) fn admit(&self, host: &str, path: &str) -> Admission {
        if self.is_shared() {
            return Admission::Served;
        }
        let host = host.to_ascii_lowercase();
        let mut serves = Vec::new();
        if host == self.api {
            serves.push(Role::Api);
        }
        if host == self.auth {
            serves.push(Role::Auth);
        }
        if self.others.contains(&host) {
            serves.push(Role::Other);
        }
        match serves.as_slice() {
            [] => Admission::UnknownHost,
            serves if serves.contains(&role_of(path)) => Admission::Served,
            // The exchange answers on the API's host too: published clients ask there.
            serves if serves.contains(&Role::Api) && role_of(path) == Role::Auth => Admission::Served,
            _ => Admission::OtherRole,
        }
    }
}

fn role_of(path: &str) -> Role {
    const AUTH: &[&str] = &[
        "/sts/",
        "/auth/",
        "/oauth",
        "/activate",
        "/signout",
        "/orgcheck",
        "/.well-known/",
        "/chainguard.platform.oidc.",
        "/chainguard.platform.auth.",
    ];
    const OTHER: &[&str] = &["/v2/", "/token", "/libraries/simple/"];
    if AUTH.iter().any(|prefix| path.starts_with(prefix)) {
        Role::Auth
    } else if path == "/v2" || OTHER.iter().any(|prefix| path.starts_with(prefix)) {
        Role::Other
    } else {
        Role::Api
    }
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shared_host_serves_all() {
        let hosts = Hosts::new("http://a:1", "http://a:1", &["a:1"]);
        assert_eq!(hosts.admit("anything", "/iam/v1/groups"), Admission::Served);
    }

    #[test]
    fn different_hosts_are_told_apart() {
        let hosts = Hosts::new("https://api.x", "https://issuer.x", &["registry.x"]);
        assert_eq!(hosts.admit("api.x", "/iam/v1/groups"), Admission::Served);
        assert_eq!(hosts.admit("issuer.x", "/sts/exchange"), Admission::Served);
        assert_eq!(hosts.admit("issuer.x", "/iam/v1/groups"), Admission::OtherRole);
        assert_eq!(hosts.admit("registry.x", "/iam/v1/groups"), Admission::OtherRole);
        assert_eq!(hosts.admit("elsewhere", "/iam/v1/groups"), Admission::UnknownHost);
    }
}
