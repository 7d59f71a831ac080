//! A line of steps: what something was when.

use maud::{Markup, html};

use super::{Figure, HEIGHT, Plot, position};

/// Maximum number of different values, which have a line each.
const MOST_LANES: usize = 8;
/// Width of the picture.
const WIDTH: i64 = 1000;

/// From when on something had a value.
pub(crate) struct Move {
    /// Time in seconds since 1970.
    pub(crate) at: i64,
    /// The time in words.
    pub(crate) when: String,
    pub(crate) value: String,
}

/// What something was until now, the oldest move first. Where it had many values, the newest moves are drawn.
pub(crate) fn steps(figure: &Figure<'_>, moves: &[Move], now: i64) -> Markup {
    let drawn = newest(moves);
    let mut lanes: Vec<&str> = Vec::new();
    for one in drawn.iter().rev().filter(|one| !one.value.is_empty()) {
        if !lanes.contains(&one.value.as_str()) {
            lanes.push(&one.value);
        }
    }
    let from = drawn.first().map_or(now, |one| one.at);
    let span = (now - from).max(1) as f64;
    let x = |at: i64| position((at - from).max(0) as f64 / span * WIDTH as f64);
    let y = |value: &str| {
        let lane = lanes.iter().position(|lane| *lane == value).unwrap_or(0);
        position((lane as f64 + 0.5) / lanes.len().max(1) as f64 * HEIGHT)
    };
    let mut line = String::new();
    for one in drawn {
        let (x, y) = (x(one.at), y(&one.value));
        line += &if line.is_empty() { format!("M{x} {y}") } else { format!("H{x}V{y}") };
    }
    let drawing = html! {
        @for lane in &lanes { path.grid d={ "M0 " (y(lane)) "H" (WIDTH) } {} }
        @if !line.is_empty() { path.step d={ (line) "H" (WIDTH) } {} }
        @for one in drawn {
            path.dot d={ "M" (x(one.at)) " " (y(&one.value)) "h0" } { title { (one.when) ": " (one.value) } }
        }
    };
    let below = drawn.first().map(|one| vec![one.when.clone(), "now".to_owned()]).unwrap_or_default();
    let left = lanes.iter().map(|lane| (*lane).to_owned()).collect();
    figure.render(&Plot { width: WIDTH, drawing, series: &[], has_lanes: true, left, below, has_gaps: false })
}

/// The newest moves that have no more different values than there are lines.
fn newest(moves: &[Move]) -> &[Move] {
    let mut values: Vec<&str> = Vec::new();
    for (at, one) in moves.iter().enumerate().rev() {
        if !values.contains(&one.value.as_str()) {
            if values.len() == MOST_LANES {
                return &moves[at + 1..];
            }
            values.push(&one.value);
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::super::tests::{figure, golden};
    use super::*;

    fn moves(values: &[&str]) -> Vec<Move> {
        let one = |(at, value): (usize, &&str)| Move {
            at: at as i64 * 100,
            when: format!("2026-11-{:02}", at + 1),
            value: (*value).to_owned(),
        };
        values.iter().enumerate().map(one).collect()
    }

    #[test]
    fn a_line_goes_back_where_a_value_comes_back() {
        golden("steps", &steps(&figure("named"), &moves(&["a1", "b2", "a1"]), 400));
        golden("steps-empty", &steps(&figure("named"), &[], 400));
    }

    #[test]
    fn many_values_leave_the_newest() {
        let names: Vec<String> = (0..30).map(|at| format!("v{at}")).collect();
        let all = moves(&names.iter().map(String::as_str).collect::<Vec<_>>());
        let drawn = newest(&all);
        assert_eq!((drawn.len(), drawn[0].value.as_str()), (MOST_LANES, "v22"));
        assert_eq!(newest(&all[..3]).len(), 3);
    }
}
