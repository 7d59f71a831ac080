//! The licenses of a scope: how many packages and images have each.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Result, UidRange};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::{ReadTx, Row, Sql, Value};
use prost::Message as _;

use super::links::{self, InRepo};
use super::within;

/// SBOMs that one report reads.
const MAX_SBOMS: usize = 5000;
/// Different packages, by license, that one report counts.
const MAX_PACKAGES: usize = 300_000;
/// SBOMs that one statement reads: each may have many components.
const AT_ONCE: usize = 10;

/// What has a license.
#[derive(Default)]
struct Users {
    packages: HashSet<String>,
    /// Numbers of the SBOMs that list it.
    sboms: HashSet<Vec<u8>>,
}

/// The images of each SBOM, by its number.
type Images = BTreeMap<Vec<u8>, Vec<InRepo>>;

pub(super) async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListLicensesRequest>,
) -> Result<own::ListLicensesResponse> {
    let request = call.request();
    let filter = own::ListLicensesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let page = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    let page = Page::validate(call, &page, &[&["license"]], (0, Direction::Ascending))?;
    let sboms = sboms(tx, &within(call.visible(), &request.scope), &request.scope).await?;
    let images = images(tx, sboms).await?;
    let mut users = users(tx, &images, &request.scope).await?;
    if let Some(cursor) = &page.cursor
        && let Some(SortKey::Text(last)) = &cursor.key
    {
        users.retain(|license, _| license > last);
    }
    let has_more = users.len() > page.size;
    let count = |count: usize| i32::try_from(count).unwrap_or(i32::MAX);
    let shown = users.into_iter().take(page.size).map(|(license, users)| {
        let images: HashSet<&InRepo> = users.sboms.iter().filter_map(|id| images.get(id)).flatten().collect();
        own::LicenseUse { license, packages: count(users.packages.len()), images: count(images.len()) }
    });
    let licenses: Vec<own::LicenseUse> = shown.collect();
    let last = licenses.last().filter(|_| has_more);
    let next = last.map(|last| page.next_token(call, Some(SortKey::Text(last.license.clone())), String::new()));
    Ok(own::ListLicensesResponse { licenses, next_page_token: next.unwrap_or_default() })
}

/// The indexed SBOMs in the ranges: repository and digest, by number.
async fn sboms(tx: &mut ReadTx, ranges: &[UidRange], scope: &str) -> Result<Vec<(Vec<u8>, InRepo)>> {
    let mut sboms = Vec::new();
    for UidRange { lower, upper } in ranges {
        let sql = "SELECT repo, digest, sbom FROM repo_sboms WHERE repo >= $1 AND repo < $2 AND state = 0
                   ORDER BY repo, sbom LIMIT $3";
        let left = Value::Int((MAX_SBOMS + 1 - sboms.len()) as i64);
        let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(2)?, (row.text(0)?, row.text(1)?)));
        sboms.extend(tx.query(sql, &[Value::from(lower), Value::from(upper), left], read).await?);
    }
    // All of these are visible to the caller.
    if sboms.len() > MAX_SBOMS {
        return Err(too_many(scope, format!("{MAX_SBOMS} SBOMs")));
    }
    Ok(sboms)
}

fn too_many(scope: &str, what: String) -> Error {
    Error::precondition("TOO_MANY_SBOMS", scope, format!("the scope has more than {what}; name a smaller scope"))
}

/// An SBOM without an image is of one that was deleted, and is left out.
async fn images(tx: &mut ReadTx, sboms: Vec<(Vec<u8>, InRepo)>) -> Result<Images> {
    let keys: BTreeSet<InRepo> = sboms.iter().map(|(_, key)| key.clone()).collect();
    let about = links::images(tx, &keys).await?;
    let mut images = Images::new();
    for (id, key) in sboms {
        let of_sbom = about.get(&key).into_iter().flatten().map(|image| (key.0.clone(), image.clone()));
        images.entry(id).or_default().extend(of_sbom);
    }
    images.retain(|_, images| !images.is_empty());
    Ok(images)
}

async fn users(tx: &mut ReadTx, images: &Images, scope: &str) -> Result<BTreeMap<String, Users>> {
    let ids: Vec<&Vec<u8>> = images.keys().collect();
    let (mut users, mut packages): (BTreeMap<String, Users>, usize) = (BTreeMap::new(), 0);
    for part in ids.chunks(AT_ONCE) {
        let mut sql = Sql::new("SELECT DISTINCT sbom, license, CASE WHEN package <> '' THEN package ELSE name END");
        sql.bind_list(" FROM components WHERE sbom IN ", part.iter().map(|id| Value::from(*id)));
        let read = |row: &Row<'_>| Ok::<_, Error>((row.bytes(0)?, row.text(1)?, row.text(2)?));
        for (id, license, package) in tx.query(&sql.text, &sql.params, read).await? {
            let users = users.entry(license).or_default();
            packages += usize::from(users.packages.insert(package));
            users.sboms.insert(id);
        }
        if packages > MAX_PACKAGES {
            return Err(too_many(scope, format!("{MAX_PACKAGES} packages")));
        }
    }
    Ok(users)
}
