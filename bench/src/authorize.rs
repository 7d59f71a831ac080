//! The decision whether a caller may do something somewhere, in process.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use bowline_contract::Contract;
use bowline_core::{CapabilitySet, Error, Uidp};
use bowline_pipeline::{Grants, GrantsCache, Narrowing, Principal, TokenFacts};
use bowline_store::{Db, MIGRATIONS, SqliteOptions, StoreError, Value};

use crate::Outcome;
use crate::environment::Environment;
use crate::sample::Sample;
use crate::seed::spread;
use crate::table::{Table, Target, Unit, note};

const CHAINS: u64 = 10_000;
const DEPTH: u64 = 10;
/// Callers in the database; the bindings are spread over them.
const CALLERS: u64 = 1000;
const DECISIONS: u64 = 200_000;

pub(crate) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let contract = Contract::load();
    let viewer = contract.built_in_roles().iter().find(|role| role.name == "viewer").ok_or("no viewer")?;
    let (role, held) = (viewer.uid.clone(), viewer.capabilities);
    let needed = contract.capabilities().by_name("repo.list").map(|facts| CapabilitySet::of_bit(facts.bit));
    let needed = needed.ok_or("no capability repo.list")?;
    let groups: Vec<Uidp> = groups();

    let bindings = groups.iter().map(|group| (group.as_str().to_owned(), held));
    let grants = Grants::from_bindings(bindings, Narrowing::default());
    let sample = time(|n| {
        black_box(grants.allows(black_box(pick(&groups, n).as_str()), &needed));
    });
    table.row(
        "decision, 100,000 bindings of one caller, p50",
        Unit::Microseconds,
        Target::AtMost(2.0),
        sample.microseconds(0.5),
    );
    note(&format!("p99 {:.2} us", sample.microseconds(0.99)));

    std::fs::create_dir_all(&environment.cache)?;
    let directory = tempfile::tempdir_in(&environment.cache)?;
    let db = Db::open_sqlite(&directory.path().join("bowline.db"), SqliteOptions::default()).await?;
    db.migrate(MIGRATIONS).await?;
    fill(&db, &groups, &role, &held).await?;
    let cache = Arc::new(GrantsCache::new(bowline_identity::ACCESS));
    let callers: Vec<Principal> = (0..CALLERS).map(principal).collect();
    let mut nanoseconds = Vec::new();
    for n in 0..DECISIONS {
        let caller = callers[(n % CALLERS) as usize].clone();
        let place = pick(&groups, n).as_str().to_owned();
        let (cache, started) = (cache.clone(), Instant::now());
        let allowed = db
            .read(move |tx| {
                Box::pin(async move {
                    let grants = cache.load(tx, &caller, 0).await?;
                    Ok::<_, Error>(grants.allows(&place, &needed))
                })
            })
            .await?;
        black_box(allowed);
        nanoseconds.push(started.elapsed().as_nanos() as u64);
    }
    let sample = Sample::new(nanoseconds);
    table.row(
        "  with reading the revision on SQLite, p50",
        Unit::Microseconds,
        Target::AtMost(8.0),
        sample.microseconds(0.5),
    );
    note(&format!("p99 {:.2} us; 1,000 callers with 100 of the 100,000 bindings each", sample.microseconds(0.99)));
    db.close().await;
    Ok(())
}

/// 10,000 chains, 10 deep.
fn groups() -> Vec<Uidp> {
    let root = Uidp::root_from([0x0a; 20]);
    let chain = |chain: u64| {
        let mut place = root.clone();
        (0..DEPTH).map(move |level| {
            place = place.child_from(spread(chain * DEPTH + level));
            place.clone()
        })
    };
    (0..CHAINS).flat_map(chain).collect()
}

fn pick(groups: &[Uidp], n: u64) -> &Uidp {
    &groups[(u64::from_be_bytes(spread(n)) % groups.len() as u64) as usize]
}

fn time(mut decide: impl FnMut(u64)) -> Sample {
    let mut nanoseconds = Vec::new();
    for n in 0..DECISIONS {
        let started = Instant::now();
        decide(n);
        nanoseconds.push(started.elapsed().as_nanos() as u64);
    }
    Sample::new(nanoseconds)
}

fn caller(n: u64) -> Uidp {
    Uidp::root_from([0x0c; 20]).child_from(spread(n))
}

fn principal(n: u64) -> Principal {
    Principal::Token(Arc::new(TokenFacts {
        subject: caller(n),
        issuer: String::new(),
        audiences: Vec::new(),
        issued_at: 0,
        expires_at: i64::MAX,
        email: None,
        narrowing: Narrowing::default(),
        session: None,
        provider: None,
        actor: None,
    }))
}

async fn fill(db: &Db, groups: &[Uidp], role: &str, held: &CapabilitySet) -> Outcome<()> {
    let (groups, role, held) = (Arc::new(groups.to_vec()), role.to_owned(), *held);
    db.write::<_, StoreError>(move |tx| {
        let (groups, role) = (groups.clone(), role.clone());
        Box::pin(async move {
            let sql = "INSERT INTO roles (uid, parent, org, name, description, capabilities, created_at, updated_at)
                       VALUES ($1, '', '', 'viewer', '', $2, 0, 0)";
            tx.execute(sql, &[Value::from(&role), Value::Bytes(&held.to_bytes())]).await?;
            for n in 0..CALLERS {
                let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified, company,
                           relationship_type, relationship, issuer, subject, deactivated, created_at, updated_at)
                           VALUES ($1, '', '', 'caller', '', '', '', '', 0, $2, '', '', FALSE, 0, 0)";
                tx.execute(sql, &[Value::from(caller(n).as_str()), Value::Bytes(&[])]).await?;
            }
            for (n, group) in groups.iter().enumerate() {
                let n = n as u64;
                let sql = "INSERT INTO groups (uid, parent, org, name, description, verified, kind, status, resource_limits, created_at, updated_at)
                           VALUES ($1, $2, $3, $1, '', FALSE, 0, 1, '{}', 0, 0)";
                tx.execute(sql, &[Value::from(group.as_str()), Value::from(group.parent_str()), Value::from(group.root_str())]).await?;
                let sql = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at) VALUES ($1, $2, $3, $4, $5, 0)";
                let (binding, identity) = (group.child_from(spread(n)), caller(n % CALLERS));
                let params = [
                    Value::from(binding.as_str()),
                    Value::from(group.as_str()),
                    Value::from(group.root_str()),
                    Value::from(identity.as_str()),
                    Value::from(&role),
                ];
                tx.execute(sql, &params).await?;
            }
            Ok(())
        })
    })
    .await?;
    Ok(())
}
