//! Limits that the operator chooses, with their defaults.

use std::ops::RangeInclusive;
use std::time::Duration;

use bowline_pipeline::StreamLimits;
use bowline_terminal::seconds;

use crate::error::StartError;
use crate::options::Options;

/// Longest time for one call, and for calls to end, in seconds.
const LONGEST_CALL: i64 = 3600;
/// Connections to PostgreSQL: background work alone takes up to three.
const DATABASE_CONNECTIONS: RangeInclusive<u32> = 4..=1000;
/// Streams: each looks at the database five times a second.
const STREAMS: RangeInclusive<u32> = 1..=100_000;

/// How long a call may take.
pub(crate) fn request_time(options: &Options) -> Result<Duration, StartError> {
    time("request-timeout", options.request_timeout.as_deref(), Duration::from_mins(1), LONGEST_CALL)
}

/// How long calls that run when the server stops may take to end.
pub(crate) fn drain(options: &Options) -> Result<Duration, StartError> {
    time("shutdown-timeout", options.shutdown_timeout.as_deref(), Duration::from_secs(30), LONGEST_CALL)
}

/// Streams that may be open.
pub(crate) fn streams(options: &Options) -> Result<StreamLimits, StartError> {
    let default = StreamLimits::default();
    let of = |flag, given, default| number(flag, given, default, STREAMS);
    Ok(StreamLimits {
        per_caller: of("streams-per-caller", options.streams_per_caller, default.per_caller)?,
        per_organization: of("streams-per-organization", options.streams_per_organization, default.per_organization)?,
        in_all: of("max-streams", options.max_streams, default.in_all)?,
    })
}

pub(crate) fn database_connections(options: &Options) -> Result<usize, StartError> {
    number("database-connections", options.database_connections, 16, DATABASE_CONNECTIONS)
}

/// Bytes of the embedded database that each reader maps.
pub(crate) fn database_map(options: &Options) -> u64 {
    u64::from(options.database_map.unwrap_or(1024)) << 20
}

/// Bytes of memory for public advisories.
pub(crate) fn advisory_memory(options: &Options) -> usize {
    (options.advisory_memory.unwrap_or(256) as usize) << 20
}

/// The time of an option.
///
/// # Errors
/// The text is no time, or a longer one than `longest` seconds.
pub(crate) fn time(flag: &str, given: Option<&str>, default: Duration, longest: i64) -> Result<Duration, StartError> {
    match given {
        None => Ok(default),
        Some(text) => Ok(Duration::from_secs(seconds(flag, text, longest)?.unsigned_abs())),
    }
}

fn number(flag: &str, given: Option<u32>, default: usize, range: RangeInclusive<u32>) -> Result<usize, StartError> {
    match given {
        None => Ok(default),
        Some(number) if range.contains(&number) => Ok(number as usize),
        Some(number) => {
            Err(StartError::Option(format!("--{flag} {number}: between {} and {}", range.start(), range.end())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refusal<T: std::fmt::Debug>(result: Result<T, StartError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn limits_have_defaults_and_refuse_what_makes_no_sense() {
        let none = Options::default();
        assert_eq!(request_time(&none).unwrap(), Duration::from_mins(1));
        assert_eq!(drain(&none).unwrap(), Duration::from_secs(30));
        assert_eq!((database_connections(&none).unwrap(), database_map(&none)), (16, 1 << 30));
        assert_eq!(advisory_memory(&none), 256 << 20);

        let some = Options {
            request_timeout: Some("5m".into()),
            shutdown_timeout: Some("0s".into()),
            streams_per_caller: Some(0),
            database_connections: Some(1001),
            ..Options::default()
        };
        assert_eq!(request_time(&some).unwrap(), Duration::from_mins(5));
        let wanted = "--shutdown-timeout 0s: a number with s, m, h or d, between 1s and 1h";
        assert_eq!(refusal(drain(&some)), wanted);
        assert_eq!(refusal(streams(&some)), "--streams-per-caller 0: between 1 and 100000");
        assert_eq!(refusal(database_connections(&some)), "--database-connections 1001: between 4 and 1000");
    }
}
