use super::{Expectation, SampleToken, SampleTokens, TokenTrust};

/// The annotation of a service account that names its identity.
pub const IDENTITY_ANNOTATION: &str = "bowline/identity";

/// A service account of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct KubernetesAccount<'a> {
    /// Issuer of the cluster's tokens.
    pub issuer: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// Absent for the address of the server.
    pub audience: Option<&'a str>,
}

impl KubernetesAccount<'_> {
    /// What an identity of this account expects.
    pub fn trust(&self) -> TokenTrust {
        TokenTrust {
            issuer: self.issuer.to_owned(),
            subject: Expectation::Exact(self.subject()),
            audience: self.audience.map(str::to_owned),
        }
    }

    /// The subject of its tokens.
    pub fn subject(&self) -> String {
        subject(self.namespace, self.name)
    }

    /// Tokens of this account, and of others.
    pub fn samples(&self) -> SampleTokens {
        let sample = |holder: &str, namespace: &str, name: &str| SampleToken {
            holder: holder.to_owned(),
            claims: vec![("iss", self.issuer.to_owned()), ("sub", subject(namespace, name))],
        };
        SampleTokens {
            own: vec![sample("a pod of the service account", self.namespace, self.name)],
            others: vec![
                (
                    sample("another service account", self.namespace, "another"),
                    "everyone who may start a pod in the namespace",
                ),
                (sample("the same name in another namespace", "another", self.name), "the owners of other namespaces"),
            ],
        }
    }
}

fn subject(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}
