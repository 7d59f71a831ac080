//! The two cookies: the secret of a sign-in under way, and the session of a browser.

use axum::http::{HeaderMap, HeaderValue, header};

/// How long a browser stays signed in, in seconds.
pub(crate) const SESSION_SECONDS: i64 = 30 * 24 * 3600;

/// Names and attributes of cookies.
///
/// With TLS their names begin with `__Host-`: no other host and no plain connection can set them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    pub(crate) secure: bool,
}

impl Cookies {
    /// The cookie of the sign-in of this id; each has its own, so that several continue in one browser.
    pub(crate) fn flow(self, id: &str) -> String {
        format!("{}bowline-flow-{id}", self.prefix())
    }

    /// The cookie of the browser's session.
    pub(crate) fn session(self) -> String {
        format!("{}bowline-session", self.prefix())
    }

    /// A header that sets a cookie for so many seconds; 0 takes it away.
    pub(crate) fn set(self, name: &str, value: &str, seconds: i64) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        // Names and values are made here and fit; an invalid one is not set.
        HeaderValue::from_str(&text).ok()
    }

    fn prefix(self) -> &'static str {
        if self.secure { "__Host-" } else { "" }
    }
}

/// The value of a cookie. Two that differ are as good as none: one of them was slipped in.
pub(crate) fn read<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let mut values = pairs.filter(|(key, _)| *key == name).map(|(_, value)| value);
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_for_this_host_and_not_for_scripts() {
        let cookies = Cookies { secure: true };
        assert_eq!(
            cookies.set(&cookies.flow("ab"), "x", 600).unwrap(),
            "__Host-bowline-flow-ab=x; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"
        );
        let plain = Cookies { secure: false };
        assert_eq!(
            plain.set(&plain.session(), "", 0).unwrap(),
            "bowline-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
    }

    #[test]
    fn a_cookie_is_read_by_its_whole_name() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, "a=1; bb=2;b=3".parse().unwrap());
        headers.append(header::COOKIE, "c=4; a=1; d=5; d=6".parse().unwrap());
        assert_eq!(read(&headers, "a"), Some("1"));
        assert_eq!(read(&headers, "b"), Some("3"));
        assert_eq!(read(&headers, "c"), Some("4"));
        assert_eq!(read(&headers, "d"), None, "two different ones");
        assert_eq!(read(&headers, "e"), None);
    }
}
