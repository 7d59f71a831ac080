//! Statements over all advisories and all bytes.

mod support;

use bowline_feeds::{
    Advisory, Artifact, Assessment, Limits, Problems, Publisher, ReadFormat, Secdb, WriteFormat, read, write,
};
use proptest::prelude::*;

const BOTH_WAYS: [(WriteFormat, ReadFormat); 4] = [
    (WriteFormat::OpenVex, ReadFormat::OpenVex),
    (WriteFormat::Csaf, ReadFormat::Csaf),
    (WriteFormat::CycloneDx, ReadFormat::CycloneDx),
    (WriteFormat::Yaml, ReadFormat::Yaml),
];

fn written(format: WriteFormat, artifact: &Artifact, advisories: &[Advisory]) -> Option<Vec<u8>> {
    let document = write(format, artifact, advisories, &support::publisher(), &mut Problems::default());
    document.map(|document| document.bytes)
}

fn secdb(name: &str, advisories: &[Advisory]) -> Option<Vec<u8>> {
    let database =
        Secdb { repository: "os".into(), prefix: "https://example.com".into(), architectures: vec!["x86_64".into()] };
    let mut bytes = database.begin();
    bytes.extend(Secdb::entry(name, advisories, &mut Problems::default())?);
    bytes.extend(Secdb::end());
    Some(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Both kinds of documents of generated advisories, with the format that reads them.
fn documents(artifact: &Artifact, advisories: &[Advisory]) -> Vec<(ReadFormat, Vec<u8>)> {
    let both = BOTH_WAYS.into_iter().filter_map(|(out, back)| Some((back, written(out, artifact, advisories)?)));
    both.chain(secdb(&artifact.name, advisories).map(|bytes| (ReadFormat::Secdb, bytes))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_read_again_is_written_as_the_same_bytes((artifact, advisories) in support::advisories()) {
        for (out, back) in BOTH_WAYS {
            let Some(first) = written(out, &artifact, &advisories) else { continue };
            let reading = read(back, &first, &Limits::default()).expect("own documents are readable");
            let problems: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
            let second = written(out, &artifact, &reading.advisories);
            prop_assert_eq!(second.as_deref().map(text), Some(text(&first)), "{:?} {:#?}", out, problems);
            prop_assert!(reading.problems.skipped() == 0, "{:?} {:#?}", out, problems);
        }
        if let Some(first) = secdb(&artifact.name, &advisories) {
            let reading = read(ReadFormat::Secdb, &first, &Limits::default()).expect("own databases are readable");
            let second = secdb(&artifact.name, &reading.advisories).unwrap_or_default();
            prop_assert_eq!(text(&second), text(&first));
            prop_assert!(reading.problems.is_empty());
        }
    }

    #[test]
    fn the_order_of_the_data_does_not_matter((artifact, mut advisories) in support::advisories()) {
        let before = documents(&artifact, &advisories);
        let newest: std::collections::BTreeSet<_> = advisories.iter().map(|one| one.latest().map(|event| event.at)).collect();
        // Of two statements of one time about the same none is the newer.
        prop_assume!(newest.len() == advisories.len());
        advisories.reverse();
        prop_assert_eq!(documents(&artifact, &advisories), before);
    }

    #[test]
    fn our_own_form_loses_nothing((artifact, mut advisories) in support::advisories()) {
        advisories.retain(|advisory| !advisory.names().is_empty());
        advisories.sort();
        let Some(bytes) = written(WriteFormat::Yaml, &artifact, &advisories) else { return Ok(()) };
        let reading = read(ReadFormat::Yaml, &bytes, &Limits::default()).expect("readable");
        let problems: Vec<String> = reading.problems.iter().map(ToString::to_string).collect();
        prop_assert_eq!(reading.advisories, advisories, "{:#?}\n{}", problems, text(&bytes));
    }

    #[test]
    fn nothing_that_is_open_is_said_to_be_free((artifact, advisories) in support::advisories()) {
        for (format, bytes) in documents(&artifact, &advisories) {
            let reading = read(format, &bytes, &Limits::default()).expect("readable");
            for read in &reading.advisories {
                let is_free = |advisory: &Advisory| matches!(
                    advisory.latest().map(|event| &event.assessment),
                    Some(Assessment::Fixed { .. } | Assessment::Patched { .. } | Assessment::FalsePositive { .. })
                );
                let shares = |known: &&Advisory| known.names().iter().any(|name| read.names().contains(name));
                prop_assert!(!is_free(read) || advisories.iter().filter(shares).any(is_free), "{:?}", read);
            }
        }
    }

    #[test]
    fn damaged_documents_do_no_harm(
        (artifact, advisories) in support::advisories(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..6),
    ) {
        for (format, mut bytes) in documents(&artifact, &advisories) {
            for (at, byte, how) in &damage {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = *byte,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, *byte),
                }
                if bytes.is_empty() {
                    break;
                }
            }
            let _ = read(format, &bytes, &Limits::default());
        }
    }

    #[test]
    fn noise_does_no_harm(noise in proptest::collection::vec(any::<u8>(), 0..300)) {
        use ReadFormat::{Csaf, CycloneDx, OpenVex, Yaml};
        for format in [ReadFormat::Secdb, OpenVex, Csaf, CycloneDx, Yaml, ReadFormat::Grype, ReadFormat::Trivy] {
            let _ = read(format, &noise, &Limits::default());
        }
    }
}

#[test]
fn documents_of_one_content_have_one_id() {
    let advisory = Advisory {
        artifact: Artifact { kind: "apk".into(), name: "curl".into(), architecture: String::new() },
        aliases: vec!["CVE-2026-0001".into()],
        events: vec![bowline_feeds::Event {
            at: Some(0),
            author: String::new(),
            assessment: Assessment::Fixed { version: "1".into(), note: String::new() },
            provenance: bowline_feeds::Provenance::default(),
        }],
        ..Advisory::default()
    };
    for format in [WriteFormat::OpenVex, WriteFormat::CycloneDx, WriteFormat::Csaf] {
        let first = written(format, &advisory.artifact, std::slice::from_ref(&advisory));
        assert_eq!(first, written(format, &advisory.artifact, std::slice::from_ref(&advisory)));
        let other = Publisher { name: "Another".into(), ..support::publisher() };
        let second =
            write(format, &advisory.artifact, std::slice::from_ref(&advisory), &other, &mut Problems::default());
        assert_ne!(first, second.map(|document| document.bytes), "{format:?}");
    }
}
