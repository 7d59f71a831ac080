//! Findings one by one, image after image.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use bowline_authn::crypto::sha256;
use bowline_contract::bowline::vulnerabilities::v1 as own;
use bowline_contract::chainguard::capabilities::Capability;
use bowline_core::{Error, Result, UidRange, hex};
use bowline_pipeline::{Authorized, Cursor, Direction, Page, PageRequest};
use bowline_registry::findings::open::{self, ReportedImage, ReportedImages};
use bowline_registry::findings::{Finding, rank, require_scope};
use bowline_resources::list::timestamp;
use bowline_store::ReadTx;
use prost::Message as _;
use serde_json::json;

use super::applicable::{self, Assessment, Reader};

/// Findings whose advisories one page looks for.
const MAX_EXAMINED: usize = 2000;
/// Findings whose advisories are looked for at once.
const AT_ONCE: usize = 200;

/// Pages are in the order of images alone.
const ORDERS: &[&[&str]] = &[&["repo_uid"]];

type Call = Authorized<own::ListFindingsRequest>;

pub(super) async fn list(tx: &mut ReadTx, call: &Call) -> Result<own::ListFindingsResponse> {
    let scope = call.require_scope()?;
    require_scope(tx, scope).await?;
    let page = page(call)?;
    let start = Position::of(page.cursor.as_ref())?;
    let mut images = open::images(tx, &UidRange::of(scope), (&start.repo, &start.digest)).await?;
    let filter = FindingFilter::of(call.request());
    images.images.retain(|image| filter.admits_image(image));
    let read = open::of_images(tx, &images.images).await?;
    let next_image = position_after(&images, read.len());
    let mut rows: Vec<FindingRow<'_>> = Vec::new();
    for (image, findings) in images.images.iter().zip(read) {
        rows.extend(rows_of(image, findings).into_iter().filter(|row| filter.admits(row)));
    }
    if let Some(key) = &start.key {
        rows.retain(|row| row.key > *key || (&row.image.repo, &row.image.digest) != (&start.repo, &start.digest));
    }
    let shown = with_statements(tx, call, &rows, page.size).await?;
    let next = shown.last.map(|last| Position::after(&rows[last])).or(next_image);
    let next = next.map(|next| page.next_token(call, None, next.text()));
    let findings = with_names(tx, shown.rows).await?;
    Ok(own::ListFindingsResponse { findings, next_page_token: next.unwrap_or_default() })
}

fn page(call: &Call) -> Result<Page> {
    let request = call.request();
    let filter = own::ListFindingsRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    Page::validate(call, &request, ORDERS, (0, Direction::Ascending))
}

/// The order of the findings of an image: the most severe first. What else tells them apart is hashed, so that tokens stay
/// short.
type FindingKey = (Reverse<i32>, String, String);

/// Where a page begins: at an image, or after one of its findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Position {
    repo: String,
    digest: String,
    key: Option<FindingKey>,
}

impl Position {
    fn of(cursor: Option<&Cursor>) -> Result<Position> {
        let Some(cursor) = cursor else { return Ok(Position::default()) };
        let damaged = || Error::internal("a page token of findings has no image");
        let parts: Vec<String> = serde_json::from_str(&cursor.uid).map_err(Error::internal)?;
        let [repo, digest, rest @ ..] = parts.as_slice() else { return Err(damaged()) };
        let key = match rest {
            [] => None,
            [rank, id, hash] => Some((Reverse(rank.parse().map_err(Error::internal)?), id.clone(), hash.clone())),
            _ => return Err(damaged()),
        };
        Ok(Position { repo: repo.clone(), digest: digest.clone(), key })
    }

    fn text(&self) -> String {
        let Position { repo, digest, key } = self;
        match key {
            None => json!([repo, digest]).to_string(),
            Some((Reverse(rank), id, hash)) => json!([repo, digest, rank.to_string(), id, hash]).to_string(),
        }
    }

    fn after(row: &FindingRow<'_>) -> Position {
        let ReportedImage { repo, digest, .. } = row.image;
        Position { repo: repo.clone(), digest: digest.clone(), key: Some(row.key.clone()) }
    }

    /// The digests of a repository have no text between one and this.
    fn after_image(repo: &str, digest: &str) -> Position {
        Position { repo: repo.into(), digest: format!("{digest}!"), key: None }
    }
}

/// Where the images continue of which so many were read.
fn position_after(images: &ReportedImages, read: usize) -> Option<Position> {
    if read < images.images.len() {
        let last = images.images.get(read.checked_sub(1)?)?;
        return Some(Position::after_image(&last.repo, &last.digest));
    }
    images.last.as_ref().map(|(repo, digest)| Position::after_image(repo, digest))
}

/// The filters that need no advisories.
struct FindingFilter {
    severities: Vec<i32>,
    fix_states: Vec<i32>,
    /// The query in lower case.
    text: String,
}

impl FindingFilter {
    fn of(request: &own::ListFindingsRequest) -> FindingFilter {
        let text = request.query.trim().to_lowercase();
        FindingFilter { severities: request.severities.clone(), fix_states: request.fix_states.clone(), text }
    }

    fn admits_image(&self, image: &ReportedImage) -> bool {
        self.severities.is_empty() || image.severities.iter().any(|severity| self.severities.contains(severity))
    }

    fn admits(&self, row: &FindingRow<'_>) -> bool {
        let is_among = |values: &[i32], value: i32| values.is_empty() || values.contains(&value);
        let has_text = |text: &String| text.to_lowercase().contains(&self.text);
        let finding = &row.finding;
        is_among(&self.severities, row.severity)
            && is_among(&self.fix_states, finding.fix_state)
            && (has_text(&finding.id) || has_text(&finding.package) || finding.aliases.iter().any(has_text))
    }
}

/// A finding of an image.
struct FindingRow<'a> {
    image: &'a ReportedImage,
    finding: Finding,
    /// The highest severity that the image has the vulnerability with, as it is counted.
    severity: i32,
    key: FindingKey,
}

/// The findings of an image, each once, in their order.
fn rows_of(image: &ReportedImage, findings: Vec<Finding>) -> Vec<FindingRow<'_>> {
    let mut highest: BTreeMap<String, i32> = BTreeMap::new();
    for finding in &findings {
        let known = highest.entry(finding.id.clone()).or_insert(finding.severity);
        if rank(finding.severity) > rank(*known) {
            *known = finding.severity;
        }
    }
    let row = |finding: Finding| {
        let severity = highest.get(&finding.id).copied().unwrap_or(finding.severity);
        let parts = [&finding.package, &finding.version, &finding.purl, &finding.location];
        let hash = sha256(json!(parts).to_string().as_bytes());
        let key = (Reverse(rank(severity)), finding.id.clone(), hex(&hash[..8]));
        FindingRow { image, finding, severity, key }
    };
    let mut rows: Vec<FindingRow<'_>> = findings.into_iter().map(row).collect();
    rows.sort_by(|one, other| one.key.cmp(&other.key));
    rows.dedup_by(|one, other| one.key == other.key);
    rows
}

/// The rows of a page, and the last examined one if others follow it.
struct Shown<'a> {
    rows: Vec<(&'a FindingRow<'a>, Assessment)>,
    last: Option<usize>,
}

async fn with_statements<'a>(
    tx: &mut ReadTx,
    call: &Call,
    rows: &'a [FindingRow<'a>],
    size: usize,
) -> Result<Shown<'a>> {
    let statuses = &call.request().statuses;
    let mut shown = Shown { rows: Vec::new(), last: None };
    let may_list = |group: &str| call.holds(group, Capability::CapAdvisoriesList);
    for (part, chunk) in rows.chunks(AT_ONCE).enumerate() {
        let at = part * AT_ONCE;
        if at >= MAX_EXAMINED {
            shown.last = at.checked_sub(1);
            return Ok(shown);
        }
        let about: Vec<(&str, &Finding)> = chunk.iter().map(|row| (row.image.repo.as_str(), &row.finding)).collect();
        let advisories = applicable::load(tx, &Reader::Caller(&may_list), &about).await?;
        for (within, row) in chunk.iter().enumerate() {
            let assessed = advisories.about(&row.image.repo, &row.finding);
            if !statuses.is_empty() && !statuses.contains(&(assessed.status as i32)) {
                continue;
            }
            shown.rows.push((row, assessed));
            if shown.rows.len() == size {
                shown.last = Some(at + within).filter(|last| last + 1 < rows.len());
                return Ok(shown);
            }
        }
    }
    Ok(shown)
}

/// The rows as they are shown, with the names of repositories and tags.
async fn with_names(tx: &mut ReadTx, rows: Vec<(&FindingRow<'_>, Assessment)>) -> Result<Vec<own::ImageFinding>> {
    let mut known = BTreeSet::new();
    let images = rows.iter().map(|(row, _)| row.image);
    let images: Vec<&ReportedImage> = images.filter(|image| known.insert((&image.repo, &image.digest))).collect();
    let names = open::repo_names(tx, &images).await?;
    let tags = open::tags(tx, &images).await?;
    let finding = |(row, assessed): (&FindingRow<'_>, Assessment)| {
        let ReportedImage { repo, digest, reported_at, .. } = row.image;
        let finding = &row.finding;
        own::ImageFinding {
            repo_uid: repo.clone(),
            repo_name: names.get(repo).cloned().unwrap_or_default(),
            digest: digest.clone(),
            tags: tags.get(&(repo.clone(), digest.clone())).cloned().unwrap_or_default(),
            vulnerability: finding.id.clone(),
            aliases: finding.aliases.clone(),
            severity: row.severity,
            package: finding.package.clone(),
            version: finding.version.clone(),
            package_type: finding.package_type.clone(),
            purl: finding.purl.clone(),
            location: finding.location.clone(),
            fix_state: finding.fix_state,
            fixed_versions: finding.fixed_versions.clone(),
            report_time: timestamp(*reported_at),
            status: assessed.status as i32,
            advisory: assessed.advisory,
            more_advisories: i32::try_from(assessed.more).unwrap_or(i32::MAX),
        }
    };
    Ok(rows.into_iter().map(finding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(id: &str, package: &str, severity: i32) -> Finding {
        Finding { id: id.into(), package: package.into(), severity, ..Finding::default() }
    }

    #[test]
    fn positions_come_back_from_their_text() {
        let key = Some((Reverse(4), "CVE-1".to_owned(), "00ff".to_owned()));
        for position in [Position { repo: "o/r".into(), digest: "d".into(), key }, Position::after_image("o/r", "d")] {
            let cursor = Cursor { key: None, uid: position.text(), skipped: 0 };
            assert_eq!(Position::of(Some(&cursor)).unwrap(), position);
        }
    }

    #[test]
    fn the_most_severe_come_first_and_a_vulnerability_has_its_highest_severity() {
        let image = ReportedImage::default();
        let (low, high) = (1, 3);
        let findings = vec![
            finding("CVE-1", "a", low),
            finding("CVE-2", "a", high),
            finding("CVE-2", "b", low),
            finding("CVE-1", "a", low),
        ];
        let rows = rows_of(&image, findings);
        let shown: Vec<(&str, i32)> = rows.iter().map(|row| (row.finding.id.as_str(), row.severity)).collect();
        assert_eq!(shown, [("CVE-2", high), ("CVE-2", high), ("CVE-1", low)]);
    }
}
