//! Checks of the database, of the keys in it, and of the blobs.

use bowline_core::{Error, Micros, rfc3339};
use bowline_store::{Db, ReadTx};

use super::Finding;
use crate::error::StartError;
use crate::options::Options;
use crate::storage::Storage;
use crate::{blobs, keys, providers};

const DATABASE: &str = "database";
const KEYS: &str = "keys";
const BLOBS: &str = "blobs";
const CLOCK: &str = "clock";

/// How far the clock may be behind the newest entry of the audit log.
const SKEW: Micros = 60 * 1_000_000;

/// What is stored, and the issuers of the operator's providers in it.
pub(super) async fn check(options: &Options, now: Micros) -> (Vec<Finding>, Vec<String>) {
    if options.database_url.is_none() && !options.database_file().exists() {
        let text = format!("none in {} yet: the first start makes it", options.data_dir().display());
        return (vec![Finding::ok(DATABASE, text)], Vec::new());
    }
    let storage = match Storage::open_existing(options).await {
        Ok(storage) => storage,
        Err(error) => return (vec![Finding::failure(DATABASE, &error)], Vec::new()),
    };
    let mut findings = vec![Finding::ok(DATABASE, "opened, and its schema is current")];
    findings.push(match keys::load(&storage.db, &storage.wrapping_key).await {
        Ok(_) => Finding::ok(KEYS, "the key file opens what is stored"),
        Err(error) => Finding::failure(KEYS, &error),
    });
    findings.push(match blobs::content(options, &storage.db).await {
        Ok(_) => Finding::ok(BLOBS, "the place of blobs answers and is this database's"),
        Err(error) => Finding::failure(BLOBS, &error),
    });
    findings.push(match newest_entry(&storage.db).await {
        Ok(newest) => clock(newest, now),
        Err(error) => Finding::failure(CLOCK, &error.into()),
    });
    let issuers = match providers::list(&storage).await {
        Ok(rows) => rows.into_iter().map(|[_, issuer, ..]| issuer).collect(),
        Err(error) => {
            findings.push(Finding::failure(DATABASE, &error));
            Vec::new()
        }
    };
    storage.close().await;
    (findings, issuers)
}

/// Tokens and page tokens are bound to time: a clock that went back makes them end late, and the log unordered.
fn clock(newest: Option<Micros>, now: Micros) -> Finding {
    let shown = rfc3339::text(now, rfc3339::Digits::SixOrNone);
    match newest {
        Some(newest) if newest > now + SKEW => {
            let newest = rfc3339::text(newest, rfc3339::Digits::SixOrNone);
            let error = StartError::Unusable {
                cause: format!("the clock says {shown}, and the newest entry of the audit log is of {newest}"),
                hint: "set the clock, and keep it with NTP".into(),
            };
            Finding::failure(CLOCK, &error)
        }
        _ => Finding::ok(CLOCK, format!("{shown}, after everything that is stored")),
    }
}

async fn newest_entry(db: &Db) -> Result<Option<Micros>, Error> {
    db.read(move |tx| Box::pin(newest_in(tx))).await
}

/// By number: entries that wait for theirs are of the last moments.
async fn newest_in(tx: &mut ReadTx) -> Result<Option<Micros>, Error> {
    let sql = "SELECT at FROM audit WHERE seq IS NOT NULL ORDER BY seq DESC LIMIT 1";
    tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::self_check::Level;

    #[test]
    fn a_clock_behind_the_log_is_a_failure() {
        let now = 1_800_000_000_000_000;
        assert_eq!(clock(None, now).level, Level::Ok);
        assert_eq!(clock(Some(now), now).level, Level::Ok);
        assert_eq!(clock(Some(now + SKEW), now).level, Level::Ok);
        let behind = clock(Some(now + SKEW + 1), now);
        assert_eq!(behind.level, Level::Failure);
        assert!(behind.text.contains("2027-01-15T08:01:00"), "{}", behind.text);
    }
}
