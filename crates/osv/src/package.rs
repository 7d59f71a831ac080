//! How packages are found again: one key for all the spellings of a name.

use crate::purl::RUST;

/// Ecosystem and name as the index has them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageKey(String);

/// The ecosystem without what follows the first colon: `Debian` of `Debian:12`.
pub fn base_ecosystem(ecosystem: &str) -> &str {
    ecosystem.split(':').next().unwrap_or(ecosystem)
}

impl PackageKey {
    /// The key of a package. Releases of a distribution share it; names that an ecosystem takes for the same do too.
    pub fn new(ecosystem: &str, name: &str) -> PackageKey {
        let base = base_ecosystem(ecosystem).to_ascii_lowercase();
        let name = match base.as_str() {
            "pypi" => python_name(name),
            RUST | "nuget" | "packagist" | "hex" | "pub" | "github actions" | "vscode" => name.to_lowercase(),
            _ => name.into(),
        };
        // No ecosystem has a slash, so that no two packages have one key.
        PackageKey(format!("{base}/{name}"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lower case, and one dash for every run of `-`, `_` and `.`.
fn python_name(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for character in name.chars() {
        if matches!(character, '-' | '_' | '.') {
            if !normal.ends_with('-') {
                normal.push('-');
            }
        } else {
            normal.extend(character.to_lowercase());
        }
    }
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_name_have_one_key() {
        let key = |ecosystem: &str, name: &str| PackageKey::new(ecosystem, name).as_str().to_owned();
        assert_eq!(key("PyPI", "Some.-_Thing"), "pypi/some-thing");
        assert_eq!(key("NuGet", "Newtonsoft.Json"), "nuget/newtonsoft.json");
        assert_eq!(key("npm", "JSONStream"), "npm/JSONStream", "npm tells cases apart");
        assert_eq!(key("Debian:12", "curl"), key("Debian", "curl"));
        assert_eq!(key("Ubuntu:22.04:LTS", "curl"), "ubuntu/curl");
        assert_ne!(key("Maven", "a:b"), key("npm", "a:b"));
    }
}
