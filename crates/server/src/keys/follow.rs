//! How a running server follows the keys of its database.

use std::sync::Arc;
use std::time::Duration;

use bowline_authn::keys::KeyRing;
use bowline_core::Micros;
use bowline_pipeline::{Authenticator, OwnKeys};

use super::rotate_if_due;
use crate::error::StartError;
use crate::server::Parts;
use crate::task_board::TaskReport;

const LOOK_FOR_KEYS_EVERY: Duration = Duration::from_secs(2);

/// Follows the keys of the database, which commands and other replicas change, and adds one when the schedule says so.
pub(crate) async fn follow(parts: Arc<Parts>, report: TaskReport) {
    loop {
        report.wait(LOOK_FOR_KEYS_EVERY).await;
        report.begin();
        let failure = match super::load(&parts.storage.db, &parts.storage.wrapping_key).await {
            Ok(ring) => {
                let failure = rotate_keys(&parts, &ring).await.err();
                take_keys(&parts.authenticator, ring, parts.clock.now());
                failure
            }
            Err(error) => {
                tracing::warn!(%error, "the signing keys could not be read; the known ones stay in use");
                Some(error)
            }
        };
        report.end_with(failure.map(|error| error.to_string()));
    }
}

/// Adds a signing key when the schedule says so; the next look takes it.
async fn rotate_keys(parts: &Parts, ring: &KeyRing) -> Result<(), StartError> {
    let storage = &parts.storage;
    match rotate_if_due(&storage.db, &storage.wrapping_key, ring, parts.clock.now()).await {
        Ok(None) => Ok(()),
        Ok(Some(kid)) => {
            tracing::info!(kid, "signing key added by schedule");
            Ok(())
        }
        Err(error) => {
            tracing::warn!(%error, "signing key rotation failed; trying again");
            Err(error)
        }
    }
}

/// Takes the keys of the database if they are others than the known ones, or if one of those ended.
fn take_keys(authenticator: &Authenticator, ring: KeyRing, now: Micros) {
    let seconds = now.div_euclid(1_000_000);
    let verification = ring.verification_keys(seconds);
    let known = authenticator.keys();
    let facts = |ring: &KeyRing| -> Vec<(String, i64, Option<i64>)> {
        ring.keys().iter().map(|key| (key.key.kid().to_owned(), key.signs_from, key.retired_at)).collect()
    };
    if facts(&known.ring) != facts(&ring) || known.verification != verification {
        tracing::info!(keys = ring.keys().len(), "signing keys changed");
        authenticator.replace_keys(OwnKeys { ring, verification });
    }
}
