//! Cookies of the fronts that browsers use.

use axum::http::{HeaderMap, HeaderValue, header};

/// Names and attributes of cookies.
///
/// With TLS their names begin with `__Host-`: no other host and no plain connection can set them.
#[derive(Clone, Copy, Debug)]
pub struct Cookies {
    /// Whether browsers reach this server over TLS.
    pub secure: bool,
}

impl Cookies {
    /// The whole name of a cookie.
    pub fn named(self, name: &str) -> String {
        format!("{}{name}", if self.secure { "__Host-" } else { "" })
    }

    /// A header that sets a cookie for so many seconds; 0 takes it away. `name` is a whole name.
    pub fn set(self, name: &str, value: &str, seconds: i64) -> Option<HeaderValue> {
        let secure = if self.secure { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}");
        // Names and values are made here and fit; an invalid one is not set.
        HeaderValue::from_str(&text).ok()
    }
}

/// The value of a cookie. Two that differ are as good as none: one of them was slipped in.
pub fn read<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
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
            cookies.set(&cookies.named("flow"), "x", 600).unwrap(),
            "__Host-flow=x; Path=/; Max-Age=600; HttpOnly; SameSite=Lax; Secure"
        );
        let plain = Cookies { secure: false };
        assert_eq!(
            plain.set(&plain.named("session"), "", 0).unwrap(),
            "session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
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
