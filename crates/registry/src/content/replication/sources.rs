//! Where a synchronized repository takes what it lacks from: another repository here, or one of another registry.

use bowline_contract::Method;
use bowline_contract::bowline::registry::v1::rpc::content::{PullBlob, PullManifest};
use bowline_contract::v2::registry as v2;
use bowline_core::{Error, Micros, Reason, Result, Uidp};
use bowline_pipeline::Authorized;
use bowline_store::{ReadTx, Value, WriteTx};
use prost::Message;

use crate::content::is_public;
use crate::paths::{self, Name};
use crate::policies::{require_capabilities_of, require_push, validate_address};
use crate::repos;

/// The source of a synchronized repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Here(Uidp),
    /// An https address of a repository of another registry.
    There(String),
}

impl Source {
    fn stored(text: &str) -> Result<Option<Source>> {
        match text {
            "" => Ok(None),
            url if url.contains("://") => Ok(Some(Source::There(url.into()))),
            uid => Ok(Some(Source::Here(paths::stored(uid)?))),
        }
    }

    /// How it is stored.
    pub(crate) fn text(&self) -> &str {
        match self {
            Source::Here(uid) => uid.as_str(),
            Source::There(url) => url,
        }
    }
}

/// Where the repository takes what it lacks from, unless its synchronization has ended.
pub(crate) async fn of(tx: &mut ReadTx, repo: &Uidp, now: Micros) -> Result<Option<Source>> {
    let sql = "SELECT synced_from, spec FROM repos WHERE uid = $1 AND synced_from <> ''";
    let read = |row: &bowline_store::Row<'_>| Ok::<_, Error>((row.text(0)?, row.bytes(1)?));
    let Some((from, spec)) = tx.query_opt(sql, &[Value::from(repo.as_str())], read).await? else { return Ok(None) };
    let spec = v2::Repo::decode(spec.as_slice()).map_err(Error::internal)?;
    let end = spec.sync_config.and_then(|sync| sync.expiration_time);
    let has_ended =
        end.is_some_and(|end| i128::from(end.seconds) * 1_000_000 + i128::from(end.nanos / 1000) <= now.into());
    if has_ended { Ok(None) } else { Source::stored(&from) }
}

/// Validates a source that was given or changed, and spells it as responses do: a repository here by its UIDP. `place`
/// is the repository, or the group of a new one.
///
/// Returns what to keep with [`put`]; absent if the source stays as it was.
///
/// # Errors
/// INVALID_ARGUMENT if it names nothing that the caller may pull from, PERMISSION_DENIED if it changes and
/// the caller cannot push at `place`.
pub(crate) async fn settle<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    place: &Uidp,
    before: Option<&v2::Repo>,
    after: &mut v2::Repo,
) -> Result<Option<Settled>> {
    let stored = before.map_or("", repos::source);
    if stored == repos::source(after) {
        return Ok(None);
    }
    let Some(sync) = after.sync_config.as_mut() else {
        require_push(call, place)?;
        return Ok(Some(Settled(None)));
    };
    let source = named(tx, call, &sync.source).await?.ok_or_else(|| Error::invalid_field(FIELD, NO_SOURCE))?;
    if let Source::Here(uid) = &source {
        if before.is_some_and(|before| before.uid == uid.as_str()) {
            return Err(Error::invalid_field(FIELD, "a repository cannot be its own source"));
        }
        uid.as_str().clone_into(&mut sync.source);
    }
    // The same source may be spelled by its name.
    if stored != sync.source {
        require_push(call, place)?;
    }
    Ok(Some(Settled(Some(source))))
}

/// What a text names as a source; absent if it names nothing that the caller may pull from.
pub(crate) async fn named<T>(tx: &mut ReadTx, call: &Authorized<T>, text: &str) -> Result<Option<Source>> {
    if let Some(name) = on_own_host(call, text) {
        return Ok(here(tx, call, name).await?.map(Source::Here));
    }
    match here(tx, call, text).await? {
        Some(uid) => Ok(Some(Source::Here(uid))),
        None => Ok(address(text).map(Source::There)),
    }
}

/// The name of a repository here, if the text is an image reference of the registry host itself.
fn on_own_host<'a, T>(call: &Authorized<T>, text: &'a str) -> Option<&'a str> {
    let reference = text.strip_prefix("https://").unwrap_or(text);
    let (host, name) = reference.split_once('/')?;
    host.eq_ignore_ascii_case(&call.settings().registry_audience).then_some(name)
}

const FIELD: &str = "sync_config.source";
const NO_SOURCE: &str = "names no repository that you may pull from: give the UIDP or the name of one here, or an image \
                         reference without a tag at another registry, such as registry.example.com/team/app";

/// A source that was checked.
pub(crate) struct Settled(Option<Source>);

impl Settled {
    /// What [`named`] has found.
    pub(crate) fn of(source: Source) -> Settled {
        Settled(Some(source))
    }
}

/// Keeps a source that was checked.
pub(crate) async fn put(tx: &mut WriteTx, repo: &Uidp, settled: Option<Settled>) -> Result<()> {
    let Some(Settled(source)) = settled else { return Ok(()) };
    let text = source.as_ref().map_or("", Source::text);
    let sql = "UPDATE repos SET synced_from = $2 WHERE uid = $1";
    tx.execute(sql, &[Value::from(repo.as_str()), Value::from(text)]).await?;
    Ok(())
}

/// The repository here that a text names, by its UIDP or its name, if the caller may pull from it.
async fn here<T>(tx: &mut ReadTx, call: &Authorized<T>, text: &str) -> Result<Option<Uidp>> {
    let uid = match (Uidp::parse(text), Name::parse(text)) {
        (Ok(uid), _) => Some(uid),
        (Err(_), Some(name)) => paths::resolve(tx, &name).await?.and_then(|place| place.repo),
        (Err(_), None) => None,
    };
    let Some(uid) = uid else { return Ok(None) };
    let sql = "SELECT uid FROM repos WHERE uid = $1";
    let found = tx.query_opt(sql, &[Value::from(uid.as_str())], |row| row.text(0).map_err(Error::from)).await?;
    if found.is_none() {
        return Ok(None);
    }
    match require_capabilities_of(call, &uid, &[PullManifest::FULL_NAME, PullBlob::FULL_NAME]) {
        Ok(()) => Ok(Some(uid)),
        Err(error) if error.reason() != Reason::PermissionDenied => Err(error),
        Err(_) => Ok(is_public(tx, &uid).await?.then_some(uid)),
    }
}

/// The address of a repository that an image reference without a tag names at another registry.
fn address(text: &str) -> Option<String> {
    let reference = text.strip_prefix("https://").unwrap_or(text);
    let (host, name) = reference.split_once('/')?;
    let is_host = host.contains(['.', ':']);
    let url = format!("https://{host}/{name}");
    (is_host && name.split('/').all(paths::is_part) && validate_address(&url).is_ok()).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references_have_a_host_and_no_tag() {
        for (text, url) in [
            ("registry.example.com/app", "https://registry.example.com/app"),
            ("https://registry.example.com:5000/a/b-c", "https://registry.example.com:5000/a/b-c"),
            ("localhost:5000/app", "https://localhost:5000/app"),
        ] {
            assert_eq!(address(text).as_deref(), Some(url), "{text}");
        }
        let digest = format!("a.example/app@sha256:{}", "0".repeat(64));
        for text in [
            "",
            "app",
            "team/app",
            "a.example",
            "a.example/",
            "a.example/app:1",
            "a.example/App",
            "a.example/../app",
            "u@a.example/app",
            "u:p@a.example/app",
            "http://a.example/app",
            "a.example/app?x",
            "a.example//app",
            &digest,
        ] {
            assert_eq!(address(text), None, "{text}");
        }
    }
}
