//! Lists of advisories among half a million with every filter, and public documents.

mod seed;

use bytes::Bytes;
use http::HeaderValue;
use serde_json::Value;

use crate::Outcome;
use crate::environment::Environment;
use crate::get::bare_rate;
use crate::issuer::Issuer;
use crate::load::{Ask, Lane, Load, Shape, always};
use crate::sample::median;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const SHAPE: Shape = Shape::Rest { connections: 32 };
const ROUNDS: usize = 3;
/// Requests of each filter, one at a time.
const ASKED: usize = 200;

/// A filter, from those that leave a handful to those that leave nearly all.
const FILTERS: [(&str, &str); 22] = [
    ("no filter, with the total", ""),
    ("advisoryIds", "advisoryIds=BWL-2222-2222-2223"),
    ("legacyAdvisoryIds", "legacyAdvisoryIds=OLD-77"),
    ("artifactNames, three", "artifactNames=package-7&artifactNames=package-8&artifactNames=package-9"),
    ("artifactTypes", "artifactTypes=apk"),
    ("artifactArchitectures", "artifactArchitectures=aarch64"),
    ("componentNames", "componentNames=example.com/module-11"),
    ("componentTypes", "componentTypes=python"),
    ("componentLocations", "componentLocations=/usr/bin/tool-5"),
    ("aliases", "aliases=CVE-2026-4242"),
    ("origin", "origin=package-7"),
    ("eventReviewStates", "eventReviewStates=REVIEW_STATE_PENDING"),
    ("eventAuthors", "eventAuthors=author-3"),
    ("excludeEventAuthors", "excludeEventAuthors=author-3"),
    ("eventReviewers", "eventReviewers=reviewer-1"),
    ("eventTypes", "eventTypes=EVENT_TYPE_FILTER_FIXED"),
    ("latestEventType", "latestEventType=EVENT_TYPE_FILTER_FIXED"),
    ("latestEventType, a rare one", "latestEventType=EVENT_TYPE_FILTER_PENDING_UPSTREAM_FIX"),
    ("several together", "artifactTypes=apk&componentTypes=python&eventReviewStates=REVIEW_STATE_PENDING"),
    ("orderBy create_time desc", "orderBy=create_time%20desc&artifactTypes=apk"),
    ("orderBy aliases, a filter with few", "orderBy=aliases&eventAuthors=author-3"),
    ("uidp.childrenOf", "uidp.childrenOf={group}&componentTypes=python"),
];

/// Free text: a name, a vulnerability, what everything has, what nothing has.
const TEXTS: [&str; 6] = ["package-77", "cve-2026-4242", "2026-42", "cve", "module-1", "zzzz"];

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let seeded = seed::advisories(environment).await?;
    let server = Server::start(environment, &seeded.directory).await?;
    let issuer = Issuer::start().await?;
    let world = World::prepare(&server, &issuer, Some(seeded.org.clone())).await?;
    let worst = lists(&server, &world.token, &seeded).await?;
    let line = format!("pages of 50 of {} advisories, the slowest filter, p99", seeded.count);
    table.row(&line, Unit::Milliseconds, Target::AtMost(20.0), worst.0);
    let line = "  free text, the slowest, p99";
    table.row(line, Unit::Milliseconds, Target::AtMost(50.0), worst.1);
    documents(environment, &server, table).await
}

/// The slowest filter and the slowest text.
async fn lists(server: &Server, token: &str, seeded: &seed::Advisories) -> Outcome<(f64, f64)> {
    let mut worst = (0.0_f64, 0.0_f64);
    for (name, filter) in FILTERS {
        let filter = filter.replace("{group}", &seeded.group);
        let milliseconds = page(server, token, name, &filter).await?;
        worst.0 = worst.0.max(milliseconds);
    }
    for text in TEXTS {
        let milliseconds = page(server, token, &format!("query {text}"), &format!("query={text}")).await?;
        worst.1 = worst.1.max(milliseconds);
    }
    Ok(worst)
}

async fn page(server: &Server, token: &str, name: &str, filter: &str) -> Outcome<f64> {
    let path = format!("/vulnerabilities/v2/advisories?page_size=50&{filter}");
    let mut load =
        Load::open(server.api, Shape::Rest { connections: 1 }, always(Ask::get(path.clone(), token)?)).await?;
    load.one_by_one(10).await?;
    let sample = load.one_by_one(ASKED).await?;
    let body = Lane::rest(server.api).await?.send(Ask::get(path, token)?).await?;
    let json: Value = serde_json::from_slice(&body)?;
    let shown = json["advisories"].as_array().map_or(0, Vec::len);
    let total = json["totalCount"].as_str().unwrap_or("not counted");
    let (median, p99) = (sample.milliseconds(0.5), sample.milliseconds(0.99));
    note(&format!("{name}: median {median:.2} ms, p99 {p99:.2} ms; {shown} shown, total {total}"));
    Ok(p99)
}

async fn documents(environment: &Environment, server: &Server, table: &mut Table) -> Outcome<()> {
    let ask = Ask::get("/advisory/v2/documents?id=public-7", "none")?;
    let body = loop {
        // The first look at what is public may still be under way.
        match Lane::rest(server.api).await?.send(ask.clone()).await {
            Ok(body) if body.len() > 100 => break body,
            _ => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
        }
    };
    let rate = rate(environment, server, ask.clone()).await?;
    table.row("one public document, REST", Unit::PerSecond, Target::AtLeast(20_000.0), rate);
    let bare = bare_rate(environment, SHAPE, &body, always(ask.clone())).await?;
    note(&format!("{} bytes; bare echo {bare:.0}/s, share {:.1} %", body.len(), rate / bare * 100.0));
    let known = Ask { known: Some(HeaderValue::from_static("*")), ..ask };
    let rate = self::rate(environment, server, known).await?;
    table.row("the same for whoever has it: 304", Unit::PerSecond, Target::AtLeast(20_000.0), rate);
    let whole: Bytes = Lane::rest(server.api).await?.send(Ask::get("/advisory/v2/documents", "none")?).await?;
    note(&format!("all {} public documents have {} bytes", seed::PUBLIC, whole.len()));
    Ok(())
}

async fn rate(environment: &Environment, server: &Server, ask: Ask) -> Outcome<f64> {
    let mut load = Load::open(server.api, SHAPE, always(ask)).await?;
    load.peak(environment.warm_up).await?;
    let mut rates = Vec::new();
    for _ in 0..ROUNDS {
        rates.push(load.peak(environment.measured).await?);
    }
    Ok(median(rates))
}
