//! Records of the generated vulnerabilities, imported as those of a public database would be.

use bowline_contract::bowline::feeds::v1::rpc::record_imports::{BeginImport, CommitImport, StageRecords};
use bowline_contract::bowline::feeds::v1::{BeginImportRequest, CommitImportRequest, StageRecordsRequest};
use bowline_core::{Clock as _, rfc3339};
use bowline_server::StartError;
use serde_json::{Value, json};

use crate::catalog::{VULNERABILITIES, Vulnerability, ecosystem, fixed_version};
use crate::world::{OPERATOR, World};

/// Days between two imports.
const EVERY: i64 = 14;

/// Imports what is known on that day, on some days.
pub(crate) async fn live_through(world: &mut World, day: i64) -> Result<(), StartError> {
    if day % EVERY != 3 {
        return Ok(());
    }
    let request = BeginImportRequest {
        source: "demonstration".into(),
        licence: "CC0-1.0".into(),
        url: "https://vulnerabilities.acme.example/all".into(),
        full: true,
        ..BeginImportRequest::default()
    };
    let uid = world.call::<BeginImport>(OPERATOR, request).await?.uid;
    let time = rfc3339::text(world.clock().now(), rfc3339::Digits::Fewest);
    let known = VULNERABILITIES.iter().filter(|one| one.day <= day);
    let records = known.map(|one| record(one, &time).to_string().into_bytes()).collect();
    let request = StageRecordsRequest { uid: uid.clone(), records, ..StageRecordsRequest::default() };
    world.call::<StageRecords>(OPERATOR, request).await?;
    world.call::<CommitImport>(OPERATOR, CommitImportRequest { uid, ..CommitImportRequest::default() }).await?;
    Ok(())
}

/// A record in the OSV schema.
fn record(one: &Vulnerability, time: &str) -> Value {
    let fixed = fixed_version(one).map(|version| json!({ "fixed": version }));
    let events: Vec<Value> = [json!({ "introduced": "0" })].into_iter().chain(fixed).collect();
    let (ecosystem, name) = ecosystem(one.package);
    json!({
        "schema_version": "1.6.0",
        "id": one.id,
        "modified": time,
        "summary": one.text,
        "details": format!("{}. This record is generated; there is no such vulnerability.", one.text),
        "severity": [{ "type": "CVSS_V3", "score": vector(one) }],
        "affected": [{
            "package": { "ecosystem": ecosystem, "name": name },
            "ranges": [{ "type": "ECOSYSTEM", "events": events }],
        }],
    })
}

/// A vector that has the score of the severity.
fn vector(one: &Vulnerability) -> &'static str {
    match one.severity {
        "Critical" => "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H",
        "High" => "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H",
        "Medium" => "CVSS:3.1/AV:N/AC:H/PR:N/UI:N/S:U/C:N/I:N/A:H",
        _ => "CVSS:3.1/AV:N/AC:H/PR:N/UI:R/S:U/C:L/I:N/A:N",
    }
}
