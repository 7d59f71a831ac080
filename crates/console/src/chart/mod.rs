//! Charts as inline SVG: every picture has a title, a caption with what it shows, and its numbers as a table.
//!
//! Pictures fill the width that there is, so they are drawn without keeping proportions: words stand beside them, as text.

mod area;
mod bars;
mod scale;
mod share;
mod steps;
#[cfg(test)]
mod tests;

use maud::{Markup, html};

pub(crate) use area::stacked;
pub(crate) use bars::bars;
pub(crate) use share::share;
pub(crate) use steps::{Move, steps};

use scale::Scale;

/// Width of a day in a picture.
const DAY: i64 = 10;
/// Height of a picture.
const HEIGHT: f64 = 100.0;

/// One of the series of a picture, told apart by its color, its letter and its shape.
pub(crate) struct Series {
    pub(crate) name: &'static str,
    initial: &'static str,
    /// The outline of its mark, within 12 by 12.
    shape: &'static str,
    /// Class that gives it its color.
    class: &'static str,
}

/// The severities of findings, the worst first.
pub(crate) const SEVERITIES: [Series; 5] = [
    Series { name: "critical", initial: "C", shape: "M6 0L12 6L6 12L0 6Z", class: "sev-c" },
    Series { name: "high", initial: "H", shape: "M6 1L12 11H0Z", class: "sev-h" },
    Series { name: "medium", initial: "M", shape: "M1 1H11V11H1Z", class: "sev-m" },
    Series { name: "low", initial: "L", shape: "M1 6A5 5 0 0 1 11 6A5 5 0 0 1 1 6Z", class: "sev-l" },
    Series {
        name: "unknown",
        initial: "U",
        shape: "M1 6A5 5 0 0 1 11 6A5 5 0 0 1 1 6ZM3 6A3 3 0 0 0 9 6A3 3 0 0 0 3 6Z",
        class: "sev-u",
    },
];

/// The values of a day.
pub(crate) struct Day {
    /// The day in UTC.
    pub(crate) name: String,
    /// A value for each series; absent where nothing is known, which is not zero.
    pub(crate) values: Option<Vec<i64>>,
}

/// A picture with what belongs to it.
pub(crate) struct Figure<'a> {
    /// Id of the picture; no other one of the page has it.
    pub(crate) id: &'a str,
    /// What is drawn, in a few words.
    pub(crate) title: &'a str,
    /// What it shows, in a sentence.
    pub(crate) finding: &'a str,
    /// The numbers of the picture; absent where they are a table of the page.
    pub(crate) numbers: Option<Markup>,
}

/// What is drawn, and the words at its edges.
struct Plot {
    width: i64,
    drawing: Markup,
    series: &'static [Series],
    /// Whether words beside the picture name lanes, instead of marks of a scale.
    has_lanes: bool,
    /// Words beside the picture, from the top to the bottom.
    left: Vec<String>,
    /// Words below it, from the left to the right.
    below: Vec<String>,
    has_gaps: bool,
}

impl Figure<'_> {
    fn render(&self, plot: &Plot) -> Markup {
        let title = format!("{}-title", self.id);
        let hatch = format!("{}-hatch", self.id);
        // As wide on the screen whatever the number of days.
        let stripe = position(plot.width as f64 / 48.0);
        html! {
            figure.chart {
                figcaption { (self.finding) }
                @if !plot.series.is_empty() { (legend(plot.series)) }
                div.plot.lanes[plot.has_lanes] {
                    div.left aria-hidden="true" { @for word in &plot.left { span { (word) } } }
                    svg role="img" aria-labelledby=(title) viewBox={ "0 0 " (plot.width) " 100" } preserveAspectRatio="none" {
                        title id=(title) { (self.title) ". " (self.finding) }
                        @if plot.has_gaps {
                            defs {
                                pattern id=(hatch) width=(stripe) height="10" patternUnits="userSpaceOnUse" {
                                    path.hatch d={ "M0 10L" (stripe) " 0" } {}
                                }
                            }
                        }
                        (plot.drawing)
                    }
                    div.below aria-hidden="true" { @for word in &plot.below { span { (word) } } }
                }
                @if plot.has_gaps { p.small { "On hatched days nothing is known." } }
                @if let Some(numbers) = &self.numbers { details { summary { "The numbers" } (numbers) } }
            }
        }
    }

    /// Fills days without values.
    fn gap(&self, at: i64) -> Markup {
        html! {
            rect x=(at * DAY) y="0" width=(DAY) height="100" fill={ "url(#" (self.id) "-hatch)" } {}
        }
    }
}

/// The marks of series with their letters and names.
fn legend(series: &[Series]) -> Markup {
    html! { ul.legend { @for one in series { li { (mark(one)) " " (one.name) } } } }
}

/// The mark of a series: its shape and its letter.
pub(crate) fn mark(series: &Series) -> Markup {
    html! {
        svg.shape width="12" height="12" viewBox="0 0 12 12" aria-hidden="true" focusable="false" {
            path class=(series.class) fill-rule="evenodd" d=(series.shape) {}
        }
        " " b { (series.initial) }
    }
}

/// Lines across the picture at the ticks of its scale.
fn grid(scale: &Scale, width: i64) -> Markup {
    html! { @for tick in scale.ticks() { path.grid d={ "M0 " (position(scale.y(tick))) "H" (width) } {} } }
}

/// The first and the last day, and the zone.
fn ends(days: &[Day]) -> Vec<String> {
    match (days.first(), days.last()) {
        (Some(first), Some(last)) => vec![first.name.clone(), format!("{} UTC", last.name)],
        _ => Vec::new(),
    }
}

/// A position in a picture, with no more digits than are seen.
fn position(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
