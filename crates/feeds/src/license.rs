//! What licenses permit with imported data.

/// Whether a license forbids derivatives: an export is a derivative of the imported data. `license` is an SPDX
/// expression or the license's name.
pub fn forbids_derivatives(license: &str) -> bool {
    let license = license.to_ascii_lowercase();
    let mut words = license.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| word == "nd") || license.contains("noderiv") || license.contains("no deriv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licenses_without_derivatives_are_recognized() {
        for license in [
            "CC-BY-NC-ND-4.0",
            "CC BY-NC-ND 4.0",
            "cc-by-nd-3.0",
            "Attribution-NoDerivatives 4.0",
            "MIT AND CC-BY-ND-4.0",
        ] {
            assert!(forbids_derivatives(license), "{license}");
        }
        for license in ["", "CC0-1.0", "CC-BY-4.0", "Apache-2.0", "MIT AND ISC", "LicenseRef-Brand"] {
            assert!(!forbids_derivatives(license), "{license}");
        }
    }
}
