//! Liveness, readiness and metrics, on a listener of their own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use bowline_core::Error;
use bowline_rpc::Telemetry;
use bowline_services::content::Registry;
use bowline_store::Db;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::disk;
use crate::error::StartError;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::server::{Parts, wait_for};

/// Time for running calls to end when the server stops.
const CALLS_END_WITHIN: Duration = Duration::from_secs(5);

/// Holds the address of the listener.
///
/// # Errors
/// The address cannot be listened on.
pub(crate) async fn bind(options: &Options) -> Result<TcpListener, StartError> {
    let wanted = options.admin_listen();
    let refused = |source| StartError::Listen { address: wanted.to_string(), flag: "admin-listen", source };
    TcpListener::bind(wanted).await.map_err(refused)
}

/// Starts the listener; returns its address and the task that ends with it.
///
/// # Errors
/// The socket is gone.
pub(crate) fn serve(
    socket: TcpListener,
    parts: &Arc<Parts>,
    telemetry: Arc<Telemetry>,
    stopped: watch::Receiver<bool>,
) -> Result<(SocketAddr, JoinHandle<()>), StartError> {
    let address = socket.local_addr().map_err(|error| StartError::Defect(error.to_string()))?;
    let router = router(parts.storage.db.clone(), Metrics::new(parts.clone(), telemetry));
    let task = tokio::spawn(async move {
        let serving = axum::serve(socket, router).with_graceful_shutdown(wait_for(stopped.clone()));
        let is_late = async {
            wait_for(stopped).await;
            tokio::time::sleep(CALLS_END_WITHIN).await;
        };
        tokio::select! {
            ended = serving => if let Err(error) = ended {
                tracing::error!(%error, "the admin listener ended");
            },
            () = is_late => tracing::warn!("calls of the admin listener did not end and were cut off"),
        }
    });
    Ok((address, task))
}

/// The pages: alive while the process answers, ready while the storage does.
fn router(db: Db, metrics: Metrics) -> Router {
    let metrics = Arc::new(metrics);
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(move || ready(db.clone())))
        .route("/metrics", get(move || async move { metrics.clone().render().await }))
}

async fn ready(db: Db) -> (StatusCode, String) {
    let answer = db
        .read(|tx| {
            Box::pin(async move {
                let sql = "SELECT n FROM revisions WHERE name = 'iam'";
                tx.query_opt(sql, &[], |row| row.int(0).map_err(Error::from)).await
            })
        })
        .await;
    match answer {
        // Reads and deletions are served on a full disk, and the operator needs them.
        Ok(_) => (StatusCode::OK, format!("ok\n{}", disk::state(&db))),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the storage does not answer\n".into())
        }
    }
}
