/// Microseconds since the Unix epoch, UTC: the unit of every stored and computed time.
pub type Micros = i64;

/// Where the time comes from; a parameter everywhere, so that tests control it.
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> Micros;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now(&self) -> Micros {
        match std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH) {
            Ok(since) => Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX),
            Err(before) => -Micros::try_from(before.duration().as_micros()).unwrap_or(Micros::MAX),
        }
    }
}
