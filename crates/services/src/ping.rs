//! The two pings, by which clients check that the server responds.

use bowline_contract::v1::ping::{Response, rpc::ping_service::Ping as PingV1};
use bowline_contract::v2::ping::{PingResponse, rpc::ping_service::Ping as PingV2};
use bowline_pipeline::Handlers;

pub(crate) fn register(handlers: Handlers) -> Handlers {
    handlers
        .open::<PingV1>(|_| Box::pin(async { Ok(Response { response: "pong".into() }) }))
        .open::<PingV2>(|_| Box::pin(async { Ok(PingResponse { response: "pong".into() }) }))
}
