//! The public documents, held ready in memory: a change is seen within a second, and no request reads the database
//! while they fit.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use bowline_core::{Detail, Error, Reason, Result, hex};
use bowline_pipeline::Answer;
use bowline_store::Db;
use bytes::{BufMut as _, Bytes, BytesMut};
use prost::encoding::{encode_varint, encoded_len_varint};

use super::pieces::{self, Piece, PublicGroup};

/// Maximum bytes of a response, encoded.
const MAX_RESPONSE: usize = 64 << 20;
/// Maximum number of advisories of a response that is read from the database.
const MAX_READ: i64 = 2000;

#[derive(Default)]
pub struct Published {
    /// Absent in a server that only describes its methods.
    db: Option<Db>,
    /// Maximum bytes of memory that advisories take; beyond it, advisories that are requested by name are read
    /// from the database.
    most_memory: usize,
    snapshot: RwLock<Option<Arc<Snapshot>>>,
}

/// The public documents at one moment.
#[derive(Default)]
struct Snapshot {
    groups: Vec<(PublicGroup, Arc<Vec<Arc<Piece>>>)>,
    /// Advisories by package, each package's by their identifiers.
    documents: BTreeMap<String, Vec<Arc<Piece>>>,
    /// Advisories by what they go by.
    by_name: HashMap<String, Vec<Arc<Piece>>>,
    /// False where the advisories take more memory than they may: then there are none here.
    fits: bool,
    whole: OnceLock<Option<Answer>>,
}

impl Published {
    /// Nothing yet: [`Published::refresh`] looks, and keeps at most so many bytes in memory.
    pub fn new(db: Db, most_memory: usize) -> Published {
        Published { db: Some(db), most_memory, snapshot: RwLock::default() }
    }

    /// Looks what changed since the last time, and holds it ready. One caller at a time.
    ///
    /// # Errors
    /// The storage is not available; the cached documents stay.
    pub async fn refresh(&self) -> Result<()> {
        let db = self.db.as_ref().ok_or_else(|| Error::internal("documents without a database"))?;
        let groups = db.read(|tx| Box::pin(pieces::groups(tx))).await?;
        let known = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        let is_same = |known: &Arc<Snapshot>| known.groups.iter().map(|(group, _)| group).eq(groups.iter());
        if known.as_ref().is_some_and(is_same) {
            return Ok(());
        }
        let mut read = Vec::with_capacity(groups.len());
        let mut bytes = 0;
        for group in groups {
            // What did not fit was held by half, if at all.
            let whole = known.iter().filter(|known| known.fits);
            let before = whole.flat_map(|known| &known.groups).find(|(known, _)| *known == group);
            let fits = bytes <= self.most_memory;
            let pieces = match before {
                _ if !fits => Arc::default(),
                Some((_, pieces)) => pieces.clone(),
                None => Arc::new(load(db, &group.uid, self.most_memory - bytes).await?),
            };
            bytes += pieces.iter().map(|piece| piece.bytes()).sum::<usize>();
            read.push((group, pieces));
        }
        let snapshot = Arc::new(Snapshot::of(read, bytes <= self.most_memory));
        if !snapshot.fits {
            tracing::warn!(
                most_memory = self.most_memory,
                "public advisories do not fit into memory: they are read from the database"
            );
        }
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = Some(snapshot);
        Ok(())
    }

    /// The documents of a package, or of advisories that go by these names, or both; without either, all.
    ///
    /// # Errors
    /// UNAVAILABLE until the first refresh; RESOURCE_EXHAUSTED for more than one response holds.
    pub(super) async fn find(&self, document: &str, names: Vec<String>) -> Result<Answer> {
        let snapshot = self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = snapshot.ok_or_else(|| {
            Error::new(Reason::Unavailable, "Unavailable: the documents are being read; try again")
                .with(Detail::RetryAfter(Duration::from_secs(1)))
        })?;
        let is_whole = document.is_empty() && names.is_empty();
        let found = match &self.db {
            Some(db) if !snapshot.fits && !is_whole => {
                let document = document.to_owned();
                let most = (MAX_READ, MAX_RESPONSE);
                let read = db.read(move |tx| Box::pin(async move { pieces::named(tx, &document, &names, most).await }));
                read.await?.map(|found| answer(&by_document(found.into_iter().map(Arc::new))))
            }
            _ if !snapshot.fits => None,
            _ if is_whole => snapshot.whole.get_or_init(|| snapshot.encode_whole()).clone(),
            _ => snapshot.find(document, &names),
        };
        found.ok_or_else(|| {
            Error::new(
                Reason::RequestTooLarge,
                "The documents are larger than one answer may be: name a package with id, or vulnerabilities with cves",
            )
        })
    }
}

/// The advisories of a public group; more than `most` bytes of them are as good as any more.
async fn load(db: &Db, group: &str, most: usize) -> Result<Vec<Arc<Piece>>> {
    let (mut all, mut bytes, mut after) = (Vec::new(), 0, Some(String::new()));
    while let Some(from) = after.take() {
        let group = group.to_owned();
        let read = db.read(move |tx| Box::pin(async move { pieces::of_group(tx, &group, &from).await }));
        let (some, next) = read.await?;
        bytes += some.iter().map(Piece::bytes).sum::<usize>();
        all.extend(some.into_iter().map(Arc::new));
        after = next.filter(|_| bytes <= most);
    }
    Ok(all)
}

/// A response with these documents, unless they are larger than one may be.
fn bounded(documents: &BTreeMap<String, Vec<Arc<Piece>>>) -> Option<Answer> {
    let bytes: usize = documents.values().flatten().map(|piece| piece.bytes()).sum();
    (bytes <= MAX_RESPONSE).then(|| answer(documents))
}

fn by_document(pieces: impl Iterator<Item = Arc<Piece>>) -> BTreeMap<String, Vec<Arc<Piece>>> {
    let mut documents: BTreeMap<String, Vec<Arc<Piece>>> = BTreeMap::new();
    for piece in pieces {
        documents.entry(piece.document.clone()).or_default().push(piece);
    }
    for advisories in documents.values_mut() {
        advisories.sort_by(|a, b| a.advisory_id.cmp(&b.advisory_id));
    }
    documents
}

impl Snapshot {
    fn of(groups: Vec<(PublicGroup, Arc<Vec<Arc<Piece>>>)>, fits: bool) -> Snapshot {
        let mut snapshot = Snapshot { fits, ..Snapshot::default() };
        if fits {
            let pieces = || groups.iter().flat_map(|(_, pieces)| pieces.iter());
            snapshot.documents = by_document(pieces().cloned());
            for piece in pieces() {
                for name in &piece.names {
                    snapshot.by_name.entry(name.clone()).or_default().push(piece.clone());
                }
            }
        }
        snapshot.groups = groups;
        snapshot
    }

    fn find(&self, document: &str, names: &[String]) -> Option<Answer> {
        if names.is_empty() {
            let found = self.documents.get_key_value(document);
            return bounded(&found.map(|(id, advisories)| (id.clone(), advisories.clone())).into_iter().collect());
        }
        let mut found: Vec<Arc<Piece>> = names
            .iter()
            .filter_map(|name| self.by_name.get(name))
            .flatten()
            .filter(|piece| document.is_empty() || piece.document == document)
            .cloned()
            .collect();
        // One that goes by two of the names is one.
        found.sort_by_key(Arc::as_ptr);
        found.dedup_by(|a, b| Arc::ptr_eq(a, b));
        bounded(&by_document(found.into_iter()))
    }

    fn encode_whole(&self) -> Option<Answer> {
        let bytes: usize = self.documents.values().flatten().map(|piece| piece.wire.len()).sum();
        (bytes <= MAX_RESPONSE).then(|| answer(&self.documents))
    }
}

/// The response of both versions: documents in field 1, each with its id in field 1 and its advisories in
/// field 2.
fn answer(documents: &BTreeMap<String, Vec<Arc<Piece>>>) -> Answer {
    let mut payload = BytesMut::new();
    for (id, advisories) in documents {
        let field = |bytes: usize| 1 + encoded_len_varint(bytes as u64) + bytes;
        let length = field(id.len()) + advisories.iter().map(|piece| field(piece.wire.len())).sum::<usize>();
        payload.put_u8(FIRST_FIELD);
        encode_varint(length as u64, &mut payload);
        put(&mut payload, FIRST_FIELD, id.as_bytes());
        for piece in advisories {
            put(&mut payload, SECOND_FIELD, &piece.wire);
        }
    }
    let payload: Bytes = payload.freeze();
    let digest = bowline_authn::crypto::sha256(&payload);
    Answer { tag: Some(hex(&digest[..16]).into()), payload }
}

/// Fields 1 and 2, of bytes.
const FIRST_FIELD: u8 = 1 << 3 | 2;
const SECOND_FIELD: u8 = 2 << 3 | 2;

fn put(payload: &mut BytesMut, field: u8, bytes: &[u8]) {
    payload.put_u8(field);
    encode_varint(bytes.len() as u64, payload);
    payload.put_slice(bytes);
}

#[cfg(test)]
mod tests {
    use bowline_contract::v1::advisory as v1;
    use bowline_contract::v2::advisory as v2;
    use prost::Message as _;

    use super::*;

    fn piece(document: &str, id: &str, names: &[&str]) -> Arc<Piece> {
        let advisory = v2::DocumentAdvisory { id: id.into(), ..Default::default() };
        Arc::new(Piece {
            document: document.into(),
            advisory_id: id.into(),
            names: names.iter().map(ToString::to_string).collect(),
            wire: advisory.encode_to_vec().into(),
        })
    }

    fn snapshot() -> Snapshot {
        let pieces = vec![piece("b", "2", &["X", "Y"]), piece("a", "3", &["Y"]), piece("b", "1", &["Z"])];
        let group = PublicGroup { uid: "g".into(), name: "g".into(), revision: 1 };
        Snapshot::of(vec![(group, Arc::new(pieces))], true)
    }

    fn ids(answer: &Answer) -> Vec<(String, Vec<String>)> {
        let decoded = v2::ListDocumentsResponse::decode(answer.payload.clone()).unwrap();
        let first = v1::DocumentList::decode(answer.payload.clone()).unwrap();
        assert_eq!(first.items.len(), decoded.documents.len(), "both versions read the same bytes");
        let advisories = |document: &v2::Document| document.advisories.iter().map(|a| a.id.clone()).collect();
        decoded.documents.iter().map(|document| (document.id.clone(), advisories(document))).collect()
    }

    #[test]
    fn documents_and_advisories_are_in_order_and_filtered() {
        let snapshot = snapshot();
        let expected = |list: &[(&str, &[&str])]| -> Vec<(String, Vec<String>)> {
            let texts = |ids: &[&str]| ids.iter().map(ToString::to_string).collect();
            list.iter().map(|(id, ids)| ((*id).to_owned(), texts(ids))).collect()
        };
        let find = |document: &str, names: &[&str]| {
            ids(&snapshot.find(document, &names.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap())
        };
        assert_eq!(ids(&snapshot.encode_whole().unwrap()), expected(&[("a", &["3"]), ("b", &["1", "2"])]));
        assert_eq!(find("b", &[]), expected(&[("b", &["1", "2"])]));
        assert_eq!(find("", &["Y"]), expected(&[("a", &["3"]), ("b", &["2"])]));
        assert_eq!(find("", &["X", "Y", "X"]), expected(&[("a", &["3"]), ("b", &["2"])]));
        assert_eq!(find("b", &["Y"]), expected(&[("b", &["2"])]));
        assert_eq!(find("c", &[]), []);
        assert_eq!(find("a", &["X"]), []);
    }

    #[test]
    fn the_tag_is_the_contents() {
        let tags = |snapshot: &Snapshot| (snapshot.find("a", &[]).unwrap().tag, snapshot.find("b", &[]).unwrap().tag);
        assert_eq!(tags(&snapshot()), tags(&snapshot()));
        assert_ne!(tags(&snapshot()).0, tags(&snapshot()).1);
    }
}
