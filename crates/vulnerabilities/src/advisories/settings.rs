//! How groups review and publish their advisories.

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::bowline::vulnerabilities::v1::rpc::advisory_settings_service as methods;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, Result, Uidp};
use bowline_pipeline::{Authorized, Changed, Handlers, handler};
use bowline_resources::kinds::ADVISORY_SETTINGS;
use bowline_resources::list::{self, timestamp};
use bowline_resources::references::require_group;
use bowline_store::{ReadTx, Row, Value, WriteTx, placeholders};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers
        .read::<methods::GetAdvisorySettings>(handler!(get))
        .write::<methods::UpdateAdvisorySettings>(handler!(update))
}

/// What is set for a group; nothing is on until someone turns it on.
async fn of(tx: &mut ReadTx, group: &Uidp) -> Result<own::AdvisorySettings> {
    let sql = "SELECT is_public, second_reviewer, updated_at FROM advisory_settings WHERE place = $1";
    let read = |row: &Row<'_>| {
        Ok::<_, Error>(own::AdvisorySettings {
            uid: group.as_str().into(),
            public: row.bool(0)?,
            second_reviewer_required: row.bool(1)?,
            update_time: timestamp(row.int(2)?),
        })
    };
    let found = tx.query_opt(sql, &[Value::from(group.as_str())], read).await?;
    Ok(found.unwrap_or_else(|| own::AdvisorySettings { uid: group.as_str().into(), ..Default::default() }))
}

async fn get(tx: &mut ReadTx, call: &Authorized<own::GetAdvisorySettingsRequest>) -> Result<own::AdvisorySettings> {
    require_group(tx, call.require_scope()?).await?;
    of(tx, call.require_scope()?).await
}

async fn update(
    tx: &mut WriteTx,
    call: &Authorized<own::UpdateAdvisorySettingsRequest>,
) -> Result<Changed<own::AdvisorySettings>> {
    let group = call.require_scope()?;
    require_group(tx, group).await?;
    let (before, given, mask) =
        (of(tx, group).await?, call.request().settings.clone().unwrap_or_default(), call.mask());
    let mut after = before.clone();
    if mask.covers("public") {
        after.public = given.public;
    }
    if mask.covers("second_reviewer_required") {
        after.second_reviewer_required = given.second_reviewer_required;
    }
    if after == before {
        return Ok(Changed::nothing(after));
    }
    if after.public && !before.public {
        // Public advisories can be read by anonymous callers: the caller must be able to read them too.
        call.require_all(group.as_str(), &list::capability(call, Capability::CapAdvisoriesList))?;
    }
    after.update_time = timestamp(call.now());
    if after.public && !before.public {
        // A change of an advisory that began before and saw no public group would be published by no one: on
        // PostgreSQL this makes one of the two try again.
        let sql = "SELECT count(*) FROM advisories WHERE parent = $1";
        tx.query_opt(sql, &[Value::from(group.as_str())], |row| row.int(0).map_err(Error::from)).await?;
    }
    let sql = "INSERT INTO advisory_settings (place, org, is_public, second_reviewer, revision, updated_at)
               VALUES ($1, $2, $3, $4, 1, $5)
               ON CONFLICT (place) DO UPDATE SET is_public = excluded.is_public,
                 second_reviewer = excluded.second_reviewer, revision = advisory_settings.revision + 1,
                 updated_at = excluded.updated_at";
    let params = [
        Value::from(group.as_str()),
        Value::from(group.root_str()),
        Value::Bool(after.public),
        Value::Bool(after.second_reviewer_required),
        Value::Int(call.now()),
    ];
    tx.execute(sql, &params).await?;
    Ok(Changed::one(ADVISORY_SETTINGS, group, Some(&before), Some(&after), after.clone()).with_event(group, &after))
}

/// Whether a group at or above `place` requires a second person to review events.
pub(super) async fn second_reviewer(tx: &mut ReadTx, scope: &Uidp) -> Result<bool> {
    let params: Vec<Value<'_>> = scope.self_and_ancestors().map(Value::from).collect();
    let sql = format!(
        "SELECT count(*) FROM advisory_settings WHERE second_reviewer AND place IN ({})",
        placeholders(1, params.len())
    );
    let count = tx.query_opt(&sql, &params, |row| row.int(0).map_err(Error::from)).await?;
    Ok(count.unwrap_or(0) > 0)
}
