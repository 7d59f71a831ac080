//! Projects of Java: POMs, settings of Maven, and build files of Gradle.

use super::sources::{Installer, Sources};

/// Functions by which build files of Gradle name public repositories.
const PUBLIC: [&str; 4] = ["mavenCentral()", "gradlePluginPortal()", "google()", "jcenter()"];

pub(super) fn read(name: &str, text: &str) -> Option<Result<Sources, String>> {
    match name {
        "pom.xml" => Some(Ok(pom(text))),
        "settings.xml" => Some(Ok(settings(text))),
        _ if name.ends_with(".gradle") || name.ends_with(".gradle.kts") => Some(Ok(gradle(text))),
        _ => None,
    }
}

/// The repositories of dependencies and plugins, and not those that it publishes to.
fn pom(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Maven);
    for list in ["repositories", "pluginRepositories"] {
        for part in elements(text, list) {
            elements(part, "url").for_each(|url| found.index(Installer::Maven, url));
        }
    }
    found
}

/// Mirrors of all repositories: any other leaves some of them as they are.
fn settings(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Maven);
    for mirror in elements(text, "mirror") {
        if elements(mirror, "mirrorOf").any(|of| of.trim() == "*") {
            elements(mirror, "url").for_each(|url| found.index(Installer::Maven, url));
        }
    }
    found
}

/// The contents of the elements of a name, outside of comments.
fn elements<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let start = rest.find(&open)?;
            // A comment that begins before the element and ends after its start hides it.
            if let Some(comment) = rest.find("<!--").filter(|comment| *comment < start) {
                let end = rest[comment..].find("-->")?;
                rest = &rest[comment + end + 3..];
                continue;
            }
            let inner = &rest[start + open.len()..];
            let end = inner.find(&close)?;
            rest = &inner[end + close.len()..];
            return Some(&inner[..end]);
        }
    })
}

/// Repositories by function or address. A build file is a program: what it makes of other values is not seen.
fn gradle(text: &str) -> Sources {
    let mut found = Sources::of(Installer::Gradle);
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
        for function in PUBLIC.into_iter().filter(|function| line.contains(function)) {
            found.index(Installer::Gradle, function);
        }
        let is_address = ["url ", "url=", "url(", "setUrl(", "maven("].iter().any(|word| line.contains(word));
        if let Some(quoted) = line.split(['"', '\'']).nth(1).filter(|_| is_address)
            && quoted.contains("://")
        {
            found.index(Installer::Gradle, quoted);
        }
    }
    found
}
