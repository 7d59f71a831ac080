use std::path::PathBuf;

use serde::Deserialize;

use crate::error::ClientError;
use crate::files;
use crate::issuer::refusal;

/// Variables and files that may have credentials of the machine; the command line reads them from the environment.
#[derive(Clone, Debug, Default)]
pub struct AmbientCredentials {
    /// `ACTIONS_ID_TOKEN_REQUEST_URL`, set by GitHub Actions for jobs that may have an identity token.
    pub github_url: Option<String>,
    /// `ACTIONS_ID_TOKEN_REQUEST_TOKEN`, set like the URL.
    pub github_token: Option<String>,
    /// `BOWLINE_ID_TOKEN`: the variable that a GitLab job names under `id_tokens`.
    pub given_token: Option<String>,
    /// Files where Kubernetes projects a service account's token, the preferred one first.
    pub kubernetes_files: Vec<PathBuf>,
}

/// Where an identity token of the environment comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ambient {
    /// GitHub Actions: the token is requested at each use.
    GitHub {
        url: String,
        /// What to show there.
        token: String,
    },
    /// A variable, as in GitLab.
    Variable(String),
    /// A file, as in Kubernetes.
    File(PathBuf),
}

#[derive(Deserialize)]
struct GitHubAnswer {
    value: String,
}

impl Ambient {
    /// The source that these credentials name, if any.
    pub fn detect(credentials: &AmbientCredentials) -> Option<Ambient> {
        if let Some(token) = &credentials.given_token {
            return Some(Ambient::Variable(token.clone()));
        }
        if let (Some(url), Some(token)) = (&credentials.github_url, &credentials.github_token) {
            return Some(Ambient::GitHub { url: url.clone(), token: token.clone() });
        }
        credentials.kubernetes_files.iter().find(|path| path.is_file()).cloned().map(Ambient::File)
    }

    /// What to call it.
    pub fn name(&self) -> &'static str {
        match self {
            Ambient::GitHub { .. } => "GitHub Actions",
            Ambient::Variable(_) => "BOWLINE_ID_TOKEN",
            Ambient::File(_) => "Kubernetes",
        }
    }

    /// An identity token for that audience.
    ///
    /// # Errors
    /// The source does not give one.
    pub async fn token(&self, http: &reqwest::Client, audience: &str) -> Result<String, ClientError> {
        match self {
            Ambient::Variable(token) => Ok(token.trim().to_owned()),
            Ambient::File(path) => {
                let why = || format!("{}: the token file does not exist any more", path.display());
                let gone = || ClientError::UnusableToken(why());
                Ok(files::read(path)?.ok_or_else(gone)?.trim().to_owned())
            }
            Ambient::GitHub { url, token } => from_github(http, url, token, audience).await,
        }
    }
}

async fn from_github(http: &reqwest::Client, url: &str, token: &str, audience: &str) -> Result<String, ClientError> {
    let wrong = |error| ClientError::Usage(format!("ACTIONS_ID_TOKEN_REQUEST_URL: {error}"));
    let mut url = url::Url::parse(url).map_err(wrong)?;
    url.query_pairs_mut().append_pair("audience", audience);
    let answer = http.get(url).bearer_auth(token).send().await.map_err(ClientError::transport)?;
    let status = answer.status();
    let body = answer.bytes().await.map_err(ClientError::transport)?;
    if !status.is_success() {
        return Err(refusal(status, &body));
    }
    let answer: GitHubAnswer = crate::issuer::parsed(&body)?;
    Ok(answer.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearest_counts() {
        let home = tempfile::tempdir().unwrap();
        let (there, missing) = (home.path().join("token"), home.path().join("none"));
        std::fs::write(&there, "t\n").unwrap();
        let mut credentials =
            AmbientCredentials { kubernetes_files: vec![missing, there.clone()], ..AmbientCredentials::default() };
        assert_eq!(Ambient::detect(&AmbientCredentials::default()), None);
        assert_eq!(Ambient::detect(&credentials), Some(Ambient::File(there)));
        credentials.github_url = Some("https://example/".into());
        assert!(matches!(Ambient::detect(&credentials), Some(Ambient::File(_))), "an address without a token");
        credentials.github_token = Some("x".into());
        assert!(matches!(Ambient::detect(&credentials), Some(Ambient::GitHub { .. })));
        credentials.given_token = Some("y".into());
        assert_eq!(Ambient::detect(&credentials), Some(Ambient::Variable("y".into())));
    }
}
