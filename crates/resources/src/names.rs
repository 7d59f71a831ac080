//! Names of groups, repositories, tags and identities, in the order of relevance: first those that begin with the text,
//! by name; then those that have it elsewhere, in the order in which they came.
//!
//! Triggers of the database keep `search_names` and its trigrams. Each organization's names are read along an index of
//! their own, so that the cost of a search depends only on the caller's organizations, and on a bounded count of the names
//! with each trigram of the text. A caller who sees a part of an organization gets a search through that part alone, as
//! long as it is small: neither its result nor its cost depends on names that are hidden.

mod visible;

use std::collections::BTreeSet;

use bowline_core::{Error, ROOT_LENGTH, Result, UidRange};
use bowline_store::{Engine, ReadTx, Row, Sql, Value};

/// A kind of resources whose names are searched. Its number is that of the table of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum NamedKind {
    Group = 1,
    Repo = 2,
    Tag = 3,
    Identity = 7,
}

impl NamedKind {
    fn number(self) -> i64 {
        self as i64
    }
}

/// Characters that have a trigram: shorter texts match only the beginning of a name.
pub const TRIGRAM: usize = 3;
/// Trigrams of one text that are counted, and how many of them are looked up: the rarest.
const MAX_TRIGRAMS: usize = 16;
const LOOKED_UP: usize = 3;
/// A trigram that fewer names have drives the search by itself: reading and comparing these costs less than seeking in
/// another list. Counting ends here.
const FEW: i64 = 2000;
/// Organizations that one call searches, unless the caller sees all.
const MAX_ORGANIZATIONS: usize = 32;
/// Names that one call examines for a caller who sees a part of an organization: all in its ranges if there are no more;
/// else those with the text in the organization, of which the ranges leave some.
const MAX_EXAMINED: usize = 20_000;
/// Rows of the first batch and of the largest.
const BATCHES: (i64, i64) = (64, 4096);

/// The first of the characters that mark kinds and organizations, for private use. The triggers of migration 0038 write them
/// into the search index, as 57344 and 61696.
const MARK: u32 = 0xe000;
const KIND_MARK: u32 = 0xf100;
/// All characters that marks may be. Trigrams with one of them are not looked up: they would be found as marks.
const MARKS: std::ops::RangeInclusive<char> = '\u{e000}'..='\u{f8ff}';

/// A name that has the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameRow {
    /// UIDP of the resource.
    pub uid: String,
    /// Where the search continues after it.
    pub position: Position,
}

/// Position of a name in the order of relevance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Position {
    /// Among those that begin with the text: its name and UIDP.
    Beginning(String, String),
    /// Among the others: its number.
    Within(i64),
}

/// A search with its visible ranges.
pub struct NameSearch<'a> {
    kind: NamedKind,
    /// The text in lower case.
    text: &'a str,
    pattern: String,
    /// The first text after all that begin with it.
    end: String,
    /// Visible ranges, sorted and disjoint.
    ranges: &'a [UidRange],
    /// Organizations of the ranges; absent for callers who see all names.
    organizations: Option<Vec<&'a str>>,
    /// Whether nothing in the organizations is hidden.
    sees_all: bool,
    /// Names that were read and compared with the ranges, for a caller from whom some are hidden.
    examined: usize,
}

impl<'a> NameSearch<'a> {
    /// A search that has not begun; `text` is in lower case, and the ranges are sorted and disjoint.
    ///
    /// # Errors
    /// INVALID_ARGUMENT where the caller sees more organizations than one call searches.
    pub fn new(kind: NamedKind, text: &'a str, ranges: &'a [UidRange]) -> Result<NameSearch<'a>> {
        let escaped = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
        let organizations = organizations(ranges)?;
        let (pattern, end) = (format!("%{escaped}%"), format!("{text}{}", char::MAX));
        let sees_all = ranges.iter().all(visible::is_whole);
        Ok(NameSearch { kind, text, pattern, end, ranges, organizations, sees_all, examined: 0 })
    }

    /// Whether the search ended before all names were compared with the ranges.
    pub fn is_incomplete(&self) -> bool {
        self.examined >= MAX_EXAMINED
    }

    /// The names after a position, at most so many.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn after(&mut self, tx: &mut ReadTx, after: Option<&Position>, most: usize) -> Result<Vec<NameRow>> {
        if self.ranges.is_empty() {
            return Ok(Vec::new());
        }
        if !self.sees_all && self.has_few_names(tx).await? {
            return self.among_visible(tx, after, most).await;
        }
        let mut rows = Vec::new();
        if !matches!(after, Some(Position::Within(_))) {
            rows = self.beginning(tx, after, most).await?;
        }
        if rows.len() < most && self.text.chars().count() >= TRIGRAM {
            let number = match after {
                Some(Position::Within(number)) => *number,
                _ => 0,
            };
            rows.extend(self.within(tx, number, most - rows.len()).await?);
        }
        Ok(rows)
    }

    fn count_examined(&mut self, names: usize) {
        if !self.sees_all {
            self.examined += names;
        }
    }

    fn is_visible(&self, uid: &str) -> bool {
        let at = self.ranges.partition_point(|range| range.upper.as_str() <= uid);
        self.ranges.get(at).is_some_and(|range| range.contains(uid))
    }

    /// Names that begin with the text, merged from those of each organization.
    async fn beginning(&mut self, tx: &mut ReadTx, after: Option<&Position>, most: usize) -> Result<Vec<NameRow>> {
        let start = match after {
            Some(Position::Beginning(name, uid)) => (name.clone(), uid.clone()),
            _ => (self.text.to_owned(), String::new()),
        };
        let mut rows = match self.organizations.clone() {
            None => self.beginning_in(tx, None, start, most).await?,
            Some(organizations) => {
                let mut rows = Vec::new();
                for organization in organizations {
                    rows.extend(self.beginning_in(tx, Some(organization), start.clone(), most).await?);
                }
                rows
            }
        };
        rows.sort_by(|one, other| one.position.cmp(&other.position));
        rows.truncate(most);
        Ok(rows)
    }

    async fn beginning_in(
        &mut self,
        tx: &mut ReadTx,
        organization: Option<&str>,
        mut start: (String, String),
        most: usize,
    ) -> Result<Vec<NameRow>> {
        let (mut rows, mut batch) = (Vec::new(), BATCHES.0.max(most as i64));
        while rows.len() < most && !self.is_incomplete() {
            let mut query = Sql::new("SELECT name, uid FROM search_names ");
            let index = if organization.is_some() { "search_names_by_org" } else { "search_names_by_name" };
            query.text += &tx.index_hint(index);
            let kind = query.param(Value::Int(self.kind.number()));
            query.text += &format!(" WHERE kind = {kind}");
            if let Some(organization) = organization {
                let organization = query.param(Value::from(organization));
                query.text += &format!(" AND org = {organization}");
            }
            let (name, uid) = (query.param(Value::from(&start.0)), query.param(Value::from(&start.1)));
            let (end, limit) = (query.param(Value::from(&self.end)), query.param(Value::Int(batch)));
            query.text +=
                &format!(" AND (name, uid) > ({name}, {uid}) AND name < {end} ORDER BY name, uid LIMIT {limit}");
            let read = |row: &Row<'_>| Ok::<_, Error>((row.text(0)?, row.text(1)?));
            let read = tx.query(&query.text, &query.params, read).await?;
            let is_last = (read.len() as i64) < batch;
            self.count_examined(read.len());
            let Some(last) = read.last().cloned() else { break };
            let visible = read.into_iter().filter(|(_, uid)| self.is_visible(uid));
            rows.extend(
                visible.map(|(name, uid)| NameRow { uid: uid.clone(), position: Position::Beginning(name, uid) }),
            );
            if is_last {
                break;
            }
            (start, batch) = (last, (batch * 4).min(BATCHES.1));
        }
        rows.truncate(most);
        Ok(rows)
    }

    /// Names that have the text, but not at their beginning.
    async fn within(&mut self, tx: &mut ReadTx, mut number: i64, most: usize) -> Result<Vec<NameRow>> {
        let trigrams = match tx.engine() {
            Engine::Sqlite => self.match_text(tx).await?,
            Engine::Postgres => String::new(),
        };
        let (mut rows, mut batch) = (Vec::new(), BATCHES.0.max(most as i64));
        while rows.len() < most && !self.is_incomplete() {
            let query = match tx.engine() {
                Engine::Sqlite => self.within_on_sqlite(&trigrams, number, batch),
                Engine::Postgres => self.within_on_postgres(number, batch),
            };
            let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?));
            let read = tx.query(&query.text, &query.params, read).await?;
            let is_last = (read.len() as i64) < batch;
            self.count_examined(read.len());
            let Some(last) = read.last().map(|(number, _)| *number) else { break };
            let visible = read.into_iter().filter(|(_, uid)| self.is_visible(uid));
            rows.extend(visible.map(|(number, uid)| NameRow { uid, position: Position::Within(number) }));
            if is_last {
                break;
            }
            (number, batch) = (last, (batch * 4).min(BATCHES.1));
        }
        rows.truncate(most);
        Ok(rows)
    }

    fn within_on_sqlite<'q>(&'q self, trigrams: &'q str, number: i64, batch: i64) -> Sql<'q> {
        let text = "SELECT s.n, s.uid FROM search_index CROSS JOIN search_names s
                    WHERE s.n = search_index.rowid AND search_index MATCH $1 AND search_index.rowid > $2";
        let mut query = Sql { text: text.into(), params: vec![Value::from(trigrams), Value::Int(number)] };
        self.conditions(&mut query);
        let limit = query.param(Value::Int(batch));
        query.text += &format!(" ORDER BY search_index.rowid LIMIT {limit}");
        query
    }

    fn within_on_postgres(&self, number: i64, batch: i64) -> Sql<'_> {
        let text = "SELECT s.n, s.uid FROM search_names s WHERE s.n > $1";
        let mut query = Sql { text: text.into(), params: vec![Value::Int(number)] };
        self.conditions(&mut query);
        let limit = query.param(Value::Int(batch));
        query.text += &format!(" ORDER BY s.n LIMIT {limit}");
        query
    }

    fn conditions<'q>(&'q self, query: &mut Sql<'q>) {
        let (kind, pattern) = (query.param(Value::Int(self.kind.number())), query.param(Value::from(&self.pattern)));
        let (text, end) = (query.param(Value::from(self.text)), query.param(Value::from(&self.end)));
        query.text += &format!(
            " AND s.kind = {kind} AND s.name LIKE {pattern} ESCAPE '\\' AND NOT (s.name >= {text} AND s.name < {end})"
        );
        if let Some(organizations) = &self.organizations {
            let organizations: Vec<String> =
                organizations.iter().map(|organization| query.param(Value::from(*organization))).collect();
            query.text += &format!(" AND s.org IN ({})", organizations.join(", "));
        }
    }

    /// The query for SQLite's search: the rarest trigrams of the text, and unless one of them is rare, the kind and the
    /// organizations. It has no positions of them, so that a comparison decides.
    async fn match_text(&self, tx: &mut ReadTx) -> Result<String> {
        let trigrams = self.trigrams();
        if trigrams.is_empty() {
            return Ok(self.scopes());
        }
        let counts = trigrams.iter().enumerate().map(|(at, _)| {
            let parameter = at + 1;
            format!(
                "SELECT {at}, (SELECT count(*) FROM (SELECT 1 FROM search_index WHERE search_index MATCH ${parameter} LIMIT {FEW}))"
            )
        });
        let (text, params) =
            (counts.collect::<Vec<_>>().join(" UNION ALL "), trigrams.iter().map(Value::from).collect::<Vec<_>>());
        let read = |row: &Row<'_>| Ok::<_, Error>((row.int(1)?, row.int(0)?));
        let mut counts = tx.query(&text, &params, read).await?;
        counts.sort_unstable();
        let rarest = counts.iter().take(LOOKED_UP).filter_map(|(_, at)| trigrams.get(usize::try_from(*at).ok()?));
        let rarest: Vec<&str> = rarest.map(String::as_str).collect();
        let is_rare = counts.first().is_some_and(|(count, _)| *count < FEW);
        let scopes = (!is_rare).then(|| self.scopes());
        Ok(scopes.as_deref().into_iter().chain(rarest).collect::<Vec<_>>().join(" AND "))
    }

    /// The trigrams of the text, each once, as strings of SQLite's search; none if all have characters of marks.
    fn trigrams(&self) -> Vec<String> {
        let characters: Vec<char> = self.text.chars().collect();
        let windows = characters.windows(TRIGRAM).filter(|window| !window.iter().any(|c| MARKS.contains(c)));
        let trigrams = windows.map(|window| quoted(&window.iter().collect::<String>()));
        let distinct: BTreeSet<String> = trigrams.take(MAX_TRIGRAMS).collect();
        distinct.into_iter().collect()
    }

    /// The names of the kind in the organizations.
    fn scopes(&self) -> String {
        let kind = mark(KIND_MARK + self.kind.number() as u32);
        let Some(organizations) = &self.organizations else { return quoted(&kind.repeat(TRIGRAM)) };
        let scope = |organization: &&str| quoted(&format!("{kind}{}", marks(organization)));
        format!("({})", organizations.iter().map(scope).collect::<Vec<_>>().join(" OR "))
    }
}

/// The organizations that the ranges lie in, each once; absent if the caller sees everything.
fn organizations(ranges: &[UidRange]) -> Result<Option<Vec<&str>>> {
    let mut organizations: Vec<&str> = Vec::new();
    for range in ranges {
        let Some(organization) = range.lower.get(..ROOT_LENGTH) else { return Ok(None) };
        if range.upper > UidRange::subtree(organization).upper {
            return Ok(None);
        }
        if organizations.last() != Some(&organization) {
            organizations.push(organization);
        }
    }
    if organizations.len() > MAX_ORGANIZATIONS {
        let why = format!("must name a group: one search covers up to {MAX_ORGANIZATIONS} organizations");
        return Err(Error::invalid_field("scope", why));
    }
    Ok(Some(organizations))
}

/// Two characters for the first six digits of an organization, as the trigger makes them.
fn marks(organization: &str) -> String {
    [0..3, 3..6].into_iter().map(|part| mark(MARK + digits(organization.get(part).unwrap_or_default()))).collect()
}

fn digits(hex: &str) -> u32 {
    u32::from_str_radix(hex, 16).unwrap_or_default()
}

fn mark(code: u32) -> String {
    char::from_u32(code).map(String::from).unwrap_or_default()
}

/// As one string of SQLite's search.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_few_organizations_are_searched_one_by_one() {
        let (one, other) = ("a".repeat(40), "b".repeat(40));
        let group = format!("{one}/{}", "c".repeat(16));
        let ranges = [UidRange::subtree(&group), UidRange::subtree(&other)];
        assert_eq!(organizations(&ranges).unwrap(), Some(vec![one.as_str(), other.as_str()]));
        assert_eq!(organizations(&[UidRange::all()]).unwrap(), None);
        let many: Vec<UidRange> = (0..=MAX_ORGANIZATIONS).map(|n| UidRange::subtree(&format!("{n:040x}"))).collect();
        assert_eq!(organizations(&many).unwrap_err().reason(), bowline_core::Reason::InvalidArgument);
    }

    #[test]
    fn what_sqlite_is_asked_for_is_quoted() {
        let ranges = [UidRange::all()];
        let search = NameSearch::new(NamedKind::Tag, "a\"bab", &ranges).unwrap();
        assert_eq!(search.trigrams(), ["\"\"\"ba\"", "\"a\"\"b\"", "\"bab\""]);
        assert_eq!(search.scopes(), "\"\u{f103}\u{f103}\u{f103}\"");
        let marks = NameSearch::new(NamedKind::Tag, "\u{f103}\u{f103}\u{f103}web", &ranges).unwrap();
        assert_eq!(marks.trigrams(), ["\"web\""]);
    }
}
