//! Prepared data directories, written to the database in large transactions, without the server, and cached
//! for the next run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use bowline_contract::v2::registry as v2;
use bowline_core::Uidp;
use bowline_store::{Db, MIGRATIONS, SqliteOptions, StoreError, Value, WriteTx, counters};
use prost::Message as _;

use crate::Outcome;
use crate::environment::Environment;
use crate::table::complain;

/// Rows of one transaction.
const BATCH: usize = 20_000;
/// 2025-01-01, in microseconds.
const CREATED_AT: i64 = 1_735_689_600_000_000;

/// A directory with many repositories in one organization.
pub(crate) struct Repositories {
    pub(crate) directory: PathBuf,
    pub(crate) org: String,
    /// The first group.
    pub(crate) group: String,
}

/// This many repositories, evenly in this many groups of one organization.
pub(crate) async fn repositories(environment: &Environment, groups: usize, repos: usize) -> Outcome<Repositories> {
    let name = format!("repos-{repos}-in-{groups}-{}", schema());
    let directory = environment.cache.join(name);
    let org = Uidp::root_from([0x0b; 20]);
    let group = |n: usize| org.child_from(spread(n as u64));
    let found = Repositories { directory, org: org.as_str().into(), group: group(0).as_str().into() };
    if found.directory.exists() {
        return Ok(found);
    }
    complain(&format!("preparing {repos} repositories in {groups} groups, once"));
    let draft = found.directory.with_extension("draft");
    let db = create(&draft).await?;
    let group_rows = (0..groups).map(|n| Row { uid: group(n), name: format!("group-{n}"), place: Place::Group });
    let org_row = Row { uid: org.clone(), name: "million".into(), place: Place::Group };
    let mut rows: Vec<Row> = std::iter::once(org_row).chain(group_rows).collect();
    rows.extend((0..repos).map(|n| Row {
        uid: group(n % groups).child_from(spread(n as u64 + 1_000_000_000)),
        name: format!("repository-{n}"),
        place: Place::Repo,
    }));
    // In order the trees grow at their ends, which is many times faster.
    rows.sort_unstable_by(|a, b| a.uid.cmp(&b.uid));
    write(&db, rows.into_iter()).await?;
    db.close().await;
    std::fs::rename(&draft, &found.directory)?;
    Ok(found)
}

/// A fresh database and a key in a directory that only its owner enters. The server makes no key beside a database.
pub(crate) async fn create(directory: &Path) -> Outcome<Db> {
    use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
    if directory.exists() {
        std::fs::remove_dir_all(directory)?;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let key = directory.join("key");
    std::fs::write(&key, "5a".repeat(32))?;
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600))?;
    let db = Db::open_sqlite(&directory.join("bowline.db"), SqliteOptions::default()).await?;
    db.migrate(MIGRATIONS).await?;
    Ok(db)
}

/// Groups by their UIDPs and names.
pub(crate) async fn groups(db: &Db, groups: Vec<(Uidp, String)>) -> Outcome<()> {
    write(db, groups.into_iter().map(|(uid, name)| Row { uid, name, place: Place::Group })).await
}

/// Repositories by their UIDPs and names.
pub(crate) async fn repos(db: &Db, repos: Vec<(Uidp, String)>) -> Outcome<()> {
    write(db, repos.into_iter().map(|(uid, name)| Row { uid, name, place: Place::Repo })).await
}

#[derive(Clone, Copy, PartialEq)]
enum Place {
    Group,
    Repo,
}

#[derive(Clone)]
struct Row {
    uid: Uidp,
    name: String,
    place: Place,
}

async fn write(db: &Db, rows: impl Iterator<Item = Row>) -> Outcome<()> {
    let mut rows = rows.peekable();
    while rows.peek().is_some() {
        let batch: std::sync::Arc<Vec<Row>> = std::sync::Arc::new(rows.by_ref().take(BATCH).collect());
        db.write::<_, StoreError>(move |tx| {
            let batch = batch.clone();
            Box::pin(async move {
                for row in batch.iter() {
                    insert(tx, row).await?;
                }
                counters::fold(tx, i64::MAX).await
            })
        })
        .await?;
    }
    Ok(())
}

async fn insert(tx: &mut WriteTx, row: &Row) -> Result<(), StoreError> {
    let uid = row.uid.as_str();
    let (parent, org) = (row.uid.parent_str(), row.uid.root_str());
    let (table, sql) = match row.place {
        Place::Group => (
            "groups",
            "INSERT INTO groups (uid, parent, org, name, description, verified, kind, status, resource_limits, created_at, updated_at)
             VALUES ($1, $2, $3, $4, '', FALSE, 0, 1, '{}', $5, $5)",
        ),
        Place::Repo => (
            "repos",
            "INSERT INTO repos (uid, parent, org, name, description, spec, created_at, updated_at)
             VALUES ($1, $2, $3, $4, 'An image for measurements', $6, $5, $5)",
        ),
    };
    let spec = sample_repo(String::new()).encode_to_vec();
    let mut params =
        vec![Value::from(uid), Value::from(parent), Value::from(org), Value::from(&row.name), Value::Int(CREATED_AT)];
    if row.place == Place::Repo {
        params.push(Value::from(&spec));
    }
    tx.execute(sql, &params).await?;
    counters::record(tx, table, uid, 1).await?;
    if !parent.is_empty() {
        counters::record(tx, &format!("{table}/children"), parent, 1).await?;
    }
    Ok(())
}

/// A repository as people make them.
pub(crate) fn sample_repo(name: String) -> v2::Repo {
    let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
    v2::Repo {
        name,
        bundles: texts(&["base", "fips"]),
        active_tags: texts(&["latest", "1", "1.27", "1.27.3"]),
        aliases: texts(&["nginx:latest", "nginx:1.27"]),
        catalog_tier: v2::CatalogTier::Base as i32,
        ..v2::Repo::default()
    }
}

/// Eight bytes that are spread over the whole range, but the same in every run.
pub(crate) fn spread(n: u64) -> [u8; 8] {
    let mixed = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 32)).to_be_bytes()
}

/// Another schema, another directory.
pub(crate) fn schema() -> String {
    let mut hasher = DefaultHasher::new();
    for migration in MIGRATIONS {
        (migration.version, migration.sqlite).hash(&mut hasher);
    }
    format!("{:016x}", hasher.finish())
}
