//! What Go's protocol asks for: the versions of a module, what is known of one, its `go.mod` and its archive.
//!
//! Of an upstream, two documents are stored: the list of a module under its path, and what a version or another query leads to
//! under `path@query`. The latter says when the commit of a version was made; `first_seen` says how old the version is by both.
//! Files are pinned by the bytes that came first. Versions come from the first upstream that has a list of the module.

use bowline_core::{Error, Micros};
use bowline_store::ReadTx;

use super::documents::UpstreamAccess;
use super::gate::Gate;
use super::go_files::{Answered, answered, gauged, hosted, listed, supplier};
use super::package::{Located, Package, absent, repository, requestable};
use super::protocols::Go;
use super::serving::FileName;
use super::views::View;
use super::{AvailableFile, HostClient, HostError, Hosting, Lookup, Withheld};
use crate::ecosystems::Language;
use crate::policy::decide::Refusal;
use crate::policy::purl;

const LANGUAGE: Language = Language::Go;
/// The query for the version that is installed where none is named.
pub const LATEST: &str = "latest";

/// The versions of a module that can be installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GoVersions {
    /// In their order, the lowest first.
    pub versions: Vec<String>,
    /// Microseconds since its upstream confirmed it, if that cannot be asked.
    pub stale: Option<Micros>,
}

impl GoVersions {
    /// The version that is installed where none is named: the highest, if possible no pre-release.
    fn latest(&self) -> Option<&str> {
        let mut highest = self.versions.iter().rev();
        highest.clone().find(|version| !version.contains('-')).or_else(|| highest.next()).map(String::as_str)
    }
}

/// What is known of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoInfo {
    pub version: String,
    /// When its commit was made, or when a group published it; 0 where no one says so.
    pub time: Micros,
}

/// The key of what a query leads to, beside the list of its module.
pub(super) fn key(module: &str, query: &str) -> String {
    format!("{module}@{query}")
}

/// The module of such a key; absent if it is that of a list.
pub(super) fn module_of_key(key: &str) -> Option<&str> {
    key.split_once('@').map(|(module, _)| module)
}

/// Whether a version is made of a commit, and in no list: after a version without a tag, or after a tag and a zero, come a time and
/// the beginning of a hash.
pub(super) fn is_of_commit(version: &str) -> bool {
    let version = version.strip_suffix("+incompatible").unwrap_or(version);
    let Some((core, rest)) = version.split_once('-') else { return false };
    let Some((before, hash)) = rest.rsplit_once('-').filter(|(_, hash)| hash.len() == 12) else { return false };
    let (tag, time) = before.rsplit_once('.').map_or((None, before), |(tag, time)| (Some(tag), time));
    let is_made = match tag {
        None => core.ends_with(".0.0"),
        Some(tag) => tag == "0" || tag.ends_with(".0"),
    };
    is_made
        && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        && time.len() == 14
        && time.bytes().all(|byte| byte.is_ascii_digit())
}

impl Hosting {
    /// The versions of a module of a view.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds all of it.
    pub async fn go_versions(
        &self,
        client: &HostClient,
        path: Option<&str>,
        module: &str,
    ) -> std::result::Result<Lookup<GoVersions>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), module.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, module) = of.clone();
            Box::pin(async move {
                let view = View::open::<Go>(tx, &client, path.as_deref()).await?;
                versions(tx, &hosting, &view, &module, client.now()).await
            })
        });
        read.await
    }

    /// What a version of a module of a view is, or another query leads to: [`LATEST`], or the name of a branch or a commit.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn go_info(
        &self,
        client: &HostClient,
        path: Option<&str>,
        module: &str,
        query: &str,
    ) -> std::result::Result<Lookup<GoInfo>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), module.to_owned(), query.to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, module, query) = of.clone();
            Box::pin(async move {
                let (view, now) = (View::open::<Go>(tx, &client, path.as_deref()).await?, client.now());
                let described = match described(tx, &hosting, &view, (&module, query), now).await? {
                    Located::Here(described) => described,
                    Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
                    Located::Fetch(file) => {
                        return Err(Error::internal(format!("{} was to be fetched", file.name)).into());
                    }
                };
                let (package, info) = described;
                let gate = Gate::load(tx, &view.scope.root(), LANGUAGE, &package, now).await?;
                let decided = package.files.first().map(|file| gate.decided(&module, file, now)).unwrap_or_default();
                Ok::<_, HostError>(Lookup::Here((info, decided)))
            })
        });
        let (info, decided) = match read.await? {
            Lookup::Here(found) => found,
            Lookup::Ask(ask) => return Ok(Lookup::Ask(ask)),
        };
        match decided.into_iter().find_map(|(note, withheld)| withheld.map(|withheld| (note, withheld))) {
            Some((note, withheld)) => {
                self.notes.add(note);
                Err(HostError::Withheld(withheld))
            }
            None => Ok(Lookup::Here(info)),
        }
    }

    /// A file of a module of a view: `v1.0.0.mod`, which no policy withholds, or `v1.0.0.zip`.
    ///
    /// # Errors
    /// The caller may not read there, it is not there, no one knows, or a policy withholds it, which is noted.
    pub async fn go_file(
        &self,
        client: &HostClient,
        path: Option<&str>,
        module: &str,
        name: &str,
    ) -> std::result::Result<Lookup<AvailableFile>, HostError> {
        let file = FileName { name: name.into(), digest: None };
        self.file::<Go>(client, path, (module, &file), false).await
    }

    /// The upstreams that may be asked for the checksum of a module, or for what the database of checksums says of itself: none for
    /// the organization's own modules, which no database of others has.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn go_checksum_upstreams(
        &self,
        client: &HostClient,
        path: Option<&str>,
        module: Option<&str>,
    ) -> std::result::Result<Vec<UpstreamAccess>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned), module.unwrap_or_default().to_owned());
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path, module) = of.clone();
            Box::pin(async move {
                let organization = View::open::<Go>(tx, &client, path.as_deref()).await?.scope.root();
                Ok(requestable(tx, &hosting, &organization, (LANGUAGE, &module)).await?)
            })
        });
        read.await
    }
}

/// The versions of a module that policies do not withhold. One of which no one knows how old it is is listed, and its files are
/// refused.
async fn versions(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    module: &str,
    now: Micros,
) -> std::result::Result<Lookup<GoVersions>, HostError> {
    let (package, stale) = match listed(tx, hosting, view, module, now).await? {
        Located::Here(listed) => listed,
        Located::Ask(ask) => return Ok(Lookup::Ask(ask)),
        Located::Fetch(file) => return Err(Error::internal(format!("{} was to be fetched", file.name)).into()),
    };
    let gate = Gate::load_whole(tx, &view.scope.root(), LANGUAGE, &package, now).await?;
    let refused = gate.refused(&package, now)?;
    let mut list = GoVersions { stale, ..GoVersions::default() };
    let mut refusals = Vec::new();
    for file in &package.files {
        match refused.get(file.name.as_str()).zip(gate.enforced.as_ref()) {
            Some((refusal, bound)) if !is_unknown_age(refusal) => {
                refusals.push(Withheld::new(purl::of_version(LANGUAGE, module, &file.version), &bound.name, refusal));
            }
            _ => list.versions.push(file.version.clone()),
        }
    }
    match refusals.pop() {
        Some(withheld) if list.versions.is_empty() => Err(HostError::Withheld(withheld)),
        _ => Ok(Lookup::Here(list)),
    }
}

fn is_unknown_age(refusal: &Refusal) -> bool {
    matches!(refusal, Refusal::Cooldown { until: None, .. } | Refusal::Frozen { published_at: None, .. })
}

/// What a query leads to: the archive of one version as the file of its module.
async fn described(
    tx: &mut ReadTx,
    hosting: &Hosting,
    view: &View,
    (module, query): (&str, String),
    now: Micros,
) -> std::result::Result<Located<(Package, GoInfo)>, HostError> {
    let mut query = query;
    if query == LATEST {
        match versions(tx, hosting, view, module, now).await? {
            Lookup::Ask(ask) => return Ok(Located::Ask(ask)),
            Lookup::Here(list) => query = list.latest().map_or(query, str::to_owned),
        }
    }
    if let Some(repository) = repository(tx, view, module).await? {
        let package = hosted(tx, &repository.uid, module, Some(&query)).await?;
        let file = package.files.first().ok_or_else(|| absent(&key(module, &query)))?;
        let info = GoInfo { version: file.version.clone(), time: file.uploaded_at.unwrap_or_default() };
        return Ok(Located::Here((package, info)));
    }
    let upstream = match supplier(tx, hosting, view, (module, &query), now).await? {
        Located::Here(upstream) => upstream,
        Located::Ask(ask) => return Ok(Located::Ask(ask)),
        Located::Fetch(file) => return Err(Error::internal(format!("{} was to be fetched", file.name)).into()),
    };
    match answered(tx, hosting, &upstream, (module, &query), now).await? {
        Answered::Absent => Err(absent(&key(module, &query)).into()),
        Answered::Ask(ask) => Ok(Located::Ask(ask)),
        Answered::Here(info, file) => {
            let package = Package::of_files(module, upstream.uid.clone(), Some(upstream), vec![*file]);
            Ok(Located::Here((gauged(tx, package).await?, info)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_commits_are_known_by_their_form() {
        for version in [
            "v0.0.0-20230714214113-ca9018fc6e4b",
            "v1.2.4-0.20230714214113-ca9018fc6e4b",
            "v1.2.3-pre.0.20230714214113-ca9018fc6e4b",
            "v2.0.0-20230714214113-ca9018fc6e4b+incompatible",
        ] {
            assert!(is_of_commit(version), "{version}");
        }
        for version in [
            "v1.2.3",
            "v1.2.3-rc.1",
            "v1.2.3-20230714214113",
            "v1.0.0-a-b",
            "v1.0.0-2023-ca9018fc6e4b",
            "v1.5.0-20200101000000-abcdefabcdef",
            "v1.5.0-rc1.20200101000000-abcdefabcdef",
        ] {
            assert!(!is_of_commit(version), "{version}");
        }
    }

    #[test]
    fn keys_of_queries_have_their_module() {
        assert_eq!((module_of_key("a.b/c@latest"), module_of_key("a.b/c")), (Some("a.b/c"), None));
    }

    #[test]
    fn the_latest_version_is_a_release_if_there_is_one() {
        let latest = |versions: &[&str]| {
            let versions = versions.iter().map(|version| (*version).to_owned()).collect();
            GoVersions { versions, stale: None }.latest().map(str::to_owned)
        };
        assert_eq!(latest(&["v1.0.0", "v1.1.0", "v1.2.0-rc.1"]).as_deref(), Some("v1.1.0"));
        assert_eq!((latest(&["v1.0.0-a", "v1.0.0-b"]).as_deref(), latest(&[])), (Some("v1.0.0-b"), None));
    }
}
