//! Validation of the addresses that a sign-in redirects to.

use url::{Host, Origin, Url};

/// Longest address that is checked at all.
const LONGEST: usize = 2048;

/// Query parameters of the result. A client that reads them requests them as `token=true&error=true`.
const RESPONSE_PARAMETERS: [&str; 4] = ["token", "refresh_token", "error", "status_code"];

/// Allowed targets of tokens: programs on the browser's own machine, and registered origins.
#[derive(Clone, Debug, Default)]
pub struct Redirects(Vec<Origin>);

/// An address that passed [`Redirects::validate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target(Url);

impl Redirects {
    /// Registers origins, such as `https://console.example.com`.
    ///
    /// # Errors
    /// The first invalid origin, with the reason.
    pub fn new(origins: &[String]) -> Result<Redirects, String> {
        origins.iter().map(|text| registered(text)).collect::<Result<_, _>>().map(Redirects)
    }

    /// Checks an address as it came in a request.
    ///
    /// Rejects whatever two parsers could read differently, so that the browser goes to the host that was
    /// checked.
    ///
    /// # Errors
    /// Why it is refused, for the page.
    pub(crate) fn validate(&self, text: &str) -> Result<Target, &'static str> {
        if text.len() > LONGEST {
            return Err("it is too long");
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\') {
            return Err("it has characters that an address does not have");
        }
        let url = Url::parse(text).map_err(|_| "it is no address")?;
        let written = text.split_once("://").filter(|(scheme, _)| *scheme == url.scheme());
        let Some((_, rest)) = written else {
            return Err("it is not written as scheme://host");
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        if authority.contains('@') || !url.username().is_empty() || url.password().is_some() {
            return Err("it names a user");
        }
        if url.fragment().is_some() {
            return Err("it has a fragment");
        }
        if !is_as_parsed(authority, &url) {
            return Err("its host is not written plainly");
        }
        if is_loopback(&url) || self.0.contains(&url.origin()) {
            return Ok(Target(url));
        }
        Err("it leads neither to a program on your own computer nor to a registered site")
    }
}

/// `host` or `host:port`, spelled as the parser understood it.
fn is_as_parsed(authority: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let authority = authority.to_ascii_lowercase();
    match authority.strip_prefix(host) {
        Some("") => true,
        Some(port) => port.strip_prefix(':').and_then(|port| port.parse().ok()) == url.port_or_known_default(),
        None => false,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address == std::net::Ipv4Addr::LOCALHOST,
        Some(Host::Ipv6(address)) => address == std::net::Ipv6Addr::LOCALHOST,
        None => false,
    };
    host && url.scheme() == "http"
}

fn registered(text: &str) -> Result<Origin, String> {
    let refuse = |why: &str| format!("{text}: {why}");
    let url = Url::parse(text).map_err(|error| refuse(&error.to_string()))?;
    if url.scheme() != "https" {
        return Err(refuse("must begin with https://"));
    }
    let origin = url.origin();
    if text.trim_end_matches('/') != origin.ascii_serialization() {
        return Err(refuse(&format!("must be an origin alone, such as {}", origin.ascii_serialization())));
    }
    Ok(origin)
}

impl Target {
    /// The address with the tokens in its query.
    pub(crate) fn with_tokens(&self, token: &str, refresh_token: Option<&str>) -> Url {
        let mut parameters = vec![("token", token)];
        parameters.extend(refresh_token.map(|refresh_token| ("refresh_token", refresh_token)));
        self.with(&parameters)
    }

    /// The address with the error in its query.
    pub(crate) fn with_error(&self, message: &str, status: u16) -> Url {
        self.with(&[("error", message), ("status_code", &status.to_string())])
    }

    /// As it is stored with the flow.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Clients read the first parameter of a name, so that the result replaces parameters of the request.
    fn with(&self, parameters: &[(&str, &str)]) -> Url {
        let kept: Vec<(String, String)> = self
            .0
            .query_pairs()
            .into_owned()
            .filter(|(name, _)| !RESPONSE_PARAMETERS.contains(&name.as_str()))
            .collect();
        let mut url = self.0.clone();
        url.query_pairs_mut().clear().extend_pairs(kept).extend_pairs(parameters);
        url
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redirects() -> Redirects {
        Redirects::new(&["https://console.example.com".into(), "https://other.example:8443/".into()]).unwrap()
    }

    #[test]
    fn only_programs_of_the_machine_and_registered_origins() {
        for good in [
            "http://localhost:4321/callback?token=true&error=true",
            "http://localhost",
            "http://localhost/",
            "http://LOCALHOST:80/x",
            "http://127.0.0.1:1/",
            "http://[::1]:65535/a/b?c=d",
            "http://localhost?x=http://evil.example",
            "http://localhost:1/@evil.example",
            "https://console.example.com",
            "https://console.example.com:443/signed-in?next=1",
            "https://CONSOLE.example.com/",
            "https://other.example:8443/x",
        ] {
            assert!(redirects().validate(good).is_ok(), "{good}: {:?}", redirects().validate(good));
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "cases, one after the other")]
    fn every_trick_is_refused() {
        for bad in [
            "",
            "callback",
            "/callback",
            "//evil.example/",
            "//localhost/",
            "http:localhost",
            "http:/localhost",
            "http:///localhost",
            "http:////localhost",
            "HTTP://localhost/",
            "https://localhost:4321/",
            "https://127.0.0.1/",
            "ftp://localhost/",
            "javascript:alert(1)",
            "javascript://localhost/%0aalert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "blob:http://localhost/1",
            "http://evil.example/",
            "http://localhost.evil.example/",
            "http://localhost./",
            "http://xlocalhost/",
            "http://localhost@evil.example/",
            "http://evil.example@localhost/",
            "http://@localhost/",
            "http://:@localhost/",
            "http://localhost:80@evil.example/",
            "http://localhost\\@evil.example/",
            "http://localhost\\.evil.example/",
            "http:\\\\localhost/",
            "http://localhost%2eevil.example/",
            "http://%6cocalhost/",
            "http://localhost%00.evil.example/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f000001/",
            "http://0177.0.0.1/",
            "http://127.0.0.2/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[0:0:0:0:0:0:0:1]/",
            "http://localhost:/",
            "http://localhost:99999/",
            "http://localhost:-1/",
            "http://localhost:+80/x@y",
            "http://localhost:1/#fragment",
            "http://localhost:1/#",
            " http://localhost/",
            "http://localhost/ ",
            "http://local\thost/",
            "http://localhost/\r\nSet-Cookie:x=y",
            "http://ⓛocalhost/",
            "http://localhost/ü",
            "http://console.example.com/",
            "https://console.example.com.evil.example/",
            "https://console.example.com:444/",
            "https://console.example.com@evil.example/",
            "https://evil.example/?https://console.example.com",
            "https://evil.example#https://console.example.com",
            "https://evil.example\\@console.example.com/",
            "https://sub.console.example.com/",
            "https://other.example/",
        ] {
            assert!(redirects().validate(bad).is_err(), "{bad:?} was taken");
        }
        let long = format!("http://localhost/{}", "x".repeat(LONGEST));
        assert!(redirects().validate(&long).is_err());
    }

    #[test]
    fn registered_are_origins_of_https() {
        for bad in
            ["console.example.com", "http://console.example.com", "https://x.example/path", "https://u@x.example"]
        {
            assert!(Redirects::new(&[bad.into()]).is_err(), "{bad}");
        }
    }

    #[test]
    fn answers_replace_what_the_client_wrote() {
        let target = redirects().validate("http://localhost:1/callback?token=true&a=b%26c&error=true").unwrap();
        assert_eq!(
            target.with_tokens("t.t.t", Some("r=")).as_str(),
            "http://localhost:1/callback?a=b%26c&token=t.t.t&refresh_token=r%3D"
        );
        let failed = target.with_error("account not found", 404);
        assert_eq!(failed.as_str(), "http://localhost:1/callback?a=b%26c&error=account+not+found&status_code=404");
        assert!(!failed.query_pairs().any(|(name, _)| name == "token"));
    }
}
