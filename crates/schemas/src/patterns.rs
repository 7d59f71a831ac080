//! Patterns of field rules in the syntax of ECMA-262, which JSON Schema prescribes.

pub(crate) const UIDP: &str = "^[0-9a-f]{40}(?:/[0-9a-f]{16})*$";

/// Names that no resource may have: part of a UIDP, `.` or `..`, or with a space at either end.
pub(crate) const RESERVED_NAME: &str = "^(?:[0-9a-f]{16}|[0-9a-f]{40}|\\.{1,2}| .*|.* )$";

/// The pattern for validators of other languages. It may match more than the rule, never less: programs without
/// Unicode tables know no `\p`, so that of "other characters" (`C`) the control characters alone are excluded.
pub(crate) fn ecma(pattern: &str) -> String {
    const CONTROL: &str = "\\x00-\\x1f\\x7f-\\x9f";
    pattern.replace("\\P{C}", &format!("[^{CONTROL}]")).replace("\\p{Cc}", CONTROL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unicode_classes_become_ranges() {
        assert_eq!(ecma("^[^:\\p{Cc}]*$"), "^[^:\\x00-\\x1f\\x7f-\\x9f]*$");
        assert_eq!(ecma("^\\P{C}*$"), "^[^\\x00-\\x1f\\x7f-\\x9f]*$");
        assert_eq!(ecma("^[\\S \\r\\n]*$"), "^[\\S \\r\\n]*$");
    }
}
