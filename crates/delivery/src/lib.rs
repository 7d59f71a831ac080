//! Delivery of events to subscriptions: one relay reads the outbox and posts each event to the sinks of the
//! subscriptions at or above its group.
//!
//! The outbox is a log, and each subscription has a cursor in it; there are no rows per event and
//! subscription. One replica at a time runs the relay, by a lease. It has the subscriptions in memory, by
//! group, reads new rows only, and queues the numbers of the next few events for each subscription. The first
//! of them is tried until the sink accepts it or a day has passed, so that a subscription's events arrive in
//! order, each at least once. Cursors are saved in batches after deliveries: events after the saved cursor
//! are sent again after a crash.
//!
//! - [`Relay`]: the loop; `hold` is its life with the lease.
//! - `state`, `subscription`, `lanes`: the queues and the scheduling; nothing in them awaits.
//! - `log`, `bodies`, `saving`, `redelivery`, `lease`: the statements.
//! - `message`: an event as a request.
//! - `attempts`: the log of attempts that callers read.
//! - [`DirectSender`]: test events, and bodies of stored events.

mod attempts;
mod backoff;
mod bodies;
mod direct;
mod event;
mod lanes;
mod lease;
mod log;
mod message;
mod redelivery;
mod relay;
mod saving;
mod state;
mod subscription;

pub use attempts::{AttemptKind, AttemptRecord};
pub use direct::{DirectSender, SinkTest, TestPermit};
pub use relay::{Parts, Relay};
