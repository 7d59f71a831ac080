//! Workloads of well-known platforms: which claims their tokens have, and what an identity must expect of them.
//!
//! The command line and the console create identities of these. Nothing here sends anything.

mod aws;
mod github;
mod gitlab;
pub mod kubelet;
mod kubernetes;
mod oidc;
#[cfg(test)]
mod tests;

pub use aws::{AwsPrincipal, AwsTrust};
pub use github::{GithubIds, GithubJobs, GithubSubject};
pub use gitlab::GitlabJobs;
pub use kubernetes::{IDENTITY_ANNOTATION, KubernetesAccount};
pub use oidc::OidcSubject;

/// An input that no claims can be made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadProblem {
    /// Name of the input, as the field of its struct.
    pub field: &'static str,
    /// What it must be, after its name.
    pub description: &'static str,
}

/// What a claim must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The value is this text.
    Exact(String),
    /// A regular expression that matches the whole value.
    Pattern(String),
}

impl Expectation {
    /// A member of a message: its name, with `_pattern` after it for a pattern, and its value.
    fn member(&self, name: &'static str, pattern: &'static str) -> (&'static str, String) {
        match self {
            Expectation::Exact(text) => (name, text.clone()),
            Expectation::Pattern(text) => (pattern, text.clone()),
        }
    }
}

/// The tokens that an identity trusts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTrust {
    pub issuer: String,
    pub subject: Expectation,
    /// Absent for the address of the server itself.
    pub audience: Option<String>,
}

impl TokenTrust {
    /// The members of the message of an identity's claims.
    pub fn members(&self) -> Vec<(&'static str, String)> {
        let mut members = vec![("issuer", self.issuer.clone()), self.subject.member("subject", "subject_pattern")];
        members.extend(self.audience.iter().map(|audience| ("audience", audience.clone())));
        members
    }
}

/// A token that the platform could issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleToken {
    /// Whose token it is, such as "a job on another branch".
    pub holder: String,
    /// Its claims, apart from the audience.
    pub claims: Vec<(&'static str, String)>,
}

/// Tokens to compare an identity with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampleTokens {
    /// Those that it is for.
    pub own: Vec<SampleToken>,
    /// Those of others nearby, and why it would matter if they matched.
    pub others: Vec<(SampleToken, &'static str)>,
}

/// A path of two names or more, which a subject is made of.
fn path<'t>(field: &'static str, text: &'t str) -> Result<&'t str, WorkloadProblem> {
    let is_path = text.contains('/') && text.split('/').all(|name| !name.is_empty() && !name.contains(':'));
    if is_path { Ok(text) } else { Err(WorkloadProblem { field, description: "looks like owner/name" }) }
}

/// A text of a regular expression that matches itself alone.
pub fn literal(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_ascii_alphanumeric() && !"-_/:@".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}
