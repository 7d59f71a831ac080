//! Failures of an upstream, and how long each is cached.

use axum::http::{HeaderMap, StatusCode, header};
use bowline_authn::guarded::FetchError;
use bowline_core::Micros;

const SECOND: Micros = 1_000_000;
/// How long an absent or inaccessible resource is not requested again.
const ABSENT: Micros = 60 * SECOND;
/// How long an upstream that is away is left alone where it does not say for how long.
const AWAY: Micros = 10 * SECOND;
/// How long a response that broke off is not requested again.
const INTERRUPTED: Micros = 2 * SECOND;
/// How long it is left alone at most, whatever it says.
const LONGEST: Micros = 60 * SECOND;

/// Why an upstream failed. What `Display` says is public: it names no address and nothing secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// It is not there, or not for everyone where no one in particular asks.
    #[error("the upstream does not have it either")]
    Absent,
    /// An account is needed, and there is none.
    #[error(
        "the upstream requires credentials: give the upstream of the registry policy a user \
         name and a password"
    )]
    Unidentified,
    /// The account is not known, or has another password.
    #[error(
        "the upstream refused the credentials (status {0}): give the upstream of the registry policy the right user \
         name and password"
    )]
    Unknown(u16),
    /// The account may not have this.
    #[error(
        "the upstream refused this to the credentials (status {0}): their account may not pull it, or it is not there"
    )]
    Forbidden(u16),
    /// The upstream's rate limit was exceeded.
    #[error("the upstream refused too many requests (status 429): try again in a minute")]
    Busy { rest: Micros },
    /// No answer of the upstream itself.
    #[error("{0}")]
    Away(FetchError),
    /// Content that is not what the manifest names.
    #[error("the upstream sent {0} than the image names")]
    Wrong(&'static str),
    /// Any other failure of this one request.
    #[error("{error}")]
    Failed { error: FetchError, rest: Micros },
}

/// The extent of a failure: what is not requested again for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// One resource, by the same account.
    Resource,
    /// Everything of the repository, by the same account.
    Repository,
    /// Everything at the upstream's address, by anyone.
    Origin,
}

impl Problem {
    /// The problem that a response stands for, by its status.
    pub(super) fn of(status: StatusCode, headers: &HeaderMap) -> Problem {
        match status {
            StatusCode::NOT_FOUND => Problem::Absent,
            StatusCode::TOO_MANY_REQUESTS => Problem::Busy { rest: rest(headers) },
            status => Problem::Failed { error: FetchError::Status(status.as_u16()), rest: rest(headers) },
        }
    }

    /// The same as a failure of this one request: the target of a redirect must not affect other requests to
    /// the upstream.
    pub(super) fn elsewhere(self) -> Problem {
        let failed = |status: StatusCode, rest| Problem::Failed { error: FetchError::Status(status.as_u16()), rest };
        match self {
            Problem::Unidentified | Problem::Unknown(_) => failed(StatusCode::UNAUTHORIZED, AWAY),
            Problem::Busy { rest } => failed(StatusCode::TOO_MANY_REQUESTS, rest),
            problem => problem,
        }
    }

    /// The failure of a response that had begun well. One that broke off may well succeed the next time.
    pub(crate) fn of_response(error: FetchError) -> Problem {
        let rest = if error == FetchError::Interrupted { INTERRUPTED } else { AWAY };
        Problem::Failed { error, rest }
    }

    /// For how many microseconds the request is not sent again.
    pub(crate) fn rest(self) -> Micros {
        self.extent_and_ttl().1
    }

    /// Extent of the failure, and for how many microseconds it is cached. A failure that a client can cause
    /// by a request of its own does not affect the requests of others.
    pub(super) fn extent_and_ttl(self) -> (Extent, Micros) {
        match self {
            Problem::Absent | Problem::Forbidden(_) => (Extent::Resource, ABSENT),
            Problem::Unidentified | Problem::Unknown(_) => (Extent::Repository, ABSENT),
            Problem::Busy { rest } => (Extent::Repository, rest),
            Problem::Away(_) => (Extent::Origin, AWAY),
            Problem::Wrong(_) => (Extent::Resource, AWAY),
            Problem::Failed { rest, .. } => (Extent::Resource, rest),
        }
    }
}

impl From<FetchError> for Problem {
    fn from(error: FetchError) -> Problem {
        Problem::Failed { error, rest: AWAY }
    }
}

/// How long the upstream wants to be left alone. A date in the header counts like none.
fn rest(headers: &HeaderMap) -> Micros {
    let seconds = headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse::<u32>().ok());
    seconds.map_or(AWAY, |seconds| (Micros::from(seconds) * SECOND).clamp(SECOND, LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_say_how_long_within_bounds() {
        let rest = |text: &str| {
            let headers = [(header::RETRY_AFTER, text.parse().unwrap())].into_iter().collect();
            Problem::of(StatusCode::TOO_MANY_REQUESTS, &headers).extent_and_ttl()
        };
        for (text, seconds) in
            [("30", 30), ("0", 1), ("4000000000", 60), ("-1", 10), ("Wed, 21 Oct 2026 07:28:00 GMT", 10)]
        {
            assert_eq!(rest(text), (Extent::Repository, seconds * SECOND), "{text}");
        }
        let failed = Problem::of(StatusCode::BAD_GATEWAY, &HeaderMap::new());
        assert_eq!(failed.extent_and_ttl(), (Extent::Resource, AWAY));
        assert_eq!(failed.to_string(), "the host answered with status 502");
    }
}
