//! How large requests may be.

use bowline_rpc::{InFlight, InFlightLimits};

use crate::error::StartError;
use crate::options::Options;

/// MiB of a request: the default of gRPC libraries.
const DEFAULT_REQUEST: u32 = 4;
/// MiB of large requests under way. A quarter of the least that is allowed holds the largest request that any method
/// takes (48 MiB).
const DEFAULT_UNDER_WAY: u32 = 256;

pub(crate) struct RequestSizes {
    /// Of a request whose method has no limit of its own.
    pub(crate) request: usize,
    /// Of requests under way to methods of the contract.
    pub(crate) in_flight: InFlight,
    /// Of OSV queries under way, which take no token: they leave the others their room.
    pub(crate) queries: InFlight,
}

/// The sizes that the options give.
///
/// # Errors
/// A size that is too small or too large.
pub(crate) fn of(options: &Options) -> Result<RequestSizes, StartError> {
    let request = options.max_request.unwrap_or(DEFAULT_REQUEST);
    if !(1..=100).contains(&request) {
        return Err(StartError::Option(format!("--max-request {request}: 1 to 100 MiB")));
    }
    let under_way = options.max_requests_under_way.unwrap_or(DEFAULT_UNDER_WAY);
    let least = DEFAULT_UNDER_WAY.max(4 * request);
    if under_way < least {
        return Err(StartError::Option(format!(
            "--max-requests-under-way {under_way}: {least} MiB at least, so that a caller's quarter holds the largest request"
        )));
    }
    let mebibytes = |number: u32| number as usize * (1 << 20);
    let total = mebibytes(under_way);
    Ok(RequestSizes {
        request: mebibytes(request),
        in_flight: InFlight::new(InFlightLimits { total, caller: total / 4, organization: total / 8 * 3 }),
        queries: InFlight::new(InFlightLimits { total: total / 4, caller: total / 16, organization: 0 }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_can_always_send_the_largest_request() {
        let options = |request, under_way| Options {
            max_request: request,
            max_requests_under_way: under_way,
            ..Options::default()
        };
        assert_eq!(of(&options(None, None)).unwrap().request, 4 << 20);
        assert_eq!(of(&options(Some(100), Some(400))).unwrap().request, 100 << 20);
        for (request, under_way) in [(Some(0), None), (Some(101), None), (Some(100), None), (None, Some(255))] {
            assert!(of(&options(request, under_way)).is_err(), "{request:?} {under_way:?}");
        }
    }
}
