//! The packages of an image, page by page, from its SBOM.

use bowline_contract::bowline::registry::v1 as own;
use bowline_core::{Error, Result};
use bowline_pipeline::{Authorized, Direction, Page, PageRequest, SortKey};
use bowline_store::ReadTx;
use prost::Message as _;

use crate::attached::Documents;
use crate::sboms::{self, Candidates};

/// Pages are in the order of names alone.
const ORDERS: &[&[&str]] = &[&["name"]];
type Call = Authorized<own::ListPackagesRequest>;

fn page(call: &Call) -> Result<Page> {
    let request = call.request();
    let filter = own::ListPackagesRequest { page_size: 0, page_token: String::new(), ..request.clone() };
    let request = PageRequest {
        page_size: request.page_size,
        page_token: request.page_token.clone(),
        filter: filter.encode_to_vec(),
        ..PageRequest::default()
    };
    Page::validate(call, &request, ORDERS, (0, Direction::Ascending))
}

/// What may be the SBOM of the image; the page is validated before a document is read.
pub(super) async fn find(tx: &mut ReadTx, call: &Call) -> Result<Candidates> {
    page(call)?;
    let own::ListPackagesRequest { digest, architecture, .. } = call.request();
    sboms::candidates(tx, call.require_scope()?, (digest, architecture)).await
}

/// All packages of the image, each once, by name, version and package URL.
pub(super) async fn all(documents: Documents, candidates: Candidates) -> Result<Vec<own::ImagePackage>> {
    let packages = documents.read_packages(candidates).await?;
    let shown = packages.into_iter().map(|package| own::ImagePackage {
        origin: sboms::origin(&package.purl).unwrap_or_default(),
        name: package.name,
        version: package.version,
        purl: package.purl,
        license: package.license,
    });
    let mut shown: Vec<own::ImagePackage> = shown.collect();
    shown.sort_by(|one, other| key(one).cmp(&key(other)));
    shown.dedup_by(|one, other| key(one) == key(other));
    Ok(shown)
}

fn key(package: &own::ImagePackage) -> (&str, &str, &str) {
    (&package.name, &package.version, &package.purl)
}

/// The page of the packages that match.
pub(super) fn cut(call: &Call, mut packages: Vec<own::ImagePackage>) -> Result<own::ListPackagesResponse> {
    let page = page(call)?;
    let text = call.request().query.to_lowercase();
    packages.retain(|package| package.name.to_lowercase().contains(&text) || package.origin.to_lowercase() == text);
    let total_count = i64::try_from(packages.len()).unwrap_or(i64::MAX);
    if let Some(cursor) = &page.cursor
        && let Some(SortKey::Text(name)) = &cursor.key
    {
        let [version, purl]: [String; 2] = serde_json::from_str(&cursor.uid).map_err(Error::internal)?;
        packages.retain(|package| key(package) > (name, &version, &purl));
    }
    let has_more = packages.len() > page.size;
    packages.truncate(page.size);
    let next = packages.last().filter(|_| has_more).map(|last| {
        let rest = serde_json::json!([last.version, last.purl]).to_string();
        page.next_token(call, Some(SortKey::Text(last.name.clone())), rest)
    });
    Ok(own::ListPackagesResponse { packages, next_page_token: next.unwrap_or_default(), total_count })
}
