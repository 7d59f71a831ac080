//! What lists show of a package of a group, made from its versions whenever these change.

use bowline_core::{Error, Micros, Result, Uidp, hex};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Row, Value, WriteTx};
use bowline_versions::Version;

use super::repositories;
use crate::ecosystems::Language;
use crate::hosted::ID_PREFIX;

/// Versions, from the highest down, among which the latest is looked for.
const LOOKED_AT: i64 = 200;

/// Makes the summary of a package that has none yet, under an id that is drawn at random; what it says comes with its first
/// version.
pub(super) async fn create<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    (repository, language): (&Uidp, Language),
    package: &str,
) -> Result<()> {
    let sql = "INSERT INTO hosted_packages (repository, package, id, ecosystem, folded, latest, license, version_count,
                                            created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, '', '', 0, $6, $6) ON CONFLICT (repository, package) DO NOTHING";
    let (id, folded) = (format!("{ID_PREFIX}{}", hex(&call.draw()[..16])), package.to_lowercase());
    let params = [
        Value::from(repository.as_str()),
        Value::from(package),
        Value::from(&id),
        Value::Int(language.number()),
        Value::from(&folded),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// Marks a repository as changed, by a number of files of a package that came, or, below zero, went; the summary of the package
/// follows.
pub(super) async fn note_change(
    tx: &mut WriteTx,
    (repository, language): (&Uidp, Language),
    package: &str,
    files: i64,
    now: Micros,
) -> Result<()> {
    // First, since its row is locked from then on: no other transaction changes versions of the repository meanwhile.
    repositories::note_change(tx, repository, files).await?;
    summarize(tx, (repository, language), package, now).await
}

/// Brings the summary of a package up to date; without versions, it goes.
async fn summarize(
    tx: &mut WriteTx,
    (repository, language): (&Uidp, Language),
    package: &str,
    now: Micros,
) -> Result<()> {
    let of_package = [Value::from(repository.as_str()), Value::from(package)];
    let Some((version, license)) = latest(tx, language, &of_package).await? else {
        tx.execute("DELETE FROM hosted_packages WHERE repository = $1 AND package = $2", &of_package).await?;
        return Ok(());
    };
    let sql = "UPDATE hosted_packages SET latest = $3, license = $4, updated_at = $5,
                 version_count = (SELECT count(*) FROM hosted_versions v WHERE v.repository = $1 AND v.package = $2)
               WHERE repository = $1 AND package = $2";
    let [repository, package] = of_package;
    let params = [repository, package, Value::from(&version), Value::from(&license), Value::Int(now)];
    tx.execute(sql, &params).await?;
    Ok(())
}

/// The latest version with its license: the highest that is not withdrawn, releases before pre-releases.
async fn latest(tx: &mut ReadTx, language: Language, of_package: &[Value<'_>]) -> Result<Option<(String, String)>> {
    let sql = format!(
        "SELECT version, license, yanked IS NOT NULL FROM hosted_versions
         WHERE repository = $1 AND package = $2 ORDER BY sort_key DESC LIMIT {LOOKED_AT}"
    );
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?, row.bool(2)?));
    let rows = tx.query(&sql, of_package, read).await?;
    let is_prerelease =
        |version: &str| Version::parse(language.scheme(), version).is_ok_and(|version| version.is_prerelease());
    let first = rows.into_iter().min_by_key(|(version, _, is_yanked)| (*is_yanked, is_prerelease(version)));
    Ok(first.map(|(version, license, _)| (version, license)))
}
