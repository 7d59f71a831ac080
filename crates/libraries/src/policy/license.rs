//! Licences of packages, as SPDX expressions.

/// Whether an expression names an identifier as a whole token, without regard to case: `GPL-3.0` is not in `GPL-3.0-only`.
///
/// It does not matter whether the expression offers a choice: who does not want a licence does not want to read how `OR`
/// binds either.
pub(super) fn names(expression: &str, identifier: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | ';' | '/' | '|' | '&');
    let mut tokens = expression.split(is_separator).filter(|token| !token.is_empty());
    tokens.any(|token| token.eq_ignore_ascii_case(identifier))
}

/// The identifiers of a policy: without repetitions, in their order.
pub(crate) fn normalized(identifiers: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(identifiers.len());
    for identifier in identifiers.iter().map(|identifier| identifier.trim()) {
        if !kept.iter().any(|known| known.eq_ignore_ascii_case(identifier)) {
            kept.push(identifier.to_owned());
        }
    }
    kept
}

/// Whether a word joins identifiers and is none.
pub(crate) fn is_operator(identifier: &str) -> bool {
    ["AND", "OR", "WITH"].iter().any(|word| identifier.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_match_as_whole_tokens() {
        assert!(names("(MIT OR gpl-3.0-only)", "GPL-3.0-only"));
        assert!(names("GPL-2.0-only WITH Classpath-exception-2.0", "Classpath-exception-2.0"));
        for expression in ["GPL-3.0-only", "GPL-3.0+", "LGPL-3.0", ""] {
            assert!(!names(expression, "GPL-3.0"), "{expression}");
        }
    }

    #[test]
    fn repetitions_go() {
        let given = ["MIT", " mit ", "Apache-2.0"].map(String::from);
        assert_eq!(normalized(&given), ["MIT", "Apache-2.0"]);
    }
}
