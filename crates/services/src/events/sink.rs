//! The form of a sink. Whether its address may be reached is checked when something is sent there.

use bowline_core::FieldViolation;
use url::Url;

/// What is wrong with a sink, if anything. An absent one is the field rules' matter.
pub(super) fn violations(sink: &str, schemes: &[&str]) -> Vec<FieldViolation> {
    if sink.is_empty() {
        return Vec::new();
    }
    let violation = |description: String| vec![FieldViolation { field: "sink".into(), description }];
    match validate(sink, schemes) {
        Ok(()) => Vec::new(),
        Err(description) => violation(description),
    }
}

fn validate(sink: &str, schemes: &[&str]) -> Result<(), String> {
    let wanted = || format!("sink must be an absolute {} URL such as https://example.com/events", schemes.join(" or "));
    // The parser mends these silently; what is stored is what was written.
    if sink.chars().any(|c| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err("sink must not contain spaces, control characters or backslashes".into());
    }
    let url = Url::parse(sink).map_err(|_| wanted())?;
    let has_slashes = sink.get(url.scheme().len()..).is_some_and(|rest| rest.starts_with("://"));
    if !schemes.contains(&url.scheme()) || !has_slashes || url.host_str().is_none_or(str::is_empty) {
        return Err(wanted());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("sink must not contain a user name or password".into());
    }
    if url.fragment().is_some() {
        return Err("sink must not contain a fragment".into());
    }
    Ok(())
}

/// The sink as another receiver may read it: its scheme and host, since receivers take secrets in their path and query.
pub(super) fn host(sink: &str) -> &str {
    let start = sink.find("://").map_or(0, |at| at + 3);
    let length = sink[start..].find(['/', '?', '#']);
    length.map_or(sink, |length| &sink[..start + length])
}

/// The sink as the audit log has it: with a digest in the place of its path and query, so that two of them can be told
/// apart.
pub(super) fn shortened(sink: &str, digest: impl FnOnce(&[u8]) -> [u8; 32]) -> String {
    let host = host(sink);
    match &sink[host.len()..] {
        "" | "/" => sink.to_owned(),
        _ => format!("{host}/...{}", bowline_core::hex(&digest(sink.as_bytes())[..4])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absolute_urls_without_credentials_pass() {
        for good in
            ["https://localhost/callback", "https://a.example:8443/x?y=z", "https://[2001:db8::1]", "HTTPS://A.EXAMPLE"]
        {
            assert!(violations(good, &["https"]).is_empty(), "{good}: {:?}", violations(good, &["https"]));
        }
        for bad in [
            "a.example",
            "/callback",
            "//a.example",
            "https:",
            "https://",
            "https:///",
            "https:a.example",
            "https:/a.example",
            "https://?x",
            "https://u@a.example",
            "https://u:p@a.example",
            "https://:p@a.example",
            "https://a.example#f",
            "https://a.example/a b",
            "https://a.example/\t",
            " https://a.example",
            "https:\\\\a.example",
            "https://a.example:99999",
            "https://exa mple",
            "http://a.example",
            "ftp://a.example",
            "file:///etc/passwd",
            "gopher://a.example",
            "javascript:alert(1)",
        ] {
            assert_eq!(violations(bad, &["https"]).len(), 1, "{bad}");
        }
        assert!(violations("http://a.example", &["https", "http"]).is_empty());
    }

    #[test]
    fn others_see_the_host() {
        let digest = |sink: &[u8]| [sink.len() as u8; 32];
        for (sink, of_others, of_audit) in [
            ("https://a.example/x?token=1", "https://a.example", "https://a.example/...1b1b1b1b"),
            ("https://a.example:8443?token=1", "https://a.example:8443", "https://a.example:8443/...1e1e1e1e"),
            ("https://[2001:db8::1]/x", "https://[2001:db8::1]", "https://[2001:db8::1]/...17171717"),
            ("https://a.example/", "https://a.example", "https://a.example/"),
            ("https://a.example", "https://a.example", "https://a.example"),
        ] {
            assert_eq!((host(sink), shortened(sink, digest).as_str()), (of_others, of_audit), "{sink}");
        }
    }
}
