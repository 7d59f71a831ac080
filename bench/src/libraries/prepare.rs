//! A prepared directory with a catalogue of packages.

use std::path::PathBuf;
use std::sync::Arc;

use bowline_store::{Db, StoreError, Value, WriteTx};
use bowline_versions::{Scheme, order_key};

use crate::Outcome;
use crate::environment::Environment;
use crate::seed;
use crate::table::complain;

/// Versions of an artifact.
pub(super) const EACH: usize = 20;
/// Artifacts of one transaction.
const BATCH: usize = 1000;
/// 2025-01-01, in microseconds.
const CREATED_AT: i64 = 1_735_689_600_000_000;

/// A directory with so many versions.
pub(super) async fn prepared(environment: &Environment, versions: usize) -> Outcome<PathBuf> {
    let directory = environment.cache.join(format!("libraries-{versions}-{}", seed::schema()));
    if directory.exists() {
        return Ok(directory);
    }
    complain(&format!("preparing {versions} versions of packages, once"));
    let draft = directory.with_extension("draft");
    let db = seed::create(&draft).await?;
    let mut artifacts: Vec<Artifact> = (0..versions / EACH).map(Artifact::new).collect();
    // In order the trees grow at their ends, which is many times faster.
    artifacts.sort_unstable_by(|left, right| left.id.cmp(&right.id));
    for batch in artifacts.chunks(BATCH) {
        write(&db, batch.to_vec()).await?;
    }
    write_counts(&db, &artifacts).await?;
    db.close().await;
    std::fs::rename(&draft, &directory)?;
    Ok(directory)
}

/// An artifact of the catalogue, by its number.
#[derive(Clone)]
pub(super) struct Artifact {
    pub(super) id: String,
    ecosystem: i64,
    name: String,
    is_built: bool,
}

impl Artifact {
    /// A third of each ecosystem; half of them are built.
    pub(super) fn new(n: usize) -> Artifact {
        const WORDS: [&str; 8] = ["client", "server", "codec", "parser", "query", "stream", "cache", "metrics"];
        const KINDS: [&str; 5] = ["lib", "core", "x", "api", "q"];
        let (word, kind) = (WORDS[n % WORDS.len()], KINDS[n / WORDS.len() % KINDS.len()]);
        let (ecosystem, prefix, name) = match n % 3 {
            0 => (2, "python", format!("{word}-{kind}-{n}")),
            1 => (1, "java", format!("org.example.{word}:{kind}-{n}")),
            _ => (3, "javascript", format!("@{word}/{kind}-{n}")),
        };
        Artifact { id: format!("{prefix}:{}", name.replace('/', ":")), ecosystem, name, is_built: n.is_multiple_of(2) }
    }
}

async fn write(db: &Db, batch: Vec<Artifact>) -> Outcome<()> {
    let batch = Arc::new(batch);
    db.write::<_, StoreError>(move |tx| {
        let batch = batch.clone();
        Box::pin(async move {
            for artifact in batch.iter() {
                insert(tx, artifact).await?;
            }
            Ok(())
        })
    })
    .await?;
    Ok(())
}

async fn insert(tx: &mut WriteTx, artifact: &Artifact) -> Result<(), StoreError> {
    let (source, scheme) = (if artifact.is_built { 1 } else { 3 }, Scheme::SemVer);
    let sql = "INSERT INTO library_artifacts (id, ecosystem, name, folded, description, license, latest, latest_built,
                 version_count, built_count, upstream_count, is_built, is_remediated, created_at, updated_at)
               VALUES ($1, $2, $3, $3, 'A package for measurements', 'MIT', $4, $4, $5, $6, $7, $8, FALSE, $9, $9)";
    let latest = format!("1.{}.0", EACH - 1);
    let (built, upstream) = if artifact.is_built { (EACH, 0) } else { (0, EACH) };
    let params = [
        Value::from(&artifact.id),
        Value::Int(artifact.ecosystem),
        Value::from(&artifact.name),
        Value::from(&latest),
        Value::Int(EACH as i64),
        Value::Int(built as i64),
        Value::Int(upstream as i64),
        Value::Bool(artifact.is_built),
        Value::Int(CREATED_AT),
    ];
    tx.execute(sql, &params).await?;
    let characters: Vec<char> = artifact.name.chars().collect();
    for window in characters.windows(3) {
        let sql = "INSERT INTO library_trigrams (trigram, ecosystem, folded, artifact, is_built)
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING";
        let trigram: String = window.iter().collect();
        let (name, id) = (Value::from(&artifact.name), Value::from(&artifact.id));
        let params = [Value::from(&trigram), Value::Int(artifact.ecosystem), name, id, Value::Bool(artifact.is_built)];
        tx.execute(sql, &params).await?;
    }
    for number in 0..EACH {
        let version = format!("1.{number}.0");
        let sql =
            "INSERT INTO library_versions (artifact, sort_key, version, source, description, license, is_prerelease,
                     size_bytes, published_at, file_count, metadata, created_at, updated_at)
                   VALUES ($1, $2, $3, $4, 'A package for measurements', 'MIT', FALSE, 1000, NULL, 0, '', $5, $5)";
        let key = order_key(scheme, &version);
        let params = [
            Value::from(&artifact.id),
            Value::from(&key),
            Value::from(&version),
            Value::Int(source),
            Value::Int(CREATED_AT),
        ];
        tx.execute(sql, &params).await?;
    }
    Ok(())
}

async fn write_counts(db: &Db, artifacts: &[Artifact]) -> Outcome<()> {
    for ecosystem in 1..=3 {
        let of = |built: &[bool]| {
            let counted = artifacts.iter().filter(|one| one.ecosystem == ecosystem && built.contains(&one.is_built));
            counted.count() as i64
        };
        let (total, built, upstream) = (of(&[true, false]), of(&[true]), of(&[false]));
        db.write::<_, StoreError>(move |tx| {
            Box::pin(async move {
                let sql = "INSERT INTO library_artifact_counts (ecosystem, total, built, remediated, upstream)
                           VALUES ($1, $2, $3, 0, $4)";
                let params = [Value::Int(ecosystem), Value::Int(total), Value::Int(built), Value::Int(upstream)];
                tx.execute(sql, &params).await.map(|_| ())
            })
        })
        .await?;
    }
    Ok(())
}
