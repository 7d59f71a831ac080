//! What the running server tells about itself, for commands that run beside it.

use std::collections::BTreeMap;

use bowline_core::Error;
use bowline_store::{Db, Value};

/// Everything told.
pub(crate) async fn read(db: &Db) -> Result<BTreeMap<String, String>, Error> {
    let rows = db
        .read(|tx| {
            Box::pin(async move {
                tx.query("SELECT name, value FROM facts", &[], |row| Ok::<_, Error>((row.text(0)?, row.text(1)?))).await
            })
        })
        .await?;
    Ok(rows.into_iter().collect())
}

/// Tells these.
pub(crate) async fn write(db: &Db, facts: Vec<(&'static str, String)>) -> Result<(), Error> {
    db.write(move |tx| {
        let facts = facts.clone();
        Box::pin(async move {
            for (name, value) in &facts {
                let sql = "INSERT INTO facts (name, value) VALUES ($1, $2)
                           ON CONFLICT (name) DO UPDATE SET value = excluded.value";
                tx.execute(sql, &[Value::from(*name), Value::from(value)]).await?;
            }
            Ok(())
        })
    })
    .await
}
