//! What `/metrics` of the admin listener says.

use std::collections::{BTreeMap, BTreeSet};

use bowline_core::Error;
use bowline_store::Value as Sql;
use bowline_testkit::{Engine, TestServer, by_engine, each_engine, engines, on_engine_with};
use serde_json::Value;
use tokio::net::TcpStream;

use crate::deliveries::until;
use crate::support::call;

/// Maximum bytes of the page of a fresh server.
const PAGE: usize = 50 << 10;

/// The value of one series, without a fraction.
#[track_caller]
pub(crate) fn value(page: &str, series: &str) -> i64 {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.split('.').next()?.parse().ok()).unwrap_or_else(|| panic!("no {series} in {page}"))
}

async fn metrics_of_process_storage_and_delivery_have_help_and_stay_small(engine: Engine) {
    let few = |options: &mut bowline_server::Options| options.rate_limit_address = Some(1);
    on_engine_with(engine, few, async |server| {
        let counted = async || server.metrics().await.contains("\nbowline_blobs ");
        until("blobs are counted", counted).await;
        let before = server.metrics().await;
        let version = format!("bowline_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        assert!(before.contains(&version) && before.len() < PAGE, "{before}");
        for (name, least) in [
            ("process_resident_memory_bytes", 1_000_000),
            ("process_open_fds", 3),
            ("process_max_fds", 3),
            ("bowline_database_bytes", 100_000),
            ("bowline_blobs", 0),
            ("bowline_blob_bytes", 0),
            ("bowline_delivery_waiting_events", 0),
            ("bowline_delivery_failing_subscriptions", 0),
            ("bowline_delivery_dead_letters", 0),
            ("bowline_audit_unnumbered_rows", 0),
            ("bowline_signing_key_age_seconds", 0),
            ("bowline_garbage_collections_total{outcome=\"failure\"}", 0),
            ("bowline_garbage_removed_total{kind=\"manifests\"}", 0),
            ("bowline_retention_runs_total{outcome=\"success\"}", 0),
            ("bowline_retention_removed_manifests_total", 0),
        ] {
            assert!(value(&before, name) >= least, "{name}: {before}");
        }
        server.clock().advance(std::time::Duration::from_secs(3600));
        let after = server.metrics().await;
        let key = "bowline_signing_key_age_seconds";
        assert!(value(&after, key) >= value(&before, key) + 3600, "{after}");
    })
    .await;
}

/// The families of a page, by name: type and number of series.
fn families(page: &str) -> BTreeMap<String, (String, usize)> {
    let mut helps = BTreeSet::new();
    let mut families: BTreeMap<String, (String, usize)> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, text) = help.split_once(' ').expect("a text");
            assert!(!text.is_empty() && helps.insert(name.to_owned()), "{line}");
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a type");
            assert!(helps.contains(name), "{name} has no HELP before its TYPE");
            assert!(families.insert(name.to_owned(), (kind.to_owned(), 0)).is_none(), "{name} twice");
        } else {
            let name = line.split(['{', ' ']).next().unwrap_or_default();
            let of_histogram = ["_bucket", "_sum", "_count"].into_iter().find_map(|part| name.strip_suffix(part));
            let name = of_histogram.filter(|name| families.contains_key(*name)).unwrap_or(name);
            families.get_mut(name).unwrap_or_else(|| panic!("{name} has no TYPE")).1 += 1;
        }
    }
    families
}

async fn every_family_has_help_and_type_a_conventional_name_and_few_series(server: &TestServer) {
    server.organization("acme").await;
    let families = families(&server.metrics().await);
    assert!(families.len() >= 25, "{families:?}");
    for (name, (kind, series)) in &families {
        assert!(name.starts_with("bowline_") || name.starts_with("process_"), "{name}");
        assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        assert_eq!(kind == "counter", name.ends_with("_total"), "{name} is a {kind}");
        // Base units, named in full.
        let foreign = ["_ms", "_millis", "_micros", "_minutes", "_mib", "_kilobytes", "_percent"];
        assert!(!foreign.iter().any(|unit| name.ends_with(unit)), "{name}");
        assert!((1..=40).contains(series), "{name} has {series} series");
    }
}

async fn refusals_of_a_rate_limit_count_where_they_happen(engine: Engine) {
    let few = |options: &mut bowline_server::Options| {
        options.rate_limit_address = Some(1);
        options.osv_rate = Some(1);
    };
    on_engine_with(engine, few, async |server| {
        let calls = [
            ("api", "GET /advisory/v1/documents"),
            ("registry", "GET /v2/"),
            ("sign_in", "GET /oauth"),
            ("scim", "GET /scim/v2/0123/Users"),
            ("osv", "GET /osv/v1/vulns/CVE-2026-1"),
        ];
        for (surface, what) in calls {
            let series = format!("bowline_rate_limited_total{{surface=\"{surface}\"}}");
            let before = value(&server.metrics().await, &series);
            let mut refused = 0;
            for _ in 0..24 {
                let reply = call(&server.anonymous(), what, Value::Null).await;
                refused += u32::from(reply.status == 429);
            }
            assert!(refused > 0, "{what} is not limited");
            assert_eq!(value(&server.metrics().await, &series) - before, i64::from(refused), "{surface}");
        }
        let page = server.metrics().await;
        let domains = page.lines().filter_map(|line| line.split_once("domain=\"")?.1.split('"').next());
        let domains: BTreeSet<&str> = domains.collect();
        assert!(domains.is_superset(&BTreeSet::from(["oci", "osv", "scim", "signin"])), "{domains:?}");
        assert!(domains.iter().all(|domain| domain.bytes().all(|byte| byte.is_ascii_lowercase())), "{domains:?}");
    })
    .await;
}

#[tokio::test]
async fn connections_count_as_open_until_they_end_and_refused_by_reason() {
    let server = TestServer::start_with(engines()[0], |options| {
        options.max_connections = Some(8);
        options.max_connections_per_address = Some(4);
    })
    .await;
    let open = "bowline_connections_open{listener=\"public\"}";
    let refused = "bowline_connections_refused_total{listener=\"public\",reason=\"address_limit\"}";
    let page = server.metrics().await;
    assert_eq!((value(&page, open), value(&page, refused)), (0, 0));
    assert_eq!(value(&page, "bowline_connections_open{listener=\"admin\"}"), 1);
    let mut connections = Vec::new();
    for _ in 0..7 {
        connections.push(TcpStream::connect(server.server().address()).await.expect("a connection"));
    }
    until("the connections are counted", async || {
        let page = server.metrics().await;
        value(&page, open) == 4 && value(&page, refused) == 3
    })
    .await;
    drop(connections);
    until("none is open", async || value(&server.metrics().await, open) == 0).await;
    server.stop().await;
}

async fn writes_and_connections_of_the_database_are_counted(server: &TestServer) {
    let before = server.metrics().await;
    server.organization("acme").await;
    let after = server.metrics().await;
    if before.contains("bowline_database_connections") {
        let states = ["used", "idle"].map(|state| format!("bowline_database_connections{{state=\"{state}\"}}"));
        assert!(states.iter().map(|series| value(&after, series)).sum::<i64>() >= 1, "{after}");
        assert!(value(&after, "bowline_database_connection_waiters") >= 0);
    } else {
        let grown = |name| value(&after, name) - value(&before, name);
        let (groups, writes) = (grown("bowline_write_groups_total"), grown("bowline_writes_total"));
        assert!(groups >= 1 && writes >= groups, "{writes} writes in {groups} groups");
        assert!(value(&after, "bowline_write_queue_length") >= 0);
    }
}

/// A blob that no repository shows.
async fn add_blob(server: &TestServer, digest: &str, bytes: i64) {
    let digest = format!("sha256:{digest:0<64}");
    let added = server.server().parts().storage.db.write(move |tx| {
        let digest = digest.clone();
        Box::pin(async move {
            let sql = "INSERT INTO blobs (digest, size, created_at, upload) VALUES ($1, $2, 0, $3)";
            let upload = &digest[7..39];
            tx.execute(sql, &[Sql::from(&digest), Sql::Int(bytes), Sql::from(upload)]).await?;
            Ok::<_, Error>(())
        })
    });
    added.await.expect("the blob is stored");
}

async fn blobs_and_their_collections_are_counted(engine: Engine) {
    let server = TestServer::start_with(engine, |options| options.gc_every = Some("never".into())).await;
    for (digest, bytes) in [("a", 1), ("b", 20), ("c", 300)] {
        add_blob(&server, digest, bytes).await;
    }
    let server = server.restarted().await;
    until("blobs are counted", async || server.metrics().await.contains("\nbowline_blobs ")).await;
    let page = server.metrics().await;
    assert_eq!((value(&page, "bowline_blobs"), value(&page, "bowline_blob_bytes")), (3, 321));
    let now = server.clock().seconds();
    assert_eq!(value(&page, "bowline_blobs_counted_timestamp_seconds"), now);
    assert_eq!(value(&page, "bowline_garbage_collections_total{outcome=\"success\"}"), 0);
    assert!(!page.contains("bowline_garbage_last_success"), "it never ran");

    let server = server.restarted_with(|options| options.gc_every = Some("1s".into())).await;
    let collections = "bowline_garbage_collections_total{outcome=\"success\"}";
    until("garbage is collected", async || value(&server.metrics().await, collections) >= 1).await;
    let page = server.metrics().await;
    assert_eq!(value(&page, "bowline_garbage_removed_total{kind=\"blobs\"}"), 3);
    assert_eq!(value(&page, "bowline_garbage_removed_bytes_total"), 321);
    assert_eq!(value(&page, "bowline_garbage_last_success_timestamp_seconds"), now);
    server.stop().await;
}

each_engine!(
    every_family_has_help_and_type_a_conventional_name_and_few_series,
    writes_and_connections_of_the_database_are_counted
);

by_engine!(
    metrics_of_process_storage_and_delivery_have_help_and_stay_small,
    refusals_of_a_rate_limit_count_where_they_happen,
    blobs_and_their_collections_are_counted
);
