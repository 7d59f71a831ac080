//! Indexes of crates at other registries: requested, and read.
//!
//! Of an index only versions count whose archive can be pinned by a SHA-256, and that are of the crate that was asked for. Where
//! archives lie, the configuration of the registry says.

use std::collections::HashSet;
use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode, header};
use bowline_core::Micros;
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    Answer, Ask, NewDocument, PackedManifests, UpstreamDocument, UpstreamFile, UpstreamManifest, UpstreamManifests,
};
use bowline_pipeline::Entry;
use serde::Deserialize;
use url::Url;

use super::index::{self, UpstreamLine};
use super::target::index_path;
use crate::PackageHosts;
use crate::fetching::{self, text_of};

const ACCEPT: &str = "*/*";
/// Maximum number of versions of a crate, and bytes of a line, of a configuration, and of addresses: all are stored together.
const VERSIONS: usize = 20_000;
const LINE: usize = 1 << 20;
const CONFIGURATION: usize = 64 << 10;
const ADDRESS: usize = 1024;
/// How long it is remembered where archives lie.
const USABLE: Micros = 300_000_000;

/// What a registry says of itself.
#[derive(Deserialize)]
struct Configuration {
    dl: String,
}

/// What the upstream answers.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    let base = ask.upstream.url.trim_end_matches('/');
    let address = format!("{base}/{}", index_path(&ask.package));
    let opened = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok((opened, _)) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let body = fetching::page(opened).await?;
    let downloads = downloads(hosts, ask).await?;
    let package = ask.package.clone();
    let turn = hosts.archives.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&body, &package, &downloads)
    });
    let read = reading.await.map_err(|error| error.to_string())??;
    Ok(Answer::Document(Box::new(NewDocument { etag, last_modified, ..read })))
}

/// The address of archives of a registry, with marks for what differs.
async fn downloads(hosts: &PackageHosts, ask: &Ask) -> Result<Arc<str>, String> {
    let (key, now) = (format!("{} {}", ask.upstream.key(), ask.upstream.url), hosts.pipeline.clock.now());
    let known = || hosts.fetching.downloads.change(key.clone(), now, |known| (None, known.map(|entry| entry.value)));
    if let Some(known) = known() {
        return Ok(known);
    }
    // One request for all who wait.
    let flight = hosts.fetching.flights.lock(&format!("{key} config.json"));
    let _turn = flight.lock().await;
    if let Some(known) = known() {
        return Ok(known);
    }
    let url = format!("{}/config.json", ask.upstream.url.trim_end_matches('/'));
    let url = Url::parse(&url).map_err(|error| error.to_string())?;
    let opened = hosts.fetching.client.get(&ask.upstream, &url, &HeaderMap::new()).await;
    let (opened, _) = opened.map_err(|error| error.to_string())?;
    if opened.status() != StatusCode::OK {
        return Err(format!("the configuration of the registry is answered with {}", opened.status()));
    }
    let body = opened.whole(CONFIGURATION).await.map_err(|error| error.to_string())?;
    let read: Configuration = serde_json::from_slice(&body)
        .map_err(|error| format!("the configuration of the registry does not parse: {error}"))?;
    if read.dl.len() > ADDRESS {
        return Err("the address of archives in the configuration of the registry is too long".into());
    }
    let downloads: Arc<str> = read.dl.into();
    let entry = Entry { until: now.saturating_add(USABLE), value: downloads.clone() };
    hosts.fetching.downloads.change(key.clone(), now, |_| (Some(entry), ()));
    Ok(downloads)
}

/// What the index of a crate says, which is named in lower case.
fn read(body: &[u8], package: &str, downloads: &str) -> Result<NewDocument, String> {
    let text = std::str::from_utf8(body).map_err(|_| "the index is not UTF-8")?;
    let (mut files, mut manifests, mut versions) = (Vec::new(), Vec::new(), HashSet::new());
    let mut is_of_other = false;
    for line in text.lines().filter(|line| !line.trim().is_empty() && line.len() <= LINE).take(VERSIONS) {
        let Some(line) = index::read(line, package) else {
            is_of_other = true;
            continue;
        };
        // Of two lines of a version, builds of one among them, the first counts.
        let Some(url) = address(downloads, &line).filter(|_| versions.insert(Language::Cargo.order_key(&line.version)))
        else {
            continue;
        };
        manifests.push(UpstreamManifest {
            version: line.version.clone(),
            manifest: line.manifest,
            ..UpstreamManifest::default()
        });
        files.push(UpstreamFile {
            name: line.file,
            version: line.version,
            url,
            sha256: line.sha256,
            yanked: line.yanked,
            upload_micros: line.published_micros,
            ..UpstreamFile::default()
        });
    }
    if files.is_empty() && is_of_other {
        return Err("the index has no line of the crate that can be used".into());
    }
    let document = UpstreamDocument { files, ..UpstreamDocument::default() };
    let manifests = PackedManifests::pack(&UpstreamManifests { manifests }).map_err(|error| error.to_string())?;
    Ok(NewDocument { document, manifests, ..NewDocument::default() })
}

/// The address of the archive of a version.
fn address(downloads: &str, line: &UpstreamLine) -> Option<String> {
    let (name, version) = (line.name.as_str(), line.version.as_str());
    let directory = |name: &str| index_path(name).rsplit_once('/').map(|(directory, _)| directory.to_owned());
    let marks = [
        ("{crate}", name.to_owned()),
        ("{version}", version.to_owned()),
        ("{prefix}", directory(name)?),
        ("{lowerprefix}", directory(&name.to_lowercase())?),
        ("{sha256-checksum}", line.sha256.clone()),
    ];
    let has_marks = marks.iter().any(|(mark, _)| downloads.contains(mark));
    let text = if has_marks {
        marks.iter().fold(downloads.to_owned(), |text, (mark, value)| text.replace(mark, value))
    } else {
        format!("{downloads}/{name}/{version}/download")
    };
    let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "https" | "http"))?;
    Some(url.into()).filter(|url: &String| url.len() <= 2 * ADDRESS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(name: &str, version: &str, cksum: &str) -> String {
        json!({ "name": name, "vers": version, "deps": [], "cksum": cksum, "features": {}, "yanked": false })
            .to_string()
    }

    #[test]
    fn an_index_has_the_versions_that_can_be_pinned() {
        let sum = "ab".repeat(32);
        let lines = [
            line("Foo", "1.0.0", &sum),
            line("Foo", "1.1.0", "ab"),
            line("bar", "1.2.0", &sum),
            line("Foo", "1.3", &sum),
            line("foo", "1.0.0+build", &sum),
            "{".into(),
            String::new(),
        ];
        let new = read(lines.join("\n").as_bytes(), "foo", "https://a.example/dl").expect("an index");
        let shown: Vec<_> = new
            .document
            .files
            .iter()
            .map(|file| (file.name.as_str(), file.url.as_str(), file.sha256.as_str()))
            .collect();
        assert_eq!(shown, [("foo-1.0.0.crate", "https://a.example/dl/Foo/1.0.0/download", sum.as_str())]);
        let mut count = 0;
        let counted = new.manifests.each(|_| {
            count += 1;
            Ok(())
        });
        counted.expect("manifests");
        assert_eq!(count, 1);
        assert!(
            read(line("bar", "1.0.0", &sum).as_bytes(), "foo", "https://a.example/dl").is_err(),
            "of another crate"
        );
        assert!(read(b"", "foo", "https://a.example/dl").expect("an index").document.files.is_empty());
    }

    #[test]
    fn archives_lie_where_the_registry_says() {
        let line = index::read(&line("Foo_Bar", "1.0.0", &"ab".repeat(32)), "foo_bar").expect("a line");
        let of = |downloads| address(downloads, &line);
        let all = "https://a.example/{prefix}/{lowerprefix}/{crate}-{version}.crate?{sha256-checksum}";
        let wanted = format!("https://a.example/Fo/o_/fo/o_/Foo_Bar-1.0.0.crate?{}", "ab".repeat(32));
        assert_eq!(of(all), Some(wanted));
        assert_eq!(of("https://a.example/dl"), Some("https://a.example/dl/Foo_Bar/1.0.0/download".into()));
        assert_eq!((of("file:///etc"), of("no address")), (None, None));
        assert_eq!(of(&format!("https://a.example/{}", "{crate}".repeat(300))), None, "too long");
    }
}
