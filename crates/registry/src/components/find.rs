//! Searches for images. One condition is followed along an index, within the ranges that the caller may see, and the others
//! are checked: so nothing hidden costs time.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Value};
use bowline_versions::order_key;
use prost::Message as _;

use super::extract::license_keys;
use super::links::{self, InRepo};
use super::versions::PackageCondition;
use super::{findings, unindexed, within};

/// Rows of an index that one page examines, and those that are examined at once: most pages are full after the first.
const EXAMINED: usize = 2000;
const AT_ONCE: usize = 250;
/// Comes after every digest.
const AFTER_IMAGES: &str = "~";
const ORDERS: &[&[&str]] = &[&["repo"]];

type Call = Authorized<own::FindImagesRequest>;

/// What is searched, validated.
struct Conditions {
    package: Option<String>,
    version_key: Option<Vec<u8>>,
    below: Option<Vec<u8>>,
    license: Option<String>,
    cve: Option<String>,
    digest: Option<String>,
}

/// Place of a match in the order of all matches.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Position {
    repo: String,
    sbom: Vec<u8>,
    number: i64,
    image: String,
}

/// A row of an index: a component of an SBOM, or an image alone.
struct Candidate {
    position: Position,
    /// Digest of the blob of the SBOM; empty for an image alone.
    sbom_digest: String,
    component: Option<StoredComponent>,
}

#[derive(Clone, Default)]
struct StoredComponent {
    name: String,
    version: String,
    version_key: Vec<u8>,
    purl: String,
    license: String,
}

/// The candidates among the examined rows, and the last examined one if there are more.
#[derive(Default)]
struct Candidates {
    rows: Vec<Candidate>,
    last: Option<Position>,
}

pub(super) async fn find(tx: &mut ReadTx, call: &Call) -> Result<own::FindImagesResponse> {
    let request = call.request();
    let filter = own::FindImagesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, ORDERS, (0, Direction::Ascending))?;
    let conditions = Conditions::of(request)?;
    let from = Position::of(&page)?;
    let ranges = within(call.visible(), &request.scope);
    let (mut matches, mut last, mut left) = (Vec::new(), from, EXAMINED);
    loop {
        let from = last.take();
        let found = conditions.candidates(tx, &ranges, from.as_ref(), left.min(AT_ONCE)).await?;
        let found_matches = conditions.matches(tx, found.rows).await?.into_iter();
        matches.extend(found_matches.filter(|(position, _)| from.as_ref().is_none_or(|from| position > from)));
        (last, left) = (found.last, left.saturating_sub(AT_ONCE));
        if matches.len() > page.size || last.is_none() || left == 0 {
            break;
        }
    }
    let next = if matches.len() > page.size {
        matches.truncate(page.size);
        matches.last().map(|(position, _)| position.clone())
    } else {
        last
    };
    let next_page_token = next.map(|next| next.token(call, &page)).unwrap_or_default();
    let matches = shown(tx, matches).await?;
    let unindexed_sboms = unindexed::count(tx, &ranges).await?;
    Ok(own::FindImagesResponse { matches, next_page_token, unindexed_sboms })
}

impl Position {
    fn of(page: &Page) -> Result<Option<Position>> {
        let Some(cursor) = &page.cursor else { return Ok(None) };
        let Some(SortKey::Text(repo)) = cursor.key.clone() else { return Ok(None) };
        let (sbom, number, image) = serde_json::from_str(&cursor.uid).map_err(Error::internal)?;
        Ok(Some(Position { repo, sbom, number, image }))
    }

    fn token(self, call: &Call, page: &Page) -> String {
        let rest = serde_json::json!([self.sbom, self.number, self.image]).to_string();
        page.next_token(call, Some(SortKey::Text(self.repo)), rest)
    }
}

impl Conditions {
    fn of(request: &own::FindImagesRequest) -> Result<Conditions> {
        let given = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let mut conditions = Conditions {
            package: None,
            version_key: None,
            below: None,
            license: given(&request.license).map(|license| license.to_lowercase()),
            cve: given(&request.cve),
            digest: given(&request.digest),
        };
        let below = given(&request.below);
        if let Some(text) = given(&request.package) {
            let PackageCondition { package, version_key, scheme } = PackageCondition::parse(&text)?;
            if below.is_some() && version_key.is_some() {
                return Err(Error::invalid_field("below", "means nothing where the package has a version"));
            }
            conditions.package = Some(package);
            conditions.version_key = version_key;
            conditions.below = below.as_ref().map(|version| order_key(scheme, version));
        } else if below.is_some() {
            return Err(Error::invalid_field("below", "means nothing where no package is named"));
        }
        let Conditions { package, license, cve, digest, .. } = &conditions;
        if [package, license, cve, digest].iter().all(|condition| condition.is_none()) {
            return Err(Error::invalid_field("package", "a package, a license, a cve or a digest is required"));
        }
        Ok(conditions)
    }

    /// Follows the index of the most selective condition.
    async fn candidates(
        &self,
        tx: &mut ReadTx,
        ranges: &[UidRange],
        from: Option<&Position>,
        most: usize,
    ) -> Result<Candidates> {
        let first = Position::default();
        let from = from.unwrap_or(&first);
        let (mut found, mut left) = (Candidates::default(), most);
        let has_components = self.package.is_some() || self.license.is_some();
        for range in ranges.iter().filter(|range| range.upper > from.repo) {
            let rows = self.examine(tx, range, from, left).await?;
            left -= rows.len();
            let last = rows.last().map(|(candidate, _)| candidate.position.clone());
            found.rows.extend(rows.into_iter().filter(|(_, is_match)| *is_match).map(|(candidate, _)| candidate));
            if left == 0 {
                // The images of a component are not in the index, and all of them were examined.
                let after = |last| if has_components { Position { image: AFTER_IMAGES.into(), ..last } } else { last };
                found.last = last.map(after);
                break;
            }
        }
        Ok(found)
    }

    /// Rows of the index from a place on, each with whether it matches as far as it says.
    async fn examine(
        &self,
        tx: &mut ReadTx,
        range: &UidRange,
        from: &Position,
        most: usize,
    ) -> Result<Vec<(Candidate, bool)>> {
        if self.package.is_some() || self.license.is_some() {
            return self.examine_components(tx, range, from, most).await;
        }
        let alone = |(repo, image): InRepo| Candidate {
            position: Position { repo, image, ..Position::default() },
            sbom_digest: String::new(),
            component: None,
        };
        if let Some(cve) = &self.cve {
            let from = (from.repo.clone(), from.image.clone());
            let rows = findings::examine(tx, range, (&from, most), cve).await?;
            return Ok(rows.into_iter().map(|(image, has)| (alone(image), has)).collect());
        }
        let digest = self.digest.as_deref().unwrap_or_default();
        let sql =
            "SELECT repo FROM repo_manifests WHERE digest = $1 AND repo >= $2 AND repo < $3 ORDER BY repo LIMIT $4";
        let first = from.repo.as_str().max(range.lower.as_str());
        let most = Value::Int(most as i64);
        let params = [Value::from(digest), Value::from(first), Value::from(&range.upper), most];
        let rows = tx.query(sql, &params, |row| row.text(0).map_err(Error::from)).await?;
        Ok(rows.into_iter().map(|repo| (alone((repo, digest.to_owned())), true)).collect())
    }

    async fn examine_components(
        &self,
        tx: &mut ReadTx,
        range: &UidRange,
        from: &Position,
        most: usize,
    ) -> Result<Vec<(Candidate, bool)>> {
        let (index, condition, key) = match (&self.package, &self.license) {
            (Some(package), _) => (
                "component_packages i",
                "c.number = i.number AND (i.repo, i.sbom, i.number) >= ($2, $4, $5) AND i.package",
                package.as_str(),
            ),
            (None, license) => (
                "component_licenses i",
                "(i.repo, i.sbom) >= ($2, $4) AND (i.repo, i.sbom, c.number) >= ($2, $4, $5) AND i.license",
                license.as_deref().unwrap_or_default(),
            ),
        };
        let sql = format!(
            "SELECT i.repo, i.sbom, c.number, s.digest, c.name, c.version, c.version_key, c.purl, c.license
             FROM {index} CROSS JOIN components c CROSS JOIN repo_sboms s
             WHERE c.sbom = i.sbom AND s.repo = i.repo AND s.sbom = i.sbom AND {condition} = $1
               AND i.repo < $3
             ORDER BY i.repo, i.sbom, c.number LIMIT $6"
        );
        let begins_here = from.repo >= range.lower;
        let (repo, sbom, number) =
            if begins_here { (&from.repo, &from.sbom[..], from.number) } else { (&range.lower, &[][..], 0) };
        let params = [
            Value::from(key),
            Value::from(repo),
            Value::from(&range.upper),
            Value::from(sbom),
            Value::Int(number),
            Value::Int(most as i64),
        ];
        let rows = tx.query(&sql, &params, candidate).await?;
        Ok(rows.into_iter().map(|row| self.checked(row)).collect())
    }

    fn checked(&self, row: Candidate) -> (Candidate, bool) {
        let is_match = row.component.as_ref().is_none_or(|component| {
            let has_version = self.version_key.as_ref().is_none_or(|key| *key == component.version_key);
            let is_below = self.below.as_ref().is_none_or(|key| component.version_key < *key);
            let has_license =
                self.license.as_ref().is_none_or(|license| license_keys(&component.license).contains(license));
            has_version && is_below && has_license
        });
        (row, is_match)
    }

    /// The images of the candidates that meet the other conditions, in order.
    async fn matches(&self, tx: &mut ReadTx, rows: Vec<Candidate>) -> Result<Vec<(Position, Candidate)>> {
        let sboms = rows.iter().filter(|row| row.component.is_some());
        let sboms: BTreeSet<InRepo> = sboms.map(|row| (row.position.repo.clone(), row.sbom_digest.clone())).collect();
        let images = links::images(tx, &sboms).await?;
        let mut matches = Vec::new();
        for row in rows {
            let Some(component) = row.component else {
                matches.push((row.position.clone(), Candidate { component: None, ..row }));
                continue;
            };
            let key = (row.position.repo.clone(), row.sbom_digest.clone());
            for image in images.get(&key).into_iter().flatten() {
                let position = Position { image: image.clone(), ..row.position.clone() };
                let component = Some(component.clone());
                let row = Candidate { position: position.clone(), sbom_digest: key.1.clone(), component };
                matches.push((position, row));
            }
        }
        if let Some(digest) = &self.digest {
            matches.retain(|(position, _)| position.image == *digest);
        }
        if let Some(cve) = &self.cve {
            let images: BTreeSet<InRepo> = matches.iter().map(|(position, _)| position.image()).collect();
            let with = findings::with(tx, &images, cve).await?;
            matches.retain(|(position, _)| with.contains(&position.image()));
        }
        Ok(matches)
    }
}

impl Position {
    fn image(&self) -> InRepo {
        (self.repo.clone(), self.image.clone())
    }
}

fn candidate(row: &Row<'_>) -> Result<Candidate> {
    let position = Position { repo: row.text(0)?, sbom: row.bytes(1)?, number: row.int(2)?, image: String::new() };
    let component = StoredComponent {
        name: row.text(4)?,
        version: row.text(5)?,
        version_key: row.bytes(6)?,
        purl: row.text(7)?,
        license: row.text(8)?,
    };
    Ok(Candidate { position, sbom_digest: row.text(3)?, component: Some(component) })
}

/// The matches of a page as they are shown.
async fn shown(tx: &mut ReadTx, matches: Vec<(Position, Candidate)>) -> Result<Vec<own::ImageMatch>> {
    let images: BTreeSet<InRepo> = matches.iter().map(|(position, _)| position.image()).collect();
    let tags: BTreeMap<InRepo, Vec<String>> = links::tags(tx, &images).await?;
    let repos: BTreeSet<&str> = matches.iter().map(|(position, _)| position.repo.as_str()).collect();
    let names = links::repo_names(tx, &repos).await?;
    let show = |(position, row): (Position, Candidate)| {
        let component = row.component.unwrap_or_default();
        own::ImageMatch {
            repo_name: names.get(&position.repo).cloned().unwrap_or_default(),
            tags: tags.get(&position.image()).cloned().unwrap_or_default(),
            repo_uid: position.repo,
            digest: position.image,
            component: component.name,
            version: component.version,
            license: component.license,
            purl: component.purl,
            sbom_digest: row.sbom_digest,
        }
    };
    Ok(matches.into_iter().map(show).collect())
}
