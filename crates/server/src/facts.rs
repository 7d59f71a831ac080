//! Facts of the running server, for commands that run beside it.

use std::collections::BTreeMap;

use bowline_core::Error;
use bowline_store::{Db, Value};

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

/// The value under this name; `fresh`, which is stored, if there was none.
pub(crate) async fn get_or_insert(db: &Db, name: &'static str, fresh: String) -> Result<String, Error> {
    let known = db.write(move |tx| {
        let fresh = fresh.clone();
        Box::pin(async move {
            let sql = "INSERT INTO facts (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING";
            tx.execute(sql, &[Value::from(name), Value::from(&fresh)]).await?;
            let sql = "SELECT value FROM facts WHERE name = $1";
            tx.query_opt(sql, &[Value::from(name)], |row| row.text(0).map_err(Error::from)).await
        })
    });
    known.await?.ok_or_else(|| Error::internal(format!("the fact {name} was not stored")))
}
