//! The printed table.

use std::io::Write as _;

use crate::Outcome;
use crate::environment::Environment;

/// A target: what a measured value must not fall below, or not exceed.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
    /// Shown for comparison only.
    None,
}

/// How a value is written.
#[derive(Clone, Copy)]
pub(crate) enum Unit {
    PerSecond,
    Milliseconds,
    Microseconds,
    Bytes,
    Megabytes,
    Seconds,
    Percent,
    Times,
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::Milliseconds => format!("{value:.2} ms"),
            Unit::Microseconds => format!("{value:.2} us"),
            Unit::Bytes => format!("{value:.0} B"),
            Unit::Megabytes => format!("{value:.1} MB"),
            Unit::Seconds => format!("{value:.3} s"),
            Unit::Percent => format!("{value:.1} %"),
            Unit::Times => format!("{value:.2}x"),
        }
    }
}

pub(crate) struct Table {
    missed: u32,
}

impl Table {
    pub(crate) fn start(environment: &Environment) -> Outcome<Table> {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').take(3).collect::<Vec<_>>().join(" ");
        let cores = std::thread::available_parallelism()?;
        say(&format!(
            "{cores} cores shared by client and server; load before the run {load}; server log filter: warn \
             (no access log lines); {:?} measured after {:?} of warm-up\n",
            environment.measured, environment.warm_up
        ));
        say(&format!("{:<66} {:>12} {:>14}  verdict\n", "line", "target", "measured"));
        Ok(Table { missed: 0 })
    }

    pub(crate) fn row(&mut self, line: &str, unit: Unit, target: Target, value: f64) {
        let (target, verdict) = match target {
            Target::None => (String::new(), ""),
            Target::AtLeast(least) => (format!(">= {}", unit.show(least)), verdict(value >= least)),
            Target::AtMost(most) => (format!("<= {}", unit.show(most)), verdict(value <= most)),
        };
        self.missed += u32::from(verdict == "MISSED");
        say(&format!("{line:<66} {target:>12} {:>14}  {verdict}\n", unit.show(value)));
    }

    pub(crate) fn finish(self) {
        say(&format!("\n{} targets missed\n", self.missed));
    }
}

/// A line that explains the one above it.
pub(crate) fn note(text: &str) {
    say(&format!("  {text}\n"));
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

/// A closed pipe is no failure.
fn say(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

pub(crate) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
