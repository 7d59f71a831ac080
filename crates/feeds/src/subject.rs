//! Artifacts and components as package URLs.

use std::collections::BTreeMap;

use bowline_formats::purl::{PackageUrl, is_kind};

use crate::model::{Artifact, Component};

/// The qualifier with the location of a component, which no other tool defines.
const LOCATION: &str = "location";

/// Reads a package URL; the error names the invalid text.
pub(crate) fn package_url(text: &str) -> Result<PackageUrl, String> {
    PackageUrl::parse(text).map_err(|wrong| format!("{text:?} is no package URL: {wrong}"))
}

/// A package URL with the location that an id adds to it, if it is an id of this server.
pub(crate) fn located_by(purl: PackageUrl, id: &str) -> PackageUrl {
    let Ok(located) = PackageUrl::parse(id) else { return purl };
    let mut plain = located.clone();
    plain.qualifiers.remove(LOCATION);
    if plain == purl { located } else { purl }
}

/// What a statement is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) artifact: Artifact,
    pub(crate) component: Component,
}

/// Types of components in the words of scanners, and the types of package URLs that mean the same.
const ECOSYSTEMS: [(&str, &str); 12] = [
    ("python", "pypi"),
    ("npm", "npm"),
    ("java-archive", "maven"),
    ("go-module", "golang"),
    ("rust-crate", "cargo"),
    ("gem", "gem"),
    ("php-composer", "composer"),
    ("dotnet", "nuget"),
    ("hex", "hex"),
    ("dart-pub", "pub"),
    ("swift", "swift"),
    ("conan", "conan"),
];

/// Types of packages of operating systems: their package URLs begin with the distribution, their names do not.
const SYSTEM: [&str; 3] = ["apk", "deb", "rpm"];

/// Whether packages of this type belong to an operating system.
pub(crate) fn is_system(kind: &str) -> bool {
    SYSTEM.contains(&kind)
}

/// A package of a distribution.
fn system(kind: &str, name: &str, distribution: &str) -> PackageUrl {
    let namespace = if distribution.is_empty() { Vec::new() } else { vec![distribution.to_owned()] };
    PackageUrl { kind: kind.into(), namespace, name: name.into(), ..PackageUrl::default() }
}

fn purl_kind(component_kind: &str) -> Option<&str> {
    ECOSYSTEMS.iter().find(|(kind, _)| *kind == component_kind).map(|(_, purl)| *purl)
}

fn component_kind(purl_kind: &str) -> Option<&'static str> {
    ECOSYSTEMS.iter().find(|(_, purl)| *purl == purl_kind).map(|(kind, _)| *kind)
}

/// Whether a name of that type of package URL has a namespace before a separator.
fn separator(kind: &str) -> char {
    if kind == "maven" { ':' } else { '/' }
}

fn named(kind: &str, name: &str) -> PackageUrl {
    let mut segments: Vec<&str> = name.split(separator(kind)).collect();
    // Only what can be put together again is taken apart.
    if segments.iter().any(|segment| segment.is_empty()) || (kind == "maven" && segments.len() != 2) {
        segments = vec![name];
    }
    let last = segments.pop().unwrap_or_default().to_owned();
    let namespace = segments.into_iter().map(str::to_owned).collect();
    PackageUrl { kind: kind.into(), namespace, name: last, ..PackageUrl::default() }.normalized()
}

fn name_of(purl: &PackageUrl) -> String {
    let mut segments = purl.namespace.clone();
    segments.push(purl.name.clone());
    let namespace = purl.namespace.join("/");
    if purl.kind == "maven" && !namespace.is_empty() {
        return format!("{}:{}", namespace.replace('/', "."), purl.name);
    }
    segments.join("/")
}

/// What stands in a package URL for one whose type says nothing.
const GENERIC: &str = "generic";

impl Subject {
    /// The artifact at a version; packages of the operating system get that distribution.
    pub(crate) fn artifact_purl(&self, version: &str, distribution: &str) -> Result<PackageUrl, String> {
        let Artifact { kind, name, architecture } = &self.artifact;
        if name.is_empty() {
            return Err("the artifact has no name".into());
        }
        let mut purl = match kind.as_str() {
            kind if is_system(kind) => system(kind, name, distribution),
            "image" => image(name),
            "library" => named(purl_kind(&self.component.kind).unwrap_or(GENERIC), name),
            kind if is_kind(kind) && !reads_as_another(kind) => named(kind, name),
            kind => with(named(GENERIC, name), "artifact_type", kind),
        };
        // The version of an image is its digest, and nothing else.
        if kind == "image" && !version.contains(':') {
            purl = with(purl, "tag", version);
        } else {
            purl.version = version.into();
        }
        Ok(with(purl, "arch", architecture))
    }

    /// The component as scanners name it, unless all of the artifact is meant. Packages of the operating
    /// system get that distribution. The location is left out: scanners do not put it into package URLs, and
    /// a longer URL would not match theirs.
    pub(crate) fn component_purl(&self, distribution: &str) -> Result<Option<PackageUrl>, String> {
        let Component { kind, name, .. } = &self.component;
        if self.is_library_itself() {
            return Ok(None);
        }
        if name.is_empty() {
            let reason = "the component has no name, and without it the whole artifact would be meant";
            return if self.component.is_empty() { Ok(None) } else { Err(reason.into()) };
        }
        let purl = match purl_kind(kind) {
            Some(kind) => named(kind, name),
            None if is_system(kind) => system(kind, name, distribution),
            None if is_kind(kind) && component_kind(kind).is_none() && kind != GENERIC => named(kind, name),
            None => with(named(GENERIC, name), "component_type", kind),
        };
        Ok(Some(purl))
    }

    /// The component with its location, which distinguishes components of one name.
    pub(crate) fn located_purl(&self, distribution: &str) -> Result<Option<PackageUrl>, String> {
        let purl = self.component_purl(distribution)?;
        Ok(purl.map(|purl| with(purl, LOCATION, &self.component.location)))
    }

    /// A library's own code is no component of it.
    fn is_library_itself(&self) -> bool {
        let component = &self.component;
        self.artifact.kind == "library"
            && purl_kind(&component.kind).is_some()
            && component.location.is_empty()
            && (component.name.is_empty() || component.name == self.artifact.name)
    }

    /// What a product and a part of it name, and the version of the product.
    pub(crate) fn read(product: &PackageUrl, part: Option<&PackageUrl>) -> (Subject, String) {
        let qualifier = |name: &str| product.qualifiers.get(name).cloned().unwrap_or_default();
        let mut version = product.version.clone();
        let (kind, name) = match product.kind.as_str() {
            kind if is_system(kind) => (kind.to_owned(), product.name.clone()),
            "oci" | "docker" => {
                if version.is_empty() {
                    version = qualifier("tag");
                }
                let whole = Some(qualifier("repository_url")).filter(|url| !url.is_empty());
                ("image".to_owned(), whole.unwrap_or_else(|| name_of(product)))
            }
            GENERIC => {
                let kind = Some(qualifier("artifact_type")).filter(|kind| !kind.is_empty());
                (kind.unwrap_or_else(|| "library".into()), name_of(product))
            }
            kind if component_kind(kind).is_some() => ("library".into(), name_of(product)),
            kind => (kind.to_owned(), name_of(product)),
        };
        let component = match (part, component_kind(&product.kind)) {
            (Some(part), _) => component(part),
            (None, Some(kind)) => Component { kind: kind.into(), name: name.clone(), location: String::new() },
            (None, None) => Component::default(),
        };
        let artifact = Artifact { kind, name, architecture: qualifier("arch") };
        (Subject { artifact, component }, version)
    }
}

/// Types of package URLs that are read as another type of artifact.
fn reads_as_another(kind: &str) -> bool {
    component_kind(kind).is_some() || matches!(kind, "oci" | "docker" | GENERIC)
}

fn component(part: &PackageUrl) -> Component {
    let qualifier = |name: &str| part.qualifiers.get(name).cloned().unwrap_or_default();
    let kind = match component_kind(&part.kind) {
        Some(kind) => kind.to_owned(),
        None if part.kind == GENERIC => qualifier("component_type"),
        None => part.kind.clone(),
    };
    let name = if is_system(&kind) { part.name.clone() } else { name_of(part) };
    Component { kind, name, location: qualifier(LOCATION) }
}

/// An image's package URL is named by its last segment, and its whole name is where it is pulled from.
fn image(name: &str) -> PackageUrl {
    let last = name.rsplit('/').next().filter(|last| !last.is_empty()).unwrap_or(name);
    let purl = PackageUrl { kind: "oci".into(), name: last.into(), ..PackageUrl::default() };
    if last == name { purl } else { with(purl, "repository_url", name) }
}

fn with(mut purl: PackageUrl, name: &str, value: &str) -> PackageUrl {
    if !value.is_empty() {
        let known: BTreeMap<String, String> = [(name.to_owned(), value.to_owned())].into();
        purl.qualifiers.extend(known);
    }
    purl
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(artifact: [&str; 3], component: [&str; 3]) -> Subject {
        let [kind, name, architecture] = artifact.map(str::to_owned);
        let artifact = Artifact { kind, name, architecture };
        let [kind, name, location] = component.map(str::to_owned);
        Subject { artifact, component: Component { kind, name, location } }
    }

    #[test]
    fn subjects_have_package_urls_and_come_back() {
        for (subject, product, part) in [
            (subject(["apk", "curl", "x86_64"], ["", "", ""]), "pkg:apk/wolfi/curl@1?arch=x86_64", None),
            (
                subject(["apk", "kubectl", ""], ["go-module", "golang.org/x/net", "usr/bin/kubectl"]),
                "pkg:apk/wolfi/kubectl@1",
                Some("pkg:golang/golang.org/x/net"),
            ),
            (subject(["library", "urllib3", ""], ["python", "urllib3", ""]), "pkg:pypi/urllib3@1", None),
            (subject(["library", "org.a:b", ""], ["java-archive", "org.a:b", ""]), "pkg:maven/org.a/b@1", None),
            (
                subject(["image", "example.com/acme/nginx", ""], ["apk", "openssl", ""]),
                "pkg:oci/nginx?repository_url=example.com/acme/nginx&tag=1",
                Some("pkg:apk/wolfi/openssl"),
            ),
            (subject(["deb", "bash", ""], ["", "", ""]), "pkg:deb/wolfi/bash@1", None),
            (subject(["My Kind", "x", ""], ["", "", ""]), "pkg:generic/x@1?artifact_type=My%20Kind", None),
        ] {
            let written = subject.artifact_purl("1", "wolfi").expect("a product");
            let part_purl = subject.component_purl("wolfi").expect("a part");
            assert_eq!(written.to_string(), product);
            assert_eq!(part_purl.as_ref().map(ToString::to_string).as_deref(), part);
            let located = subject.located_purl("wolfi").expect("a part");
            assert_eq!(Subject::read(&written, located.as_ref()), (subject, "1".to_owned()));
        }
    }

    #[test]
    fn names_are_written_as_they_are_read() {
        for (kind, name, written) in [
            ("python", "Flask_Login", "pkg:pypi/flask-login"),
            ("python", "Ę", "pkg:pypi/%C4%99"),
            ("php-composer", "Acme/Log", "pkg:composer/acme/log"),
            ("npm", "Acme", "pkg:npm/Acme"),
        ] {
            let purl = subject(["apk", "a", ""], [kind, name, ""]).component_purl("").expect("a part");
            let purl = purl.expect("a package URL").to_string();
            assert_eq!(purl, written);
            assert_eq!(PackageUrl::parse(&purl).expect("it is read").to_string(), written);
        }
    }

    #[test]
    fn a_digest_is_the_version_of_an_image_and_a_tag_is_not() {
        let image = subject(["image", "app", ""], ["", "", ""]);
        let purl = image.artifact_purl("sha256:aa", "").expect("a product");
        assert_eq!(purl.to_string(), "pkg:oci/app@sha256:aa");
        assert_eq!(Subject::read(&purl, None).1, "sha256:aa");
    }

    #[test]
    fn a_component_without_a_name_does_not_widen_to_the_artifact() {
        assert!(subject(["apk", "curl", ""], ["python", "", "usr/lib"]).component_purl("").is_err());
        assert!(subject(["apk", "", ""], ["", "", ""]).artifact_purl("", "").is_err());
    }
}
