//! The lease of the relay: one replica delivers at a time, so that a subscription's events keep their order.

use bowline_core::{Micros, Result};
use bowline_pipeline::lease;
use bowline_store::{Db, Engine, WriteTx};

const NAME: &str = "events";
/// Microseconds without a renewal after which another replica may take the lease.
pub(crate) const LEASE: Micros = 6_000_000;

/// Takes the lease, or keeps it. False while another replica has it.
pub(crate) async fn take(db: &Db, holder: &str, now: Micros) -> Result<bool> {
    if db.engine() == Engine::Sqlite {
        return Ok(true);
    }
    let holder = holder.to_owned();
    db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move { lease::keep(tx, NAME, &holder, LEASE, now).await })
    })
    .await
}

/// Gives the lease back.
pub(crate) async fn give_back(db: &Db, holder: &str) -> Result<()> {
    if db.engine() == Engine::Sqlite {
        return Ok(());
    }
    let holder = holder.to_owned();
    db.write(move |tx| {
        let holder = holder.clone();
        Box::pin(async move { lease::give_back(tx, NAME, &holder).await })
    })
    .await
}

/// Whether the lease still is the holder's, in a transaction that writes for it.
pub(crate) async fn is_held(tx: &mut WriteTx, holder: &str) -> Result<bool> {
    lease::is_held(tx, NAME, holder).await
}

/// The same on a snapshot alone.
pub(crate) async fn confirm(tx: &mut WriteTx, holder: &str) -> Result<bool> {
    lease::confirm(tx, NAME, holder).await
}
