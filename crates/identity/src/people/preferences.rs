//! How people want to see things: stored for clients, and read by no decision.

use bowline_contract::bowline::people::v1 as own;
use bowline_contract::bowline::people::v1::rpc::sessions::{GetPreferences, UpdatePreferences};
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::PREFERENCES;
use bowline_store::{ReadTx, Row, Value, WriteTx};

/// Rows on a page that a person can choose.
const PAGE_SIZES: std::ops::RangeInclusive<i32> = 10..=200;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<GetPreferences>(handler!(get)).write::<UpdatePreferences>(handler!(update))
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetPreferencesRequest>) -> Result<own::Preferences> {
    Ok(find(tx, call.principal().subject()).await?.unwrap_or_default())
}

async fn find(tx: &mut ReadTx, identity: &str) -> Result<Option<own::Preferences>> {
    let sql = "SELECT theme, time_zone, page_size, single_key_shortcuts FROM preferences WHERE identity = $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(own::Preferences {
            theme: row.int(0)? as i32,
            time_zone: row.text(1)?,
            page_size: row.int(2)? as i32,
            single_key_shortcuts: row.bool(3)?,
        })
    };
    tx.query_opt(sql, &[Value::from(identity)], read).await
}

async fn update(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdatePreferencesRequest>,
) -> Result<Changed<own::Preferences>> {
    let subject = call.principal().subject();
    let uid = Uidp::parse(subject).map_err(Error::internal)?;
    let (mask, given) = (call.mask(), call.request().preferences.clone().unwrap_or_default());
    let stored = find(tx, subject).await?;
    let mut after = stored.clone().unwrap_or_default();
    if mask.covers("theme") {
        after.theme = given.theme;
    }
    if mask.covers("time_zone") {
        after.time_zone = given.time_zone;
    }
    if mask.covers("page_size") {
        after.page_size = given.page_size;
    }
    if mask.covers("single_key_shortcuts") {
        after.single_key_shortcuts = given.single_key_shortcuts;
    }
    if after.page_size != 0 && !PAGE_SIZES.contains(&after.page_size) {
        let (least, most) = (PAGE_SIZES.start(), PAGE_SIZES.end());
        return Err(Error::invalid_field("preferences.pageSize", format!("must be 0, or {least} to {most}")));
    }
    if stored.as_ref() == Some(&after) {
        return Ok(Changed::nothing(after));
    }
    save(tx, call, &after).await?;
    Ok(Changed::one(PREFERENCES, &uid, stored.as_ref(), Some(&after), after.clone()))
}

async fn save<T>(tx: &mut WriteTx, call: &Authorized<T>, preferences: &own::Preferences) -> Result<()> {
    let sql = "INSERT INTO preferences (identity, theme, time_zone, page_size, single_key_shortcuts, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6)
               ON CONFLICT (identity) DO UPDATE SET theme = excluded.theme, time_zone = excluded.time_zone,
                 page_size = excluded.page_size, single_key_shortcuts = excluded.single_key_shortcuts,
                 updated_at = excluded.updated_at";
    let params = [
        Value::from(call.principal().subject()),
        Value::Int(preferences.theme.into()),
        Value::from(&preferences.time_zone),
        Value::Int(preferences.page_size.into()),
        Value::Bool(preferences.single_key_shortcuts),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
