//! What `/metrics` of the admin listener says.

use bowline_testkit::TestServer;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::{call, on_each_engine_with};

async fn metrics(server: &TestServer) -> String {
    let mut stream = TcpStream::connect(server.server().admin_address()).await.expect("a connection");
    let request = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.expect("a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("text");
    text
}

#[tokio::test]
async fn metrics_of_process_storage_and_delivery_have_help_and_stay_small() {
    let few = |options: &mut bowline_server::Options| options.rate_limit_address = Some(1);
    on_each_engine_with(few, async |server| {
        let version = format!("bowline_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        let before = metrics(server).await;
        assert!(before.contains(&version) && before.len() < 50_000, "{before}");
        let value = |text: &str, name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        for (name, least) in [
            ("process_resident_memory_bytes", 1_000_000.0),
            ("process_open_fds", 3.0),
            ("process_max_fds", 3.0),
            ("bowline_database_bytes", 100_000.0),
            ("bowline_blobs", 0.0),
            ("bowline_blob_bytes", 0.0),
            ("bowline_delivery_waiting_events", 0.0),
            ("bowline_delivery_failing_subscriptions", 0.0),
            ("bowline_delivery_dead_letters", 0.0),
            ("bowline_audit_unnumbered_rows", 0.0),
            ("bowline_signing_key_age_seconds", 0.0),
        ] {
            assert!(value(&before, name) >= least, "{name}: {before}");
            assert!(before.contains(&format!("# HELP {name} ")), "{name} has no HELP");
        }
        server.clock().advance(std::time::Duration::from_secs(3600));
        for _ in 0..12 {
            call(&server.anonymous(), "GET /advisory/v1/documents", serde_json::Value::Null).await;
        }
        let after = metrics(server).await;
        let key = "bowline_signing_key_age_seconds";
        assert!(value(&after, key) >= value(&before, key) + 3600.0, "{after}");
        assert!(value(&after, "bowline_rate_limited_total") >= 1.0, "{after}");
    })
    .await;
}
