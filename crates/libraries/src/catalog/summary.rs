//! What lists show of an artifact, made from its versions whenever these change.

use std::collections::BTreeMap;

use bowline_contract::bowline::libraries::v1::ImportOutcome;
use bowline_contract::v1::libraries::SourceType;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Authorized, Change, ResourceSnapshot};
use bowline_resources::kinds::ARTIFACT;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};

use super::{Given, audit_name};
use crate::artifacts::artifact_v1;
use crate::ecosystems::Language;
use crate::search::{self, ArtifactRow};

/// Brings the artifacts of changed versions up to date, and says how they changed.
pub(super) async fn refresh<T>(
    tx: &mut WriteTx,
    call: &Authorized<T>,
    news: &[(&Given<'_>, ImportOutcome)],
) -> Result<Vec<Change>> {
    let touched: BTreeMap<&str, &Given<'_>> = news.iter().map(|(given, _)| (given.artifact.as_str(), *given)).collect();
    let ids: Vec<&str> = touched.keys().copied().collect();
    let known = artifacts(tx, &ids).await?;
    let facts = facts(tx, &ids).await?;
    let mut changes = Vec::new();
    let mut counted = Counted::default();
    for (id, given) in touched {
        let facts = facts.get(id).ok_or_else(|| Error::internal(format!("{id} has no versions after an import")))?;
        let before = known.get(id);
        let after = row(id, given, facts, before, call.now());
        write(tx, before, &after).await?;
        counted.add(before, -1);
        counted.add(Some(&after), 1);
        let snapshot = |row: &ArtifactRow| ResourceSnapshot::of(&artifact_v1(row, false, true));
        let uid = audit_name(call, id)?.as_str().to_owned();
        changes.push(Change { kind: ARTIFACT, uid, before: before.map(snapshot), after: Some(snapshot(&after)) });
    }
    for (given, _) in news.iter().filter(|(given, _)| given.language == Language::Python) {
        if let Some(cuda) = cuda_version(&given.version.version) {
            let sql = "INSERT INTO library_cuda (artifact, cuda_version) VALUES ($1, $2) ON CONFLICT DO NOTHING";
            tx.execute(sql, &[Value::from(&given.artifact), Value::from(cuda)]).await?;
        }
    }
    counted.save(tx).await?;
    Ok(changes)
}

/// What the versions of an artifact come to.
#[derive(Default)]
struct Facts {
    all: i64,
    built: i64,
    upstream: i64,
    remediated: i64,
    /// Version, description and licence of the highest.
    latest: [String; 3],
    latest_built: String,
}

async fn artifacts(tx: &mut ReadTx, ids: &[&str]) -> Result<BTreeMap<String, ArtifactRow>> {
    let mut sql = Sql::new(format!("SELECT {} FROM library_artifacts a", search::COLUMNS));
    sql.bind_list(" WHERE a.id IN ", ids.iter().map(|id| Value::from(*id)));
    let rows = tx.query(&sql.text, &sql.params, ArtifactRow::read).await?;
    Ok(rows.into_iter().map(|row| (row.id.clone(), row)).collect())
}

async fn facts(tx: &mut ReadTx, ids: &[&str]) -> Result<BTreeMap<String, Facts>> {
    let (upstream, remediated) = (SourceType::UpstreamRegistry as i64, SourceType::InternalRemediated as i64);
    let mut sql = Sql::new("SELECT artifact, count(DISTINCT version)");
    sql.bind(", count(DISTINCT CASE WHEN source <> ", upstream).push(" THEN version END)");
    sql.bind(", count(DISTINCT CASE WHEN source = ", upstream).push(" THEN version END)");
    sql.bind(", count(DISTINCT CASE WHEN source = ", remediated).push(" THEN version END)");
    sql.bind_list(" FROM library_versions WHERE artifact IN ", ids.iter().map(|id| Value::from(*id)));
    sql.push(" GROUP BY artifact");
    let counts = |row: &Row<'_>| {
        let (all, built, upstream, remediated) = (row.int(1)?, row.int(2)?, row.int(3)?, row.int(4)?);
        Ok::<_, Error>((row.text(0)?, Facts { all, built, upstream, remediated, ..Facts::default() }))
    };
    let mut facts: BTreeMap<String, Facts> = tx.query(&sql.text, &sql.params, counts).await?.into_iter().collect();
    for (artifact, [version, description, license]) in highest(tx, ids, false).await? {
        if let Some(facts) = facts.get_mut(&artifact) {
            facts.latest = [version, description, license];
        }
    }
    for (artifact, [version, ..]) in highest(tx, ids, true).await? {
        if let Some(facts) = facts.get_mut(&artifact) {
            facts.latest_built = version;
        }
    }
    Ok(facts)
}

/// The highest version of each artifact: releases before pre-releases, as people mean it.
async fn highest(tx: &mut ReadTx, ids: &[&str], only_built: bool) -> Result<Vec<(String, [String; 3])>> {
    let mut sql = Sql::new(
        "SELECT artifact, version, description, license FROM (
           SELECT artifact, version, description, license,
                  row_number() OVER (PARTITION BY artifact ORDER BY is_prerelease, sort_key DESC, version DESC, source) AS place
           FROM library_versions",
    );
    sql.bind_list(" WHERE artifact IN ", ids.iter().map(|id| Value::from(*id)));
    if only_built {
        sql.bind(" AND source <> ", SourceType::UpstreamRegistry as i64);
    }
    sql.push(") ranked WHERE place = 1");
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, [row.text(1)?, row.text(2)?, row.text(3)?]));
    tx.query(&sql.text, &sql.params, read).await
}

fn row(id: &str, given: &Given<'_>, facts: &Facts, before: Option<&ArtifactRow>, now: Micros) -> ArtifactRow {
    let [latest, description, license] = facts.latest.clone();
    ArtifactRow {
        id: id.into(),
        language: given.language,
        name: given.name.clone(),
        folded: given.name.to_lowercase(),
        description,
        license,
        latest,
        latest_built: facts.latest_built.clone(),
        version_count: facts.all,
        built_count: facts.built,
        upstream_count: facts.upstream,
        is_remediated: facts.remediated > 0,
        created_at: before.map_or(now, |before| before.created_at),
        updated_at: now,
        repository: String::new(),
    }
}

async fn write(tx: &mut WriteTx, before: Option<&ArtifactRow>, after: &ArtifactRow) -> Result<()> {
    let sql = "INSERT INTO library_artifacts (id, ecosystem, name, folded, description, license, latest, latest_built,
                 version_count, built_count, upstream_count, is_built, is_remediated, created_at, updated_at)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
               ON CONFLICT (id) DO UPDATE SET description = excluded.description, license = excluded.license,
                 latest = excluded.latest, latest_built = excluded.latest_built, version_count = excluded.version_count,
                 built_count = excluded.built_count, upstream_count = excluded.upstream_count, is_built = excluded.is_built,
                 is_remediated = excluded.is_remediated, updated_at = excluded.updated_at";
    let is_built = after.built_count > 0;
    let params = [
        Value::from(&after.id),
        Value::Int(after.language.number()),
        Value::from(&after.name),
        Value::from(&after.folded),
        Value::from(&after.description),
        Value::from(&after.license),
        Value::from(&after.latest),
        Value::from(&after.latest_built),
        Value::Int(after.version_count),
        Value::Int(after.built_count),
        Value::Int(after.upstream_count),
        Value::Bool(is_built),
        Value::Bool(after.is_remediated),
        Value::Int(after.created_at),
        Value::Int(after.updated_at),
    ];
    tx.execute(sql, &params).await?;
    match before {
        None => write_trigrams(tx, after).await,
        Some(before) if (before.built_count > 0) != is_built => {
            let sql = "UPDATE library_trigrams SET is_built = $2 WHERE artifact = $1";
            tx.execute(sql, &[Value::from(&after.id), Value::Bool(is_built)]).await?;
            Ok(())
        }
        Some(_) => Ok(()),
    }
}

async fn write_trigrams(tx: &mut WriteTx, row: &ArtifactRow) -> Result<()> {
    let trigrams = search::trigrams(&row.folded);
    if trigrams.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new("INSERT INTO library_trigrams (trigram, ecosystem, folded, artifact, is_built) VALUES ");
    for (index, trigram) in trigrams.iter().enumerate() {
        sql.bind(if index == 0 { "(" } else { ", (" }, trigram).bind(", ", row.language.number());
        sql.bind(", ", &row.folded).bind(", ", &row.id).bind(", ", row.built_count > 0).push(")");
    }
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}

/// The CUDA version that a build is for: `cu128` of `2.3.0+cu128`.
fn cuda_version(version: &str) -> Option<&str> {
    let (_, local) = version.split_once('+')?;
    local.split(['.', '-', '_']).find(|segment| {
        let digits = segment.strip_prefix("cu");
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

/// How the numbers of artifacts change.
#[derive(Default)]
struct Counted(BTreeMap<Language, [i64; 4]>);

impl Counted {
    fn add(&mut self, row: Option<&ArtifactRow>, sign: i64) {
        let Some(row) = row else { return };
        let facts = [true, row.built_count > 0, row.is_remediated, row.upstream_count > 0];
        let numbers = self.0.entry(row.language).or_default();
        for (number, _) in numbers.iter_mut().zip(facts).filter(|(_, fact)| *fact) {
            *number += sign;
        }
    }

    async fn save(&self, tx: &mut WriteTx) -> Result<()> {
        let sql = "INSERT INTO library_artifact_counts (ecosystem, total, built, remediated, upstream) VALUES ($1, $2, $3, $4, $5)
                   ON CONFLICT (ecosystem) DO UPDATE SET total = library_artifact_counts.total + excluded.total,
                     built = library_artifact_counts.built + excluded.built,
                     remediated = library_artifact_counts.remediated + excluded.remediated,
                     upstream = library_artifact_counts.upstream + excluded.upstream";
        for (language, numbers) in self.0.iter().filter(|(_, numbers)| **numbers != [0; 4]) {
            let numbers = numbers.map(Value::Int);
            let params = [Value::Int(language.number()), numbers[0], numbers[1], numbers[2], numbers[3]];
            tx.execute(sql, &params).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::cuda_version;

    #[test]
    fn builds_for_cuda_say_so_in_their_local_version() {
        assert_eq!(cuda_version("2.3.0+cu128"), Some("cu128"));
        assert_eq!(cuda_version("2.3.0+pt2.cu126"), Some("cu126"));
        for other in ["2.3.0", "2.3.0+cpu", "2.3.0+cu", "2.3.0+cuda", "cu128"] {
            assert_eq!(cuda_version(other), None, "{other}");
        }
    }
}
