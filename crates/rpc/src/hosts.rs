/// The role of a host name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Api,
    Auth,
    /// The console, beside sign-in and on no other host: the registry may share the API's.
    Console,
    Registry,
    Libraries,
}

/// The public host names of the server's roles.
///
/// While all roles share one host, any `Host` serves everything. With different hosts, each serves its own
/// paths, and an unknown one nothing.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    api: String,
    auth: String,
    registry: String,
    libraries: String,
    /// Path of the libraries' address, empty without one.
    libraries_path: String,
    /// Host of the OSV query API alone; empty if it has none.
    osv: String,
}

/// Words that the paths of package hosts begin with, below the path of their address.
const PACKAGE_HOSTS: &[&str] = &["cargo", "files", "go", "java", "javascript", "python"];

/// Where publishers exchange tokens of CI systems: at the root of the host, whatever the path of its address.
const TRUSTED_PUBLISHING: &[&str] = &["/_/oidc/", "/-/npm/v1/oidc/"];

/// Path of the OSV query API on hosts that serve something else too.
const OSV: &str = "/osv";

/// Result of the check of a request's host.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Served,
    /// Served as the path with this one in front.
    Below(&'static str),
    OtherRole,
    UnknownHost,
}

impl Hosts {
    /// From the public addresses; a path after the host does not count.
    pub fn new(api_url: &str, auth_url: &str, registry_host: &str, libraries_url: &str) -> Hosts {
        Hosts {
            api: host_of(api_url),
            auth: host_of(auth_url),
            registry: host_of(registry_host),
            libraries: host_of(libraries_url),
            libraries_path: path_of(libraries_url).into(),
            osv: String::new(),
        }
    }

    /// Serves the OSV query API, and nothing else, at the root of a host of its own.
    #[must_use]
    pub fn with_osv(self, url: Option<&str>) -> Hosts {
        Hosts { osv: url.map(host_of).unwrap_or_default(), ..self }
    }

    fn is_shared(&self) -> bool {
        [&self.auth, &self.registry, &self.libraries].into_iter().all(|other| *other == self.api)
    }

    /// Checks a request by its host and path.
    pub(crate) fn admit(&self, host: &str, path: &str) -> Admission {
        let host = host.to_ascii_lowercase();
        if !self.osv.is_empty() && host == self.osv {
            let is_below = path.strip_prefix(OSV).is_some_and(|rest| rest.starts_with('/'));
            return if is_below { Admission::Served } else { Admission::Below(OSV) };
        }
        if self.is_shared() {
            return Admission::Served;
        }
        let roles = [
            (&self.api, Role::Api),
            (&self.auth, Role::Auth),
            (&self.auth, Role::Console),
            (&self.registry, Role::Registry),
            (&self.libraries, Role::Libraries),
        ];
        let serves: Vec<Role> = roles.into_iter().filter(|(name, _)| **name == host).map(|(_, role)| role).collect();
        match serves.as_slice() {
            [] => Admission::UnknownHost,
            serves if serves.contains(&self.role_of(path)) => Admission::Served,
            // The exchange is served on the API's host too: published clients call it there.
            serves if serves.contains(&Role::Api) && self.role_of(path) == Role::Auth => Admission::Served,
            _ => Admission::OtherRole,
        }
    }

    /// Whether a package host serves a path. Those read bodies by the rules of their protocols.
    pub(crate) fn is_of_packages(&self, path: &str) -> bool {
        self.role_of(path) == Role::Libraries
    }

    fn role_of(&self, path: &str) -> Role {
        if TRUSTED_PUBLISHING.iter().any(|prefix| path.starts_with(prefix)) {
            return Role::Libraries;
        }
        let below = path.strip_prefix(self.libraries_path.as_str()).and_then(|rest| rest.strip_prefix('/'));
        let word = below.and_then(|rest| rest.split('/').next());
        if word.is_some_and(|word| PACKAGE_HOSTS.contains(&word)) { Role::Libraries } else { role_of(path) }
    }
}

/// The role of a path that no package host serves.
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
    if AUTH.iter().any(|prefix| path.starts_with(prefix)) {
        Role::Auth
    } else if path == "/console" || path.starts_with("/console/") {
        Role::Console
    } else if matches!(path, "/v2" | "/token") || path.starts_with("/v2/") {
        Role::Registry
    } else {
        Role::Api
    }
}

fn host_of(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest).to_ascii_lowercase()
}

/// The path of an address without a slash at its end.
fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |at| rest[at..].trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_shared_host_serves_all() {
        let hosts = Hosts::new("http://a:1", "http://a:1", "a:1", "http://a:1/libraries");
        assert_eq!(hosts.admit("anything", "/iam/v1/groups"), Admission::Served);
    }

    #[test]
    fn different_hosts_are_distinguished() {
        let hosts = Hosts::new("https://api.x", "https://issuer.x", "registry.x", "https://libraries.x");
        assert_eq!(hosts.admit("api.x", "/iam/v1/groups"), Admission::Served);
        assert_eq!(hosts.admit("issuer.x", "/sts/exchange"), Admission::Served);
        assert_eq!(hosts.admit("issuer.x", "/iam/v1/groups"), Admission::OtherRole);
        assert_eq!(hosts.admit("registry.x", "/iam/v1/groups"), Admission::OtherRole);
        for path in ["/v2", "/v2/", "/v2/a/b/tags/list", "/token"] {
            assert_eq!(hosts.admit("registry.x", path), Admission::Served, "{path}");
            for host in ["api.x", "issuer.x", "libraries.x"] {
                assert_eq!(hosts.admit(host, path), Admission::OtherRole, "{host}{path}");
            }
        }
        for path in ["/console", "/console/me"] {
            assert_eq!(hosts.admit("issuer.x", path), Admission::Served, "{path}");
            for host in ["api.x", "registry.x", "libraries.x"] {
                assert_eq!(hosts.admit(host, path), Admission::OtherRole, "{host}{path}");
            }
        }
        assert_eq!(hosts.admit("api.x", "/sts/exchange"), Admission::Served);
        for path in ["/python", "/python/simple/foo/"] {
            assert_eq!(hosts.admit("libraries.x", path), Admission::Served, "{path}");
            assert_eq!(hosts.admit("api.x", path), Admission::OtherRole, "{path}");
        }
        for path in ["/_/oidc/mint-token", "/-/npm/v1/oidc/token/exchange/package/a"] {
            assert_eq!(hosts.admit("libraries.x", path), Admission::Served, "{path}");
            assert_eq!(hosts.admit("api.x", path), Admission::OtherRole, "{path}");
        }
        let below = Hosts::new("https://api.x", "https://issuer.x", "api.x", "https://api.x/libraries");
        assert_eq!(below.admit("api.x", "/libraries/python/simple/"), Admission::Served);
        assert_eq!(below.admit("api.x", "/libraries/v1/artifacts"), Admission::Served);
        assert_eq!(below.admit("issuer.x", "/libraries/python/simple/"), Admission::OtherRole);
        assert_eq!(hosts.admit("elsewhere", "/iam/v1/groups"), Admission::UnknownHost);
    }

    #[test]
    fn a_host_of_the_osv_api_serves_it_alone() {
        let shared = Hosts::new("http://a:1", "http://a:1", "a:1", "http://a:1/libraries");
        let apart = Hosts::new("https://api.x", "https://issuer.x", "registry.x", "https://libraries.x");
        for hosts in [shared, apart].map(|hosts| hosts.with_osv(Some("https://OSV.x"))) {
            for path in ["/v1/query", "/", "/iam/v1/groups", "/v2/", "/console", "/osv", "/osvx/", "/sts/exchange"] {
                assert_eq!(hosts.admit("osv.x", path), Admission::Below("/osv"), "{path}");
            }
            assert_eq!(hosts.admit("Osv.x", "/osv/v1/query"), Admission::Served);
            assert_eq!(hosts.admit(&hosts.api.clone(), "/osv/v1/query"), Admission::Served);
            assert_ne!(hosts.admit("osv.x:8443", "/v1/query"), Admission::Below("/osv"), "a port is part of the host");
        }
        let without = Hosts::new("http://a:1", "http://a:1", "a:1", "http://a:1/libraries").with_osv(None);
        assert_eq!(without.admit("", "/v1/query"), Admission::Served);
    }
}
