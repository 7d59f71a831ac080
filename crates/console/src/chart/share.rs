//! A part of a whole, as one bar.

use maud::{Markup, html};

use super::position;

/// A bar that is filled as far as the part goes. What it says stands beside it.
pub(crate) fn share(part: i64, whole: i64, class: &str) -> Markup {
    let filled = (part.max(0) as f64 / whole.max(1) as f64 * 100.0).min(100.0);
    html! {
        svg.share viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" focusable="false" {
            rect.whole x="0" y="0" width="100" height="10" {}
            rect class=(class) x="0" y="0" width=(position(filled)) height="10" {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::golden;
    use super::*;

    #[test]
    fn a_part_fills_its_share() {
        golden("share", &html! { (share(1, 4, "bar")) (share(9, 4, "full")) (share(0, 0, "bar")) });
    }
}
