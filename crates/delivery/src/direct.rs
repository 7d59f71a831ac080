//! Single requests outside of the relay: test events, and the bodies of events as sinks get them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bowline_authn::guarded::GuardedClient;
use bowline_contract::Method;
use bowline_contract::bowline::events::v1::TestEvent;
use bowline_contract::bowline::events::v1::rpc::deliveries_service::TestDelivery;
use bowline_core::{Clock, Detail, Error, Reason, Result};
use bowline_pipeline::{Lease, Quota};
use bowline_store::Db;
use prost::{Message, Name};

use crate::attempts::{self, AttemptKind, AttemptRecord};
use crate::bodies;
use crate::event::{self, Event};
use crate::message::{RequestError, RequestRenderer};
use crate::relay::{self, Parts};

/// The type of a test event.
const EVENT_TYPE: &str = "dev.bowline.events.subscription.tested.v1";

/// Tests under way: in all, and of one organization.
const TESTS: usize = 16;
const TESTS_OF_ORGANIZATION: usize = 2;

/// Sends and renders single events.
pub struct DirectSender {
    db: Db,
    client: GuardedClient,
    clock: Arc<dyn Clock>,
    renderer: Arc<RequestRenderer>,
    tests: Arc<Quota<String>>,
}

/// A test that may begin, counted until it is dropped.
pub struct TestPermit(#[expect(dead_code, reason = "held for its drop")] Lease<String>);

/// A test event that is to be sent.
#[derive(Clone, Debug)]
pub struct SinkTest {
    /// UIDP of the subscription.
    pub subscription: String,
    pub sink: String,
    /// Who tests, as events name their actors.
    pub actor: String,
    /// Random bytes that name the event.
    pub seed: [u8; 32],
}

impl DirectSender {
    /// From the parts of a relay.
    pub fn new(parts: Parts) -> DirectSender {
        let Parts { db, contract, tables, settings, authenticator, client, clock, .. } = parts;
        let renderer = Arc::new(RequestRenderer { contract, tables, settings, authenticator });
        DirectSender { db, client, clock, renderer, tests: Quota::new(TESTS, TESTS_OF_ORGANIZATION) }
    }

    /// Admits a test, unless too many are under way.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if too many are.
    pub fn permit(&self, organization: &str) -> Result<TestPermit> {
        let lease = self.tests.take(Some(organization.to_owned()), 1);
        lease.map(TestPermit).map_err(|_| {
            let text = "Rate limit reached: too many test deliveries are under way; try again in a few seconds";
            Error::new(Reason::RateLimited, text).with(Detail::RetryAfter(Duration::from_secs(5)))
        })
    }

    /// The body that deliveries of an event carry, as JSON; absent where it is not stored any more.
    ///
    /// # Errors
    /// The database is unavailable.
    pub async fn payload(&self, subscription: &str, seq: i64, event_id: &str) -> Result<Option<String>> {
        let event = bodies::stored(&self.db, subscription, seq, event_id).await?;
        Ok(event.and_then(|event| self.renderer.payload(&event).ok()))
    }

    /// Sends a test event and logs the attempt; returns it with its number and the body that was sent.
    ///
    /// # Errors
    /// No key signs at this time.
    pub async fn test(&self, test: SinkTest, _permit: TestPermit) -> Result<(AttemptRecord, i64, String)> {
        let subscription: Arc<str> = test.subscription.as_str().into();
        let now = self.clock.now();
        let event = test_event(&test, now);
        let request = match self.renderer.request(&event, &event.group, &test.sink, now) {
            Ok(request) => request,
            Err(RequestError::NoSigningKey) => return Err(Error::unavailable("no key signs at this time")),
            Err(RequestError::DamagedEvent(reason)) => return Err(Error::internal(reason)),
        };
        let payload = self.renderer.payload(&event).map_err(Error::internal)?;
        let went = relay::send(&self.client, request).await;
        let record = AttemptRecord::of(&subscription, AttemptKind::Test, &event, now, went);
        let number = attempts::save(&self.db, vec![vec![record.clone()]]).await?;
        Ok((record, number, payload))
    }
}

fn test_event(test: &SinkTest, now: i64) -> Event {
    let seed = bowline_core::hex(&test.seed);
    let group = test.subscription.rsplit_once('/').map_or("", |(group, _)| group);
    Event {
        seq: 0,
        at: now,
        id: event::id(0, now, EVENT_TYPE, &seed),
        event_type: EVENT_TYPE.into(),
        group: group.into(),
        subject: test.subscription.clone(),
        method: TestDelivery::FULL_NAME.into(),
        actor: test.actor.clone(),
        extensions: "{}".into(),
        body_type: TestEvent::full_name(),
        body: TestEvent { subscription_uid: test.subscription.clone() }.encode_to_vec(),
        content: OnceLock::new(),
    }
}
