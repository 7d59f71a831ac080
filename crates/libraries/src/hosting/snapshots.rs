//! Snapshots of Maven: versions that are built again and again, each time under names with time and number.

use std::collections::BTreeMap;

/// How versions end that change.
pub const SNAPSHOT: &str = "-SNAPSHOT";

/// The name of a file of a build of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SnapshotName {
    pub(super) timestamp: String,
    pub(super) build: u64,
    pub(super) classifier: String,
    pub(super) extension: String,
}

impl SnapshotName {
    /// Reads the name of a file, such as `library-1.0-20260102.030405-1-sources.jar`; `base` is the version without its end.
    pub(super) fn parse(artifact: &str, base: &str, name: &str) -> Option<SnapshotName> {
        let rest = name.strip_prefix(artifact)?.strip_prefix('-')?.strip_prefix(base)?.strip_prefix('-')?;
        let (timestamp, rest) = rest.split_at_checked(15)?;
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (day, time) = timestamp.split_once('.')?;
        let rest = rest.strip_prefix('-').filter(|_| day.len() == 8 && is_digits(day) && is_digits(time))?;
        let end = rest.find(['-', '.'])?;
        let (build, rest) = rest.split_at(end);
        let (classifier, extension) = match rest.strip_prefix('-') {
            Some(rest) => rest.split_once('.')?,
            None => ("", rest.strip_prefix('.')?),
        };
        let build = build.parse().ok().filter(|_| is_digits(build) && !extension.is_empty())?;
        Some(SnapshotName {
            timestamp: timestamp.into(),
            build,
            classifier: classifier.into(),
            extension: extension.into(),
        })
    }

    /// What follows the version in the name.
    pub(super) fn rest(&self) -> String {
        let SnapshotName { classifier, extension, .. } = self;
        if classifier.is_empty() { format!(".{extension}") } else { format!("-{classifier}.{extension}") }
    }

    /// By this, a build is older or newer.
    pub(super) fn age(&self) -> (&str, u64) {
        (&self.timestamp, self.build)
    }
}

/// The newest of each kind.
pub(super) fn newest<'a>(names: impl Iterator<Item = &'a SnapshotName>) -> Vec<SnapshotName> {
    let mut of_kind: BTreeMap<String, &SnapshotName> = BTreeMap::new();
    for name in names {
        let newest = of_kind.entry(name.rest()).or_insert(name);
        if newest.age() < name.age() {
            *newest = name;
        }
    }
    of_kind.into_values().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str) -> Option<(String, u64, String)> {
        SnapshotName::parse("a-b", "1.0", name).map(|name| (name.timestamp.clone(), name.build, name.rest()))
    }

    #[test]
    fn builds_of_snapshots_are_read_from_names() {
        for (name, wanted) in [
            ("a-b-1.0-20260102.030405-1.jar", Some(("20260102.030405", 1, ".jar"))),
            ("a-b-1.0-20260102.030405-12-sources.jar", Some(("20260102.030405", 12, "-sources.jar"))),
            ("a-b-1.0-20260102.030405-2-bin.tar.gz", Some(("20260102.030405", 2, "-bin.tar.gz"))),
            ("a-b-1.0-20260102.030405-2.pom.asc", Some(("20260102.030405", 2, ".pom.asc"))),
            ("a-b-1.0-SNAPSHOT.jar", None),
            ("a-b-1.0-20260102.030405-x.jar", None),
            ("a-b-1.0-20260102030405-1.jar", None),
            ("a-b-1.0-20260102.030405-1", None),
            ("a-b-1.0-20260102.030405-1.", None),
            ("a-b-1.0-2026010\u{e9}.03040-1.jar", None),
            ("a-1.0-20260102.030405-1.jar", None),
        ] {
            let wanted = wanted.map(|(timestamp, build, rest)| (timestamp.to_owned(), build, rest.to_owned()));
            assert_eq!(parse(name), wanted, "{name}");
        }
    }

    #[test]
    fn the_newest_build_of_each_kind_counts() {
        let names = ["20260102.030405-2.jar", "20260102.030405-10.jar", "20260101.000000-11.pom"];
        let parsed: Vec<SnapshotName> =
            names.iter().filter_map(|name| SnapshotName::parse("a", "1", &format!("a-1-{name}"))).collect();
        let builds: Vec<u64> = newest(parsed.iter()).iter().map(|name| name.build).collect();
        assert_eq!(builds, [10, 11]);
    }
}
