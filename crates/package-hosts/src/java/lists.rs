//! The lists of Maven's repositories as XML.

use bowline_core::Micros;
use bowline_libraries::hosting::{JavaMetadata, list_time};
use maud::{PreEscaped, html};

/// The text of a list. The same list has the same text, so digests of it hold.
pub(super) fn xml(list: &JavaMetadata) -> String {
    let declaration = PreEscaped("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let updated = list.updated_at.map(list_time);
    let markup = html! {
        (declaration)
        metadata modelVersion="1.1.0" {
            @if list.snapshot.is_some() || !list.versions.is_empty() {
                groupId { (list.group) }
                artifactId { (list.artifact) }
            }
            @if let Some(snapshot) = &list.snapshot {
                version { (snapshot.version) }
                versioning {
                    snapshot {
                        timestamp { (snapshot.timestamp) }
                        buildNumber { (snapshot.build) }
                    }
                    @if let Some(updated) = &updated { lastUpdated { (updated) } }
                    snapshotVersions {
                        @for file in &snapshot.files {
                            snapshotVersion {
                                @if !file.classifier.is_empty() { classifier { (file.classifier) } }
                                extension { (file.extension) }
                                value { (file.value) }
                                updated { (file.updated) }
                            }
                        }
                    }
                }
            } @else if !list.versions.is_empty() {
                versioning {
                    @if let Some(latest) = list.highest(true) { latest { (latest) } }
                    @if let Some(release) = list.highest(false) { release { (release) } }
                    versions {
                        @for version in &list.versions { version { (version) } }
                    }
                    @if let Some(updated) = &updated { lastUpdated { (updated) } }
                }
            }
            @if !list.plugins.is_empty() {
                plugins {
                    @for plugin in &list.plugins {
                        plugin {
                            name { (plugin.name) }
                            prefix { (plugin.prefix) }
                            artifactId { (plugin.artifact) }
                        }
                    }
                }
            }
        }
    };
    markup.into_string()
}

/// When a list of an upstream changed, such as `20260102030405`; absent if it does not say so.
pub(super) fn changed_at(text: &str) -> Option<Micros> {
    let part = |from: usize, to: usize| text.get(from..to);
    let is_time = text.len() == 14 && text.bytes().all(|byte| byte.is_ascii_digit());
    let (day, time) = (
        format!("{}-{}-{}", part(0, 4)?, part(4, 6)?, part(6, 8)?),
        format!("{}:{}:{}", part(8, 10)?, part(10, 12)?, part(12, 14)?),
    );
    bowline_core::rfc3339::parse_micros(&format!("{day}T{time}Z")).filter(|_| is_time)
}

#[cfg(test)]
mod tests {
    use bowline_libraries::hosting::{MavenPlugin, Snapshot, SnapshotFile};
    use bowline_packages::MavenMetadata;

    use super::*;

    #[test]
    fn a_list_is_read_as_it_was_written() {
        let list = JavaMetadata {
            group: "org.a".into(),
            artifact: "b".into(),
            versions: vec!["1.0".into(), "1.1<&".into(), "2-SNAPSHOT".into()],
            plugins: vec![MavenPlugin { prefix: "p".into(), artifact: "p-maven-plugin".into(), name: "P & Q".into() }],
            updated_at: Some(1_700_000_000_000_000),
            ..JavaMetadata::default()
        };
        let text = xml(&list);
        let read = MavenMetadata::read(text.as_bytes()).expect("a list");
        assert_eq!((read.versions, read.plugins[0].name.as_str()), (list.versions, "P & Q"));
        assert_eq!(changed_at(&read.last_updated), list.updated_at);
        assert!(text.contains("<latest>2-SNAPSHOT</latest><release>1.1&lt;&amp;</release>"), "{text}");
    }

    #[test]
    fn builds_of_a_snapshot() {
        let file = |classifier: &str| SnapshotFile {
            classifier: classifier.into(),
            extension: "jar".into(),
            value: "2-20260102.030405-7".into(),
            updated: "20260102030405".into(),
        };
        let snapshot = Snapshot {
            version: "2-SNAPSHOT".into(),
            timestamp: "20260102.030405".into(),
            build: 7,
            files: vec![file(""), file("sources")],
        };
        let text = xml(&JavaMetadata { snapshot: Some(snapshot), ..JavaMetadata::default() });
        assert!(
            text.contains("<snapshot><timestamp>20260102.030405</timestamp><buildNumber>7</buildNumber></snapshot>")
        );
        assert!(text.contains("<snapshotVersion><classifier>sources</classifier><extension>jar</extension>"), "{text}");
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "2026", "2026010203040x", "20261302030405"] {
            assert_eq!(changed_at(text), None, "{text}");
        }
    }
}
