/// The candidate that differs least from a text, if it is close enough to be meant.
pub fn nearest<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let lower = text.to_lowercase();
    let longest = (text.chars().count() / 3).max(1) + 1;
    let scored = candidates.into_iter().map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate));
    scored.filter(|(distance, _)| *distance <= longest).min_by_key(|(distance, _)| *distance).map(|(_, best)| best)
}

/// `; did you mean X?`, or nothing.
pub fn suggestion<'c>(text: &str, candidates: impl IntoIterator<Item = &'c str>) -> String {
    nearest(text, candidates).map(|best| format!("; did you mean {best}?")).unwrap_or_default()
}

/// Insertions, deletions and replacements between two texts.
fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (line, left) in from.chars().enumerate() {
        let mut diagonal = line;
        let mut before = line + 1;
        for (at, right) in to.iter().enumerate() {
            let above = row.get(at + 1).copied().unwrap_or_default();
            let changed = diagonal + usize::from(left != *right);
            diagonal = above;
            if let Some(cell) = row.get_mut(at) {
                *cell = before;
            }
            before = changed.min(above + 1).min(before + 1);
        }
        if let Some(cell) = row.last_mut() {
            *cell = before;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        for (from, to, expected) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3)]
        {
            assert_eq!(distance(from, to), expected, "{from} {to}");
        }
    }

    #[test]
    fn only_what_is_close_is_suggested() {
        let words = ["json", "yaml", "table"];
        assert_eq!(nearest("jsno", words), Some("json"));
        assert_eq!(nearest("YML", words), Some("yaml"));
        assert_eq!(nearest("protobuf", words), None);
        assert_eq!(suggestion("tabel", words), "; did you mean table?");
    }
}
