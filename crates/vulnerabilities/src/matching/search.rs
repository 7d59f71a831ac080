//! Reads components in order, within the ranges that the caller may see, until a page is full or enough was examined.

use std::collections::BTreeSet;

use bowline_core::{Error, Result, UidRange};
use bowline_registry::components::{InRepo, ListedVersion, images};
use bowline_store::{ReadTx, Row, Value};

use super::conditions::{Conditions, MAX_PACKAGES, StoredMatch};
use super::positions::Position;

/// Components and SBOMs that one page examines.
const EXAMINED: usize = 2000;
const EXAMINED_SBOMS: i64 = 20;
/// Components that are examined at once.
const AT_ONCE: usize = 100;

/// A component of an SBOM.
#[derive(Clone, Debug, Default)]
pub(super) struct StoredComponent {
    position: Position,
    /// Digest of the blob of the SBOM.
    pub(super) sbom_digest: String,
    pub(super) name: String,
    pub(super) purl: String,
    pub(super) listed: ListedVersion,
    version_key: Vec<u8>,
}

/// A match of a component of an image.
pub(super) struct Affected {
    pub(super) position: Position,
    pub(super) component: StoredComponent,
    pub(super) stored: StoredMatch,
}

/// A page as it fills.
pub(super) struct Search<'a> {
    conditions: &'a Conditions,
    ranges: &'a [UidRange],
    from: Position,
    size: usize,
    /// One more than the page has, if there are more.
    affected: Vec<Affected>,
    /// Components that may still be examined.
    left: usize,
    /// Where the next page begins if enough was examined.
    last: Option<Position>,
}

impl<'a> Search<'a> {
    pub(super) fn new(conditions: &'a Conditions, ranges: &'a [UidRange], from: Position, size: usize) -> Search<'a> {
        Search { conditions, ranges, from, size, affected: Vec::new(), left: EXAMINED, last: None }
    }

    /// The matches of the page, and after which position the next one begins.
    pub(super) async fn run(mut self, tx: &mut ReadTx) -> Result<(Vec<Affected>, Option<Position>)> {
        match self.conditions.packages(tx, &self.from.package).await? {
            Some(packages) => self.read_packages(tx, &packages).await?,
            None => self.read_sboms(tx).await?,
        }
        if self.affected.len() > self.size {
            self.affected.truncate(self.size);
            self.last = self.affected.last().map(|last| last.position.clone());
        }
        Ok((self.affected, self.last))
    }

    fn is_over(&self) -> bool {
        self.left == 0 || self.affected.len() > self.size
    }

    async fn read_packages(&mut self, tx: &mut ReadTx, packages: &[String]) -> Result<()> {
        let (ranges, begins) = (self.ranges, self.from.clone());
        for package in packages.iter().filter(|package| **package >= begins.package) {
            let is_first = *package == begins.package;
            let from = if is_first { begins.clone() } else { Position::of_package(package) };
            for range in ranges.iter().filter(|range| range.upper > from.repo) {
                let mut next = Some(from.within(range));
                while let Some(at) = next {
                    let rows = components_of_package(tx, range, &at, self.left.min(AT_ONCE)).await?;
                    let last = rows.last().filter(|_| rows.len() == AT_ONCE).map(|row| row.position.clone());
                    next = last.map(|last| Position { number: last.number + 1, ..last });
                    self.examine(tx, rows).await?;
                    if self.is_over() {
                        return Ok(());
                    }
                }
            }
        }
        if packages.len() == MAX_PACKAGES {
            self.last = packages.last().map(|package| Position::after_package(package));
        }
        Ok(())
    }

    async fn read_sboms(&mut self, tx: &mut ReadTx) -> Result<()> {
        let mut left = EXAMINED_SBOMS;
        let (ranges, from) = (self.ranges, self.from.clone());
        for range in ranges.iter().filter(|range| range.upper > from.repo) {
            let sboms = sboms(tx, range, &from.within(range), left).await?;
            left -= sboms.len() as i64;
            for (position, digest) in &sboms {
                let rows = components_of_sbom(tx, position, digest, self.left).await?;
                self.examine(tx, rows).await?;
                if self.is_over() {
                    return Ok(());
                }
            }
            if left == 0 {
                self.last = sboms.last().map(|(position, _)| position.after_sbom());
                return Ok(());
            }
        }
        Ok(())
    }

    /// Adds the matches of these components, which are in order, until the page has one too many.
    async fn examine(&mut self, tx: &mut ReadTx, mut rows: Vec<StoredComponent>) -> Result<()> {
        let Some(last) = rows.last() else { return Ok(()) };
        self.left = self.left.saturating_sub(rows.len());
        if self.left == 0 {
            // All images of the component are examined.
            self.last = Some(last.position.after_component());
        }
        rows.retain(|row| self.conditions.admits_version(&row.version_key));
        let versions: BTreeSet<&ListedVersion> = rows.iter().map(|row| &row.listed).collect();
        let versions: Vec<ListedVersion> = versions.into_iter().cloned().collect();
        let mut matched = BTreeSet::new();
        for part in versions.chunks(AT_ONCE) {
            matched.extend(self.conditions.matched(tx, part).await?);
        }
        rows.retain(|row| matched.contains(&row.listed));
        let sboms: BTreeSet<InRepo> = rows.iter().map(StoredComponent::sbom).collect();
        let images = images(tx, &sboms).await?;
        // Those of one version are held: it may have thousands.
        let (mut listed, mut matches) = (ListedVersion::default(), Vec::new());
        for row in rows {
            let Some(images) = images.get(&row.sbom()) else { continue };
            if row.listed != listed {
                matches = self.conditions.matches(tx, &row.listed).await?;
                listed = row.listed.clone();
            }
            self.add(&row, images, &matches);
            if self.affected.len() > self.size {
                return Ok(());
            }
        }
        Ok(())
    }

    fn add(&mut self, row: &StoredComponent, images: &BTreeSet<String>, matches: &[StoredMatch]) {
        for image in images {
            for stored in matches {
                let (image, record) = (image.clone(), stored.record_id.clone());
                let position = Position { image, record, ..row.position.clone() };
                if position <= self.from {
                    continue;
                }
                self.affected.push(Affected { position, component: row.clone(), stored: stored.clone() });
                if self.affected.len() > self.size {
                    return;
                }
            }
        }
    }
}

impl StoredComponent {
    fn sbom(&self) -> InRepo {
        (self.position.repo.clone(), self.sbom_digest.clone())
    }
}

/// The components of a package in a range, from a position on.
async fn components_of_package(
    tx: &mut ReadTx,
    range: &UidRange,
    from: &Position,
    most: usize,
) -> Result<Vec<StoredComponent>> {
    let sql = "SELECT c.package, c.version, c.origin, c.number, c.name, c.purl, c.version_key, i.repo, i.sbom, s.digest
               FROM component_packages i CROSS JOIN components c CROSS JOIN repo_sboms s
               WHERE c.sbom = i.sbom AND c.number = i.number AND s.repo = i.repo AND s.sbom = i.sbom
                 AND i.package = $1 AND (i.repo, i.sbom, i.number) >= ($2, $4, $5) AND i.repo < $3
               ORDER BY i.repo, i.sbom, i.number LIMIT $6";
    let params = [
        Value::from(&from.package),
        Value::from(&from.repo),
        Value::from(&range.upper),
        Value::from(&from.sbom),
        Value::Int(from.number),
        Value::Int(most as i64),
    ];
    let read = |row: &Row<'_>| -> Result<StoredComponent> {
        component(row, &from.package, (row.text(7)?, row.bytes(8)?), row.text(9)?)
    };
    tx.query(sql, &params, read).await
}

/// The first columns of a component.
fn component(
    row: &Row<'_>,
    package: &str,
    (repo, sbom): (String, Vec<u8>),
    sbom_digest: String,
) -> Result<StoredComponent> {
    let position = Position { repo, sbom, number: row.int(3)?, ..Position::of_package(package) };
    let listed = ListedVersion::read(row)?;
    Ok(StoredComponent {
        position,
        sbom_digest,
        name: row.text(4)?,
        purl: row.text(5)?,
        listed,
        version_key: row.bytes(6)?,
    })
}

/// The indexed SBOMs in a range from a position on, with the digests of their blobs.
async fn sboms(tx: &mut ReadTx, range: &UidRange, from: &Position, most: i64) -> Result<Vec<(Position, String)>> {
    let sql = "SELECT repo, sbom, digest FROM repo_sboms
               WHERE (repo, sbom) >= ($1, $2) AND repo < $3 AND state = 0 ORDER BY repo, sbom LIMIT $4";
    let params = [Value::from(&from.repo), Value::from(&from.sbom), Value::from(&range.upper), Value::Int(most)];
    let read = |row: &Row<'_>| {
        let mut position = Position { repo: row.text(0)?, sbom: row.bytes(1)?, ..Position::default() };
        if position.sbom == from.sbom && position.repo == from.repo {
            position.number = from.number;
        }
        Ok::<_, Error>((position, row.text(2)?))
    };
    tx.query(sql, &params, read).await
}

/// The components of an SBOM that have matches, from a position on.
async fn components_of_sbom(
    tx: &mut ReadTx,
    from: &Position,
    digest: &str,
    most: usize,
) -> Result<Vec<StoredComponent>> {
    let sql = "SELECT c.package, c.version, c.origin, c.number, c.name, c.purl, c.version_key FROM components c
               WHERE c.sbom = $1 AND c.number >= $2 AND c.package <> ''
                 AND EXISTS (SELECT 1 FROM package_matches m
                             WHERE m.package = c.package AND m.version = c.version AND m.origin = c.origin)
               ORDER BY c.sbom, c.number LIMIT $3";
    let params = [Value::from(&from.sbom), Value::Int(from.number), Value::Int(most as i64)];
    let read = |row: &Row<'_>| -> Result<StoredComponent> {
        component(row, "", (from.repo.clone(), from.sbom.clone()), digest.to_owned())
    };
    tx.query(sql, &params, read).await
}
