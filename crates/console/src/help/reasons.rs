//! The tables of docs/ERRORS.md.

const DOCUMENT: &str = include_str!("../../../../docs/ERRORS.md");

/// A row of the tables of reasons.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReasonHelp {
    pub(super) name: &'static str,
    /// The gRPC code, with its number.
    pub(super) code: &'static str,
    /// The HTTP status, with the headers of the response.
    pub(super) status: &'static str,
    /// What the error has besides its reason.
    pub(super) details: &'static str,
    pub(super) remedy: &'static str,
}

/// A row of the tables of preconditions.
#[derive(Clone, Copy, Debug)]
pub(super) struct KindHelp {
    pub(super) name: &'static str,
    pub(super) subject: &'static str,
    pub(super) meaning: &'static str,
}

/// All reasons, in the order of the document.
pub(super) fn reasons() -> impl Iterator<Item = ReasonHelp> {
    rows("## Reasons").filter_map(|row| match row[..] {
        [name, code, status, details, remedy] => Some(ReasonHelp { name, code, status, details, remedy }),
        _ => None,
    })
}

/// All kinds of preconditions, in the order of the document.
pub(super) fn kinds() -> impl Iterator<Item = KindHelp> {
    rows("## Preconditions").filter_map(|row| match row[..] {
        [name, subject, meaning] => Some(KindHelp { name, subject, meaning }),
        _ => None,
    })
}

pub(super) fn of_name(name: &str) -> Option<ReasonHelp> {
    reasons().find(|reason| reason.name == name)
}

pub(super) fn of_kind(name: &str) -> Option<KindHelp> {
    kinds().find(|kind| kind.name == name)
}

/// The rows of a chapter's tables whose first cell is a name for programs, which loses its backticks.
fn rows(chapter: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let start = DOCUMENT.find(&format!("\n{chapter}\n")).map_or(DOCUMENT.len(), |at| at + chapter.len() + 2);
    let text = &DOCUMENT[start..];
    let text = text.split("\n## ").next().unwrap_or_default();
    text.lines().filter_map(|line| {
        let cells = line.strip_prefix("| `")?.strip_suffix(" |")?;
        let (name, rest) = cells.split_once("` | ")?;
        Some(std::iter::once(name).chain(rest.split(" | ")).collect())
    })
}
