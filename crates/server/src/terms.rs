//! The documents that the configuration file wants organizations to accept.

use bowline_core::TermsDocument;
use serde::Deserialize;

use crate::error::StartError;
use crate::options::Options;

/// `[[terms]]` of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct TermsOption {
    /// What acceptances name: change it with the text, and the text has to be accepted again.
    pub id: String,
    /// A title that people read.
    pub label: String,
    /// Where it is read.
    pub url: String,
}

/// The documents, checked.
///
/// # Errors
/// One is not complete, two have the same id, or terms are required and there are none.
pub(crate) fn documents(options: &Options) -> Result<Vec<TermsDocument>, StartError> {
    let mut documents: Vec<TermsDocument> = Vec::new();
    for TermsOption { id, label, url } in options.terms.iter().cloned() {
        let refuse = |why: &str| StartError::Option(format!("[[terms]] {id}: {why}"));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if id.is_empty() || id.len() > 128 || !id.chars().all(is_plain) {
            return Err(refuse("id must have 1 to 128 letters, digits, dots, hyphens or underscores"));
        }
        if label.trim().is_empty() {
            return Err(refuse("label must not be empty"));
        }
        let scheme = url::Url::parse(&url).map(|url| url.scheme().to_owned()).unwrap_or_default();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(refuse("url must be an http or https address"));
        }
        if documents.iter().any(|known| known.id == id) {
            return Err(refuse("stands there twice"));
        }
        documents.push(TermsDocument { id, label, url });
    }
    if options.terms_required && documents.is_empty() {
        return Err(StartError::Option(
            "--terms-required needs at least one [[terms]] in the configuration file, with id, label and url".into(),
        ));
    }
    if documents.len() > 100 {
        return Err(StartError::Option("[[terms]]: at most 100 documents".into()));
    }
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validate(file: &str) -> Result<Vec<TermsDocument>, StartError> {
        documents(&toml::from_str(file).unwrap())
    }

    const GOOD: &str = "[[terms]]\nid = \"tos-1\"\nlabel = \"Terms\"\nurl = \"https://acme.example/tos#1\"\n";

    #[test]
    fn documents_come_from_the_file() {
        let known = validate(&format!("terms-required = true\n{GOOD}")).unwrap();
        assert_eq!((known.len(), known[0].url.as_str()), (1, "https://acme.example/tos#1"));
        assert!(validate("").unwrap().is_empty());
        for wrong in [
            "terms-required = true\n".to_owned(),
            GOOD.repeat(2),
            GOOD.replace("tos-1", "tos 1"),
            GOOD.replace("tos-1", ""),
            GOOD.replace("\"Terms\"", "\" \""),
            GOOD.replace("https://", "javascript:"),
        ] {
            assert!(validate(&wrong).is_err(), "{wrong}");
        }
    }
}
