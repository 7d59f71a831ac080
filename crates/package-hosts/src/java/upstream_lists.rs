//! Lists of versions and plugins at other repositories: requested, and read.
//!
//! A list does not say when versions were published, which their POMs do. Of the highest ones, which ranges and updates choose,
//! that is asked; the gate of files knows all others when they are fetched.

use axum::http::{HeaderMap, Method, StatusCode, header};
use bowline_core::Micros;
use bowline_libraries::Language;
use bowline_libraries::hosting::{
    Answer, Ask, MavenPlugin, NewDocument, SNAPSHOT, UpstreamAccess, UpstreamDocument, UpstreamFile, java_address,
    java_pom_name,
};
use bowline_packages::MavenMetadata;
use futures_util::{StreamExt as _, stream};
use url::Url;

use super::lists::changed_at;
use super::target::{LIST, is_part};
use crate::PackageHosts;
use crate::fetching::{self, text_of};

const ACCEPT: &str = "application/xml, text/xml, */*;q=0.1";
/// Versions whose age is asked for, and how many at once.
const DATED: usize = 12;
const AT_ONCE: usize = 4;

/// What the upstream answers.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    let address = java_address(&ask.upstream.url, &ask.package, LIST);
    let opened = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok((opened, _)) => opened,
        Err(answer) => return Ok(answer),
    };
    let (etag, last_modified) = (text_of(&opened, header::ETAG), text_of(&opened, header::LAST_MODIFIED));
    let body = fetching::page(opened).await?;
    let turn = hosts.archives.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let package = ask.package.clone();
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        read(&body, &package)
    });
    let mut new = reading.await.map_err(|error| error.to_string())??;
    (new.etag, new.last_modified) = (etag, last_modified);
    set_times(hosts, ask, &mut new.document.files).await;
    Ok(Answer::Document(Box::new(new)))
}

/// When the list of a package that has a version changed last; absent if it does not have it, or does not say.
pub(super) async fn listed_at(
    hosts: &PackageHosts,
    upstream: &UpstreamAccess,
    (package, version): (&str, &str),
) -> Result<Option<Micros>, String> {
    let url = Url::parse(&java_address(&upstream.url, package, LIST)).map_err(|error| error.to_string())?;
    let asked = hosts.fetching.client.get(upstream, &url, &HeaderMap::new()).await;
    let (opened, _) = asked.map_err(|error| error.to_string())?;
    if opened.status() != StatusCode::OK {
        return Ok(None);
    }
    let body = fetching::page(opened).await?;
    let turn = hosts.archives.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        MavenMetadata::read(&body)
    });
    let list = reading.await.map_err(|error| error.to_string())?.map_err(|refusal| refusal.to_string())?;
    let is_listed = list.versions.iter().any(|listed| listed == version);
    Ok(changed_at(&list.last_updated).filter(|_| is_listed))
}

/// What a list says of a package.
fn read(body: &[u8], package: &str) -> Result<NewDocument, String> {
    let list = MavenMetadata::read(body).map_err(|refusal| refusal.to_string())?;
    // Snapshots are not taken from upstreams.
    let is_version =
        |version: &String| is_part(version) && Language::Java.is_version(version) && !version.ends_with(SNAPSHOT);
    let file =
        |version: String| UpstreamFile { name: java_pom_name(package, &version), version, ..UpstreamFile::default() };
    let plugin = |plugin: bowline_packages::MavenPlugin| MavenPlugin {
        prefix: plugin.prefix,
        artifact: plugin.artifact,
        name: plugin.name,
    };
    Ok(NewDocument {
        serial: changed_at(&list.last_updated).unwrap_or_default(),
        document: UpstreamDocument {
            files: list.versions.into_iter().filter(is_version).map(file).collect(),
            plugins: list.plugins.into_iter().map(plugin).collect(),
            ..UpstreamDocument::default()
        },
        ..NewDocument::default()
    })
}

/// Sets when the highest versions were published. One that its upstream does not date keeps none, and its files decide.
async fn set_times(hosts: &PackageHosts, ask: &Ask, files: &mut [UpstreamFile]) {
    files.sort_by_cached_key(|file| Language::Java.order_key(&file.version));
    let first = files.len().saturating_sub(DATED);
    let names: Vec<String> = files[first..].iter().map(|file| file.name.clone()).collect();
    let times: Vec<Option<Micros>> =
        stream::iter(names).map(async |name| published_at(hosts, ask, &name).await).buffered(AT_ONCE).collect().await;
    for (file, at) in files[first..].iter_mut().zip(times) {
        file.upload_micros = at.unwrap_or_default();
    }
}

async fn published_at(hosts: &PackageHosts, ask: &Ask, name: &str) -> Option<Micros> {
    let url = Url::parse(&java_address(&ask.upstream.url, &ask.package, name)).ok()?;
    let client = &hosts.fetching.client;
    let (opened, _) = client.send(&ask.upstream, Method::HEAD, &url, &HeaderMap::new()).await.ok()?;
    modified_at(opened.headers()).filter(|_| opened.status() == StatusCode::OK)
}

/// When something was changed last, by the headers of a response.
pub(super) fn modified_at(headers: &HeaderMap) -> Option<Micros> {
    let value = headers.get(header::LAST_MODIFIED)?.to_str().ok()?;
    let since = httpdate::parse_http_date(value).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    Micros::try_from(since.as_micros()).ok().filter(|micros| *micros > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_the_releases_of_an_artifact() {
        let text = "<metadata><versioning><versions><version>1.0</version><version>2-SNAPSHOT</version>
            <version>../3</version><version>a b</version></versions><lastUpdated>20231114221320</lastUpdated></versioning>
            </metadata>";
        let new = read(text.as_bytes(), "org.a:b").expect("a list");
        let names: Vec<&str> = new.document.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!((names, new.serial), (vec!["1.0/b-1.0.pom"], 1_700_000_000_000_000));
        assert!(read(b"<html></html>", "org.a:b").is_err());
    }

    #[test]
    fn times_of_headers_are_read() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::LAST_MODIFIED, value.parse().expect("a header's value"));
            modified_at(&headers)
        };
        assert_eq!(of("Tue, 14 Nov 2023 22:13:20 GMT"), Some(1_700_000_000_000_000));
        assert_eq!((of("yesterday"), of("Thu, 01 Jan 1970 00:00:00 GMT")), (None, None));
    }
}
