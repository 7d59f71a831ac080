//! Statements about many rows at once, in few texts: prepared statements are cached by their text.

use bowline_core::Result;
use bowline_store::{Value, WriteTx};

/// Values of one list.
pub(crate) const IN_A_LIST: usize = 256;

/// `($first, ...)` for a list, and its values: rounded up to a power of two by repeating the last one, which changes
/// nothing for `IN`. The list has at least one value and at most [`IN_A_LIST`].
pub(crate) fn among<'a>(first: usize, values: impl Iterator<Item = Value<'a>>) -> (String, Vec<Value<'a>>) {
    let mut values: Vec<Value<'a>> = values.collect();
    if let Some(last) = values.last().copied() {
        values.resize(values.len().next_power_of_two(), last);
    }
    let placeholders: Vec<String> = (first..first + values.len()).map(|i| format!("${i}")).collect();
    (format!("({})", placeholders.join(", ")), values)
}

/// Inserts rows of so many columns, given one after the other.
pub async fn insert(tx: &mut WriteTx, head: &str, columns: usize, values: &[Value<'_>]) -> Result<()> {
    let mut rest = values;
    for rows in [64, 8, 1] {
        let sql = format!("{head} VALUES {}", tuples(columns, rows));
        while rest.len() >= rows * columns {
            let (these, after) = rest.split_at(rows * columns);
            tx.execute(&sql, these).await?;
            rest = after;
        }
    }
    Ok(())
}

fn tuples(columns: usize, rows: usize) -> String {
    let tuple = |row: usize| {
        let placeholders: Vec<String> = (1..=columns).map(|column| format!("${}", row * columns + column)).collect();
        format!("({})", placeholders.join(", "))
    };
    (0..rows).map(tuple).collect::<Vec<_>>().join(", ")
}

/// Runs a statement that ends with `IN` for a list of numbers, in parts.
pub(super) async fn for_numbers(tx: &mut WriteTx, head: &str, before: &[Value<'_>], numbers: &[i64]) -> Result<()> {
    for part in numbers.chunks(IN_A_LIST) {
        let (placeholders, values) = among(before.len() + 1, part.iter().copied().map(Value::Int));
        let params: Vec<Value<'_>> = before.iter().copied().chain(values).collect();
        tx.execute(&format!("{head} {placeholders}"), &params).await?;
    }
    Ok(())
}

/// Sets the generation at which records are no longer seen.
pub(super) async fn set_until(tx: &mut WriteTx, until: i64, numbers: &[i64]) -> Result<()> {
    for head in ["UPDATE records SET until = $1 WHERE n IN", "UPDATE record_affects SET until = $1 WHERE record IN"] {
        for_numbers(tx, head, &[Value::Int(until)], numbers).await?;
    }
    Ok(())
}

/// Deletes records with all that belongs to them.
pub(super) async fn delete_records(tx: &mut WriteTx, numbers: &[i64]) -> Result<()> {
    for head in [
        "DELETE FROM record_aliases WHERE record IN",
        "DELETE FROM record_affects WHERE record IN",
        "DELETE FROM record_bodies WHERE record IN",
        "DELETE FROM records WHERE n IN",
    ] {
        for_numbers(tx, head, &[], numbers).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_few_lengths() {
        let (placeholders, values) = among(2, [1, 2, 3].map(Value::Int).into_iter());
        assert_eq!(placeholders, "($2, $3, $4, $5)");
        assert_eq!(values, [1, 2, 3, 3].map(Value::Int));
        assert_eq!(tuples(2, 2), "($1, $2), ($3, $4)");
    }
}
