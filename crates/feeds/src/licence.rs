//! What licences allow with data of others.

/// Whether a licence forbids to hand on what was made of the data: one of the "no derivatives" kind does, and an export
/// is a derivative. `licence` is an SPDX expression or the licence's name.
pub fn forbids_derivatives(licence: &str) -> bool {
    let licence = licence.to_ascii_lowercase();
    let mut words = licence.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| word == "nd") || licence.contains("noderiv") || licence.contains("no deriv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_without_derivatives_are_known() {
        for licence in [
            "CC-BY-NC-ND-4.0",
            "CC BY-NC-ND 4.0",
            "cc-by-nd-3.0",
            "Attribution-NoDerivatives 4.0",
            "MIT AND CC-BY-ND-4.0",
        ] {
            assert!(forbids_derivatives(licence), "{licence}");
        }
        for licence in ["", "CC0-1.0", "CC-BY-4.0", "Apache-2.0", "MIT AND ISC", "LicenseRef-Brand"] {
            assert!(!forbids_derivatives(licence), "{licence}");
        }
    }
}
