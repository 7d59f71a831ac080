//! Series on top of each other, by day.

use maud::{Markup, html};

use super::{DAY, Day, Figure, Plot, Scale, Series, ends, grid, position};

/// Days with the values of series on top of each other, the first series at the bottom. A value lasts for its day.
pub(crate) fn stacked(figure: &Figure<'_>, series: &'static [Series], days: &[Day]) -> Markup {
    let sums: Vec<Option<Vec<i64>>> = days.iter().map(|day| day.values.as_deref().map(sums)).collect();
    let most = sums.iter().flatten().filter_map(|sums| sums.last()).copied().max().unwrap_or(0);
    let scale = Scale::to(most);
    let width = days.len() as i64 * DAY;
    let drawing = html! {
        @for (at, day) in days.iter().enumerate() { @if day.values.is_none() { (figure.gap(at as i64)) } }
        @for (at, one) in series.iter().enumerate() {
            path class={ "layer " (one.class) } d=(layer(&scale, &sums, at)) { title { (one.name) } }
        }
        (grid(&scale, width))
    };
    figure.render(&Plot {
        width,
        drawing,
        series,
        has_lanes: false,
        left: scale.ticks().map(|tick| tick.to_string()).collect(),
        below: ends(days),
        has_gaps: days.iter().any(|day| day.values.is_none()),
    })
}

/// The upper edge of each series.
fn sums(values: &[i64]) -> Vec<i64> {
    let mut sum = 0;
    values
        .iter()
        .map(|value| {
            sum += value.max(&0);
            sum
        })
        .collect()
}

/// The outline of a series: a closed path for each run of days with values.
fn layer(scale: &Scale, days: &[Option<Vec<i64>>], series: usize) -> String {
    let edge = |sums: &[i64], at: Option<usize>| at.and_then(|at| sums.get(at)).copied().unwrap_or(0);
    let mut path = String::new();
    let mut first = 0;
    for run in days.chunk_by(|a, b| a.is_some() == b.is_some()) {
        let known: Vec<&Vec<i64>> = run.iter().flatten().collect();
        let from = first as i64 * DAY;
        first += run.len();
        if known.iter().all(|sums| edge(sums, Some(series)) == edge(sums, series.checked_sub(1))) {
            continue;
        }
        path += &format!("M{from} {}", position(scale.y(edge(known[0], Some(series)))));
        for (at, sums) in known.iter().enumerate() {
            path += &format!("V{}H{}", position(scale.y(edge(sums, Some(series)))), from + (at as i64 + 1) * DAY);
        }
        for (at, sums) in known.iter().enumerate().rev() {
            path += &format!("V{}H{}", position(scale.y(edge(sums, series.checked_sub(1)))), from + at as i64 * DAY);
        }
        path.push('Z');
    }
    path
}

#[cfg(test)]
mod tests {
    use super::super::SEVERITIES;
    use super::super::tests::{days, figure, golden};
    use super::*;

    #[test]
    fn layers_lie_on_each_other_and_end_where_nothing_is_known() {
        let shown = days(&[Some(&[1, 0, 2, 0, 0]), None, Some(&[0, 3, 0, 0, 1]), Some(&[2, 2, 2, 1, 1])]);
        golden("stacked", &stacked(&figure("open"), &SEVERITIES, &shown));
        golden("stacked-empty", &stacked(&figure("open"), &SEVERITIES, &[]));
    }

    #[test]
    fn a_layer_is_as_high_as_its_values() {
        let sums = [Some(vec![1, 4]), Some(vec![2, 2])];
        assert_eq!(layer(&Scale::to(4), &sums, 0), "M0 75V75H10V50H20V100H10V100H0Z");
        assert_eq!(layer(&Scale::to(4), &sums, 1), "M0 0V0H10V50H20V50H10V75H0Z");
        assert_eq!(layer(&Scale::to(4), &[Some(vec![1, 1])], 1), "");
    }
}
