//! Matching step by step comes to the same as matching from nothing, and to what the query API of OSV says, after any
//! sequence of imports, pushes and deletions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bowline_core::Clock as _;
use bowline_services::follow_imports;
use bowline_testkit::{Actor, TestServer, each_engine};
use serde_json::{Value, json};

use crate::components::{attach, collected, cyclonedx, get};
use crate::finding_events::{advisory, not_affected, say, told};
use crate::matching::{SBOM, component_name, import, matched, push_with, record};
use crate::random::Random;
use crate::support::*;

/// Sequences that a run takes; `BOWLINE_MATCHING_SEQUENCES` has another number.
const SEQUENCES: u64 = 4;
const LENGTH: u64 = 14;
/// Type, namespace and name, qualifiers, and the package that records are about.
const PACKAGES: [(&str, &str, &str, &str); 8] = [
    ("pkg:pypi/flask", "", "PyPI", "Flask"),
    ("pkg:npm/a", "", "npm", "a"),
    ("pkg:deb/debian/curl", "?distro=debian-12", "Debian:12", "curl"),
    ("pkg:deb/debian/libcurl4", "?distro=debian-11&upstream=curl%401.1", "Debian:11", "curl"),
    ("pkg:deb/debian/libcurl4", "?distro=debian-12&upstream=curl", "Debian", "curl"),
    ("pkg:rpm/redhat/curl", "?distro=rhel-9.2&epoch=1", "Red Hat:enterprise_linux:9::baseos", "curl"),
    ("pkg:deb/debian/unknown", "", "Debian:12", "unknown"),
    ("pkg:generic/nothing", "", "generic", "nothing"),
];
/// Severities that records state: of version 4, of several versions, and none that is understood.
const SEVERITIES: [&[(&str, &str)]; 4] = [
    &[("CVSS_V3", "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:N/I:N/A:H")],
    &[("CVSS_V4", "CVSS:4.0/AV:N/AC:L/AT:N/PR:N/UI:N/VC:H/VI:H/VA:H/SC:N/SI:N/SA:N")],
    &[
        ("CVSS_V2", "AV:N/AC:L/Au:N/C:N/I:N/A:C"),
        ("CVSS_V4", "CVSS:4.0/AV:P/AC:H/AT:P/PR:H/UI:A/VC:L/VI:N/VA:N/SC:N/SI:N/SA:N"),
    ],
    &[("CVSS_V4", "CVSS:4.0/AV:N")],
];

/// What the sequence has pushed: repository and manifest of each SBOM.
struct Sequence<'a> {
    server: &'a TestServer,
    random: Random,
    org: String,
    client: Client,
    referrers: Vec<(String, String)>,
    images: Vec<(String, String)>,
    /// By the name of the package and the id.
    advisories: BTreeMap<(&'static str, String), String>,
    pushed: u64,
}

impl Sequence<'_> {
    async fn take_step(&mut self) {
        match self.random.below(14) {
            0..=3 => self.push().await,
            4 => self.delete().await,
            5..=7 => self.import().await,
            8 => {
                let now = self.server.clock().now();
                let db = &self.server.server().parts().storage.db;
                db.write(move |tx| Box::pin(follow_imports(tx, now))).await.expect("a step");
            }
            9 => collected(self.server).await,
            10 => self.delete_image().await,
            11 => self.push_again().await,
            _ => self.state().await,
        }
        // The matches follow by any number of steps, so that most steps see the middle of something.
        for _ in 0..self.random.below(4) {
            let parts = self.server.server().parts();
            parts.matching.step(self.server.clock().now()).await.expect("a step");
        }
    }

    async fn push(&mut self) {
        let mut purls = Vec::new();
        for _ in 0..=self.random.below(4) {
            purls.push(self.purl());
        }
        let purls: Vec<&str> = purls.iter().map(String::as_str).collect();
        let name = format!("{}/r{}", self.org, self.random.below(3));
        let (image, referrer) = push_with(&self.client, &name, &self.pushed.to_string(), &purls).await;
        self.pushed += 1;
        self.images.push((name.clone(), image));
        self.referrers.push((name, referrer));
    }

    /// Some version of a package, or the package without a version.
    fn purl(&mut self) -> String {
        let (purl, qualifiers, ..) = self.package();
        if self.random.below(8) == 0 {
            return format!("{purl}{qualifiers}");
        }
        format!("{purl}@{}.{}{qualifiers}", self.random.below(3), self.random.below(3))
    }

    fn package(&mut self) -> (&'static str, &'static str, &'static str, &'static str) {
        PACKAGES[self.random.below(PACKAGES.len() as u64) as usize]
    }

    /// Attaches another SBOM to an image, which may be deleted.
    async fn push_again(&mut self) {
        let Some((name, image)) = self.random.take(&mut self.images) else { return };
        let purl = self.purl();
        let document = cyclonedx(&[(component_name(&purl), "", &purl, "MIT")]);
        let referrer = attach(&self.client, &name, &image, SBOM, &document).await;
        self.referrers.push((name.clone(), referrer));
        self.images.push((name, image));
    }

    /// Says something about a vulnerability of a package: in a new advisory, or the one that there is.
    async fn state(&mut self) {
        let (purl, ..) = self.package();
        let id = [format!("CVE-2026-{}", self.random.below(3)), format!("R-{}", self.random.below(6))];
        let about = (component_name(purl), id[self.random.below(2) as usize].clone());
        let advisory = match self.advisories.get(&about) {
            Some(advisory) => advisory.clone(),
            None => advisory(self.server, &self.org, (about.0, ""), &about.1).await,
        };
        self.server.clock().advance(Duration::from_secs(1));
        let said = match self.random.below(4) {
            0 => json!({ "truePositiveDetermination": { "note": "n" } }),
            1 => json!({ "fixed": { "fixedVersion": format!("{}.1", self.random.below(3)) } }),
            2 => json!({ "patched": { "patchedVersions": ["1.1", "2.0"] } }),
            _ => not_affected(),
        };
        say(self.server, &advisory, said).await;
        self.advisories.insert(about, advisory);
    }

    /// Deletes an image, whose SBOM stays; later steps may attach another.
    async fn delete_image(&mut self) {
        let Some((name, image)) = self.random.take(&mut self.images) else { return };
        let reply = self.client.send(&format!("DELETE /v2/{name}/manifests/{image}"), &[], b"").await;
        assert!([202, 404].contains(&reply.status), "{}", reply.text());
        self.images.push((name, image));
    }

    async fn delete(&mut self) {
        let Some((name, referrer)) = self.random.take(&mut self.referrers) else { return };
        let reply = self.client.send(&format!("DELETE /v2/{name}/manifests/{referrer}"), &[], b"").await;
        // Two pushes may have had the same SBOM for the same image.
        assert!([202, 404].contains(&reply.status), "{}", reply.text());
    }

    async fn import(&mut self) {
        let (mut records, mut removed) = (BTreeMap::new(), Vec::new());
        for _ in 0..=self.random.below(3) {
            let id = format!("R-{}", self.random.below(6));
            if self.random.below(4) == 0 {
                removed.push(id);
            } else {
                records.insert(id.clone(), self.record(&id));
            }
        }
        let unique: BTreeSet<String> = removed.into_iter().filter(|id| !records.contains_key(id)).collect();
        let removed: Vec<&str> = unique.iter().map(String::as_str).collect();
        let records: Vec<Value> = records.into_values().collect();
        let source = ["first", "second"][self.random.below(2) as usize];
        let end = if self.random.below(5) == 0 { "abort" } else { "commit" };
        import(self.server, source, &records, &removed, end).await;
    }

    fn record(&mut self, id: &str) -> Value {
        let (.., ecosystem, package) = self.package();
        let fixed = [String::new(), format!("{}.{}", self.random.below(3), self.random.below(3))];
        let mut record = record(id, (ecosystem, package), &fixed[self.random.below(2) as usize]);
        let severities = SEVERITIES[self.random.below(4) as usize].iter();
        record["severity"] = severities.map(|(kind, score)| json!({ "type": kind, "score": score })).collect();
        record["modified"] = json!(format!("2026-01-0{}T00:00:00Z", 1 + self.random.below(3)));
        if self.random.below(3) == 0 {
            record["aliases"] = json!([format!("CVE-2026-{}", self.random.below(3))]);
        }
        if self.random.below(6) == 0 {
            record["withdrawn"] = json!("2026-01-09T00:00:00Z");
        }
        record
    }
}

/// Everything that matching has written.
async fn written(server: &TestServer) -> (Vec<String>, Vec<String>) {
    let versions = "SELECT package || ' ' || version || ' ' || origin || ' ' || record_package || ' ' || record_source
                      || ' ' || state FROM package_versions ORDER BY package, version, origin";
    let matches =
        "SELECT package || ' ' || version || ' ' || origin || ' ' || record_id || ' ' || vulnerability || ' ' || aliases || ' '
                     || source || ' ' || since || ' ' || fixed_version || ' ' || severity FROM package_matches
                   ORDER BY package, version, origin, record_id";
    (texts(server, versions).await, texts(server, matches).await)
}

/// What the query API finds for every listed component with a version, in the same order.
async fn queried(server: &TestServer, caller: &Actor) -> Vec<String> {
    let listed = "SELECT DISTINCT purl FROM components c WHERE package <> '' AND version <> ''
                    AND EXISTS (SELECT 1 FROM repo_sboms s WHERE s.sbom = c.sbom) ORDER BY 1";
    let mut found = BTreeSet::new();
    // Without a release, the query API has the records of all releases, and components match none.
    let is_compared = |purl: &String| !purl.starts_with("pkg:generic") && !purl.starts_with("pkg:deb/debian/unknown");
    for purl in texts(server, listed).await.into_iter().filter(is_compared) {
        let body = json!({ "package": { "purl": purl } });
        let reply = caller.rest("POST", "/osv/v1/query", Some(body)).await;
        assert_eq!(reply.status, 200, "{purl}: {}", reply.text());
        for record in reply.json()["vulns"].as_array().into_iter().flatten() {
            found.insert(format!("{} {}", version(&purl).replace('@', " "), record["id"].as_str().unwrap_or_default()));
        }
    }
    found.into_iter().collect()
}

/// Type, namespace, name and version of a package URL.
fn version(purl: &str) -> &str {
    purl.trim_start_matches("pkg:").split('?').next().unwrap_or_default()
}

/// A finding as text: repository, image, vulnerability, package and version.
fn line(repo: &str, image: &str, vulnerability: &str, version: &str) -> String {
    format!("{repo} {image} {vulnerability} {version}")
}

async fn findings(server: &TestServer) -> BTreeSet<String> {
    let stored = "SELECT repo || ' ' || digest || ' ' || vulnerability || ' ' || package || '@' || version
                  FROM image_findings WHERE state = 0";
    texts(server, stored).await.into_iter().collect()
}

/// What `ListMatches` finds.
async fn listed(caller: &Actor) -> BTreeSet<String> {
    let (mut found, mut token) = (BTreeSet::new(), String::new());
    loop {
        let page = get(caller, &format!("/matches/v1/matches?page_size=200&page_token={token}")).await;
        for one in page["matches"].as_array().into_iter().flatten().filter(|one| one["closedByAdvisory"] != json!(true))
        {
            let text = |member: &str| one[member].as_str().unwrap_or_default().to_owned();
            let purl = text("purl");
            found.insert(line(&text("repoUid"), &text("digest"), &text("vulnerability"), version(&purl)));
        }
        page["nextPageToken"].as_str().unwrap_or_default().clone_into(&mut token);
        if token.is_empty() {
            return found;
        }
    }
}

/// What all events together leave open; each finding opens and closes in turn.
async fn left_open(server: &TestServer) -> BTreeSet<String> {
    let mut open = BTreeSet::new();
    for (is_opened, image) in told(server).await {
        for finding in &image.findings {
            let line = line(&image.repo_uid, &image.digest, &finding.vulnerability, version(&finding.purl));
            let is_change = if is_opened { open.insert(line.clone()) } else { open.remove(&line) };
            assert!(is_change, "{line}");
        }
    }
    open
}

async fn check(server: &TestServer, seed: u64) {
    matched(server).await;
    let in_steps = written(server).await;
    let ids = "SELECT DISTINCT package || ' ' || version || ' ' || record_id FROM package_matches ORDER BY 1";
    let mut ids = texts(server, ids).await;
    ids.sort();
    assert_eq!(ids, queried(server, &server.anonymous()).await, "as the query API, seed {seed}");
    let findings = findings(server).await;
    assert_eq!(findings, listed(&server.operator().await).await, "as the method says, seed {seed}");
    assert_eq!(findings, left_open(server).await, "as the events say, seed {seed}");
    for sql in [
        "DELETE FROM outbox",
        "DELETE FROM image_findings",
        "DELETE FROM package_matches",
        "DELETE FROM package_versions",
        "UPDATE components SET origin = ''",
        "INSERT INTO unmatched_sboms (sbom) SELECT DISTINCT sbom FROM repo_sboms WHERE state = 0",
    ] {
        execute(server, sql).await;
    }
    matched(server).await;
    assert_eq!(written(server).await, in_steps, "as from nothing, seed {seed}");
    assert_eq!(self::findings(server).await, findings, "as from nothing, seed {seed}");
}

#[expect(clippy::disallowed_methods, reason = "tests may read the environment")]
fn sequences() -> u64 {
    std::env::var("BOWLINE_MATCHING_SEQUENCES").map_or(SEQUENCES, |number| number.parse().expect("a number"))
}

async fn matching_in_steps_equals_matching_from_nothing(server: &TestServer) {
    let (org, client) = pusher(server, "acme").await;
    let mut sequence = Sequence {
        server,
        random: Random::new(0),
        org,
        client,
        referrers: Vec::new(),
        images: Vec::new(),
        advisories: BTreeMap::new(),
        pushed: 0,
    };
    for seed in 0..sequences() {
        sequence.random = Random::new(seed);
        for _ in 0..LENGTH {
            sequence.take_step().await;
        }
        check(server, seed).await;
    }
    assert!(number(server, "SELECT count(*) FROM package_matches").await > 0, "the sequences come to something");
}

each_engine!(multi_thread: matching_in_steps_equals_matching_from_nothing);
