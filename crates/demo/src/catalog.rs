//! The facts of the generated organization: its repositories, the packages of its images, and their vulnerabilities.

/// A repository of images.
#[derive(Debug)]
pub(crate) struct Repository {
    pub(crate) group: &'static str,
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
    /// Days between two releases.
    pub(crate) cadence: i64,
    pub(crate) packages: &'static [&'static str],
}

/// A package, and the day on which each of its versions came out.
pub(crate) struct Package {
    pub(crate) name: &'static str,
    /// Type of package URLs.
    pub(crate) kind: &'static str,
    pub(crate) license: &'static str,
    pub(crate) versions: &'static [(i64, &'static str)],
}

/// A generated vulnerability; no real one has this identifier.
pub(crate) struct Vulnerability {
    pub(crate) id: &'static str,
    pub(crate) package: &'static str,
    pub(crate) severity: &'static str,
    pub(crate) score: f64,
    /// The day from which scanners know it.
    pub(crate) day: i64,
    /// Index of the first version without it; absent if there is none yet.
    pub(crate) fixed: Option<usize>,
    pub(crate) text: &'static str,
}

/// A package of an image.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Installed {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) license: &'static str,
    pub(crate) version: &'static str,
    /// Index of the version among those of the package.
    pub(crate) index: usize,
}

impl Installed {
    pub(crate) fn purl(&self) -> String {
        match self.kind {
            "apk" => format!("pkg:apk/wolfi/{}@{}", self.name, self.version),
            kind => format!("pkg:{kind}/{}@{}", self.name, self.version),
        }
    }
}

impl Repository {
    /// The packages of an image that is built on that day.
    pub(crate) fn installed(&self, day: i64) -> Vec<Installed> {
        let newest = |package: &'static Package| {
            let index = package.versions.iter().rposition(|(from, _)| *from <= day).unwrap_or_default();
            let Package { name, kind, license, versions } = package;
            Installed { name, kind, license, version: versions[index].1, index }
        };
        PACKAGES.iter().filter(|package| self.packages.contains(&package.name)).map(newest).collect()
    }
}

/// The vulnerabilities that a scanner of that day finds, with the package that each is in.
pub(crate) fn findings(packages: &[Installed], day: i64) -> Vec<(&'static Vulnerability, Installed)> {
    let affects = |vulnerability: &&Vulnerability, package: &Installed| {
        vulnerability.package == package.name
            && vulnerability.day <= day
            && vulnerability.fixed.is_none_or(|fixed| package.index < fixed)
    };
    packages
        .iter()
        .flat_map(|package| VULNERABILITIES.iter().filter(move |one| affects(one, package)).map(|one| (one, *package)))
        .collect()
}

/// The version that fixes a vulnerability; absent if none does yet.
pub(crate) fn fixed_version(vulnerability: &Vulnerability) -> Option<&'static str> {
    let package = PACKAGES.iter().find(|package| package.name == vulnerability.package)?;
    Some(package.versions.get(vulnerability.fixed?)?.1)
}

/// The ecosystem of a package in records of vulnerabilities, and its name there.
pub(crate) fn ecosystem(package: &'static str) -> (&'static str, &'static str) {
    match package {
        "stdlib" => ("Go", package),
        "log-kit" => ("Maven", "org.example:log-kit"),
        "express-lite" => ("npm", package),
        _ => ("Wolfi", package),
    }
}

const fn repository(
    group: &'static str,
    name: &'static str,
    description: &'static str,
    cadence: i64,
    packages: &'static [&'static str],
) -> Repository {
    Repository { group, name, description, cadence, packages }
}

pub(crate) const REPOSITORIES: &[Repository] = &[
    repository("platform", "base", "Base of all images of Acme", 9, &["glibc", "openssl", "busybox", "zlib"]),
    repository("platform", "gateway", "API gateway", 11, &["glibc", "openssl", "zlib", "stdlib", "curl"]),
    repository("platform", "metrics-agent", "Collects metrics on every node", 17, &["glibc", "stdlib"]),
    repository("payments", "api", "Payments API", 10, &["glibc", "openssl", "zlib", "openjdk", "log-kit"]),
    repository("payments", "ledger", "Double-entry ledger", 14, &["glibc", "openssl", "openjdk", "libxml2"]),
    repository("payments", "worker", "Settles payments at night", 12, &["glibc", "openssl", "openjdk", "log-kit"]),
    repository("web", "storefront", "The shop", 10, &["glibc", "openssl", "nodejs", "express-lite", "zlib"]),
    repository("web", "checkout", "Checkout of the shop", 13, &["glibc", "openssl", "nodejs", "express-lite"]),
    repository("web", "assets", "Images and styles of the shop", 21, &["glibc", "zlib", "nginx"]),
    repository("data", "ingest", "Takes events in", 12, &["glibc", "openssl", "python", "curl"]),
    repository("data", "warehouse", "Loads the warehouse", 16, &["glibc", "openssl", "python", "libxml2"]),
    repository("data", "notebooks", "Notebooks of analysts", 19, &["glibc", "openssl", "python", "zlib", "curl"]),
];

const fn package(
    name: &'static str,
    kind: &'static str,
    license: &'static str,
    versions: &'static [(i64, &'static str)],
) -> Package {
    Package { name, kind, license, versions }
}

const PACKAGES: &[Package] = &[
    package("glibc", "apk", "LGPL-2.1-or-later", &[(0, "2.41-r0"), (38, "2.41-r1"), (74, "2.42-r0")]),
    package("openssl", "apk", "Apache-2.0", &[(0, "3.5.0-r0"), (16, "3.5.1-r0"), (49, "3.5.2-r0"), (79, "3.5.3-r0")]),
    package("busybox", "apk", "GPL-2.0-only", &[(0, "1.37.0-r3"), (44, "1.37.0-r4")]),
    package("zlib", "apk", "Zlib", &[(0, "1.3.1-r5"), (57, "1.3.2-r0")]),
    package("curl", "apk", "curl", &[(0, "8.14.0-r0"), (25, "8.14.1-r0"), (66, "8.15.0-r0")]),
    package("libxml2", "apk", "MIT", &[(0, "2.14.3-r0"), (52, "2.14.5-r0")]),
    package("nginx", "apk", "BSD-2-Clause", &[(0, "1.29.0-r0"), (61, "1.29.1-r0")]),
    package("openjdk", "apk", "GPL-2.0-only", &[(0, "21.0.7-r0"), (30, "21.0.8-r0"), (83, "21.0.9-r0")]),
    package("nodejs", "apk", "MIT", &[(0, "22.16.0-r0"), (22, "22.17.0-r0"), (63, "22.18.0-r0")]),
    package("python", "apk", "PSF-2.0", &[(0, "3.13.4-r0"), (35, "3.13.5-r0"), (71, "3.13.6-r0")]),
    package("stdlib", "golang", "BSD-3-Clause", &[(0, "1.24.4"), (28, "1.24.5"), (68, "1.24.6")]),
    package("log-kit", "maven", "Apache-2.0", &[(0, "4.2.0"), (47, "4.2.1")]),
    package("express-lite", "npm", "MIT", &[(0, "5.1.0"), (33, "5.1.1"), (77, "5.2.0")]),
];

const fn vulnerability(
    id: &'static str,
    package: &'static str,
    (severity, score): (&'static str, f64),
    (day, fixed): (i64, Option<usize>),
    text: &'static str,
) -> Vulnerability {
    Vulnerability { id, package, severity, score, day, fixed, text }
}

const CRITICAL: (&str, f64) = ("Critical", 9.8);
const HIGH: (&str, f64) = ("High", 7.5);
const MEDIUM: (&str, f64) = ("Medium", 5.9);
const LOW: (&str, f64) = ("Low", 3.1);

pub(crate) const VULNERABILITIES: &[Vulnerability] = &[
    vulnerability("CVE-2026-990001", "openssl", HIGH, (0, Some(1)), "A handshake reads beyond its buffer"),
    vulnerability("CVE-2026-990002", "openssl", LOW, (0, Some(2)), "Timing of a comparison shows a length"),
    vulnerability("CVE-2026-990003", "glibc", MEDIUM, (0, Some(1)), "A pattern without end uses all memory"),
    vulnerability("CVE-2026-990004", "curl", HIGH, (4, Some(1)), "A redirect sends credentials to another host"),
    vulnerability("CVE-2026-990005", "nodejs", HIGH, (6, Some(1)), "A request line is parsed twice"),
    vulnerability("CVE-2026-990006", "python", MEDIUM, (9, Some(1)), "An archive is unpacked beyond its directory"),
    vulnerability("CVE-2026-990007", "stdlib", MEDIUM, (12, Some(1)), "A certificate with many names uses much time"),
    vulnerability("CVE-2026-990008", "openjdk", HIGH, (15, Some(1)), "A class file is verified in part"),
    vulnerability("CVE-2026-990009", "busybox", LOW, (18, Some(1)), "A long line of the shell ends the process"),
    vulnerability("CVE-2026-990010", "express-lite", MEDIUM, (21, Some(1)), "A cookie is set for other hosts"),
    vulnerability("CVE-2026-990011", "zlib", LOW, (24, Some(1)), "A damaged header is accepted"),
    vulnerability("CVE-2026-990012", "log-kit", CRITICAL, (31, Some(1)), "A log line runs commands"),
    vulnerability("CVE-2026-990013", "libxml2", HIGH, (36, Some(1)), "An entity is read after it was freed"),
    vulnerability("CVE-2026-990014", "openssl", CRITICAL, (41, Some(2)), "A session of another host is resumed"),
    vulnerability("CVE-2026-990015", "nginx", MEDIUM, (45, Some(1)), "A header with a space splits a response"),
    vulnerability("CVE-2026-990016", "curl", MEDIUM, (50, Some(2)), "A cookie outlives its end"),
    vulnerability("CVE-2026-990017", "nodejs", MEDIUM, (54, Some(2)), "A stream that is never read uses all memory"),
    vulnerability("CVE-2026-990018", "glibc", LOW, (58, Some(2)), "A locale with a slash is opened"),
    vulnerability("CVE-2026-990019", "python", HIGH, (60, Some(2)), "A header of mail is split"),
    vulnerability("CVE-2026-990020", "stdlib", HIGH, (62, Some(2)), "An HTTP/2 stream is reset without a limit"),
    vulnerability("CVE-2026-990021", "express-lite", HIGH, (67, Some(2)), "A path with dots leaves the directory"),
    vulnerability("CVE-2026-990022", "openssl", MEDIUM, (70, Some(3)), "A key of a wrong size is accepted"),
    vulnerability("CVE-2026-990023", "openjdk", MEDIUM, (73, Some(2)), "A seed of random numbers is short"),
    vulnerability("CVE-2026-990024", "libxml2", LOW, (76, None), "A comment without end is read as text"),
    vulnerability("CVE-2026-990025", "zlib", MEDIUM, (81, None), "An archive of zeros takes long"),
    vulnerability("CVE-2026-990026", "nodejs", HIGH, (85, None), "A worker reads memory of another"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_updated_and_vulnerabilities_come_and_go() {
        let storefront = REPOSITORIES.iter().find(|one| one.name == "storefront").expect("a repository");
        let ids = |built: i64, day: i64| -> Vec<&str> {
            findings(&storefront.installed(built), day).iter().map(|(one, _)| one.id).collect()
        };
        assert!(ids(0, 20).contains(&"CVE-2026-990001"));
        assert!(!ids(20, 20).contains(&"CVE-2026-990001"), "fixed by an image of that day");
        assert!(!ids(0, 5).contains(&"CVE-2026-990005"), "not known yet");
    }

    #[test]
    fn every_repository_and_vulnerability_names_packages_that_there_are() {
        for repository in REPOSITORIES {
            assert_eq!(repository.installed(0).len(), repository.packages.len(), "{}", repository.name);
        }
        for one in VULNERABILITIES {
            assert!(PACKAGES.iter().any(|package| package.name == one.package), "{}", one.id);
            assert_eq!(fixed_version(one).is_some(), one.fixed.is_some(), "{}", one.id);
        }
    }
}
