//! The method that lists matches.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest};
use bowline_registry::components::{InRepo, repo_names, tags, uncompared_components, unindexed_sboms, within};
use bowline_store::{ReadTx, Row};
use prost::Message as _;

use super::advisories::{Assessed, AssessedFinding, assess, finding, names};
use super::conditions::Conditions;
use super::image_findings::FindingKey;
use super::positions::Position;
use super::search::{Affected, Search};
use crate::posture::applicable::Reader;

const ORDERS: &[&[&str]] = &[&["repo"]];

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListMatchesRequest>,
) -> Result<own::ListMatchesResponse> {
    let request = call.request();
    let filter = own::ListMatchesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let conditions = Conditions::of(tx, request).await?;
    let from = Position::of(page.cursor.as_ref())?;
    let ranges = within(call.visible(), &request.scope);
    let (affected, next) = Search::new(&conditions, &ranges, from, page.size).run(tx).await?;
    let next_page_token = next.map(|next| page.next_token(call, None, next.text())).unwrap_or_default();
    let matches = shown(tx, call, affected).await?;
    let unindexed_sboms = unindexed_sboms(tx, &ranges).await?;
    let uncompared_components = uncompared_components(tx, &ranges).await?;
    Ok(own::ListMatchesResponse { matches, next_page_token, unindexed_sboms, uncompared_components })
}

/// The matches of a page as they are shown.
async fn shown(
    tx: &mut ReadTx,
    call: &Authorized<own::ListMatchesRequest>,
    affected: Vec<Affected>,
) -> Result<Vec<own::VulnerableComponent>> {
    let may_list = |group: &str| call.holds(group, Capability::CapAdvisoriesList);
    let keys: Vec<FindingKey> = affected.iter().map(Affected::key).collect();
    let names = names(tx, &keys.iter().collect::<Vec<_>>()).await?;
    let findings = affected.iter().zip(&keys).map(|(one, key)| AssessedFinding {
        repo: &one.position.repo,
        version: &one.component.listed.version,
        finding: finding(key, names.get(key), &one.component.name, &one.component.purl),
    });
    let findings: Vec<AssessedFinding<'_>> = findings.collect();
    let assessed = assess(tx, &Reader::Caller(&may_list), &findings).await?;
    let images: BTreeSet<InRepo> = affected.iter().map(|one| one.position.image()).collect();
    let tags = tags(tx, &images).await?;
    let repos: BTreeSet<&str> = affected.iter().map(|one| one.position.repo.as_str()).collect();
    let repos = repo_names(tx, &repos).await?;
    let sources = sources(tx).await?;
    let show = |(Affected { position, component, stored }, assessed): (Affected, Assessed)| own::VulnerableComponent {
        repo_name: repos.get(&position.repo).cloned().unwrap_or_default(),
        tags: tags.get(&position.image()).cloned().unwrap_or_default(),
        repo_uid: position.repo,
        digest: position.image,
        component: component.name,
        version: component.listed.version.version,
        purl: component.purl,
        sbom_digest: component.sbom_digest,
        vulnerability: stored.vulnerability,
        aliases: stored.aliases.split_whitespace().map(String::from).collect(),
        record_id: stored.record_id,
        source: sources.get(&stored.source).cloned().unwrap_or_default(),
        severity: stored.severity,
        fixed_version: stored.fixed_version,
        status: assessed.status as i32,
        advisory: assessed.advisory,
        closed_by_advisory: assessed.is_closed,
    };
    Ok(affected.into_iter().zip(assessed).map(show).collect())
}

impl Affected {
    fn key(&self) -> FindingKey {
        FindingKey { vulnerability: self.stored.vulnerability.clone(), version: self.component.listed.version.clone() }
    }
}

/// The names of all sources, by number: there are few.
async fn sources(tx: &mut ReadTx) -> Result<BTreeMap<i64, String>> {
    let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?));
    let rows = tx.query("SELECT number, name FROM record_sources", &[], read).await?;
    Ok(rows.into_iter().collect())
}
