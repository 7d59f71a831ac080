use super::{Expectation, SampleToken, SampleTokens, TokenTrust};

/// A subject of an issuer of OpenID Connect.
#[derive(Clone, Debug)]
pub struct OidcSubject<'a> {
    pub issuer: &'a str,
    pub subject: Expectation,
    /// Absent for the address of the server.
    pub audience: Option<&'a str>,
}

impl OidcSubject<'_> {
    /// What an identity of this subject expects.
    pub fn trust(&self) -> TokenTrust {
        TokenTrust {
            issuer: self.issuer.to_owned(),
            subject: self.subject.clone(),
            audience: self.audience.map(str::to_owned),
        }
    }

    /// Tokens of this subject, and of others. Of a pattern, no token of its own is known.
    pub fn samples(&self) -> SampleTokens {
        let sample = |holder: &str, subject: &str| SampleToken {
            holder: holder.to_owned(),
            claims: vec![("iss", self.issuer.to_owned()), ("sub", subject.to_owned())],
        };
        let everyone = "everyone whom the issuer gives a token";
        let mut others = vec![(sample("any other subject", "someone-else"), everyone)];
        let own = match &self.subject {
            Expectation::Pattern(_) => Vec::new(),
            Expectation::Exact(subject) => {
                others.push((sample("a longer subject", &format!("{subject}-x")), everyone));
                vec![sample("the workload", subject)]
            }
        };
        SampleTokens { own, others }
    }
}
