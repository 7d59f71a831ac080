//! Challenges of a registry: the `www-authenticate` header.

use axum::http::{HeaderMap, header};

/// A scheme of authentication, with its parameters.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Challenge {
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    pub(super) fn is(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The value of a parameter, whose name is in lower case.
    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// All ways that the headers offer, whether in one header or in many.
pub(super) fn challenges(headers: &HeaderMap) -> Vec<Challenge> {
    let texts = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    texts.flat_map(read).collect()
}

/// `Scheme name="value", name=value, Scheme name="value"`: a word before the name begins the next challenge.
fn read(text: &str) -> Vec<Challenge> {
    let mut found: Vec<Challenge> = Vec::new();
    for item in items(text) {
        let (before, value) = match item.split_once('=') {
            Some((before, value)) => (before.trim(), Some(value)),
            None => (item, None),
        };
        let (scheme, name) = match (before.split_once(' '), value) {
            (Some((scheme, name)), _) => (Some(scheme), name.trim()),
            (None, Some(_)) => (None, before),
            (None, None) => (Some(before), ""),
        };
        if let Some(scheme) = scheme {
            found.push(Challenge { scheme: scheme.into(), parameters: Vec::new() });
        }
        if let (Some(challenge), Some(value)) = (found.last_mut(), value) {
            challenge.parameters.push((name.to_ascii_lowercase(), unquoted(value.trim())));
        }
    }
    found
}

/// The parts between the commas that no quotes hold.
fn items(text: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_comma = |c: char| {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ',' => return !is_quoted,
            _ => {}
        }
        false
    };
    text.split(is_comma).map(str::trim).filter(|item| !item.is_empty()).collect()
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else { return value.into() };
    let (mut text, mut is_escaped) = (String::with_capacity(inner.len()), false);
    for c in inner.chars() {
        is_escaped = c == '\\' && !is_escaped;
        if !is_escaped {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn challenge(scheme: &str, parameters: &[(&str, &str)]) -> Challenge {
        let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Challenge { scheme: scheme.into(), parameters }
    }

    #[test]
    fn challenges_alone_and_many_in_one_header() {
        let bearer = [("realm", "https://a/token"), ("service", "a, b"), ("scope", "repository:x:pull,push")];
        let text = r#"Bearer realm="https://a/token",service="a, b", scope="repository:x:pull,push""#;
        assert_eq!(read(text), [challenge("Bearer", &bearer)]);
        let both = format!("Basic realm=\"x\", {text}");
        assert_eq!(read(&both), [challenge("Basic", &[("realm", "x")]), challenge("Bearer", &bearer)]);
        for (text, wanted) in [
            ("Negotiate, basic Realm=x", vec![challenge("Negotiate", &[]), challenge("basic", &[("realm", "x")])]),
            (r#"Basic realm="a \"b\" \\ c""#, vec![challenge("Basic", &[("realm", r#"a "b" \ c"#)])]),
            ("Bearer realm=\"x", vec![challenge("Bearer", &[("realm", "\"x")])]),
            ("realm=\"x\"", vec![]),
            (" , ,", vec![]),
        ] {
            assert_eq!(read(text), wanted, "{text}");
        }
    }

    #[test]
    fn headers_add_up() {
        let mut headers = HeaderMap::new();
        for text in ["Basic realm=\"x\"", "Bearer realm=\"https://a\""] {
            headers.append(header::WWW_AUTHENTICATE, text.parse().unwrap());
        }
        let found = challenges(&headers);
        assert!(found[0].is("BASIC") && found[1].is("bearer"));
        assert_eq!((found[1].parameter("realm"), found[1].parameter("scope")), (Some("https://a"), None));
    }
}
