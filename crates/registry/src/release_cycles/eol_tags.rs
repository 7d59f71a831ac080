//! `ListEolTags`: tags with what the release cycles of their products say.

use std::collections::{BTreeMap, HashMap, HashSet};

use bowline_contract::bowline::registry::v1::ReleaseCycle;
use bowline_contract::v1::registry as v1;
use bowline_contract::v1::registry::rpc::registry::ListEolTags;
use bowline_core::{Error, Micros, Result, Uidp};
use bowline_pipeline::{Authorized, Direction, Handlers, PageRequest, handler};
use bowline_resources::list::{self, timestamp};
use bowline_store::{ReadTx, Row, Sql, Value};
use prost::Message as _;

use super::cycles::{State, cycle_of, state, version_in_name};
use super::stored::{self, StoredProduct};
use super::versions::{is_fips, version};
use crate::tag_lists::{LeftOut, filter};
use crate::tags::TagRow;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListEolTags>(handler!(list_end_of_life))
}

/// Longest annotations of a manifest that are read: a page has many manifests.
const MAX_ANNOTATIONS: i64 = 16 << 10;

async fn list_end_of_life(tx: &mut ReadTx, call: &Authorized<v1::EolTagFilter>) -> Result<v1::EolTagList> {
    let request = call.request();
    let mut selection = list::select_v1(call.visible(), request.uidp.as_ref(), "");
    filter(&mut selection, &request.name, "", None);
    let left_out = LeftOut { referrers: true, dates: request.exclude_dates, epochs: request.exclude_epochs };
    let table = left_out.table(&mut selection);
    let page_size = i32::try_from(request.page_size)
        .map_err(|_| Error::invalid_field("pageSize", "must not be negative, nor above 2147483647"))?;
    let page = PageRequest {
        page_size,
        page_token: request.page_token.clone(),
        filter: v1::EolTagFilter { page_token: String::new(), page_size: 0, ..request.clone() }.encode_to_vec(),
        ..PageRequest::default()
    };
    let listing = list::page::<_, TagRow>(tx, call, table, &selection, &page, (0, Direction::Ascending)).await?;
    let facts = Facts::read(tx, &listing.items).await?;
    Ok(v1::EolTagList {
        items: listing.items.into_iter().map(|row| facts.tag(row, call.now())).collect(),
        next_page_token: listing.next_page_token,
    })
}

/// Annotations of a manifest with the main package of its image, and the version of the packaged software.
const MAIN_PACKAGE: &str = "dev.chainguard.package.main";
const VERSION: &str = "org.opencontainers.image.version";

/// What a manifest says about the software of its image; empty where it says nothing.
struct Annotations {
    package: String,
    version: String,
}

/// What the tags of a page have in common.
struct Facts {
    /// Names of repositories, by UIDP.
    repos: HashMap<String, String>,
    /// What the manifests of the page say, by digest.
    annotations: HashMap<String, Annotations>,
    /// By the name of the package or repository.
    products: HashMap<String, StoredProduct>,
    /// Organizations whose images have a grace.
    with_grace: HashSet<String>,
}

impl Facts {
    async fn read(tx: &mut ReadTx, tags: &[TagRow]) -> Result<Facts> {
        let repos = names_of_repos(tx, tags).await?;
        let annotations = annotations(tx, tags).await?;
        let packages = annotations.values().map(|one| one.package.as_str()).filter(|package| !package.is_empty());
        let names = repos.values().map(String::as_str).chain(packages);
        let products = stored::of_packages(tx, names).await?;
        let products = products.into_iter().map(|(name, product)| (name.to_owned(), product)).collect();
        let with_grace = organizations_with_grace(tx, tags).await?;
        Ok(Facts { repos, annotations, products, with_grace })
    }

    fn tag(&self, row: TagRow, now: Micros) -> v1::EolTag {
        let package = self.package(&row);
        let cycle = self.cycle(&row, package);
        let with_grace = root_of(&row.uid).is_some_and(|root| self.with_grace.contains(&root));
        let State { tag, grace, grace_end } = cycle.map_or(State::ACTIVE, |cycle| state(cycle, now, with_grace));
        v1::EolTag {
            id: row.uid,
            name: row.name,
            main_package_name: if cycle.is_some() { package.to_owned() } else { String::new() },
            main_package_version: cycle.map(|cycle| version(cycle, is_fips(package))),
            tag_status: tag as i32,
            grace_status: grace as i32,
            grace_period_expiry_date: grace_end.and_then(timestamp),
        }
    }

    /// The main package that the image names, else the name of the repository.
    fn package(&self, row: &TagRow) -> &str {
        let annotated = self.annotations.get(&row.digest).map(|annotations| annotations.package.as_str());
        let named = || parent_of(&row.uid).and_then(|repo| self.repos.get(&repo)).map_or("", String::as_str);
        annotated.filter(|package| self.products.contains_key(*package)).unwrap_or_else(named)
    }

    /// The cycle of the version that the image says, that its tag says, or that its package is named after.
    fn cycle(&self, row: &TagRow, package: &str) -> Option<&ReleaseCycle> {
        let product = &self.products.get(package)?.product;
        let annotated = self.annotations.get(&row.digest).map(|annotations| annotations.version.as_str());
        let versions = [annotated, Some(row.name.as_str()), version_in_name(package)];
        versions.into_iter().flatten().find_map(|version| cycle_of(product, version))
    }
}

fn parent_of(tag: &str) -> Option<String> {
    Some(Uidp::parse(tag).ok()?.parent_str().to_owned())
}

fn root_of(tag: &str) -> Option<String> {
    Some(Uidp::parse(tag).ok()?.root_str().to_owned())
}

async fn names_of_repos(tx: &mut ReadTx, tags: &[TagRow]) -> Result<HashMap<String, String>> {
    let repos: HashSet<String> = tags.iter().filter_map(|tag| parent_of(&tag.uid)).collect();
    if repos.is_empty() {
        return Ok(HashMap::new());
    }
    let mut sql = Sql::new("SELECT uid, name FROM repos");
    sql.bind_list(" WHERE uid IN ", repos.iter().map(Value::from));
    let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
    Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
}

async fn annotations(tx: &mut ReadTx, tags: &[TagRow]) -> Result<HashMap<String, Annotations>> {
    let digests: HashSet<&str> =
        tags.iter().map(|tag| tag.digest.as_str()).filter(|digest| !digest.is_empty()).collect();
    if digests.is_empty() {
        return Ok(HashMap::new());
    }
    let mut sql = Sql::new("SELECT digest, annotations FROM manifests");
    sql.bind(" WHERE length(annotations) <= ", MAX_ANNOTATIONS);
    sql.bind_list(" AND digest IN ", digests.iter().map(|digest| Value::from(*digest)));
    let read = |row: &Row<'_>| {
        // Annotations are texts: what they say was checked when the manifest was pushed.
        let all: BTreeMap<String, String> = serde_json::from_str(&row.text(1)?).map_err(Error::internal)?;
        let value = |key: &str| all.get(key).cloned().unwrap_or_default();
        let read = Annotations { package: value(MAIN_PACKAGE), version: value(VERSION) };
        Ok::<_, Error>((row.text(0)?, read))
    };
    Ok(tx.query(&sql.text, &sql.params, read).await?.into_iter().collect())
}

async fn organizations_with_grace(tx: &mut ReadTx, tags: &[TagRow]) -> Result<HashSet<String>> {
    let roots: HashSet<String> = tags.iter().filter_map(|tag| root_of(&tag.uid)).collect();
    if roots.is_empty() {
        return Ok(HashSet::new());
    }
    let mut sql = Sql::new("SELECT org FROM registry_settings");
    sql.bind(" WHERE eol_grace_period = ", Value::Bool(true)).bind_list(" AND org IN ", roots.iter().map(Value::from));
    Ok(tx.query(&sql.text, &sql.params, |row| row.text(0).map_err(Error::from)).await?.into_iter().collect())
}
