//! Generated advisories of one artifact.

use bowline_feeds::{
    Advisory, Artifact, Assessment, Component, Detection, Event, FalsePositive, Provenance, Publisher, Scan,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) fn publisher() -> Publisher {
    Publisher {
        name: "Example".into(),
        namespace: "https://example.com/feeds".into(),
        distribution: "exampleos".into(),
    }
}

/// Printable text, odd characters included.
fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z][a-z0-9.+-]{0,7}",
        "[A-Za-z0-9_/@:. -]{1,10}".prop_map(|text| text.trim().to_owned()),
        "\\PC{1,6}"
    ]
    .prop_filter("not empty", |text| !text.is_empty())
}

fn note() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "\\PC{0,20}",
        "[a-z \n\t\"']{0,20}",
        Just("No fix is planned.".to_owned()),
        Just("A fix is awaited from upstream.".to_owned()),
        Just("No analysis is planned.".to_owned()),
        Just("No fixed version is known yet.".to_owned()),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "CVE-20(19|2[0-6])-[0-9]{4,5}",
        // Few of them, so that advisories share some.
        "CVE-2026-000[1-4]",
        "GHSA-[2-9]{4}-[2-9]{4}-[2-9]{4}",
        "GO-2026-[0-9]{4}",
        "BWL-[2-4]{4}-[2-4]{4}-[2-4]{4}",
        word(),
    ]
}

fn scan() -> impl Strategy<Value = Scan> {
    (word(), word(), word(), word(), word()).prop_map(|(scanner, version, component, location, kind)| Scan {
        scanner,
        scanner_version: version.clone(),
        component_name: component,
        component_version: version,
        component_location: location,
        component_kind: kind,
        ..Scan::default()
    })
}

fn assessment() -> impl Strategy<Value = Assessment> {
    prop_oneof![
        Just(Assessment::Detection(Detection::Manual)),
        (word(), word()).prop_map(|(searched, matched)| Assessment::Detection(Detection::Nvd { searched, matched })),
        scan().prop_map(|scan| Assessment::Detection(Detection::Scan(Box::new(scan)))),
        note().prop_map(|note| Assessment::TruePositive { note }),
        (0..7usize, note()).prop_map(|(at, note)| Assessment::FalsePositive { why: FalsePositive::ALL[at], note }),
        (word(), note()).prop_map(|(version, note)| Assessment::Fixed { version, note }),
        note().prop_map(|note| Assessment::AnalysisNotPlanned { note }),
        note().prop_map(|note| Assessment::FixNotPlanned { note }),
        note().prop_map(|note| Assessment::PendingUpstreamFix { note }),
        (vec(word(), 0..4), note()).prop_map(|(versions, note)| Assessment::Patched { versions, note }),
        (word(), word(), note()).prop_map(|(from, to, note)| Assessment::ComponentMoved { from, to, note }),
    ]
}

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![
        1_600_000_000_000_000..1_800_000_000_000_000i64,
        (1_600_000_000..1_600_000_010i64).prop_map(|seconds| seconds * 1_000_000)
    ]
}

fn component() -> impl Strategy<Value = Component> {
    let kind = prop_oneof![
        Just(String::new()),
        "(python|go-module|java-archive|npm|php-composer|hex|apk|deb|generic|oci|golang)",
        word(),
    ];
    let named = (kind, word(), prop_oneof![Just(String::new()), word()]);
    prop_oneof![
        2 => Just(Component::default()),
        3 => named.prop_map(|(kind, name, location)| Component { kind, name, location }),
        1 => word().prop_map(|location| Component { location, ..Component::default() }),
    ]
}

fn kind() -> impl Strategy<Value = String> {
    prop_oneof![4 => "(apk|image|library)", 1 => "(deb|rpm|npm|oci|generic|docker)", 1 => word()]
}

/// Advisories of one artifact, in all its architectures.
pub(crate) fn advisories() -> impl Strategy<Value = (Artifact, Vec<Advisory>)> {
    let event = (proptest::option::weighted(0.9, time()), word(), assessment(), word(), word());
    let event = event.prop_map(|(at, author, assessment, source, licence)| Event {
        at,
        author,
        assessment,
        provenance: Provenance { source, licence },
    });
    let ids = (prop_oneof![Just(String::new()), name()], vec(name(), 0..4));
    let about = (component(), prop_oneof![Just(String::new()), "(x86_64|aarch64)", word()]);
    let kept = (word(), proptest::option::of(time()), proptest::option::of(time()));
    let advisory = (ids, about, kept, vec(event, 0..4));
    (kind(), word(), vec(advisory, 1..7)).prop_map(|(kind, name, entries)| {
        let artifact = Artifact { kind, name, architecture: String::new() };
        let advisories = entries.into_iter().map(|((id, aliases), (component, architecture), kept, events)| {
            let (author, created, updated) = kept;
            let artifact = Artifact { architecture, ..artifact.clone() };
            let mut advisory = Advisory { artifact, component, id, aliases, author, created, updated, events };
            advisory.sort();
            advisory
        });
        (artifact.clone(), advisories.collect())
    })
}
