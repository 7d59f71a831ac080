//! Lists of versions at other proxies, and what they say of one: requested, and read.
//!
//! A list does not say how old versions are. Of the highest ones, which are chosen where none is named, that is asked; the gate of
//! files knows all others when they are fetched.

use std::collections::BTreeSet;

use axum::http::{HeaderMap, StatusCode, header};
use bowline_core::{Micros, rfc3339};
use bowline_libraries::Language;
use bowline_libraries::hosting::{Answer, Ask, GO_LATEST, NewDocument, UpstreamDocument, UpstreamFile};
use bowline_packages::{go_escaped as escaped, go_major};
use futures_util::{StreamExt as _, stream};
use serde::Deserialize;
use url::Url;

use crate::PackageHosts;
use crate::fetching::{self, text_of};

/// Releases and other versions whose age is asked for, and how many at once.
const RELEASES: usize = 10;
const OTHERS: usize = 4;
const AT_ONCE: usize = 4;
/// Bytes of what is said of a version, and versions of a module: some have thousands.
const INFO: usize = 64 << 10;
const VERSIONS: usize = 50_000;
const ACCEPT: &str = "*/*";

/// What a proxy says of a version.
#[derive(Deserialize)]
struct Info {
    #[serde(rename = "Version")]
    version: String,
    #[serde(rename = "Time", default)]
    time: String,
}

/// What the upstream answers.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    let (module, query) = ask.package.split_once('@').unwrap_or((&ask.package, ""));
    let address = match query {
        "" => address(ask, module, "@v/list"),
        GO_LATEST => address(ask, module, "@latest"),
        query => address(ask, module, &format!("@v/{}.info", escaped(query))),
    };
    let opened = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok((opened, _)) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let files = if query.is_empty() {
        let body = fetching::page(opened).await?;
        let reading = tokio::task::spawn_blocking(move || listed(&body));
        let mut files = reading.await.map_err(|error| error.to_string())??;
        set_times(hosts, ask, &mut files).await;
        files
    } else {
        let body = opened.whole(INFO).await.map_err(|error| error.to_string())?;
        vec![described(&body, (module, query))?]
    };
    let document = UpstreamDocument { files, ..UpstreamDocument::default() };
    Ok(Answer::Document(Box::new(NewDocument { etag, last_modified, document, ..NewDocument::default() })))
}

fn address(ask: &Ask, module: &str, rest: &str) -> String {
    format!("{}/{}/{rest}", ask.upstream.url.trim_end_matches('/'), escaped(module))
}

/// The archive of a version.
fn archive(version: String, upload_micros: Micros) -> UpstreamFile {
    UpstreamFile { name: format!("{version}.zip"), version, upload_micros, ..UpstreamFile::default() }
}

/// The versions of a list, the lowest first. What is no version is left out, as the go command does.
fn listed(body: &[u8]) -> Result<Vec<UpstreamFile>, String> {
    let text = std::str::from_utf8(body).map_err(|_| "its list is not UTF-8")?;
    let words = text.lines().filter_map(|line| line.split_ascii_whitespace().next());
    let mut versions: BTreeSet<&str> = BTreeSet::new();
    for version in words.filter(|word| Language::Go.is_version(word)) {
        versions.insert(version);
        if versions.len() > VERSIONS {
            return Err(format!("its list has more than {VERSIONS} versions"));
        }
    }
    let mut versions: Vec<&str> = versions.into_iter().collect();
    versions.sort_by_cached_key(|version| Language::Go.order_key(version));
    Ok(versions.into_iter().map(|version| archive(version.to_owned(), 0)).collect())
}

/// What is said of a query, which a version must be the answer to itself; one that the path of its module does not allow has a
/// mark behind it.
fn described(body: &[u8], (module, query): (&str, &str)) -> Result<UpstreamFile, String> {
    let info: Info =
        serde_json::from_slice(body).map_err(|error| format!("what it says of {query} is no JSON: {error}"))?;
    let is_itself = info.version == query
        || info.version.strip_suffix("+incompatible") == Some(query) && go_major(module, query).is_err();
    if !Language::Go.is_version(&info.version) || (Language::Go.is_version(query) && !is_itself) {
        return Err(format!("it says that {query} is {}", fetching::line(&info.version)));
    }
    let time = rfc3339::parse_micros(&info.time).filter(|micros| *micros > 0);
    Ok(archive(info.version, time.unwrap_or_default()))
}

/// Sets when the commits of the highest versions were made. One that its upstream does not date keeps none, and its files decide.
async fn set_times(hosts: &PackageHosts, ask: &Ask, files: &mut [UpstreamFile]) {
    let chosen = chosen(files);
    let versions: Vec<String> = chosen.iter().map(|at| files[*at].version.clone()).collect();
    let times: Vec<Option<Micros>> = stream::iter(versions)
        .map(async |version| made_at(hosts, ask, &version).await)
        .buffered(AT_ONCE)
        .collect()
        .await;
    for (at, time) in chosen.into_iter().zip(times) {
        files[at].upload_micros = time.unwrap_or_default();
    }
}

/// The places of the versions that are dated: the highest releases, which are chosen first, and the highest of the others.
fn chosen(files: &[UpstreamFile]) -> Vec<usize> {
    let is_release = |at: &usize| !files[*at].version.contains(['-', '+']);
    let (releases, others): (Vec<usize>, Vec<usize>) = (0..files.len()).rev().partition(is_release);
    releases.into_iter().take(RELEASES).chain(others.into_iter().take(OTHERS)).collect()
}

async fn made_at(hosts: &PackageHosts, ask: &Ask, version: &str) -> Option<Micros> {
    let url = Url::parse(&address(ask, &ask.package, &format!("@v/{}.info", escaped(version)))).ok()?;
    let (opened, _) = hosts.fetching.client.get(&ask.upstream, &url, &HeaderMap::new()).await.ok()?;
    if opened.status() != StatusCode::OK {
        return None;
    }
    let body = opened.whole(INFO).await.ok()?;
    described(&body, (&ask.package, version)).ok().map(|file| file.upload_micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_versions_in_their_order() {
        let files = listed(b"v1.10.0\nv1.2.0 2023-01-01T00:00:00Z\nmaster\n\nv1.2.0\n../v1.0.0\n").expect("a list");
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["v1.2.0.zip", "v1.10.0.zip"]);
        assert!(listed(b"").expect("a list").is_empty() && listed(b"\xff").is_err());
        let many: String =
            (0..=VERSIONS).flat_map(|number| ["v1.0.".into(), number.to_string(), "\n".into()]).collect();
        assert!(listed(many.as_bytes()).is_err());
    }

    #[test]
    fn a_version_is_the_answer_to_itself() {
        let of = |body: &[u8], query| described(body, ("example.com/a", query));
        let body = br#"{"Version":"v1.0.0","Time":"2023-11-14T22:13:20Z","Origin":{"VCS":"git"}}"#;
        let file = of(body, "v1.0.0").expect("a version");
        assert_eq!((file.version.as_str(), file.upload_micros), ("v1.0.0", 1_700_000_000_000_000));
        assert!(of(body, "v1.1.0").is_err() && of(body, "master").is_ok());
        for wrong in [&b"<html>"[..], br#"{"Version":"master"}"#, br#"{"Version":"../v1.0.0"}"#, b"{}"] {
            assert!(of(wrong, "master").is_err());
        }
        assert_eq!(of(br#"{"Version":"v1.0.0"}"#, "v1.0.0").expect("a version").upload_micros, 0);
        let marked = of(br#"{"Version":"v2.0.0+incompatible"}"#, "v2.0.0").expect("a version");
        assert_eq!(marked.version, "v2.0.0+incompatible");
        assert!(of(br#"{"Version":"v1.0.0+incompatible"}"#, "v1.0.0").is_err());
    }

    #[test]
    fn releases_are_dated_beside_others() {
        let releases = (0..20).map(|number| format!("v1.{number}.0"));
        let others = (0..20).map(|number| format!("v2.{number}.0+incompatible"));
        let files: Vec<UpstreamFile> = releases.chain(others).map(|version| archive(version, 0)).collect();
        let versions: Vec<&str> = chosen(&files).into_iter().map(|at| files[at].version.as_str()).collect();
        assert_eq!((versions.len(), versions[0], versions[RELEASES]), (14, "v1.19.0", "v2.19.0+incompatible"));
    }
}
