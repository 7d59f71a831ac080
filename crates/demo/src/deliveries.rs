//! Subscriptions to events: one whose sink accepts everything, one whose sink fails. Both are paused at the end, since the
//! sinks end with the filling.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::post;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::{
    GetDeliveryStatus, ListDeliveries, Pause, TestDelivery,
};
use bowline_contract::bowline::events::v1::{
    DeliveryKind, GetDeliveryStatusRequest, ListDeliveriesRequest, PauseRequest, TestDeliveryRequest,
};
use bowline_contract::v1::events::rpc::subscriptions::Create;
use bowline_contract::v1::events::{CreateSubscriptionRequest, Subscription};
use bowline_contract::v2::iam::rpc::groups_service::UpdateGroup;
use bowline_contract::v2::iam::{Group, UpdateGroupRequest};
use bowline_server::StartError;
use prost_types::FieldMask;

use crate::clock::SECOND;
use crate::organization::{self, OWNER, Organization};
use crate::world::World;

/// How often, and how many times at most, the state of the deliveries is read.
const POLL: Duration = Duration::from_millis(20);
const POLLS: u32 = 250;

/// Receivers on loopback for as long as the directory is filled.
struct Sinks {
    address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Sinks {
    async fn start() -> Result<Sinks, StartError> {
        let failed = |source| StartError::Listen { address: "127.0.0.1:0".into(), flag: "listen", source };
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let router = Router::new()
            .route("/audit", post(async || StatusCode::ACCEPTED))
            .route("/chat", post(async || (StatusCode::SERVICE_UNAVAILABLE, "the chat is being moved")));
        let task = tokio::spawn(async move {
            // It ends with the task.
            let _ = axum::serve(socket, router).await;
        });
        Ok(Sinks { address, task })
    }
}

impl Drop for Sinks {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn create(world: &mut World, organization: &Organization) -> Result<(), StartError> {
    // Their events belong to the time before the subscriptions.
    world.write_pulls().await;
    let sinks = Sinks::start().await?;
    let mut made = Vec::new();
    for (group, path) in [("", "audit"), ("payments", "chat")] {
        let subscription = Subscription { sink: format!("http://{}/{path}", sinks.address), ..Subscription::default() };
        let request =
            CreateSubscriptionRequest { parent_id: organization.group(group)?, subscription: Some(subscription) };
        made.push(world.call::<Create>(OWNER, request).await?.id);
    }
    for (group, description) in [
        ("payments", "Everything that moves money, and its audits"),
        ("web", "The shop and its checkout"),
        ("data", "Events, the warehouse, and the analysts who use it"),
    ] {
        describe(world, organization.group(group)?, description).await?;
    }
    // Events of a group itself are its parent's: these are for both subscriptions.
    organization::invite(world, organization).await?;
    for uid in &made {
        world.call::<TestDelivery>(OWNER, TestDeliveryRequest { uid: uid.clone() }).await?;
    }
    for uid in &made {
        wait_for_events(world, uid).await?;
        world.call::<Pause>(OWNER, PauseRequest { uid: uid.clone() }).await?;
    }
    Ok(())
}

async fn describe(world: &mut World, uid: String, description: &str) -> Result<(), StartError> {
    let group = Group { uid, description: description.into(), ..Group::default() };
    let update_mask = Some(FieldMask { paths: vec!["description".into()] });
    world.call::<UpdateGroup>(OWNER, UpdateGroupRequest { group: Some(group), update_mask }).await?;
    Ok(())
}

/// Waits until events, and not only the test, were sent to the subscription's sink, and none waits unless one failed.
async fn wait_for_events(world: &mut World, uid: &str) -> Result<(), StartError> {
    for _ in 0..POLLS {
        let list = ListDeliveriesRequest { uid: uid.to_owned(), page_size: 50, ..ListDeliveriesRequest::default() };
        let sent = world.look::<ListDeliveries>(OWNER, list).await?.deliveries;
        let status = world.look::<GetDeliveryStatus>(OWNER, GetDeliveryStatusRequest { uid: uid.to_owned() }).await?;
        let has_event = sent.iter().any(|delivery| delivery.kind() == DeliveryKind::Event);
        if has_event && (status.waiting == 0 || status.attempts > 0) {
            return Ok(());
        }
        // The relay's waiting times pass with the clock.
        world.clock().advance(SECOND);
        tokio::time::sleep(POLL).await;
    }
    Err(StartError::Unusable {
        cause: "cannot make the demonstration data: no event was delivered to a receiver on this machine".into(),
        hint: "remove the directory of the demonstration and run the command again".into(),
    })
}
