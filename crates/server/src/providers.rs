//! The operator's identity providers: from the configuration file, and in the database.

use std::path::{Path, PathBuf};

use bowline_authn::relying::is_issuer;
use bowline_core::{Error, Micros};
use bowline_identity::iam_changed;
use bowline_identity::people::{ConfiguredProvider, operator_secret_context};
use bowline_pipeline::{Actor, Change, OPERATOR, record_audit};
use bowline_store::{Row, Value};
use serde::Deserialize;

use crate::error::StartError;
use crate::options::require_file;
use crate::storage::Storage;

const KIND: &str = "bowline.dev/OperatorProvider";

/// An identity provider of the operator's, as `[[operator-providers]]` in the configuration file.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct OperatorProvider {
    /// Short name: lower-case letters, digits and hyphens.
    pub id: String,
    /// What the sign-in page shows [default: the id].
    pub label: Option<String>,
    pub issuer: String,
    /// The server's name at the provider.
    pub client_id: String,
    /// The server's secret there; a public client has none.
    pub client_secret: Option<String>,
    /// File that holds the secret instead.
    pub client_secret_file: Option<PathBuf>,
    /// Scopes to ask for besides openid [default: email, profile].
    pub scopes: Option<Vec<String>>,
}

impl std::fmt::Debug for OperatorProvider {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OperatorProvider")
            .field("id", &self.id)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

/// The providers of the configuration file, checked.
pub(crate) fn configured(given: &[OperatorProvider]) -> Result<Vec<ConfiguredProvider>, StartError> {
    let mut providers: Vec<ConfiguredProvider> = Vec::with_capacity(given.len());
    for one in given {
        let client_secret = match (&one.client_secret, &one.client_secret_file) {
            (Some(_), Some(_)) => {
                let what = format!("operator-providers {}: client-secret or client-secret-file, not both", one.id);
                return Err(StartError::Option(what));
            }
            (Some(secret), None) => Some(secret.clone()),
            (None, Some(path)) => Some(secret_of(path)?),
            (None, None) => None,
        };
        let provider = ConfiguredProvider {
            id: one.id.clone(),
            label: one.label.clone().unwrap_or_else(|| one.id.clone()),
            issuer: one.issuer.clone(),
            client_id: one.client_id.clone(),
            client_secret,
            scopes: one.scopes.clone().unwrap_or_else(default_scopes),
        };
        validate(&provider)?;
        if providers.iter().any(|known| known.id == provider.id) {
            return Err(StartError::Option(format!("operator-providers: there are two of the id {}", provider.id)));
        }
        providers.push(provider);
    }
    Ok(providers)
}

/// The scopes to request by default.
pub(crate) fn default_scopes() -> Vec<String> {
    vec!["email".into(), "profile".into()]
}

/// A secret out of a file, without the line break that editors put at its end.
pub(crate) fn secret_of(path: &Path) -> Result<String, StartError> {
    secret(require_file(path)?, &path.display().to_string())
}

/// The same out of anything that was read.
pub(crate) fn secret(bytes: Vec<u8>, location: &str) -> Result<String, StartError> {
    let text =
        String::from_utf8(bytes).map_err(|_| StartError::Option(format!("{location}: the secret is no text")))?;
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() || text.len() > 4096 || text.chars().any(char::is_control) {
        return Err(StartError::Option(format!("{location}: must hold one line with the client secret")));
    }
    Ok(text.to_owned())
}

/// Whether a provider can work at all.
pub(crate) fn validate(provider: &ConfiguredProvider) -> Result<(), StartError> {
    let refuse = |what: &str| Err(StartError::Option(format!("identity provider {:?}: {what}", provider.id)));
    let is_id = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if provider.id.is_empty() || provider.id.len() > 63 || !provider.id.chars().all(is_id) {
        return refuse("the id must have 1 to 63 lower-case letters, digits and hyphens");
    }
    if !is_issuer(&provider.issuer) {
        return refuse("the issuer must be an https URL without query and fragment");
    }
    let is_line = |text: &str| !text.is_empty() && text.len() <= 1024 && !text.chars().any(char::is_control);
    if !is_line(&provider.client_id) || !is_line(&provider.label) {
        return refuse("client id and label must be short texts of one line");
    }
    let is_scope = |scope: &String| !scope.is_empty() && scope.chars().all(|c| c.is_ascii_graphic() && c != '"');
    if !provider.scopes.iter().all(is_scope) {
        return refuse("scopes must be words");
    }
    Ok(())
}

/// Stores a provider, whose secret is sealed.
pub(crate) async fn add(storage: &Storage, provider: ConfiguredProvider, now: Micros) -> Result<(), StartError> {
    validate(&provider)?;
    let context = operator_secret_context(&provider.id);
    let sealed = provider.client_secret.as_ref().map(|secret| storage.wrapping_key.seal(&context, secret.as_bytes()));
    let sealed = sealed.unwrap_or_default();
    let scopes = serde_json::json!(provider.scopes).to_string();
    let id = provider.id.clone();
    let job = std::sync::Arc::new((provider, sealed, scopes));
    let added = storage.db.write(move |tx| {
        let job = job.clone();
        Box::pin(async move {
            let (provider, sealed, scopes) = &*job;
            let sql = "INSERT INTO operator_providers (id, label, issuer, client_id, client_secret, scopes, created_at)
                       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
            let params = [
                Value::from(&provider.id),
                Value::from(&provider.label),
                Value::from(&provider.issuer),
                Value::from(&provider.client_id),
                Value::from(sealed),
                Value::from(scopes),
                Value::Int(now),
            ];
            if tx.execute(sql, &params).await? == 0 {
                return Ok::<_, Error>(false);
            }
            audit(tx, &provider.id, "bowline operator providers add", now).await?;
            // Named operators are those of the providers.
            iam_changed(tx).await?;
            Ok(true)
        })
    });
    if added.await? {
        return Ok(());
    }
    Err(StartError::Option(format!("there is an identity provider {id} already; remove it first")))
}

/// Removes a stored provider. Its sessions get no further tokens.
pub(crate) async fn remove(storage: &Storage, id: &str, now: Micros) -> Result<(), StartError> {
    let name = id.to_owned();
    let removed = storage.db.write(move |tx| {
        let name = name.clone();
        Box::pin(async move {
            let sql = "DELETE FROM operator_providers WHERE id = $1";
            if tx.execute(sql, &[Value::from(&name)]).await? == 0 {
                return Ok::<_, Error>(false);
            }
            audit(tx, &name, "bowline operator providers remove", now).await?;
            iam_changed(tx).await?;
            Ok(true)
        })
    });
    if removed.await? {
        return Ok(());
    }
    Err(StartError::Option(format!(
        "there is no stored identity provider {id}; those of the configuration file are removed there"
    )))
}

async fn audit(tx: &mut bowline_store::WriteTx, id: &str, method: &str, now: Micros) -> Result<(), Error> {
    let actor = Actor { subject: OPERATOR, request_id: id, method };
    // The operator is the root of what belongs to no one else.
    let change = Change { kind: KIND, uid: OPERATOR.into(), before: None, after: None };
    record_audit(tx, now, &actor, &change).await
}

/// One line per stored provider: id, issuer, client id and whether there is a secret.
pub(crate) async fn list(storage: &Storage) -> Result<Vec<[String; 4]>, StartError> {
    let sql = "SELECT id, issuer, client_id, client_secret FROM operator_providers ORDER BY id";
    let read = |row: &Row<'_>| {
        let secret = if row.bytes(3)?.is_empty() { "none" } else { "sealed" };
        Ok::<_, Error>([row.text(0)?, row.text(1)?, row.text(2)?, secret.to_owned()])
    };
    Ok(storage.db.read(move |tx| Box::pin(async move { tx.query(sql, &[], read).await })).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(id: &str, issuer: &str) -> OperatorProvider {
        OperatorProvider {
            id: id.into(),
            label: None,
            issuer: issuer.into(),
            client_id: "client".into(),
            client_secret: None,
            client_secret_file: None,
            scopes: None,
        }
    }

    #[test]
    fn providers_of_the_file_are_validated_at_start_up() {
        let good = configured(&[given("main", "https://idp.example"), given("b-2", "http://127.0.0.1:1")]).unwrap();
        assert_eq!((good[0].label.as_str(), good[0].scopes.join(" ")), ("main", "email profile".to_owned()));
        for bad in [
            vec![given("Main", "https://idp.example")],
            vec![given("", "https://idp.example")],
            vec![given("main", "http://idp.example")],
            vec![given("main", "https://idp.example"), given("main", "https://other.example")],
        ] {
            assert!(configured(&bad).is_err());
        }
        let both = OperatorProvider {
            client_secret: Some("a".into()),
            client_secret_file: Some("b".into()),
            ..given("main", "https://idp.example")
        };
        assert!(configured(&[both]).is_err());
    }

    #[test]
    fn a_secret_is_one_line() {
        assert_eq!(secret(b"s3cret\n".to_vec(), "file").unwrap(), "s3cret");
        for bad in [&b""[..], b"\n", b"a\nb", b"\xff"] {
            assert!(secret(bad.to_vec(), "file").is_err());
        }
    }
}
