//! Package URLs, as far as packages of known ecosystems have them.

use std::fmt;

use bowline_formats::purl::{PackageUrl, PackageUrlError};

/// A package URL in the words of the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purl {
    /// The schema's name of the ecosystem, with a release where the URL names one.
    pub ecosystem: String,
    /// The name as the ecosystem spells it; of packages of Debian and Ubuntu
    /// that of the source, if it is stated.
    pub name: String,
    /// The version, if the URL has one.
    pub version: Option<String>,
}

/// Why a text is no package URL that a package can be found by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PurlError {
    /// It does not have the form.
    Form(PackageUrlError),
    /// Its type, or the distribution it names, is not an ecosystem of the schema.
    Ecosystem,
}

impl fmt::Display for PurlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PurlError::Form(wrong) => write!(f, "is not a package URL of the form pkg:type/name@version: {wrong}"),
            PurlError::Ecosystem => f.write_str("names no ecosystem that is known here"),
        }
    }
}

/// The ecosystem of Rust as records spell it: as its registry is named.
pub const RUST: &str = concat!("crates", ".io");

impl Purl {
    /// Reads a package URL. Of the qualifiers, those count that name the release and the source package of a distribution's
    /// package; the subpath does not.
    ///
    /// # Errors
    /// The text is not a package URL, or its ecosystem is not in the schema.
    pub fn parse(text: &str) -> Result<Purl, PurlError> {
        let purl = PackageUrl::parse(text).map_err(PurlError::Form)?;
        Purl::of(&purl).ok_or(PurlError::Ecosystem)
    }
}

/// The ecosystem of a package, and its name there. Absent if its ecosystem is not in the schema.
pub(crate) fn named(kind: &str, namespace: &[&str], name: &str) -> Option<(&'static str, String)> {
    let (ecosystem, joint) = ecosystem(kind, namespace)?;
    let name = match joint {
        Some(joint) if !namespace.is_empty() => format!("{}{joint}{name}", namespace.join("/")),
        _ => name.to_owned(),
    };
    Some((ecosystem, name))
}

/// The ecosystem of a type, and what joins namespace and name in it; nothing where the namespace is no part of the name.
fn ecosystem(kind: &str, namespace: &[&str]) -> Option<(&'static str, Option<char>)> {
    let distribution = namespace.first().map(|first| first.to_ascii_lowercase()).unwrap_or_default();
    Some(match kind {
        "pypi" => ("PyPI", None),
        "npm" => ("npm", Some('/')),
        "maven" => ("Maven", Some(':')),
        "golang" => ("Go", Some('/')),
        "cargo" => (RUST, None),
        "gem" => ("RubyGems", None),
        "nuget" => ("NuGet", None),
        "composer" => ("Packagist", Some('/')),
        "hex" => ("Hex", Some('/')),
        "pub" => ("Pub", None),
        "hackage" => ("Hackage", None),
        "cran" => ("CRAN", None),
        "conan" => ("ConanCenter", None),
        "swift" => ("SwiftURL", Some('/')),
        "bitnami" => ("Bitnami", None),
        "julia" => ("Julia", None),
        "github" => ("GitHub Actions", Some('/')),
        "apk" => match distribution.as_str() {
            "alpine" => ("Alpine", None),
            "wolfi" => ("Wolfi", None),
            "chainguard" => ("Chainguard", None),
            "minimos" => ("MinimOS", None),
            _ => return None,
        },
        "deb" => match distribution.as_str() {
            "debian" => ("Debian", None),
            "ubuntu" => ("Ubuntu", None),
            "echo" => ("Echo", None),
            _ => return None,
        },
        "rpm" => match distribution.as_str() {
            "almalinux" => ("AlmaLinux", None),
            "rocky-linux" | "rocky" | "rockylinux" => ("Rocky Linux", None),
            "redhat" | "rhel" => ("Red Hat", None),
            "opensuse" | "opensuse-leap" | "opensuse-tumbleweed" => ("openSUSE", None),
            "suse" => ("SUSE", None),
            "mageia" => ("Mageia", None),
            "openeuler" => ("openEuler", None),
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn package_urls_name_packages_as_the_ecosystems_do() {
        for (text, ecosystem, name, version) in [
            ("pkg:pypi/jinja2@2.4.1", "PyPI", "jinja2", Some("2.4.1")),
            ("pkg:npm/%40babel/core@7.0.0?a=b#c", "npm", "@babel/core", Some("7.0.0")),
            ("pkg:npm/@babel/core", "npm", "@babel/core", None),
            ("pkg:maven/org.a/b@1", "Maven", "org.a:b", Some("1")),
            ("pkg:golang/github.com/a/b@v1.2.3", "Go", "github.com/a/b", Some("v1.2.3")),
            ("pkg:cargo/serde@", RUST, "serde", None),
            ("pkg:deb/debian/curl@7.1-1%2Bdeb?arch=source", "Debian", "curl", Some("7.1-1+deb")),
            ("pkg:apk/wolfi/curl@8", "Wolfi", "curl", Some("8")),
            ("pkg:composer/a/b@1", "Packagist", "a/b", Some("1")),
        ] {
            let expected = Purl { ecosystem: ecosystem.into(), name: name.into(), version: version.map(String::from) };
            assert_eq!(Purl::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "jinja2", "pkg:", "pkg:pypi", "pkg:pypi/", "pkg:pypi/%zz", "pkg:pypi/%ff", "pkg:pypi/a%4"] {
            assert!(matches!(Purl::parse(text), Err(PurlError::Form(_))), "{text}");
        }
        for text in ["pkg:docker/alpine@3", "pkg:deb/unheard/curl@1", "pkg:deb/curl"] {
            assert_eq!(Purl::parse(text), Err(PurlError::Ecosystem), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "pkg:[a-z]{0,6}/?\\PC{0,40}") {
            let _ = Purl::parse(&text);
        }
    }
}
