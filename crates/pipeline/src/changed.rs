use bowline_core::Uidp;
use prost::{Message, Name};

/// A resource as it was or is, for the audit log: message type and wire bytes, without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceSnapshot {
    /// Full name of the message.
    pub type_name: String,
    /// The message in wire format.
    pub bytes: Vec<u8>,
}

impl ResourceSnapshot {
    /// The snapshot of a message.
    pub fn of<M: Message + Name>(message: &M) -> ResourceSnapshot {
        ResourceSnapshot { type_name: M::full_name(), bytes: message.encode_to_vec() }
    }
}

/// One change of one resource: becomes one row of the audit log.
#[derive(Clone, Debug)]
pub struct Change {
    /// Kind of the resource, such as `iam.chainguard.dev/Group`.
    pub kind: &'static str,
    /// UIDP of the resource.
    pub uid: String,
    /// As it was; absent for a creation.
    pub before: Option<ResourceSnapshot>,
    /// As it is; absent for a deletion.
    pub after: Option<ResourceSnapshot>,
}

/// What the method's event says: the request of the first API version, whichever was called.
#[derive(Clone, Debug)]
pub struct EventBody {
    /// The resource that the event is about.
    pub subject: String,
    /// The group that subscriptions look at: the parent of the subject.
    pub group: String,
    /// The request in the shape of v1.
    pub body: ResourceSnapshot,
    /// Values of further extension attributes that the method names.
    pub extensions: Vec<(&'static str, String)>,
}

/// What a writing handler returns: the response, and what it changed. The pipeline records the changes and
/// the event in the same transaction.
#[derive(Debug)]
pub struct Changed<T> {
    pub response: T,
    /// The changes; empty if the state was as requested already.
    pub changes: Vec<Change>,
    /// The event, absent if nothing changed or the method has none.
    pub event: Option<EventBody>,
}

impl<T> Changed<T> {
    /// Nothing had to change.
    pub fn nothing(response: T) -> Changed<T> {
        Changed { response, changes: Vec::new(), event: None }
    }

    /// One resource changed; `before` and `after` say how.
    pub fn one<M: Message + Name>(
        kind: &'static str,
        uid: &Uidp,
        before: Option<&M>,
        after: Option<&M>,
        response: T,
    ) -> Changed<T> {
        let change = Change {
            kind,
            uid: uid.as_str().into(),
            before: before.map(ResourceSnapshot::of),
            after: after.map(ResourceSnapshot::of),
        };
        Changed { response, changes: vec![change], event: None }
    }

    /// Adds changes that came along with the main one.
    pub fn along(mut self, changes: Vec<Change>) -> Changed<T> {
        self.changes.extend(changes);
        self
    }

    pub fn many(changes: Vec<Change>, response: T) -> Changed<T> {
        Changed { response, changes, event: None }
    }

    /// Adds the event, whose body is the request in the shape of v1.
    pub fn with_event<M: Message + Name>(mut self, subject: &Uidp, request: &M) -> Changed<T> {
        self.event = Some(EventBody {
            subject: subject.as_str().into(),
            group: subject.parent_str().into(),
            body: ResourceSnapshot::of(request),
            extensions: Vec::new(),
        });
        self
    }

    /// Turns the response into another.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Changed<U> {
        Changed { response: convert(self.response), changes: self.changes, event: self.event }
    }
}
