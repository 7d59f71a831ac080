//! Imports of release cycles.

use std::collections::BTreeSet;

use bowline_contract::bowline::registry::v1 as own;
use bowline_contract::bowline::registry::v1::rpc::release_cycles::ImportReleaseCycles;
use bowline_core::{Error, FieldViolation, Result};
use bowline_pipeline::{Authorized, Change, Changed, Handlers, OPERATOR, ResourceSnapshot, handler};
use bowline_resources::kinds::RELEASE_CYCLES;
use bowline_store::{ReadTx, Row, Sql, Value, WriteTx};
use prost::Message as _;

use super::cycles::start_of;
use super::stored;

/// Products that there may be.
const MAX_PRODUCTS: i64 = 5000;

pub(super) fn register(handlers: Handlers) -> Handlers {
    handlers.write::<ImportReleaseCycles>(handler!(import)).validate::<ImportReleaseCycles>(violations)
}

/// What patterns cannot say: each product and cycle once, and dates that exist.
fn violations(request: &own::ImportReleaseCyclesRequest) -> Vec<FieldViolation> {
    let mut found = Vec::new();
    let mut violation = |field: String, description: &str| {
        found.push(FieldViolation { field, description: description.into() });
    };
    let mut products: BTreeSet<&str> = request.removed_names.iter().map(String::as_str).collect();
    for (at, product) in request.products.iter().enumerate() {
        if !products.insert(&product.name) {
            violation(format!("products[{at}].name"), "must be in the request once: neither stored twice nor removed");
        }
        let mut cycles = BTreeSet::new();
        for (number, cycle) in product.cycles.iter().enumerate() {
            let field = format!("products[{at}].cycles[{number}]");
            if !cycles.insert(&cycle.name) {
                violation(format!("{field}.name"), "must be the name of one cycle of the product");
            }
            for (name, date) in [("releaseDate", &cycle.release_date), ("endDate", &cycle.end_date)] {
                if !date.is_empty() && start_of(date).is_none() {
                    violation(format!("{field}.{name}"), "must be a day that exists, as YYYY-MM-DD");
                }
            }
        }
    }
    found
}

async fn import(
    tx: &mut WriteTx,
    call: &Authorized<own::ImportReleaseCyclesRequest>,
) -> Result<Changed<own::ReleaseCycleImport>> {
    let request = call.request();
    let mut done = own::ReleaseCycleImport::default();
    for name in &request.removed_names {
        if stored::by_name(tx, name).await?.is_some() {
            remove(tx, name).await?;
            done.removed.push(name.clone());
        }
    }
    for product in &request.products {
        match stored::by_name(tx, &product.name).await? {
            Some(stored) if stored.product == *product => continue,
            Some(_) => done.changed.push(product.name.clone()),
            None => done.added.push(product.name.clone()),
        }
        put(tx, product, call.now()).await?;
    }
    require_room(tx).await?;
    if done == own::ReleaseCycleImport::default() {
        return Ok(Changed::nothing(done));
    }
    // One entry for an import: what a product was before is in the files that were imported before.
    let after = Some(ResourceSnapshot::of(&done));
    let change = Change { kind: RELEASE_CYCLES, uid: OPERATOR.into(), before: None, after };
    Ok(Changed::many(vec![change], done))
}

async fn require_room(tx: &mut ReadTx) -> Result<()> {
    let sql = "SELECT count(*) FROM release_products";
    let count = tx.query_opt(sql, &[], |row: &Row<'_>| row.int(0).map_err(Error::from)).await?;
    if count.unwrap_or_default() > MAX_PRODUCTS {
        let description = format!("there may be {MAX_PRODUCTS} products at most; remove some by `removedNames`");
        return Err(Error::quota("release products", description));
    }
    Ok(())
}

async fn remove(tx: &mut WriteTx, name: &str) -> Result<()> {
    tx.execute("DELETE FROM release_product_names WHERE product = $1", &[Value::from(name)]).await?;
    tx.execute("DELETE FROM release_products WHERE name = $1", &[Value::from(name)]).await?;
    Ok(())
}

async fn put(tx: &mut WriteTx, product: &own::ReleaseProduct, at: i64) -> Result<()> {
    remove(tx, &product.name).await?;
    let sql = "INSERT INTO release_products (name, product, imported_at) VALUES ($1, $2, $3)";
    let bytes = product.encode_to_vec();
    tx.execute(sql, &[Value::from(&product.name), Value::from(&bytes), Value::Int(at)]).await?;
    let sql = "INSERT INTO release_product_names (name, product) VALUES ($1, $1)
               ON CONFLICT (name) DO UPDATE SET product = excluded.product";
    tx.execute(sql, &[Value::from(&product.name)]).await?;
    if product.aliases.is_empty() {
        return Ok(());
    }
    let mut sql = Sql::new("INSERT INTO release_product_names (name, product) VALUES ");
    for (at, alias) in product.aliases.iter().enumerate() {
        sql.bind(if at == 0 { "(" } else { ", (" }, alias).bind(", ", &product.name).push(")");
    }
    sql.push(" ON CONFLICT DO NOTHING");
    tx.execute(&sql.text, &sql.params).await?;
    Ok(())
}
