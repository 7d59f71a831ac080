//! Liveness, readiness and metrics, on a listener of their own.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use bowline_core::Error;
use bowline_rpc::Telemetry;
use bowline_store::Db;

/// The pages: alive while the process answers, ready while the storage does.
pub(crate) fn router(db: Db, telemetry: Arc<Telemetry>) -> Router {
    let metrics = telemetry.handle();
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(move || ready(db.clone())))
        .route("/metrics", get(move || std::future::ready(metrics.render())))
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
        Ok(_) => (StatusCode::OK, "ok\n".into()),
        Err(error) => {
            tracing::warn!(%error, "not ready");
            (StatusCode::SERVICE_UNAVAILABLE, "the storage does not answer\n".into())
        }
    }
}
