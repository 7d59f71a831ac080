//! A row of the log.

use std::sync::OnceLock;

use bowline_authn::crypto::sha256;
use bowline_contract::Method;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::{Pause, Resume};
use bowline_contract::v1::events::rpc::subscriptions;
use bowline_contract::v2::events::rpc::subscriptions_service;
use bowline_core::{Micros, Result};
use bowline_store::Row;

use crate::message::Content;

/// The columns that a [`Notice`] is read from, in their order.
pub(crate) const NOTICE: &str = "seq, at, group_uid, subject, method, customer";

/// An event, as far as the choice of its subscriptions needs it.
#[derive(Clone, Debug)]
pub(crate) struct Notice {
    pub(crate) seq: i64,
    pub(crate) at: Micros,
    /// The group that subscriptions look at.
    pub(crate) group: String,
    pub(crate) subject: String,
    pub(crate) method: String,
    /// Whether it is for subscriptions at all.
    pub(crate) is_for_customers: bool,
}

impl Notice {
    /// Reads a row of [`NOTICE`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Notice> {
        let (group, subject) = (row.text(2)?, row.text(3)?);
        Ok(Notice {
            seq: row.int(0)?,
            at: row.int(1)?,
            group: within(group, &subject),
            subject,
            method: row.text(4)?,
            is_for_customers: row.bool(5)?,
        })
    }

    /// Whether this is the beginning of the subscription that is its subject.
    pub(crate) fn begins_subscription(&self) -> bool {
        [subscriptions::Create::FULL_NAME, subscriptions_service::CreateSubscription::FULL_NAME]
            .contains(&self.method.as_str())
    }

    /// Whether deliveries to the subscription that is its subject were paused or resumed.
    pub(crate) fn pauses_or_resumes(&self) -> bool {
        [Pause::FULL_NAME, Resume::FULL_NAME].contains(&self.method.as_str())
    }

    /// Whether this is the end of the subscription that is its subject.
    pub(crate) fn ends_subscription(&self) -> bool {
        [subscriptions::Delete::FULL_NAME, subscriptions_service::DeleteSubscription::FULL_NAME]
            .contains(&self.method.as_str())
    }
}

/// The columns that an [`Event`] is read from, in their order.
pub(crate) const EVENT: &str = "seq, at, event_type, group_uid, subject, method, actor, extensions, body_type, body";

/// Something that happened, with everything that is sent.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) seq: i64,
    pub(crate) at: Micros,
    /// Id in its deliveries: a UUID that every attempt repeats.
    pub(crate) id: String,
    pub(crate) event_type: String,
    pub(crate) group: String,
    pub(crate) subject: String,
    pub(crate) method: String,
    pub(crate) actor: String,
    pub(crate) extensions: String,
    pub(crate) body_type: String,
    pub(crate) body: Vec<u8>,
    /// What is sent, made once.
    pub(crate) content: OnceLock<std::result::Result<Content, String>>,
}

impl Event {
    /// Reads a row of [`EVENT`].
    pub(crate) fn read(row: &Row<'_>) -> Result<Event> {
        let (seq, at, event_type) = (row.int(0)?, row.int(1)?, row.text(2)?);
        let (group, subject) = (row.text(3)?, row.text(4)?);
        Ok(Event {
            id: id(seq, at, &event_type, &subject),
            group: within(group, &subject),
            seq,
            at,
            event_type,
            subject,
            method: row.text(5)?,
            actor: row.text(6)?,
            extensions: row.text(7)?,
            body_type: row.text(8)?,
            body: row.bytes(9)?,
            content: OnceLock::new(),
        })
    }
}

/// An organization has no group above it: what happens to it happens in it.
fn within(group: String, subject: &str) -> String {
    if group.is_empty() { subject.to_owned() } else { group }
}

/// A UUID (version 8, RFC 9562) of the event: the same for every attempt, another for every event.
pub(crate) fn id(seq: i64, at: Micros, event_type: &str, subject: &str) -> String {
    let mut bytes = sha256(format!("event {seq} {at} {event_type} {subject}").as_bytes());
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = bowline_core::hex(&bytes[..16]);
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_uuids_that_repeat() {
        let one = id(1, 2, "type", "subject");
        assert_eq!(one, id(1, 2, "type", "subject"));
        assert_ne!(one, id(2, 2, "type", "subject"));
        assert_eq!((one.len(), one.as_bytes()[14]), (36, b'8'));
        assert!(b"89ab".contains(&one.as_bytes()[19]), "{one}");
    }
}
