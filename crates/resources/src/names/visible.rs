//! The search of a caller who sees a part of an organization: through the names of that part alone.

use bowline_core::{Error, ROOT_LENGTH, Result, UidRange};
use bowline_store::{ReadTx, Row, Sql, Value};

use super::{MAX_EXAMINED, NameRow, NameSearch, Position, TRIGRAM};

/// Ranges that one statement names.
const RANGES_AT_ONCE: usize = 100;

impl NameSearch<'_> {
    /// Whether so few names are in the ranges that all of them can be compared with the text.
    pub(super) async fn has_few_names(&self, tx: &mut ReadTx) -> Result<bool> {
        let mut left = MAX_EXAMINED;
        for ranges in self.ranges.chunks(RANGES_AT_ONCE) {
            let mut query = Sql::new("SELECT count(*) FROM (SELECT 1 FROM search_names s ");
            query.text += &tx.index_hint("search_names_uid");
            in_ranges(&mut query, ranges);
            query.bind(" LIMIT ", Value::Int(left as i64 + 1)).push(") AS names");
            let count = tx.query_opt(&query.text, &query.params, |row| row.int(0).map_err(Error::from)).await?;
            let Some(rest) = left.checked_sub(usize::try_from(count.unwrap_or_default()).unwrap_or(usize::MAX)) else {
                return Ok(false);
            };
            left = rest;
        }
        Ok(true)
    }

    /// The names after a position, out of all that are in the ranges.
    pub(super) async fn among_visible(
        &self,
        tx: &mut ReadTx,
        after: Option<&Position>,
        most: usize,
    ) -> Result<Vec<NameRow>> {
        let mut rows = Vec::new();
        let read = |row: &Row<'_>| Ok::<_, Error>((row.int(0)?, row.text(1)?, row.text(2)?));
        for ranges in self.ranges.chunks(RANGES_AT_ONCE) {
            let mut query = Sql::new("SELECT s.n, s.name, s.uid FROM search_names s ");
            query.text += &tx.index_hint("search_names_uid");
            in_ranges(&mut query, ranges);
            query.bind(" AND s.kind = ", Value::Int(self.kind.number()));
            query.bind(" AND s.name LIKE ", Value::from(&self.pattern)).push(" ESCAPE '\\'");
            rows.extend(tx.query(&query.text, &query.params, read).await?);
        }
        let is_long = self.text.chars().count() >= TRIGRAM;
        let positioned = |(number, name, uid): (i64, String, String)| {
            let begins = name.as_str() >= self.text && name < self.end;
            let position = if begins { Position::Beginning(name, uid.clone()) } else { Position::Within(number) };
            (begins || is_long).then_some(NameRow { uid, position })
        };
        let mut rows: Vec<NameRow> = rows.into_iter().filter_map(positioned).collect();
        rows.retain(|row| after.is_none_or(|after| row.position > *after));
        rows.sort_by(|one, other| one.position.cmp(&other.position));
        rows.truncate(most);
        Ok(rows)
    }
}

/// Whether a range is all that there is, or a whole organization.
pub(super) fn is_whole(range: &UidRange) -> bool {
    let organization = range.lower.get(..ROOT_LENGTH).unwrap_or_default();
    *range == UidRange::all() || *range == UidRange::subtree(organization)
}

/// The condition that a name lies in one of the ranges.
fn in_ranges<'q>(query: &mut Sql<'q>, ranges: &'q [UidRange]) {
    for (index, range) in ranges.iter().enumerate() {
        query.bind(if index == 0 { " WHERE (" } else { " OR " }, Value::from(&range.lower));
        query.push(" <= s.uid AND s.uid < ").bind("", Value::from(&range.upper));
    }
    query.push(")");
}
