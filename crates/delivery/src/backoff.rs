//! When the next attempt is due.

use bowline_core::Micros;

const SECOND: Micros = 1_000_000;
/// No attempt follows sooner than this.
const SHORTEST: Micros = SECOND;
/// None follows later than this.
const LONGEST: Micros = 15 * 60 * SECOND;

/// For how long an event is tried.
pub(crate) const GIVE_UP_AFTER: Micros = 24 * 3600 * SECOND;
/// For how long it may wait to be tried.
pub(crate) const WAITS_AT_MOST: Micros = 7 * GIVE_UP_AFTER;

/// The wait after that many failures: anything up to a bound that doubles, so that sinks which failed together
/// are not tried together.
pub(crate) fn wait(failures: i64, random: u64) -> Micros {
    let doublings = failures.clamp(1, 20) as u32;
    let bound = (SECOND << doublings).min(LONGEST);
    SHORTEST.max((random % (bound as u64 + 1)) as Micros)
}

/// Whether an event has been tried for long enough. A sink that fails since before the event happened fails for it
/// since then: otherwise each of a thousand events would wait for a day of its own. A sink that takes events more
/// slowly than they come never fails; its events end a week after they happened, or the log would grow for ever.
pub(crate) fn is_over(happened: Micros, failing_since: Option<Micros>, now: Micros) -> bool {
    now - happened >= WAITS_AT_MOST
        || failing_since.is_some_and(|failing_since| now - happened.max(failing_since) >= GIVE_UP_AFTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_quarter_of_an_hour() {
        assert_eq!(wait(1, 0), SECOND);
        assert_eq!(wait(1, 2 * SECOND as u64), 2 * SECOND);
        for failures in 1..100 {
            for random in [0, 1, 12_345_678_901, u64::MAX - 1, u64::MAX] {
                let wait = wait(failures, random);
                assert!((SHORTEST..=LONGEST).contains(&wait), "{failures} {random}: {wait}");
            }
        }
        let longest = (0..10_000).map(|n| wait(30, n * 7_919_777)).max();
        assert!(longest.is_some_and(|longest| longest > LONGEST / 2), "{longest:?}");
    }

    #[test]
    fn a_day_begins_with_the_later_of_event_and_failure() {
        assert!(!is_over(0, Some(10), GIVE_UP_AFTER));
        assert!(is_over(0, Some(10), GIVE_UP_AFTER + 10));
        assert!(!is_over(10, Some(0), GIVE_UP_AFTER));
        assert!(is_over(10, Some(0), GIVE_UP_AFTER + 10));
    }

    #[test]
    fn without_a_failure_it_is_a_week() {
        assert!(!is_over(10, None, WAITS_AT_MOST));
        assert!(is_over(10, None, WAITS_AT_MOST + 10));
        assert!(is_over(10, Some(WAITS_AT_MOST), WAITS_AT_MOST + 10), "a failure just now does not make it longer");
    }
}
