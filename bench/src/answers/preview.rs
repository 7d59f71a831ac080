//! The preview of a role that 10,000 bindings use, and a neighbour that writes beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bowline_contract::chainguard::capabilities::Capability;
use bowline_contract::v2::iam;
use bowline_contract::v2::iam::rpc::roles_service::CreateRole;
use bowline_core::Uidp;
use bowline_store::{Db, SqliteOptions, StoreError, Value, counters};
use bytes::Bytes;
use http::Method;
use serde_json::json;

use super::{BEFORE, ONE};
use crate::Outcome;
use crate::environment::Environment;
use crate::issuer::Issuer;
use crate::load::{Ask, Load, always};
use crate::sample::median;
use crate::seed::spread;
use crate::server::Server;
use crate::table::{Table, Target, Unit, note};
use crate::world::World;

const BINDINGS: u64 = 10_000;
const PREVIEWS: usize = 100;
/// Writes of the neighbour in one turn.
const WRITES: usize = 500;
const TURNS: usize = 5;

pub(super) async fn run(environment: &Environment, table: &mut Table) -> Outcome<()> {
    let directory = tempfile::tempdir_in(crate::exchange::data_place(environment)?)?;
    let data = directory.path().join("data");
    let server = Server::start(environment, &data).await?;
    let issuer = Issuer::start().await?;
    let mut world = World::prepare(&server, &issuer, None).await?;
    let role = iam::Role {
        name: "used".into(),
        capabilities: vec![Capability::CapIamGroupsList as i32],
        ..iam::Role::default()
    };
    let role =
        world.call::<CreateRole>(&iam::CreateRoleRequest { parent: world.org.clone(), role: Some(role) }).await?;
    drop(server);
    bind(&data, &world.org, &role.uid).await?;

    let server = Server::start(environment, &data).await?;
    let world = World::prepare(&server, &issuer, Some(world.org)).await?;
    let neighbour = World::prepare(&server, &issuer, None).await?;
    let preview = preview(&world, &role.uid)?;
    let mut load = Load::open(server.api, ONE, always(preview.clone())).await?;
    load.one_by_one(10).await?;
    let sample = load.one_by_one(PREVIEWS).await?;
    let line = "preview of a role that 10,000 bindings use, p99";
    table.row(line, Unit::Milliseconds, Target::AtMost(100.0), sample.milliseconds(0.99));
    note(&format!("median {:.2} ms", sample.milliseconds(0.5)));

    let get = Ask::get(format!("/iam/v2/groups/{}", world.org), &world.token)?;
    let (mut beside_previews, mut beside_gets) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        beside_previews.push(write_beside(&server, &neighbour, preview.clone()).await?);
        beside_gets.push(write_beside(&server, &neighbour, get.clone()).await?);
    }
    for (what, at) in [("median", 0), ("p99", 1)] {
        let figure = |turns: &[[f64; 2]]| median(turns.iter().map(|turn| turn[at]).collect());
        let [with, without] = [&beside_previews, &beside_gets].map(|turns| figure(turns));
        let line = format!("{what} of a neighbour's write beside previews, of that beside GETs");
        table.row(&line, Unit::Times, Target::AtMost(1.0), with / without);
        note(&format!("{with:.2} and {without:.2} ms"));
    }
    Ok(())
}

/// The request for another capability of the role.
fn preview(world: &World, role: &str) -> Outcome<Ask> {
    let request = json!({
        "@type": "type.googleapis.com/chainguard.platform.iam.v2.UpdateRoleRequest",
        "role": { "uid": role, "name": "used", "capabilities": ["CAP_IAM_GROUPS_LIST", "CAP_REPO_LIST"] },
    });
    let body = json!({ "method": "chainguard.platform.iam.v2.RolesService.UpdateRole", "request": request });
    Ask::new(Method::POST, "/preview/v1:preview", &world.token, body.to_string().into())
}

/// Median and 99th percentile, in milliseconds, of a neighbour's writes while another connection repeats a request.
async fn write_beside(server: &Server, neighbour: &World, other: Ask) -> Outcome<[f64; 2]> {
    let end = Arc::new(AtomicBool::new(false));
    let mut load = Load::open(server.api, ONE, always(other)).await?;
    let ends = end.clone();
    let others = tokio::spawn(async move {
        while !ends.load(Ordering::Relaxed) {
            load.one_by_one(1).await?;
        }
        Outcome::Ok(())
    });
    tokio::time::sleep(BEFORE).await;
    let body = Bytes::from(json!({ "description": "written" }).to_string());
    let write = Ask::new(Method::PATCH, format!("/iam/v2/groups/{}", neighbour.org), &neighbour.token, body)?;
    let sample = Load::open(server.api, ONE, always(write)).await?.one_by_one(WRITES).await?;
    end.store(true, Ordering::Relaxed);
    others.await??;
    Ok([sample.milliseconds(0.5), sample.milliseconds(0.99)])
}

/// Identities with a binding of the role each, while no server runs.
async fn bind(data: &std::path::Path, org: &str, role: &str) -> Outcome<()> {
    let db = Db::open_sqlite(&data.join("bowline.db"), SqliteOptions::default()).await?;
    let (parent, role) = (Uidp::parse(org)?, role.to_owned());
    db.write::<_, StoreError>(move |tx| {
        let (parent, role) = (parent.clone(), role.clone());
        Box::pin(async move {
            for n in 0..BINDINGS {
                let (identity, binding) = (parent.child_from(spread(n)), parent.child_from(spread(n + (1 << 32))));
                let (identity, binding, org) = (identity.as_str(), binding.as_str(), parent.as_str());
                let name = format!("workload-{n}");
                let sql = "INSERT INTO identities (uid, parent, org, name, description, email, email_unverified,
                     company, relationship_type, relationship, issuer, subject, deactivated, created_at, updated_at)
                   VALUES ($1, $2, $2, $3, '', '', '', '', 1, x'', '', '', FALSE, 1, 1)";
                tx.execute(sql, &[Value::from(identity), Value::from(org), Value::from(&name)]).await?;
                let sql = "INSERT INTO role_bindings (uid, parent, org, identity, role, created_at)
                   VALUES ($1, $2, $2, $3, $4, 1)";
                let params = [Value::from(binding), Value::from(org), Value::from(identity), Value::from(&role)];
                tx.execute(sql, &params).await?;
                for (table, uid) in [("identities", identity), ("role_bindings", binding)] {
                    counters::record(tx, table, uid, 1).await?;
                    counters::record(tx, &format!("{table}/children"), org, 1).await?;
                }
            }
            counters::fold(tx, i64::MAX).await
        })
    })
    .await?;
    db.close().await;
    Ok(())
}
