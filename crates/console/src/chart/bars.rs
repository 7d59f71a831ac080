//! A bar for each day.

use maud::{Markup, html};

use super::{DAY, Day, Figure, Plot, Scale, ends, grid, position};

/// Width of a bar, which leaves a gap to the next one.
const BAR: i64 = 8;

/// Days with a bar from zero for the first value of each.
pub(crate) fn bars(figure: &Figure<'_>, days: &[Day]) -> Markup {
    let value = |day: &Day| day.values.as_ref().and_then(|values| values.first()).copied();
    let scale = Scale::to(days.iter().filter_map(value).max().unwrap_or(0));
    let width = days.len() as i64 * DAY;
    let drawing = html! {
        (grid(&scale, width))
        @for (at, day) in days.iter().enumerate() {
            @let at = at as i64;
            @match value(day) {
                None => { (figure.gap(at)) }
                Some(value) => {
                    @let top = scale.y(value);
                    rect.bar x=(at * DAY + 1) y=(position(top)) width=(BAR) height=(position(super::HEIGHT - top)) {
                        title { (day.name) ": " (value) }
                    }
                }
            }
        }
    };
    figure.render(&Plot {
        width,
        drawing,
        series: &[],
        has_lanes: false,
        left: scale.ticks().map(|tick| tick.to_string()).collect(),
        below: ends(days),
        has_gaps: days.iter().any(|day| value(day).is_none()),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{days, figure, golden};
    use super::*;

    #[test]
    fn bars_begin_at_zero() {
        golden("bars", &bars(&figure("pulls"), &days(&[Some(&[3]), Some(&[0]), None, Some(&[12])])));
    }
}
