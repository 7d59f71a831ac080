//! What upstreams answer: stored, remembered for a while, or not believed.

use bowline_contract::bowline::libraries::v1::UpstreamDocument;
use bowline_core::{Micros, Result};
use bowline_store::{Value, WriteTx};
use prost::Message as _;

use super::documents::{Answer, Ask, FORMAT, FRESH, NewDocument, find};
use super::memory::{self, Outcome};
use super::upstream_files::MissingFile;
use super::{Hosting, first_seen, known_versions, room, upstreams};
use crate::ecosystems::Language;

impl Hosting {
    /// Notes what an upstream answered.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn note_answer(&self, ask: &Ask, answer: Answer) -> Result<()> {
        let now = self.pipeline.clock.now();
        let job = std::sync::Arc::new((ask.clone(), answer));
        let written = self.pipeline.db.write_scratch(move |tx| {
            let job = job.clone();
            Box::pin(async move { store_answer(tx, &job.0, &job.1, now).await })
        });
        if let Some(outcome) = written.await? {
            self.memory.put(ask, outcome, now);
        }
        Ok(())
    }

    /// Notes that an upstream has no such file.
    pub fn note_absent(&self, file: &MissingFile) {
        self.memory.put_of(&file.upstream, file.path(), Outcome::Absent, self.pipeline.clock.now());
    }

    /// Notes that an upstream takes long to answer: its old answer is used for some seconds, or until the new one comes.
    pub fn note_slow(&self, ask: &Ask) {
        self.memory.put(ask, Outcome::Failed, self.pipeline.clock.now());
    }
}

/// Stores an answer. Returns what is remembered instead where there is nothing to store, or it is not believed.
async fn store_answer(tx: &mut WriteTx, ask: &Ask, answer: &Answer, now: Micros) -> Result<Option<Outcome>> {
    let uid = &ask.upstream.uid;
    if !upstreams::is_there(tx, uid).await? {
        return Ok(None);
    }
    let key = [Value::from(uid.as_str()), Value::from(&ask.package)];
    let new = match answer {
        Answer::Same => {
            let [upstream, package] = key;
            let sql = "UPDATE upstream_documents SET fetched_at = $3 WHERE upstream = $1 AND package = $2";
            let confirmed = tx.execute(sql, &[upstream, package, Value::Int(now)]).await?;
            // Nothing was asked that could be the same.
            return Ok((confirmed == 0).then_some(Outcome::Failed));
        }
        Answer::Absent => return store_absence(tx, ask, now).await,
        Answer::Failed => return Ok(Some(Outcome::Failed)),
        Answer::Document(new) => new,
    };
    let before = find(tx, uid, &ask.package).await?;
    if let Some(before) = &before
        && let Some(why) = before.contradicts(new).filter(|_| before.head.is_usable(now))
    {
        tracing::warn!(
            upstream = ask.upstream.name,
            package = ask.package,
            why,
            "a page of an upstream is not believed"
        );
        return Ok(Some(Outcome::Failed));
    }
    let mut document = new.document.clone();
    // What was seen of the package is read before room is made, which may drop it.
    first_seen::complete(tx, ask, before.as_ref(), &mut document, now).await?;
    if before.is_none() {
        room::make(tx, uid, ask.language, ask.statements.is_some(), now).await?;
    }
    insert(tx, ask, &document, new, now).await?;
    Ok(None)
}

/// Notes that an upstream has nothing under a name. Returns what is remembered instead if nothing is stored.
async fn store_absence(tx: &mut WriteTx, ask: &Ask, now: Micros) -> Result<Option<Outcome>> {
    let uid = &ask.upstream.uid;
    let Some(before) = find(tx, uid, &ask.package).await? else {
        if ask.language == Language::Java && ask.statements.is_none() {
            // Versions of Maven are there without lists: those that come after this are new.
            known_versions::add_empty(tx, uid, &ask.package, now).await?;
        }
        return Ok(Some(Outcome::Absent));
    };
    // Without files: the name stays this upstream's, and no later one supplies it.
    let sql = "UPDATE upstream_documents SET etag = '', last_modified = '', document = $3, manifests = $5,
                 fetched_at = $4
               WHERE upstream = $1 AND package = $2";
    let nothing = first_seen::all_gone(before.into_document(), first_seen::GONE).encode_to_vec();
    let no_manifests: &[u8] = &[];
    let params = [
        Value::from(uid.as_str()),
        Value::from(&ask.package),
        Value::from(&nothing),
        Value::Int(now - FRESH + memory::ABSENT),
        Value::from(no_manifests),
    ];
    tx.execute(sql, &params).await?;
    Ok(None)
}

/// Stores a document in place of the one before.
async fn insert(
    tx: &mut WriteTx,
    ask: &Ask,
    document: &UpstreamDocument,
    new: &NewDocument,
    now: Micros,
) -> Result<()> {
    let sql = "INSERT INTO upstream_documents (upstream, package, etag, last_modified, serial, document, fetched_at, manifests)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
               ON CONFLICT (upstream, package) DO UPDATE SET etag = excluded.etag,
                 last_modified = excluded.last_modified, serial = excluded.serial, document = excluded.document,
                 fetched_at = excluded.fetched_at, manifests = excluded.manifests";
    let (document, etag) = (document.encode_to_vec(), format!("{FORMAT}{}", new.etag));
    let params = [
        Value::from(ask.upstream.uid.as_str()),
        Value::from(&ask.package),
        Value::from(&etag),
        Value::from(&new.last_modified),
        Value::Int(new.serial),
        Value::from(&document),
        Value::Int(now),
        Value::from(&new.manifests.0),
    ];
    tx.execute(sql, &params).await?;
    Ok(())
}
