//! Pages of projects at other indexes: requested, and read as JSON or HTML of the simple repository API.
//!
//! Of a page only files count that can be pinned and gated: with a SHA-256, and with the name of a distribution of this very
//! project in a version.

use std::cell::RefCell;

use axum::http::{HeaderName, header};
use bowline_core::rfc3339;
use bowline_formats::percent;
use bowline_libraries::Language;
use bowline_libraries::hosting::{Answer, Ask, NewDocument, PackedManifests, UpstreamDocument, UpstreamFile};
use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use serde::Deserialize;
use url::{Origin, Url};

use super::upload::is_file_name;
use crate::PackageHosts;
use crate::fetching::{self, line, text_of};

/// JSON first: only it says when files were uploaded, which cooldowns need.
const ACCEPT: &str = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1";
/// Maximum bytes of the address of provenance.
const ADDRESS: usize = 1024;
/// Maximum number of files of a page.
const FILES: usize = 100_000;

/// What the upstream answers.
pub(crate) async fn answer(hosts: &PackageHosts, ask: &Ask) -> Result<Answer, String> {
    let address = format!("{}/{}/", ask.upstream.url.trim_end_matches('/'), ask.package);
    let (opened, url) = match fetching::requested_page(hosts, ask, (&address, ACCEPT)).await? {
        Ok(opened) => opened,
        Err(answer) => return Ok(answer),
    };
    let text = |name| text_of(&opened, name);
    let mut new = NewDocument {
        etag: text(header::ETAG),
        last_modified: text(header::LAST_MODIFIED),
        serial: text(HeaderName::from_static("x-pypi-last-serial")).parse().unwrap_or(0),
        is_quarantined: false,
        document: UpstreamDocument::default(),
        manifests: PackedManifests::default(),
    };
    let is_json = text(header::CONTENT_TYPE).split(';').next().is_some_and(|kind| kind.trim().ends_with("json"));
    let body = fetching::page(opened).await?;
    let package = ask.package.clone();
    let home = Url::parse(&ask.upstream.url).map_err(|error| error.to_string())?.origin();
    let turn = hosts.archives.clone().acquire_owned().await.map_err(|error| error.to_string())?;
    let reading = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut read = if is_json {
            of_json(&body, &url, &package)?
        } else {
            of_html(&String::from_utf8_lossy(&body), &url, &package)
        };
        for file in &mut read.files {
            require_origin(&home, &mut file.provenance_url);
        }
        Ok::<_, String>(read)
    });
    let read = reading.await.map_err(|error| error.to_string())??;
    (new.document.files, new.is_quarantined) = (read.files, read.is_quarantined);
    Ok(Answer::Document(Box::new(new)))
}

/// Drops the address of provenance that is not at the origin of the index itself: a page cannot have this server request anything
/// else beside files.
fn require_origin(home: &Origin, address: &mut String) {
    if !address.is_empty() && Url::parse(address).map(|url| url.origin()).as_ref() != Ok(home) {
        address.clear();
    }
}

/// What a page says.
#[derive(Debug, Default)]
struct ReadPage {
    files: Vec<UpstreamFile>,
    /// Whether the index withholds the project (PEP 792): it has no files then.
    is_quarantined: bool,
}

/// The word for that.
const QUARANTINED: &str = "quarantined";

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Page {
    files: Vec<File>,
    #[serde(default)]
    project_status: ProjectStatus,
}

#[derive(Default, Deserialize)]
struct ProjectStatus {
    #[serde(default)]
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: Hashes,
    #[serde(default)]
    size: Option<i64>,
    #[serde(default)]
    upload_time: Option<String>,
    #[serde(default)]
    requires_python: Option<String>,
    #[serde(default)]
    yanked: Yanked,
    #[serde(default)]
    core_metadata: Metadata,
    #[serde(default)]
    data_dist_info_metadata: Metadata,
    #[serde(default)]
    provenance: Option<String>,
}

#[derive(Default, Deserialize)]
struct Hashes {
    #[serde(default)]
    sha256: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Yanked {
    Is(bool),
    Because(String),
}

impl Default for Yanked {
    fn default() -> Yanked {
        Yanked::Is(false)
    }
}

/// Without a digest nothing can be verified, so it counts as none.
#[derive(Deserialize)]
#[serde(untagged)]
enum Metadata {
    With(Hashes),
    Without(serde::de::IgnoredAny),
}

impl Default for Metadata {
    fn default() -> Metadata {
        Metadata::Without(serde::de::IgnoredAny)
    }
}

fn of_json(body: &[u8], base: &Url, package: &str) -> Result<ReadPage, String> {
    let page: Page = serde_json::from_slice(body).map_err(|error| format!("the page does not parse: {error}"))?;
    if page.files.len() > FILES {
        return Err(format!("the page has more than {FILES} files"));
    }
    let file = |file: File| {
        let digest =
            [file.core_metadata, file.data_dist_info_metadata].into_iter().find_map(|metadata| match metadata {
                Metadata::With(hashes) if is_digest(&hashes.sha256) => Some(hashes.sha256),
                _ => None,
            });
        let (yanked, reason) = match file.yanked {
            Yanked::Is(yanked) => (yanked, String::new()),
            Yanked::Because(reason) => (true, reason),
        };
        let facts = UpstreamFile {
            name: file.filename,
            url: file.url,
            sha256: file.hashes.sha256,
            size_bytes: file.size.unwrap_or_default().max(0),
            upload_micros: file.upload_time.as_deref().and_then(rfc3339::parse_micros).unwrap_or_default(),
            requires_python: file.requires_python.unwrap_or_default(),
            yanked,
            yanked_reason: reason,
            metadata_sha256: digest.unwrap_or_default(),
            provenance_url: file.provenance.unwrap_or_default(),
            ..UpstreamFile::default()
        };
        usable(facts, base, package)
    };
    let is_quarantined = page.project_status.status == QUARANTINED;
    Ok(ReadPage { files: page.files.into_iter().filter_map(file).collect(), is_quarantined })
}

/// Reads the links of a page, in time linear in its length.
fn of_html(text: &str, base: &Url, package: &str) -> ReadPage {
    let links = Links { base: base.clone(), package: package.to_owned(), page: RefCell::default() };
    let tokenizer = Tokenizer::new(links, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(text));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.page.take()
}

struct Links {
    base: Url,
    package: String,
    page: RefCell<ReadPage>,
}

impl TokenSink for Links {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let Token::TagToken(tag) = &token else { return TokenSinkResult::Continue };
        let mut page = self.page.borrow_mut();
        match (tag.kind, &*tag.name) {
            (TagKind::StartTag, "a") if page.files.len() < FILES => {
                page.files.extend(link(tag).and_then(|facts| usable(facts, &self.base, &self.package)));
            }
            (TagKind::StartTag, "meta") if attribute(tag, "name").as_deref() == Some("pypi:project-status") => {
                page.is_quarantined = attribute(tag, "content").as_deref() == Some(QUARANTINED);
            }
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

fn attribute(tag: &Tag, name: &str) -> Option<String> {
    tag.attrs.iter().find(|one| &*one.name.local == name).map(|one| one.value.to_string())
}

/// What a link says of a file.
fn link(tag: &Tag) -> Option<UpstreamFile> {
    let attribute = |name: &str| attribute(tag, name);
    let href = attribute("href")?;
    let (url, fragment) = href.split_once('#').unwrap_or((&href, ""));
    let last = url.split('?').next().unwrap_or(url).rsplit('/').next().unwrap_or_default();
    let yanked = attribute("data-yanked");
    let metadata = attribute("data-core-metadata").or_else(|| attribute("data-dist-info-metadata"));
    let digest = metadata.as_deref().and_then(|text| text.strip_prefix("sha256=")).filter(|text| is_digest(text));
    Some(UpstreamFile {
        name: percent::decode(last)?.into(),
        url: url.to_owned(),
        sha256: fragment.split('&').find_map(|part| part.strip_prefix("sha256=")).unwrap_or_default().to_owned(),
        requires_python: attribute("data-requires-python").unwrap_or_default(),
        yanked: yanked.is_some(),
        yanked_reason: yanked.unwrap_or_default(),
        metadata_sha256: digest.unwrap_or_default().to_owned(),
        provenance_url: attribute("data-provenance").unwrap_or_default(),
        ..UpstreamFile::default()
    })
}

/// The file with its version and its whole address; absent if it cannot be pinned or gated.
fn usable(file: UpstreamFile, base: &Url, package: &str) -> Option<UpstreamFile> {
    let is_of_package = bowline_packages::package_of_file(&file.name).as_deref() == Some(package);
    let version = bowline_packages::version_of_file(&file.name)?;
    if !is_file_name(&file.name) || !is_of_package || !is_digest(&file.sha256) || !Language::Python.is_version(&version)
    {
        return None;
    }
    let whole = |text: &str| base.join(text).ok().filter(|url| matches!(url.scheme(), "https" | "http"));
    let url = whole(&file.url)?;
    let provenance = Some(&file.provenance_url).filter(|text| !text.is_empty() && text.len() <= ADDRESS);
    Some(UpstreamFile {
        version,
        url: url.into(),
        provenance_url: provenance.and_then(|text| whole(text)).map(String::from).unwrap_or_default(),
        requires_python: line(&file.requires_python),
        yanked_reason: line(&file.yanked_reason),
        ..file
    })
}

fn is_digest(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Url {
        Url::parse("https://a.example/simple/foo-bar/").expect("an address")
    }

    #[test]
    fn a_page_as_json() {
        let sha = "ab".repeat(32);
        let page = serde_json::json!({ "meta": { "api-version": "1.1" }, "name": "foo-bar", "files": [
            { "filename": "foo_bar-1.0-py3-none-any.whl", "url": "../../files/foo_bar-1.0-py3-none-any.whl",
              "hashes": { "sha256": sha }, "size": 7, "upload-time": "2023-11-14T22:13:20Z", "requires-python": ">=3.9",
              "yanked": "it\nbroke", "core-metadata": { "sha256": sha }, "provenance": null },
            { "filename": "foo-bar-1.1.tar.gz", "url": "https://b.example/foo-bar-1.1.tar.gz",
              "hashes": { "sha256": sha }, "yanked": false, "core-metadata": true, "requires-python": null,
              "provenance": "/integrity/foo-bar/1.1/foo-bar-1.1.tar.gz/provenance" },
            { "filename": "foo-bar-1.2.tar.gz", "url": "x", "hashes": { "md5": "a" } },
            { "filename": "other-1.0.tar.gz", "url": "x", "hashes": { "sha256": sha } },
            { "filename": "foo-bar-1.0.exe", "url": "x", "hashes": { "sha256": sha } },
            { "filename": "foo-bar-one.tar.gz", "url": "x", "hashes": { "sha256": sha } },
            { "filename": "foo-bar-2.0.tar.gz", "url": "file:///etc/passwd", "hashes": { "sha256": sha } },
        ] });
        let files = of_json(page.to_string().as_bytes(), &base(), "foo-bar").expect("a page").files;
        let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["foo_bar-1.0-py3-none-any.whl", "foo-bar-1.1.tar.gz"]);
        let (wheel, sdist) = (&files[0], &files[1]);
        assert_eq!(wheel.url, "https://a.example/files/foo_bar-1.0-py3-none-any.whl");
        assert_eq!((wheel.version.as_str(), wheel.size_bytes, wheel.upload_micros), ("1.0", 7, 1_700_000_000_000_000));
        assert_eq!((wheel.yanked, wheel.yanked_reason.as_str(), &wheel.metadata_sha256), (true, "it broke", &sha));
        assert_eq!((sdist.yanked, sdist.metadata_sha256.as_str(), sdist.upload_micros), (false, "", 0));
        let address = "https://a.example/integrity/foo-bar/1.1/foo-bar-1.1.tar.gz/provenance";
        assert_eq!((wheel.provenance_url.as_str(), sdist.provenance_url.as_str()), ("", address));
        assert!(of_json(b"{", &base(), "foo-bar").is_err());
    }

    #[test]
    fn a_page_as_html() {
        let sha = "ab".repeat(32);
        let page = format!(
            "<!DOCTYPE html><a href=\"../foo_bar-1.0-py3-none-any.whl#sha256={sha}\" data-requires-python=\"&gt;=3.9\" \
             data-yanked=\"\" data-dist-info-metadata=\"sha256={sha}\" data-provenance=\"../p\">x</a><br>\
             <A HREF='/p/foo-bar-1.1%2Blocal.tar.gz#sha256={sha}'>y</A><a href=\"foo-bar-2.tar.gz\">no digest</a><a>"
        );
        let files = of_html(&page, &base(), "foo-bar").files;
        assert_eq!(files.len(), 2, "{files:?}");
        assert_eq!(files[0].url, "https://a.example/simple/foo_bar-1.0-py3-none-any.whl");
        assert_eq!((files[0].requires_python.as_str(), files[0].yanked), (">=3.9", true));
        let provenance = ["https://a.example/simple/p", ""];
        assert_eq!([&files[0], &files[1]].map(|file| file.provenance_url.as_str()), provenance);
        assert_eq!((files[0].yanked_reason.as_str(), &files[0].metadata_sha256), ("", &sha));
        assert_eq!((files[1].name.as_str(), files[1].version.as_str()), ("foo-bar-1.1+local.tar.gz", "1.1+local"));
    }

    #[test]
    fn provenance_elsewhere_is_not_requested() {
        let home = base().origin();
        for (address, is_home) in [
            ("https://a.example/integrity/x", true),
            ("https://a.example:443/integrity/x", true),
            ("https://a.example:8443/integrity/x", false),
            ("http://a.example/integrity/x", false),
            ("https://b.example/integrity/x", false),
            ("https://a.example.b.example/x", false),
            ("", false),
        ] {
            let mut kept = address.to_owned();
            require_origin(&home, &mut kept);
            assert_eq!(!kept.is_empty(), is_home, "{address}");
        }
    }

    #[test]
    fn an_index_says_what_it_withholds() {
        for (status, wanted) in [("quarantined", true), ("archived", false)] {
            let json = serde_json::json!({ "files": [], "project-status": { "status": status } }).to_string();
            let html = format!("<head><meta name=\"pypi:project-status\" content=\"{status}\"></head>");
            let found = [of_json(json.as_bytes(), &base(), "a").expect("a page"), of_html(&html, &base(), "a")];
            assert_eq!(found.map(|page| page.is_quarantined), [wanted; 2], "{status}");
        }
        assert!(!of_json(b"{\"files\":[]}", &base(), "a").expect("a page").is_quarantined);
    }
}
