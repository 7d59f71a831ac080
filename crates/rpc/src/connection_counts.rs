use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As many as may be open were open.
    Limit,
    /// As many as may be open from that address were open.
    AddressLimit,
    /// The system gave none: it is out of descriptors, mostly.
    Accept,
}

impl Refusal {
    pub const ALL: [Refusal; 3] = [Refusal::Limit, Refusal::AddressLimit, Refusal::Accept];

    /// The reason as the value of a label.
    pub fn label(self) -> &'static str {
        match self {
            Refusal::Limit => "limit",
            Refusal::AddressLimit => "address_limit",
            Refusal::Accept => "accept",
        }
    }
}

/// Connections of one listener.
#[derive(Debug, Default)]
pub struct ConnectionCounts {
    open: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
}

impl ConnectionCounts {
    /// Connections that are open.
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections that were refused for that reason.
    pub fn refused(&self, why: Refusal) -> u64 {
        self.refused[why as usize].load(Ordering::Relaxed)
    }

    pub(crate) fn refuse(&self, why: Refusal) {
        self.refused[why as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// Counts as an open connection until it is dropped.
pub(crate) struct OpenConnection(Arc<ConnectionCounts>);

impl OpenConnection {
    pub(crate) fn new(counts: Arc<ConnectionCounts>) -> OpenConnection {
        counts.open.fetch_add(1, Ordering::Relaxed);
        OpenConnection(counts)
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}
