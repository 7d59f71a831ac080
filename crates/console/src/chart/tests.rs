//! Pictures as the tests of charts compare them.

use maud::{Markup, html};

use super::{Day, Figure};

pub(super) fn golden(name: &str, shown: &Markup) {
    let path = format!("{}/tests/golden/{name}.html", env!("CARGO_MANIFEST_DIR"));
    let shown = shown.0.replace("><", ">\n<") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &shown).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(shown, expected, "{path} differs; UPDATE_GOLDEN=1 writes it");
}

pub(super) fn figure(id: &str) -> Figure<'_> {
    Figure { id, title: "What <is> drawn", finding: "It rises.", numbers: Some(html! { p { "1, 2" } }) }
}

pub(super) fn days(values: &[Option<&[i64]>]) -> Vec<Day> {
    let day = |(at, values): (usize, Option<&[i64]>)| Day {
        name: format!("2026-11-{:02}", at + 1),
        values: values.map(<[i64]>::to_vec),
    };
    values.iter().copied().enumerate().map(day).collect()
}
