//! Advisories for the search over everything: by words, by the id of a vulnerability, or by the name of a package.

use bowline_core::{Result, UidRange};
use bowline_pipeline::{Authorized, Direction, PageRequest};
use bowline_resources::list::Selection;
use bowline_store::ReadTx;

use super::filters::Filters;
use super::lists::{self, AdvisoryQuery};
use super::rows::{AdvisoryRow, folded};
use super::words;

/// What advisories are searched by.
#[derive(Clone, Copy, Debug)]
pub enum By<'a> {
    /// A part of the names and aliases that they have; three characters at least.
    Words(&'a str),
    /// An alias, such as the id of a CVE.
    Alias(&'a str),
    /// Their own public id.
    OwnId(&'a str),
    /// The name of the package that they are about.
    Package(&'a str),
}

/// An advisory that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdvisoryHit {
    pub uid: String,
    /// Its public id, as people write it.
    pub name: String,
    /// The package and the vulnerabilities that it is about.
    pub detail: String,
}

impl AdvisoryHit {
    fn of(row: &AdvisoryRow) -> AdvisoryHit {
        let about = std::iter::once(row.subject.artifact_name.as_str()).chain(row.aliases.iter().map(String::as_str));
        let detail = about.collect::<Vec<_>>().join(" ");
        AdvisoryHit { uid: row.uid.as_str().into(), name: row.advisory_id.clone(), detail }
    }
}

/// A page of the advisories in these ranges, in the order of their UIDPs, and the token of the next one.
///
/// # Errors
/// The page request is wrong.
pub async fn page<T>(
    tx: &mut ReadTx,
    call: &Authorized<T>,
    ranges: &[UidRange],
    by: By<'_>,
    page: PageRequest,
) -> Result<(Vec<AdvisoryHit>, String)> {
    let filters = match by {
        By::Words(text) => Filters::default().look_for(text),
        By::OwnId(id) => Filters { advisory_ids: vec![id.to_owned()], ..Filters::default() },
        By::Alias(id) => Filters { aliases: vec![folded(id)], ..Filters::default() },
        By::Package(name) => Filters { artifact_names: vec![name.to_owned()], ..Filters::default() },
    };
    if ranges.is_empty() || (matches!(by, By::Words(_)) && !words::are_indexed(&filters)) {
        return Ok((Vec::new(), String::new()));
    }
    let selection = Selection {
        ranges: ranges.to_vec(),
        parent: None,
        filters: Vec::new(),
        conditions: Vec::new(),
        clauses: Vec::new(),
    };
    let default = (0, Direction::Ascending);
    let query = AdvisoryQuery { selection, filters: &filters, by_uid: false, page, default };
    let matches = lists::page(tx, call, query).await?;
    Ok((matches.rows.iter().map(AdvisoryHit::of).collect(), matches.next_page_token))
}
