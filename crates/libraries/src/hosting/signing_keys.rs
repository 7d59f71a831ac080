//! The keys that clients of npm verify signatures with: those of this server, and of the upstreams of an organization.
//!
//! A client refuses everything if one signature names a key that is not listed, or that had expired when the version was
//! published. So documents show only signatures of which neither is the case.

use std::collections::BTreeMap;
use std::sync::Arc;

use bowline_contract::bowline::libraries::v1::{PackageSigningKey, UpstreamDocument};
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_store::{ReadTx, Row, Value};
use prost::Message as _;

use super::documents::{self, Ask, UpstreamAccess};
use super::package::{Known, Package};
use super::protocols::Npm;
use super::signing::{OwnKey, VersionSigner, own_keys};
use super::views::View;
use super::{HostClient, HostError, Hosting, entitled, upstreams};
use crate::ecosystems::Language;

const LANGUAGE: Language = Language::JavaScript;
/// When clients take a version to be published whose time is not known: 2015-01-01.
const UNKNOWN_TIME: Micros = 1_420_070_400_000_000;
/// Clients compare times in whole milliseconds, and drop what is below them.
const MILLISECOND: Micros = 1000;

/// The path of the list below the address of a registry. No package has such a name, so the list of an upstream is stored as a
/// document beside those of packages.
pub const SIGNING_KEYS: &str = "-/npm/v1/keys";

/// A key that signs versions, as clients are told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedKey {
    pub keyid: String,
    /// The public half, as SubjectPublicKeyInfo in DER.
    pub public_key: Vec<u8>,
    /// Versions published from then on are not signed with it; absent without an end.
    pub expires_at: Option<Micros>,
}

impl From<&OwnKey> for ListedKey {
    fn from(key: &OwnKey) -> ListedKey {
        ListedKey { keyid: key.keyid.clone(), public_key: key.public_key.clone(), expires_at: key.expires_at }
    }
}

impl From<PackageSigningKey> for ListedKey {
    fn from(key: PackageSigningKey) -> ListedKey {
        let PackageSigningKey { keyid, public_key, expires_micros } = key;
        ListedKey { keyid, public_key, expires_at: Some(expires_micros).filter(|micros| *micros != 0) }
    }
}

/// The keys of an upstream as it listed them last.
struct UpstreamKeys {
    upstream: Uidp,
    keys: Vec<ListedKey>,
}

/// Those of the upstreams of an organization, in the order in which they are requested. A list that could not be confirmed for
/// as long as documents are used is not used either.
async fn of_upstreams(tx: &mut ReadTx, organization: &Uidp, now: Micros) -> Result<Vec<UpstreamKeys>> {
    let sql = "SELECT u.uid, d.document, d.fetched_at
               FROM package_upstreams u JOIN upstream_documents d ON d.upstream = u.uid AND d.package = $3
               WHERE u.parent = $1 AND u.deleted_at IS NULL AND u.ecosystem = $2 ORDER BY u.rank, u.name";
    let params = [Value::from(organization.as_str()), Value::Int(LANGUAGE.number()), Value::from(SIGNING_KEYS)];
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.bytes(1)?, row.int(2)?));
    let mut all = Vec::new();
    for (uid, document, fetched_at) in tx.query(sql, &params, read).await? {
        if !documents::is_usable(fetched_at, now) {
            continue;
        }
        let document = UpstreamDocument::decode(document.as_slice()).map_err(Error::internal)?;
        let keys = document.signing_keys.into_iter().map(ListedKey::from).collect();
        all.push(UpstreamKeys { upstream: crate::stored_uid(&uid)?, keys });
    }
    Ok(all)
}

/// One list of all: of two keys with one id the first counts, so an upstream cannot put another key in the place of one of this
/// server.
fn merged(own: &[OwnKey], upstreams: &[UpstreamKeys]) -> Vec<ListedKey> {
    let mut listed: Vec<ListedKey> = own.iter().map(ListedKey::from).collect();
    for key in upstreams.iter().flat_map(|upstream| &upstream.keys) {
        if !listed.iter().any(|known| known.keyid == key.keyid) {
            listed.push(key.clone());
        }
    }
    listed
}

/// Which listed keys verify signatures of a package, by id with their ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsableKeys {
    /// Those of this server.
    own: BTreeMap<String, Option<Micros>>,
    /// Those of the upstream that the package comes from.
    of_upstream: BTreeMap<String, Option<Micros>>,
}

impl UsableKeys {
    /// Those for a package that lies in a repository, which may be that of an upstream.
    pub(super) async fn read(tx: &mut ReadTx, repository: &Uidp, is_upstream: bool, now: Micros) -> Result<UsableKeys> {
        let own = own_keys(tx).await?;
        UsableKeys::of(tx, &own, (repository, is_upstream), now).await
    }

    async fn of(
        tx: &mut ReadTx,
        own: &[OwnKey],
        (repository, is_upstream): (&Uidp, bool),
        now: Micros,
    ) -> Result<UsableKeys> {
        let upstreams = if is_upstream { of_upstreams(tx, &repository.root(), now).await? } else { Vec::new() };
        let listed = merged(own, &upstreams);
        let theirs = upstreams.iter().filter(|keys| keys.upstream == *repository).flat_map(|keys| &keys.keys);
        // The key that is listed under such an id may be another one.
        let theirs = theirs.filter(|key| listed.contains(key));
        Ok(UsableKeys {
            own: own.iter().map(|key| (key.keyid.clone(), key.expires_at)).collect(),
            of_upstream: theirs.map(|key| (key.keyid.clone(), key.expires_at)).collect(),
        })
    }

    /// Whether clients can verify a signature of this server of a version that was published then.
    pub(super) fn verify_own(&self, keyid: &str, published_at: Option<Micros>) -> bool {
        is_valid(self.own.get(keyid), published_at)
    }

    /// Whether clients can verify a signature of the upstream of a version that was published then.
    pub(super) fn verify_upstream(&self, keyid: &str, published_at: Option<Micros>) -> bool {
        is_valid(self.of_upstream.get(keyid), published_at)
    }
}

/// Whether a key with this end is listed, and had not ended when something was published, as clients compare the two.
fn is_valid(listed: Option<&Option<Micros>>, published_at: Option<Micros>) -> bool {
    let millis = |micros: Micros| micros.div_euclid(MILLISECOND);
    let published_at = millis(published_at.unwrap_or(UNKNOWN_TIME));
    listed.is_some_and(|end| end.is_none_or(|end| published_at < millis(end)))
}

/// What documents show as signatures of the versions of a package.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionSigning {
    pub(super) usable: UsableKeys,
    /// What signs where no stored signature can be used; absent in tests of documents alone.
    pub(super) signer: Option<Arc<VersionSigner>>,
}

impl VersionSigning {
    /// Those for a package, with what signs now.
    pub(super) async fn read(
        tx: &mut ReadTx,
        hosting: &Hosting,
        package: &Package,
        now: Micros,
    ) -> Result<VersionSigning> {
        let own = own_keys(tx).await?;
        let usable = UsableKeys::of(tx, &own, (&package.repository, !package.is_hosted()), now).await?;
        Ok(VersionSigning { usable, signer: Some(Arc::new(hosting.signer_of(&own)?)) })
    }
}

impl Hosting {
    /// What upstreams are to be asked for before keys are listed: those of the organization whose list is not known, or is old. Each
    /// is in it once.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn key_requests(
        &self,
        client: &HostClient,
        path: Option<&str>,
    ) -> std::result::Result<Vec<Ask>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path) = of.clone();
            Box::pin(async move {
                let organization = View::open::<Npm>(tx, &client, path.as_deref()).await?.scope.root();
                let mut requests = Vec::new();
                if !entitled::has_upstreams(tx, &hosting.pipeline.settings, &organization, LANGUAGE).await? {
                    return Ok(requests);
                }
                for row in upstreams::of_organization(tx, organization.as_str()).await? {
                    if row.language != LANGUAGE {
                        continue;
                    }
                    let head = documents::find_head(tx, &row.uid, SIGNING_KEYS).await?;
                    if let Known::Unasked(head) = Known::of(&hosting, &row.uid, SIGNING_KEYS, head, client.now()) {
                        let upstream = UpstreamAccess::of(&row, &hosting.pipeline.vault)?;
                        requests.push(Ask::new(upstream, (LANGUAGE, SIGNING_KEYS), head));
                    }
                }
                Ok::<_, HostError>(requests)
            })
        });
        read.await
    }

    /// The keys that verify signatures of what a view shows: those of this server, and those of the upstreams of the
    /// organization as they listed them last. One that lists none, or did not answer for a week, has none here either.
    ///
    /// # Errors
    /// The caller may not read there.
    pub async fn javascript_keys(
        &self,
        client: &HostClient,
        path: Option<&str>,
    ) -> std::result::Result<Vec<ListedKey>, HostError> {
        let of = (self.clone(), client.clone(), path.map(str::to_owned));
        let read = self.pipeline.db.read(move |tx| {
            let (hosting, client, path) = of.clone();
            Box::pin(async move {
                let organization = View::open::<Npm>(tx, &client, path.as_deref()).await?.scope.root();
                let own = own_keys(tx).await?;
                if !entitled::has_upstreams(tx, &hosting.pipeline.settings, &organization, LANGUAGE).await? {
                    return Ok(merged(&own, &[]));
                }
                Ok::<_, HostError>(merged(&own, &of_upstreams(tx, &organization, client.now()).await?))
            })
        });
        read.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(keyid: &str, expires_at: Option<Micros>) -> OwnKey {
        OwnKey::for_test(keyid, vec![1], expires_at)
    }

    fn key(keyid: &str, byte: u8) -> ListedKey {
        ListedKey { keyid: keyid.into(), public_key: vec![byte], expires_at: None }
    }

    #[test]
    fn of_keys_with_one_id_the_first_is_listed() {
        let upstream = Uidp::parse("0123456789abcdef0123456789abcdef01234567").expect("a uid");
        let of = |keys: Vec<ListedKey>| UpstreamKeys { upstream: upstream.clone(), keys };
        let listed =
            merged(&[own("a", None)], &[of(vec![key("a", 2), key("b", 3)]), of(vec![key("b", 4), key("c", 5)])]);
        assert_eq!(listed, [key("a", 1), key("b", 3), key("c", 5)]);
    }

    #[test]
    fn a_key_verifies_what_was_published_before_its_end() {
        let own = [("a", None), ("b", Some(10_000)), ("d", Some(UNKNOWN_TIME)), ("e", Some(UNKNOWN_TIME + 1000))];
        let own = own.map(|(keyid, end)| (keyid.to_owned(), end)).into();
        let usable = UsableKeys { own, of_upstream: BTreeMap::from([("c".to_owned(), None)]) };
        for (keyid, published_at, verifies) in [
            ("a", None, true),
            ("a", Some(11_000), true),
            ("b", Some(9_999), true),
            ("b", Some(10_000), false),
            ("b", None, false),
            ("c", None, false),
            ("d", None, false),
            ("d", Some(UNKNOWN_TIME - 1), true),
            ("e", None, true),
            ("e", Some(UNKNOWN_TIME + 999), true),
        ] {
            assert_eq!(usable.verify_own(keyid, published_at), verifies, "{keyid} {published_at:?}");
        }
        assert!(usable.verify_upstream("c", Some(1)) && !usable.verify_upstream("a", Some(1)));
        // In one millisecond, an end that is later in microseconds is not later.
        let usable = UsableKeys { own: [("a".to_owned(), Some(10_900))].into(), ..UsableKeys::default() };
        assert!(!usable.verify_own("a", Some(10_400)) && usable.verify_own("a", Some(9_999)));
    }
}
