//! Signed statements about published files, as package hosts serve them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::ClientError;

/// A signed statement about a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatement {
    /// What kind of statement it is, such as `https://slsa.dev/provenance/v1`.
    pub predicate_type: String,
    /// Who signed it; absent if the server did not verify it.
    pub signer: Option<StatementSigner>,
}

/// The signer of a statement, as the certificate names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatementSigner {
    /// An address, such as that of a workflow, or an e-mail address.
    pub identity: String,
    /// Issuer of the token that proved the identity.
    pub issuer: String,
    /// Address of the repository that a workflow built; empty if the certificate does not say.
    pub source_repository: String,
}

impl FileStatement {
    /// The statements of a provenance document of Python (PEP 740), in its order.
    ///
    /// # Errors
    /// It is no such document.
    pub fn of_python(provenance: &Value) -> Result<Vec<FileStatement>, ClientError> {
        let mut statements = Vec::new();
        for bundle in elements(&provenance["attestation_bundles"])? {
            let signer = StatementSigner::read(&bundle["publisher"]["claims"]);
            for attestation in elements(&bundle["attestations"])? {
                let predicate_type = attestation["envelope"]["statement"].as_str().and_then(predicate_type);
                let predicate_type = predicate_type.ok_or_else(unreadable)?;
                statements.push(FileStatement { predicate_type, signer: signer.clone() });
            }
        }
        Ok(statements)
    }

    /// The statements of an attestation document of npm, in its order.
    ///
    /// # Errors
    /// It is no such document.
    pub fn of_npm(document: &Value) -> Result<Vec<FileStatement>, ClientError> {
        let statement = |attestation: &Value| {
            let predicate_type = attestation["predicateType"].as_str().ok_or_else(unreadable)?.to_owned();
            Ok(FileStatement { predicate_type, signer: StatementSigner::read(&attestation["signer"]) })
        };
        elements(&document["attestations"])?.iter().map(statement).collect()
    }
}

impl StatementSigner {
    /// The signer that a document names; absent where the server verified nothing.
    fn read(signer: &Value) -> Option<StatementSigner> {
        let text = |name: &str| signer[name].as_str().map(String::from);
        let source_repository = text("source_repository").unwrap_or_default();
        Some(StatementSigner { identity: text("identity")?, issuer: text("issuer")?, source_repository })
    }
}

/// The predicate type of a statement in base64, which some clients wrap into lines.
fn predicate_type(statement: &str) -> Option<String> {
    let statement: String = statement.split_ascii_whitespace().collect();
    let statement: Value = serde_json::from_slice(&STANDARD.decode(statement).ok()?).ok()?;
    statement["predicateType"].as_str().map(String::from)
}

fn elements(list: &Value) -> Result<&Vec<Value>, ClientError> {
    list.as_array().ok_or_else(unreadable)
}

fn unreadable() -> ClientError {
    ClientError::Transport("the response has no statements that can be read".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn attestation(predicate_type: &str) -> Value {
        let mut statement = STANDARD.encode(json!({ "predicateType": predicate_type }).to_string());
        statement.insert(8, '\n');
        json!({ "version": 1, "envelope": { "statement": statement, "signature": "AAAA" } })
    }

    fn statement(predicate_type: &str, signer: Option<(&str, &str)>) -> FileStatement {
        let signer = signer.map(|(identity, issuer)| StatementSigner {
            identity: identity.into(),
            issuer: issuer.into(),
            source_repository: "https://ci.example/acme/app".into(),
        });
        FileStatement { predicate_type: predicate_type.into(), signer }
    }

    #[test]
    fn statements_of_python_have_the_signer_of_their_bundle() {
        let source = "https://ci.example/acme/app";
        let claims = json!({ "identity": "dana@acme.example", "issuer": "https://accounts.example", "source_repository": source });
        let provenance = json!({ "version": 1, "attestation_bundles": [
            { "publisher": { "kind": "https://accounts.example", "claims": claims },
              "attestations": [attestation("a"), attestation("b")] },
            { "publisher": { "kind": "unverified", "claims": null }, "attestations": [attestation("c")] },
            // As an upstream names it, which no one verified.
            { "publisher": { "kind": "GitHub", "repository": "acme/app", "claims": null }, "attestations": [attestation("d")] },
        ] });
        let signer = Some(("dana@acme.example", "https://accounts.example"));
        let read = FileStatement::of_python(&provenance).unwrap();
        assert_eq!(read, [statement("a", signer), statement("b", signer), statement("c", None), statement("d", None)]);
    }

    #[test]
    fn statements_of_npm_have_a_signer_where_they_were_verified() {
        let signer = json!({ "identity": "https://ci.example/release", "issuer": "https://ci.example",
                             "source_repository": "https://ci.example/acme/app" });
        let document = json!({ "attestations": [
            { "predicateType": "a", "bundle": {}, "signer": signer },
            { "predicateType": "b", "bundle": {}, "signer": null },
            { "predicateType": "c", "bundle": {}, "signer": { "identity": "x" } },
        ] });
        let read = FileStatement::of_npm(&document).unwrap();
        let signer = Some(("https://ci.example/release", "https://ci.example"));
        assert_eq!(read, [statement("a", signer), statement("b", None), statement("c", None)]);
    }

    #[test]
    fn other_documents_are_refused() {
        let mut damaged = attestation("a");
        damaged["envelope"]["statement"] = json!("no base64!");
        let bundles = |attestations: Value| json!({ "attestation_bundles": [{ "attestations": attestations }] });
        for document in [json!({}), json!([]), bundles(json!({})), bundles(json!([{}])), bundles(json!([damaged]))] {
            assert!(FileStatement::of_python(&document).is_err(), "{document}");
        }
        for document in [json!({}), json!({ "attestations": {} }), json!({ "attestations": [{}] })] {
            assert!(FileStatement::of_npm(&document).is_err(), "{document}");
        }
    }
}
