//! Components out of the bytes of a document, within bounds.

use bowline_contract::bowline::registry::v1::UnindexedReason;
use bowline_contract::v1::tenant::Package2;
use bowline_formats::purl::PackageUrl;
use bowline_versions::{Scheme, order_key};

use crate::sboms::{self, Listed};

/// Maximum number of components of an indexed SBOM: one transaction writes all of them.
const MAX_COMPONENTS: usize = 20_000;
/// Maximum bytes of a name and of a version.
const MAX_NAME: usize = 500;
/// Maximum bytes of a package URL; its parts are keys of an index.
const MAX_PURL: usize = 1000;
/// Maximum bytes of a license.
const MAX_LICENSE: usize = 4000;
/// Maximum bytes of a license that can be searched, and maximum number of licenses of an expression.
const MAX_LICENSE_KEY: usize = 255;
pub(super) const MAX_LICENSE_KEYS: usize = 50;

/// A component of an SBOM, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Component {
    /// See [`package_of`]; empty without a valid package URL.
    pub(super) package: String,
    pub(super) version_key: Vec<u8>,
    pub(super) version: String,
    pub(super) name: String,
    pub(super) purl: String,
    pub(super) license: String,
}

/// What a document is to the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    NoSbom,
    Unindexed(UnindexedReason),
    Components(Vec<Component>),
}

/// A document of a manifest that was read.
#[derive(Clone, Debug)]
pub(crate) struct ReadSbom {
    /// Digest of its blob.
    pub(crate) digest: String,
    pub(crate) reading: Reading,
}

impl Reading {
    /// Reads a document of this media type.
    pub(super) fn of(media_type: &str, bytes: &[u8]) -> Reading {
        match sboms::listed(bytes) {
            // The sender calls it an SBOM.
            Listed::NoSbom if is_sbom_type(media_type) => Reading::Unindexed(UnindexedReason::Unreadable),
            Listed::NoSbom => Reading::NoSbom,
            Listed::Unreadable => Reading::Unindexed(UnindexedReason::Unreadable),
            Listed::TooLarge => Reading::Unindexed(UnindexedReason::TooManyComponents),
            Listed::Packages(packages) => of_packages(packages),
        }
    }

    /// A document of this media type that is too large to be read.
    pub(super) fn too_large(media_type: &str) -> Reading {
        if is_sbom_type(media_type) || media_type.contains("in-toto") {
            Reading::Unindexed(UnindexedReason::TooLarge)
        } else {
            Reading::NoSbom
        }
    }
}

fn is_sbom_type(media_type: &str) -> bool {
    media_type.contains("spdx") || media_type.contains("cyclonedx")
}

fn of_packages(packages: Vec<Package2>) -> Reading {
    if packages.len() > MAX_COMPONENTS {
        return Reading::Unindexed(UnindexedReason::TooManyComponents);
    }
    let components: Option<Vec<Component>> = packages.into_iter().map(component).collect();
    let Some(mut components) = components else { return Reading::Unindexed(UnindexedReason::TextTooLong) };
    components.sort_unstable();
    components.dedup();
    Reading::Components(components)
}

/// Absent if a text of it is too long.
fn component(package: Package2) -> Option<Component> {
    let Package2 { name, version, purl, license, .. } = package;
    let read = PackageUrl::parse(&purl).ok();
    let version = read.as_ref().map(|purl| purl.version.clone()).filter(|text| !text.is_empty()).unwrap_or(version);
    let scheme = read.as_ref().map_or(Scheme::Text, |purl| Scheme::of_purl_type(&purl.kind));
    let component = Component {
        package: read.as_ref().map(package_of).unwrap_or_default(),
        version_key: order_key(scheme, &version),
        version: stored(version, MAX_NAME)?,
        name: stored(name, MAX_NAME)?,
        purl: stored(purl, MAX_PURL)?,
        license: stored(license, MAX_LICENSE)?,
    };
    Some(component)
}

/// The text as a column holds it; absent if it is too long. PostgreSQL holds no NUL.
fn stored(text: String, most: usize) -> Option<String> {
    let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
    (text.len() <= most).then_some(text)
}

/// Type, namespace and name of a package URL, as in `maven/org.example/library`.
pub(super) fn package_of(purl: &PackageUrl) -> String {
    let parts = [purl.kind.as_str()].into_iter().chain(purl.namespace.iter().map(String::as_str));
    let parts: Vec<&str> = parts.chain([purl.name.as_str()]).collect();
    parts.join("/")
}

/// What a license is searched by: its whole text, and each license of an expression, in lower case.
pub(super) fn license_keys(license: &str) -> Vec<String> {
    let whole = license.trim().to_lowercase();
    let is_expression = [" and ", " or ", " with "].iter().any(|operator| whole.contains(operator));
    let mut keys = vec![whole.clone()];
    if is_expression {
        let plain = whole.replace(['(', ')'], " ").replace(" or ", " and ").replace(" with ", " and ");
        keys.extend(plain.split(" and ").map(|one| one.trim().to_owned()));
    }
    keys.retain(|key| !key.is_empty() && key.len() <= MAX_LICENSE_KEY);
    keys.sort_unstable();
    keys.dedup();
    keys.truncate(MAX_LICENSE_KEYS);
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cyclonedx(components: &str) -> String {
        format!(r#"{{"bomFormat":"CycloneDX","components":[{components}]}}"#)
    }

    fn reading(text: &str) -> Reading {
        Reading::of("application/json", text.as_bytes())
    }

    #[test]
    fn components_are_stored_once_by_their_normalized_package() {
        let one = r#"{"name":"Foo_Bar","version":"0","purl":"pkg:PyPI/Foo_Bar@1.0","licenses":[{"expression":"MIT"}]}"#;
        let Reading::Components(components) = reading(&cyclonedx(&format!("{one},{one}"))) else { panic!("no SBOM") };
        let [component] = &components[..] else { panic!("{components:?}") };
        assert_eq!((&*component.package, &*component.version, &*component.license), ("pypi/foo-bar", "1.0", "MIT"));
        let purl = PackageUrl::parse("pkg:maven/org.example/library@1").expect("a package URL");
        assert_eq!(package_of(&purl), "maven/org.example/library");
    }

    #[test]
    fn what_is_beyond_a_bound_is_not_indexed_and_the_reason_is_known() {
        let unindexed = Reading::Unindexed;
        let long = "x".repeat(MAX_NAME + 1);
        let deep = format!("{}{}", r#"{"components":["#.repeat(200), "]}".repeat(200));
        let many = vec![r#"{"name":"x"}"#; MAX_COMPONENTS + 1].join(",");
        for (components, expected) in [
            (format!(r#"{{"name":"{long}"}}"#), UnindexedReason::TextTooLong),
            (deep, UnindexedReason::Unreadable),
            (many, UnindexedReason::TooManyComponents),
            ("{},".repeat(1_000_000) + "{}", UnindexedReason::TooManyComponents),
        ] {
            assert_eq!(reading(&cyclonedx(&components)), unindexed(expected));
        }
        assert_eq!(reading("{}"), Reading::NoSbom);
        assert_eq!(Reading::of("application/spdx+json", b"{"), unindexed(UnindexedReason::Unreadable));
        assert_eq!(Reading::too_large("application/vnd.in-toto+json"), unindexed(UnindexedReason::TooLarge));
        assert_eq!(Reading::too_large("application/json"), Reading::NoSbom);
    }

    #[test]
    fn licenses_are_searched_whole_and_by_the_parts_of_an_expression() {
        assert_eq!(license_keys("MIT"), ["mit"]);
        assert_eq!(license_keys("Apache License, Version 2.0"), ["apache license, version 2.0"]);
        let expression = "(GPL-2.0-only WITH Classpath-exception-2.0) OR MIT";
        let parts =
            ["(gpl-2.0-only with classpath-exception-2.0) or mit", "classpath-exception-2.0", "gpl-2.0-only", "mit"];
        assert_eq!(license_keys(expression), parts);
        assert!(license_keys("").is_empty());
        assert!(license_keys(&"x".repeat(256)).is_empty());
    }
}
