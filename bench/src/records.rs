//! Records of vulnerabilities: an import of 300,000 by the command line, a second import of the same, and
//! queries.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bowline_contract::v2::advisory as v2;
use bowline_contract::v2::advisory::rpc::security_advisory_service::ListVulnerabilityMetadata;
use bytes::Bytes;
use http::Method;
use prost::Message as _;
use serde_json::{Value, json};

use crate::Outcome;
use crate::environment::Environment;
use crate::load::{Ask, Asks, Lane, Load, Shape};
use crate::sample::Sample;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};

/// Records; `BOWLINE_BENCH_RECORDS` sets another number.
const RECORDS: u64 = 300_000;
/// Rounds in which two servers are measured in turn.
const COMPARED: usize = 150;
/// Ecosystems with their share of the records, about as they are in the wild, where malware makes npm the largest.
const ECOSYSTEMS: [(&str, u64); 6] =
    [("npm", 50), ("PyPI", 15), ("Debian:12", 15), ("Maven", 8), ("Go", 7), ("Packagist", 5)];

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let records = environment.records.unwrap_or(RECORDS);
    std::fs::create_dir_all(&environment.cache)?;
    let directory = tempfile::tempdir_in(&environment.cache)?;
    let path = directory.path().join("records.jsonl");
    generate(&path, records)?;
    note(&format!("{records} records, {} MB", std::fs::metadata(&path)?.len() / 1_000_000));
    let server = Server::start(environment, &directory.path().join("data")).await?;
    let token = directory.path().join("token");
    std::fs::write(&token, server.operator_token()?)?;

    let (time, memory) = import(environment, &server, &token, &path)?;
    table.row("import of records", Unit::Seconds, Target::AtMost(120.0), time.as_secs_f64());
    table.row("import, peak of the command", Unit::Megabytes, Target::AtMost(1000.0), memory as f64 / 1e6);
    table.row("import, peak of the server", Unit::Megabytes, Target::AtMost(1000.0), server.peak()? as f64 / 1e6);
    let (time, _) = import(environment, &server, &token, &path)?;
    table.row("import of the same again", Unit::Seconds, Target::AtMost(20.0), time.as_secs_f64());
    let database = std::fs::metadata(directory.path().join("data/bowline.db"))?.len();
    table.row("database", Unit::Megabytes, Target::None, database as f64 / 1e6);

    let p99 = batches(environment, &server, records).await?;
    table.row("querybatch of 1,000 packages, p99", Unit::Milliseconds, Target::AtMost(20.0), p99);
    let p50 = metadata(&server, records).await?;
    table.row("metadata of 1,000 ids in 5 pages, median", Unit::Milliseconds, Target::AtMost(20.0), p50);
    if let Some(baseline) = &environment.baseline {
        let environment = Environment { server: baseline.clone(), ..environment.clone() };
        let before = Server::start(&environment, &directory.path().join("baseline")).await?;
        std::fs::write(&token, before.operator_token()?)?;
        import(&environment, &before, &token, &path)?;
        compare(&server, &before, records, table).await?;
    }
    Ok(())
}

/// Both servers, measured in turn: other load of the machine affects both.
async fn compare(server: &Server, baseline: &Server, records: u64, table: &mut Table) -> Outcome<()> {
    let mut lanes = [
        (Lane::grpc(server.api).await?, Lane::rest(server.api).await?),
        (Lane::grpc(baseline.api).await?, Lane::rest(baseline.api).await?),
    ];
    let mut times = [[Vec::new(), Vec::new()], [Vec::new(), Vec::new()]];
    for round in 0..COMPARED {
        for turn in [round % 2, (round + 1) % 2] {
            let ((grpc, rest), times) = (&mut lanes[turn], &mut times[turn]);
            times[0].push(metadata_once(grpc, round as u64, records).await?);
            let started = Instant::now();
            rest.send(batch(round as u64, records)?).await?;
            times[1].push(started.elapsed().as_nanos() as u64);
        }
    }
    let [ours, theirs] = times.map(|times| times.map(Sample::new));
    for (line, ours, theirs) in [("metadata", &ours[0], &theirs[0]), ("querybatch", &ours[1], &theirs[1])] {
        let ratio = |share| ours.milliseconds(share) / theirs.milliseconds(share);
        table.row(&format!("{line}: of the baseline's median"), Unit::Times, Target::None, ratio(0.5));
        let shown =
            |sample: &Sample| format!("{:.2} ms, p99 {:.2}", sample.milliseconds(0.5), sample.milliseconds(0.99));
        note(&format!("median {}; the baseline's {}", shown(ours), shown(theirs)));
    }
    Ok(())
}

/// Runs the command: how long it took, and the most memory it had.
pub(crate) fn import(
    environment: &Environment,
    server: &Server,
    token: &Path,
    path: &Path,
) -> Outcome<(Duration, u64)> {
    import_at(environment, &server.url(), token, path)
}

/// As [`import`], of the server at this address.
pub(crate) fn import_at(environment: &Environment, url: &str, token: &Path, path: &Path) -> Outcome<(Duration, u64)> {
    let started = Instant::now();
    let mut command = Command::new(&environment.server)
        .args(["feeds", "import", "osv", "--full", "--source", "bench", "--licence", "CC0-1.0", "--api", url])
        .arg("--token-file")
        .args([token, path])
        .stdout(Stdio::null())
        .spawn()?;
    let mut peak = 0;
    loop {
        if let Some(status) = command.try_wait()? {
            let outcome = (started.elapsed(), peak);
            return if status.success() { Ok(outcome) } else { Err("the import failed".into()) };
        }
        let status = std::fs::read_to_string(format!("/proc/{}/status", command.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes: Option<u64> = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok());
        peak = peak.max(kilobytes.unwrap_or_default() * 1024);
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Batches of 1,000 different packages, one at a time: what a program that audits a large project sends.
async fn batches(environment: &Environment, server: &Server, records: u64) -> Outcome<f64> {
    let asks: Asks = std::sync::Arc::new(move |n| {
        batch(n, records).unwrap_or_else(|error| panic!("a batch is no request: {error}"))
    });
    let mut load = Load::open(server.api, Shape::Rest { connections: 1 }, asks).await?;
    load.one_by_one(20).await?;
    let times = (environment.measured.as_secs() * 50).max(100) as usize;
    Ok(load.one_by_one(times).await?.milliseconds(0.99))
}

fn batch(n: u64, records: u64) -> Outcome<Ask> {
    let queries: Vec<Value> = (0..1000).map(|i| query(mixed(n * 1000 + i) % records)).collect();
    let body = Bytes::from(json!({ "queries": queries }).to_string());
    Ask::new(Method::POST, "/osv/v1/querybatch", "", body)
}

fn query(record: u64) -> Value {
    let (ecosystem, name) = package(record);
    json!({ "package": { "ecosystem": ecosystem, "name": name }, "version": format!("{}.{}.0", record % 4, record % 9) })
}

/// Metadata of 1,000 ids: the middle of some hundred times.
async fn metadata(server: &Server, records: u64) -> Outcome<f64> {
    let mut lane = Lane::grpc(server.api).await?;
    let mut times = Vec::new();
    for round in 0..200 {
        times.push(metadata_once(&mut lane, round, records).await?);
    }
    Ok(Sample::new(times).milliseconds(0.5))
}

/// Page by page: the nanoseconds of all five pages.
async fn metadata_once(lane: &mut Lane, round: u64, records: u64) -> Outcome<u64> {
    let ids = (0..1000).map(|i| id(mixed(round * 1000 + i) % records)).collect();
    let mut request = v2::ListVulnerabilityMetadataRequest { ids, page_size: 200, ..Default::default() };
    let started = Instant::now();
    loop {
        let answer = lane.send(Ask::grpc::<ListVulnerabilityMetadata>(&request, "")?).await?;
        // Behind the five bytes that every message of gRPC begins with.
        let page = v2::ListVulnerabilityMetadataResponse::decode(answer.get(5..).unwrap_or_default())?;
        if page.next_page_token.is_empty() {
            return Ok(started.elapsed().as_nanos() as u64);
        }
        request.page_token = page.next_page_token;
    }
}

/// A mixing function: the same number for the same input, spread over the whole range.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

fn id(record: u64) -> String {
    format!("BENCH-{}-{record:06}", 2015 + record % 12)
}

/// The package of a record: three records share one, and a few packages have very many.
fn package(record: u64) -> (&'static str, String) {
    let mut share = mixed(record) % 100;
    let ecosystem = ECOSYSTEMS.iter().find(|(_, part)| {
        let is_it = share < *part;
        share = share.saturating_sub(*part);
        is_it
    });
    let ecosystem = ecosystem.map_or("npm", |(name, _)| name);
    let number = if record.is_multiple_of(50) { record / 50 % 20 } else { mixed(record / 3) % (RECORDS / 3) };
    (ecosystem, format!("package-{number}"))
}

/// Writes records of about the size that they have in the wild, the same ones every time.
pub(crate) fn generate(path: &Path, records: u64) -> Outcome<()> {
    write(path, records, one)
}

/// Writes them as a refreshed feed has them: all changed, and one in a hundred with another fix.
pub(crate) fn generate_next(path: &Path, records: u64) -> Outcome<()> {
    write(path, records, |record| {
        let mut next = one(record);
        next["modified"] = json!("2026-02-01T00:00:00Z");
        if record.is_multiple_of(100) {
            next["affected"][0]["ranges"][0]["events"][1]["fixed"] = json!("0.1.0");
        }
        next
    })
}

fn write(path: &Path, records: u64, record: impl Fn(u64) -> Value) -> Outcome<()> {
    let mut out = std::io::BufWriter::new(std::fs::File::create(path)?);
    for number in 0..records {
        writeln!(out, "{}", record(number))?;
    }
    out.flush()?;
    Ok(())
}

fn one(record: u64) -> Value {
    let (ecosystem, name) = package(record);
    let fixed = format!("{}.{}.{}", record % 5, record % 11, record % 3);
    let mut details = String::new();
    for word in 0..80 + record % 120 {
        let _ = write!(details, "word{:x} ", mixed(record * 500 + word) % 4096);
    }
    let versions: Vec<String> = (0..record % 13).map(|version| format!("{}.{version}.1", record % 5)).collect();
    let references: Vec<Value> = (0..2 + record % 4)
        .map(|n| json!({ "type": "WEB", "url": format!("https://example.com/{record}/{n}") }))
        .collect();
    json!({
        "schema_version": "1.7.0",
        "id": id(record),
        "modified": format!("2026-01-{:02}T{:02}:00:00Z", 1 + record % 28, record % 24),
        "published": "2025-06-01T00:00:00Z",
        "aliases": [format!("CVE-2025-{record:06}")],
        "summary": format!("Vulnerability {record} in {name}"),
        "details": details,
        "severity": [{ "type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H" }],
        "affected": [{
            "package": { "ecosystem": ecosystem, "name": name },
            "ranges": [{ "type": if ecosystem == "npm" { "SEMVER" } else { "ECOSYSTEM" },
                         "events": [{ "introduced": "0" }, { "fixed": fixed }] }],
            "versions": versions,
            "database_specific": { "source": format!("https://example.com/source/{record}.json") },
        }],
        "references": references,
        "database_specific": { "cwe_ids": ["CWE-79"], "github_reviewed": true },
    })
}
