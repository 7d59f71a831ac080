//! The products that are stored, and how they are found and listed.

use std::collections::HashMap;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::release_cycles::ListReleaseProducts;
use bowline_core::{Error, Micros, Result};
use bowline_pipeline::{Authorized, Direction, Handlers, Page, PageRequest, handler};
use bowline_resources::list::timestamp;
use bowline_store::{ReadTx, Row, Sql, Value};
use prost::Message as _;

use super::cycles::{day, has_ended, product_names};

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.read::<ListReleaseProducts>(handler!(list))
}

/// A product as it is stored.
#[derive(Clone, Debug)]
pub(super) struct StoredProduct {
    pub(super) product: own::ReleaseProduct,
    pub(super) imported_at: Micros,
}

fn read(row: &Row<'_>) -> Result<StoredProduct> {
    let product = own::ReleaseProduct::decode(row.bytes(0)?.as_slice()).map_err(Error::internal)?;
    Ok(StoredProduct { product, imported_at: row.int(1)? })
}

/// The product of this name, which is not an alias.
pub(super) async fn by_name(tx: &mut ReadTx, name: &str) -> Result<Option<StoredProduct>> {
    let sql = "SELECT product, imported_at FROM release_products WHERE name = $1";
    tx.query_opt(sql, &[Value::from(name)], read).await
}

/// The products of packages or repositories, by their names; those without a product are left out.
pub(super) async fn of_packages<'a>(
    tx: &mut ReadTx,
    packages: impl Iterator<Item = &'a str> + Clone,
) -> Result<HashMap<&'a str, StoredProduct>> {
    let mut names: Vec<&str> = packages.clone().flat_map(product_names).collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return Ok(HashMap::new());
    }
    let mut sql = Sql::new(
        "SELECT p.product, p.imported_at, n.name FROM release_product_names n JOIN release_products p ON p.name = n.product",
    );
    sql.bind_list(" WHERE n.name IN ", names.iter().map(|name| Value::from(*name)));
    let row = |row: &Row<'_>| Ok::<_, Error>((row.text(2)?, read(row)?));
    let found: HashMap<String, StoredProduct> = tx.query(&sql.text, &sql.params, row).await?.into_iter().collect();
    let product = |package: &str| product_names(package).into_iter().find_map(|name| found.get(name).cloned());
    Ok(packages.filter_map(|package| Some((package, product(package)?))).collect())
}

async fn list(
    tx: &mut ReadTx,
    call: &Authorized<own::ListReleaseProductsRequest>,
) -> Result<own::ListReleaseProductsResponse> {
    let request = call.request();
    let page =
        PageRequest { page_size: request.page_size, page_token: request.page_token.clone(), ..PageRequest::default() };
    let page = Page::validate(call, &page, &[&["name"]], (0, Direction::Ascending))?;
    let after = page.cursor.as_ref().map_or("", |cursor| cursor.uid.as_str());
    let sql = "SELECT product, imported_at FROM release_products WHERE name > $1 ORDER BY name LIMIT $2";
    let params = [Value::from(after), Value::Int(page.size as i64 + 1)];
    let mut rows = tx.query(sql, &params, read).await?;
    let mut next_page_token = String::new();
    if rows.len() > page.size {
        rows.truncate(page.size);
        let last = rows.last().map(|row| row.product.name.clone()).unwrap_or_default();
        next_page_token = page.next_token(call, None, last);
    }
    let today = day(call.now());
    let products = rows.into_iter().map(|row| summary(row, &today)).collect();
    Ok(own::ListReleaseProductsResponse { products, next_page_token })
}

fn summary(StoredProduct { product, imported_at }: StoredProduct, today: &str) -> own::ReleaseProductSummary {
    let own::ReleaseProduct { name, aliases, cycles } = product;
    let supported = cycles.iter().filter(|cycle| !has_ended(cycle, today)).count();
    // A product has 500 cycles at most.
    let number = |count| i32::try_from(count).unwrap_or(i32::MAX);
    own::ReleaseProductSummary {
        name,
        aliases,
        cycles: number(cycles.len()),
        supported: number(supported),
        import_time: timestamp(imported_at),
    }
}
