//! Repositories of packages: one for each group and ecosystem, made by the first file that is published there.

use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Value, WriteTx};

/// The repository of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Repository {
    pub(super) uid: Uidp,
    /// Grows with each change of what it holds.
    pub(super) revision: i64,
}

/// The repository of a group; absent before anything was published there.
pub(super) async fn find(tx: &mut ReadTx, group: &str, ecosystem: i64) -> Result<Option<Repository>> {
    let sql = "SELECT uid, revision FROM package_repositories WHERE parent = $1 AND ecosystem = $2";
    let params = [Value::from(group), Value::Int(ecosystem)];
    let row = tx.query_opt(sql, &params, |row| Ok::<_, Error>((row.text(0)?, row.int(1)?))).await?;
    row.map(|(uid, revision)| Ok(Repository { uid: stored(&uid)?, revision })).transpose()
}

/// Makes the repository of a group under a UIDP that was drawn at random.
pub(super) async fn create(tx: &mut WriteTx, uid: Uidp, ecosystem: i64, now: Micros) -> Result<Uidp> {
    let sql = "INSERT INTO package_repositories (uid, parent, ecosystem, file_count, created_at)
               VALUES ($1, $2, $3, 0, $4)";
    let params = [Value::from(uid.as_str()), Value::from(uid.parent_str()), Value::Int(ecosystem), Value::Int(now)];
    tx.execute(sql, &params).await?;
    Ok(uid)
}

/// Marks a repository as changed, by a number of files that came, or, below zero, went.
pub(super) async fn note_change(tx: &mut WriteTx, repository: &Uidp, files: i64) -> Result<()> {
    let sql = "UPDATE package_repositories SET file_count = file_count + $2, revision = revision + 1 WHERE uid = $1";
    tx.execute(sql, &[Value::from(repository.as_str()), Value::Int(files)]).await?;
    Ok(())
}

/// Deletes what the repositories of a group still hold, which is names of deleted files.
pub(crate) async fn delete_of_group(tx: &mut WriteTx, group: &Uidp) -> Result<()> {
    let sql = "SELECT uid FROM package_repositories WHERE parent = $1";
    let params = [Value::from(group.as_str())];
    for uid in tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await? {
        for table in [
            "hosted_attestations",
            "hosted_files",
            "hosted_manifests",
            "hosted_packages",
            "hosted_tags",
            "hosted_versions",
        ] {
            tx.execute(&format!("DELETE FROM {table} WHERE repository = $1"), &[Value::from(&uid)]).await?;
        }
    }
    tx.execute("DELETE FROM package_repositories WHERE parent = $1", &params).await?;
    Ok(())
}

pub(super) use crate::stored_uid as stored;
