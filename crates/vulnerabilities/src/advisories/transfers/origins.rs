//! Where imported events came from.

use std::collections::HashMap;

use bowline_contract::bowline::advisories::v1::EventOrigin;
use bowline_core::{Result, Uidp};
use bowline_store::{ReadTx, Value, WriteTx, placeholders};

use super::super::rows::LOADED_AT_ONCE;

/// Notes where events came from.
pub(super) async fn insert(tx: &mut WriteTx, events: &[Uidp], source: &str, licence: &str) -> Result<()> {
    if source.is_empty() && licence.is_empty() {
        return Ok(());
    }
    let restricted = bowline_feeds::forbids_derivatives(licence);
    for events in events.chunks(LOADED_AT_ONCE) {
        let mut params = vec![Value::from(source), Value::from(licence), Value::Bool(restricted)];
        let mut values = Vec::with_capacity(events.len());
        for event in events {
            let next = params.len() + 1;
            params.extend([Value::from(event.as_str()), Value::from(event.parent_str())]);
            values.push(format!("($1, $2, $3, ${next}, ${})", next + 1));
        }
        let sql = format!(
            "INSERT INTO advisory_event_origins (source, licence, is_restricted, event, advisory) VALUES {}",
            values.join(", ")
        );
        tx.execute(&sql, &params).await?;
    }
    Ok(())
}

/// Where an event came from, and whether its licence keeps it here.
#[derive(Default)]
pub(super) struct Origin {
    pub(super) origin: EventOrigin,
    pub(super) restricted: bool,
}

/// The origins of the events of these advisories, by event.
pub(super) async fn load(tx: &mut ReadTx, advisories: &[&str]) -> Result<HashMap<String, Origin>> {
    let mut origins = HashMap::new();
    for advisories in advisories.chunks(LOADED_AT_ONCE) {
        let params: Vec<Value<'_>> = advisories.iter().map(|uid| Value::from(*uid)).collect();
        let sql = format!(
            "SELECT event, source, licence, is_restricted FROM advisory_event_origins WHERE advisory IN ({})",
            placeholders(1, params.len())
        );
        let found = tx.query(&sql, &params, |row| {
            let origin = EventOrigin { source: row.text(1)?, licence: row.text(2)? };
            Ok::<_, bowline_core::Error>((row.text(0)?, Origin { origin, restricted: row.bool(3)? }))
        });
        origins.extend(found.await?);
    }
    Ok(origins)
}
