//! The query of a page: its filters, and the place in a list.

use bowline_core::{Error, Result};
use bowline_formats::percent::{self, NOT_UNRESERVED};
use bowline_fronts::request::pairs;

/// Maximum bytes of a query.
const MAX_BYTES: usize = 16 << 10;

/// Name and value pairs. Of several with one name the first counts; an empty value counts as none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query or a form.
    ///
    /// # Errors
    /// INVALID_ARGUMENT: it is too long, or has a broken escape.
    pub(crate) fn read(text: &str) -> Result<Query> {
        Query::read_up_to(text, MAX_BYTES)
    }

    /// Reads a query or a form of at most so many bytes.
    ///
    /// # Errors
    /// As [`Query::read`].
    pub(crate) fn read_up_to(text: &str, max: usize) -> Result<Query> {
        if text.len() > max {
            return Err(Error::invalid_field("query", format!("must have at most {max} bytes")));
        }
        pairs(text).map(Query).map_err(|why| Error::invalid_field("query", why))
    }

    /// A query of these parameters.
    pub(crate) fn of(parameters: &[(&str, &str)]) -> Query {
        Query(parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// Gives a parameter this value, in place of others.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(key, _)| key != name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    /// All names and values, as they were sent.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.trim());
        value.filter(|value| !value.is_empty())
    }

    /// The value as it was sent; empty without one.
    pub(crate) fn raw(&self, name: &str) -> &str {
        self.0.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }

    /// The value as a request field has it: empty without one.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).unwrap_or_default().to_owned()
    }

    /// The address of a page with these parameters, less those named, with others.
    pub(crate) fn address(&self, path: &str, without: &[&str], and: &[(&str, &str)]) -> String {
        let kept = self.0.iter().filter(|(name, value)| !without.contains(&name.as_str()) && !value.is_empty());
        let kept = kept.map(|(name, value)| (name.as_str(), value.as_str()));
        address(path, &kept.chain(and.iter().copied()).collect::<Vec<_>>())
    }
}

/// The address of a page with these parameters; those without a value are left out.
pub(crate) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let mut text = path.to_owned();
    let mut sign = '?';
    for (name, value) in parameters.iter().filter(|(_, value)| !value.is_empty()) {
        text.push(sign);
        text.push_str(&percent::encode(name, NOT_UNRESERVED));
        text.push('=');
        text.push_str(&percent::encode(value, NOT_UNRESERVED));
        sign = '&';
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_keep_filters_and_lose_places() {
        let query = Query::read("in=a%2Fb&q=x+y&page=t&empty=").unwrap();
        assert_eq!((query.get("q"), query.get("empty"), query.get("none")), (Some("x y"), None, None));
        assert_eq!(
            query.address("/console/x", &["page"], &[("page", "<2>")]),
            "/console/x?in=a%2Fb&q=x%20y&page=%3C2%3E"
        );
        assert_eq!(address("/console/x", &[("in", ""), ("uid", "a&b")]), "/console/x?uid=a%26b");
        assert!(Query::read("a=%zz").is_err() && Query::read(&"a".repeat(MAX_BYTES + 1)).is_err());
    }
}
