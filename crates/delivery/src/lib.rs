//! Delivery of events to subscriptions: one relay reads the log of events and posts each to the sinks that are
//! subscribed at or above its group.
//!
//! The outbox is a log, and each subscription has a cursor in it; there are no rows per event and subscription.
//! One replica at a time runs the relay, by a lease. It keeps the subscriptions in memory, by group, looks at new
//! rows alone, and holds for each subscription the numbers of the next few events: the first of them is read and
//! tried until the sink takes it or a day has passed, so that a subscription's events come in order, each at least
//! once. Cursors are saved in batches, after the fact: what a crash forgets is sent again.
//!
//! - [`Relay`]: the loop; `hold` is its life with the lease.
//! - `state`, `subscription`, `lanes`: who waits for what, and who is next; nothing in them awaits.
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
