//! Liveness, readiness and metrics, on a listener of their own.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use bowline_core::Error;
use bowline_rpc::{Acceptor, ListenerOptions};
use bowline_store::Db;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::disk;
use crate::error::StartError;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::server::{Parts, wait_for};

/// Holds the address of the listener.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn bind(options: &Options, limits: ListenerOptions) -> Result<Acceptor, StartError> {
    let wanted = options.admin_listen();
    let refused = |source| StartError::Listen { address: wanted.to_string(), flag: "admin-listen", source };
    Acceptor::bind(wanted, None, limits).await.map_err(refused)
}

/// Starts the listener; returns its address and the task that ends with it.
///
/// # Errors
/// The socket is gone.
pub(crate) fn serve(
    acceptor: Acceptor,
    parts: &Parts,
    metrics: Metrics,
    stopped: watch::Receiver<bool>,
) -> Result<(SocketAddr, JoinHandle<()>), StartError> {
    let address = acceptor.address().map_err(|error| StartError::Defect(error.to_string()))?;
    let router = router(parts.storage.db.clone(), metrics);
    Ok((address, tokio::spawn(acceptor.serve_router(router, wait_for(stopped)))))
}

/// The pages: alive while the process responds and can write, ready while the storage responds.
fn router(db: Db, metrics: Metrics) -> Router {
    let (metrics, alive) = (Arc::new(metrics), db.clone());
    Router::new()
        .route("/livez", get(move || async move { livez(&alive) }))
        .route("/readyz", get(move || ready(db.clone())))
        .route("/metrics", get(move || async move { metrics.clone().render().await }))
}

/// Nothing in this process brings back a database that is closed.
fn livez(db: &Db) -> (StatusCode, &'static str) {
    if db.is_closed() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the database is closed: start the server again\n");
    }
    (StatusCode::OK, "ok\n")
}

async fn ready(db: Db) -> (StatusCode, String) {
    if db.is_closed() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the storage takes no writes\n".into());
    }
    let result = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT n FROM revisions WHERE name = 'iam'";
                tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await
            })
        })
        .await;
    match result {
        // Reads and deletions are served on a full disk, and the operator needs them.
        Ok(_) => (StatusCode::OK, format!("ok\n{}", disk::state(&db))),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the storage does not answer\n".into())
        }
    }
}
