//! Free text: advisories whose words contain it, found by trigrams.
//!
//! PostgreSQL weighs trigrams itself. SQLite's search reads the list of every trigram of a phrase to its end, and nearly
//! all advisories have "cve": the two that the fewest have find about as few, and the words decide.

use bowline_core::{Error, Result, UidRange};
use bowline_store::{Engine, ReadTx, Sql, Value};

use super::filters::Filters;
use super::lists::in_range;

/// Trigrams of a text that are weighed.
const WEIGHED: usize = 16;
/// Maximum number of advisories with a trigram that are counted to estimate how rare it is.
const LOOKED_AT: i64 = 500;
/// A trigram that more than one of so many advisories have finds too many: then the whole phrase is looked for.
const FREQUENT: i64 = 10;

/// Whether an index finds the requested words: fewer than three characters have no trigram.
pub(super) fn are_indexed(filters: &Filters) -> bool {
    filters.query.chars().count() >= 3
}

/// The advisories of a range that have the text, or as many as the limit says.
pub(super) async fn matching(tx: &mut ReadTx, filters: &Filters, range: &UidRange, limit: i64) -> Result<Vec<String>> {
    let mut query = Sql::new("SELECT w.advisory FROM ");
    let phrase = match tx.engine() {
        Engine::Sqlite => Some(phrase(tx, &filters.query).await?),
        Engine::Postgres => None,
    };
    match &phrase {
        Some(phrase) => {
            let phrase = query.param(Value::from(phrase));
            query.text += "advisory_search s CROSS JOIN advisory_words w WHERE w.n = s.rowid";
            query.text += &format!(" AND s.words MATCH {phrase} AND ");
        }
        None => query.text += "advisory_words w WHERE ",
    }
    let pattern = query.param(Value::from(&filters.pattern));
    query.text += &format!(r"w.words LIKE {pattern} ESCAPE '\'");
    in_range(&mut query, "w.advisory", range);
    let limit = query.param(Value::Int(limit));
    query.text += &format!(" LIMIT {limit}");
    tx.query(&query.text, &query.params, |row| row.text(0).map_err(Error::from)).await
}

/// The phrase for SQLite's search: the two rarest trigrams, or the whole text where those are frequent too.
async fn phrase(tx: &mut ReadTx, text: &str) -> Result<String> {
    let mut weighed = Vec::new();
    for trigram in trigrams(text) {
        weighed.push((rarity(tx, &trigram).await?, trigram));
    }
    weighed.sort_unstable_by(|one, other| other.cmp(one));
    Ok(match weighed.as_slice() {
        [(rarity, rarest), (_, next), ..] if *rarity > LOOKED_AT * FREQUENT => {
            format!("{} AND {}", quoted(rarest), quoted(next))
        }
        _ => quoted(text),
    })
}

/// Among how many advisories the first [`LOOKED_AT`] with a trigram lie: the more, the rarer it is.
async fn rarity(tx: &mut ReadTx, trigram: &str) -> Result<i64> {
    let sql =
        "SELECT count(*), max(n) - min(n) FROM (SELECT rowid AS n FROM advisory_search WHERE words MATCH $1 LIMIT $2)";
    let params = [Value::Text(&quoted(trigram)), Value::Int(LOOKED_AT)];
    let read = |row: &bowline_store::Row<'_>| -> Result<_> {
        Ok(if row.int(0)? < LOOKED_AT { i64::MAX } else { row.int(1)? })
    };
    Ok(tx.query_opt(sql, &params, read).await?.unwrap_or(i64::MAX))
}

/// The first different trigrams of a text.
fn trigrams(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let mut trigrams: Vec<String> = characters.windows(3).take(WEIGHED).map(|window| window.iter().collect()).collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

/// As one string of SQLite's search.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_each_trigram_once() {
        assert_eq!(trigrams("abcabc"), ["abc", "bca", "cab"]);
        assert_eq!(trigrams("äöü"), ["äöü"]);
        assert_eq!(trigrams("ab"), [""; 0]);
    }

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(quoted("a\"b"), "\"a\"\"b\"");
    }
}
