//! Signatures of Sigstore that lie beside files of Maven's repository. Clients send a file and its signature in either order.

use bowline_core::{Error, Reason, Result, Uidp};
use bowline_store::{Value, WriteTx};

use super::files;
use super::publishing::NewFile;

/// How the name of a signature ends, after that of the file that it is about.
pub const JAVA_SIGNATURE: &str = ".sigstore.json";

/// Refuses a file whose signature, which came first, is about other bytes, and a signature of other bytes than the file has that it
/// is named after.
pub(super) async fn require_agreement(tx: &mut WriteTx, repository: &Uidp, file: &NewFile) -> Result<()> {
    let differs = |signed: &str| {
        let text =
            format!("{signed}{JAVA_SIGNATURE} is about other bytes than those of {signed}: publish another version");
        Err(Error::new(Reason::FailedPrecondition, text))
    };
    if let Some(signed) = file.name.strip_suffix(JAVA_SIGNATURE) {
        let there = files::find(tx, repository, &file.package, signed).await?.filter(|there| !there.is_deleted);
        let is_other = |sha256: &str| file.attestations.iter().any(|signature| signature.subject_sha256 != sha256);
        if there.is_some_and(|there| is_other(&there.sha256)) {
            return differs(signed);
        }
    }
    let sql = "SELECT 1 FROM hosted_attestations
               WHERE repository = $1 AND package = $2 AND file = $3 AND subject_sha256 NOT IN ('', $4) LIMIT 1";
    let signature = format!("{}{JAVA_SIGNATURE}", file.name);
    let params = [
        Value::from(repository.as_str()),
        Value::from(&file.package),
        Value::from(&signature),
        Value::from(&file.content.sha256),
    ];
    match tx.query_opt(sql, &params, |row| row.int(0).map_err(Error::from)).await? {
        Some(_) => differs(&file.name),
        None => Ok(()),
    }
}
