use proptest::prelude::*;

use super::*;
use crate::purl::Purl;

/// What a component is compared as, one line for each.
fn compared(purl: &str) -> Vec<String> {
    let read = PackageUrl::parse(purl).expect("a package URL");
    let parts = [read.kind.as_str()].into_iter().chain(read.namespace.iter().map(String::as_str));
    let path = parts.chain([read.name.as_str()]).collect::<Vec<_>>().join("/");
    let ComponentComparison::By(origin) = ComponentComparison::of(purl, &read.version) else { return Vec::new() };
    assert_eq!(PackageOrigin::from_text(&origin.to_text()), origin, "{purl}");
    let compared = origin.compared(&path, &read.version).into_iter();
    compared.map(|one| format!("{} {} {}", one.package.as_str(), one.ecosystem, one.version)).collect()
}

#[test]
fn components_are_compared_by_source_and_release() {
    for (purl, expected) in [
        (
            "pkg:deb/debian/libssl3@3.0.11-1~deb12u2?arch=amd64&distro=debian-12&upstream=openssl",
            &["debian/openssl Debian:12 3.0.11-1~deb12u2"][..],
        ),
        (
            "pkg:deb/debian/libssl3@3.0.11-1%2Bb1?distro=debian-12.5&upstream=openssl%403.0.11-1",
            &["debian/openssl Debian:12 3.0.11-1"],
        ),
        ("pkg:deb/debian/curl@7.88?distro=debian-12&upstream=curl%407.88", &["debian/curl Debian:12 7.88"]),
        ("pkg:deb/debian/curl@7.88%2Bb1?distro=bookworm&upstream=curl%407.88", &["debian/curl Debian:12 7.88"]),
        ("pkg:deb/ubuntu/libc6@2.35?distro=ubuntu-22.04&upstream=glibc", &["ubuntu/glibc Ubuntu:22.04 2.35"]),
        ("pkg:deb/ubuntu/curl@7?distro=jammy", &["ubuntu/curl Ubuntu:22.04 7"]),
        (
            "pkg:apk/alpine/libcrypto3@3.1.4-r5?distro=alpine-3.18.4&upstream=openssl",
            &["alpine/libcrypto3 Alpine:v3.18 3.1.4-r5", "alpine/openssl Alpine:v3.18 3.1.4-r5"],
        ),
        ("pkg:apk/alpine/musl@1.2.4-r2?distro=3.18.4", &["alpine/musl Alpine:v3.18 1.2.4-r2"]),
        (
            "pkg:apk/wolfi/libcrypto3@3.1.4-r5?origin=openssl",
            &["wolfi/libcrypto3 Wolfi 3.1.4-r5", "wolfi/openssl Wolfi 3.1.4-r5"],
        ),
        ("pkg:apk/wolfi/curl@8?distro=wolfi-20230201", &["wolfi/curl Wolfi 8"]),
        ("pkg:apk/chainguard/curl@8?distro=chainguard-20230214", &["chainguard/curl Chainguard 8"]),
        (
            "pkg:rpm/redhat/openssl-libs@3.0.7-24.el9?distro=rhel-9.2&epoch=1&upstream=openssl-3.0.7-24.el9.src.rpm",
            &[
                "red hat/openssl-libs Red Hat:enterprise_linux:9 1:3.0.7-24.el9",
                "red hat/openssl Red Hat:enterprise_linux:9 1:3.0.7-24.el9",
            ],
        ),
        (
            "pkg:rpm/rhel/openssl@1:3.0.7-24.el9?epoch=1&distro=redhat-9&upstream=openssl-3.0.7-24.el9.src.rpm",
            &["red hat/openssl Red Hat:enterprise_linux:9 1:3.0.7-24.el9"],
        ),
        ("pkg:rpm/almalinux/bash@5.1?distro=almalinux-9.3", &["almalinux/bash AlmaLinux:9 5.1"]),
        ("pkg:rpm/rocky/bash@5.1?distro=rocky-9.3", &["rocky linux/bash Rocky Linux:9 5.1"]),
        ("pkg:rpm/opensuse/bash@5.1?distro=opensuse-leap-15.5", &["opensuse/bash openSUSE:Leap 15.5 5.1"]),
        ("pkg:rpm/opensuse/bash@5.1?distro=opensuse-tumbleweed-20240101", &["opensuse/bash openSUSE:Tumbleweed 5.1"]),
        ("pkg:pypi/Flask@1?distro=debian-12&upstream=other&epoch=2", &["pypi/flask PyPI 1"]),
        ("pkg:npm/%40babel/core@7", &["npm/@babel/core npm 7"]),
    ] {
        assert_eq!(compared(purl), expected, "{purl}");
    }
}

#[test]
fn what_cannot_be_compared_is_unknown_or_of_another_ecosystem() {
    for (purl, version) in [
        ("pkg:deb/debian/curl@7", "7"),
        ("pkg:deb/debian/curl@7?distro=sid", "7"),
        ("pkg:deb/ubuntu/curl@7?distro=ubuntu", "7"),
        ("pkg:apk/alpine/curl@7?distro=alpine-edge", "7"),
        ("pkg:rpm/suse/curl@7?distro=sles-15.5", "7"),
        ("pkg:rpm/openeuler/curl@7?distro=openeuler-22.03", "7"),
        ("pkg:deb/debian/curl?distro=debian-12", ""),
        ("pkg:pypi/flask", ""),
    ] {
        assert_eq!(ComponentComparison::of(purl, version), ComponentComparison::Unknown, "{purl}");
    }
    for purl in ["", "curl", "pkg:generic/curl@7", "pkg:deb/unheard/curl@7?distro=debian-12", "pkg:oci/app@1"] {
        assert_eq!(ComponentComparison::of(purl, ""), ComponentComparison::OtherEcosystem, "{purl}");
    }
    assert_eq!(
        ComponentComparison::of("pkg:pypi/flask", "1"),
        ComponentComparison::By(PackageOrigin::default()),
        "the version is beside it"
    );
    assert_eq!(PackageOrigin::default().to_text(), "");
    assert_eq!(PackageOrigin::default().compared("generic/curl", "7"), []);
    assert_eq!(PackageOrigin::default().compared("", "7"), []);
}

#[test]
fn queries_look_for_what_components_are_compared_as() {
    for (purl, ecosystem, name, version) in [
        ("pkg:deb/debian/libssl3@3%2Bb1?distro=debian-12&upstream=openssl%403", "Debian:12", "openssl", Some("3")),
        ("pkg:deb/debian/libssl3?distro=debian-12&upstream=openssl%403", "Debian:12", "openssl", None),
        ("pkg:deb/debian/libssl3@3?upstream=openssl", "Debian", "libssl3", Some("3")),
        ("pkg:rpm/rocky/b@1?distro=rocky-9&epoch=2&upstream=a-1-1.src.rpm", "Rocky Linux:9", "b", Some("2:1")),
        ("pkg:apk/wolfi/b@1?origin=a", "Wolfi", "b", Some("1")),
    ] {
        let expected = Purl { ecosystem: ecosystem.into(), name: name.into(), version: version.map(String::from) };
        assert_eq!(Purl::parse(purl), Ok(expected), "{purl}");
    }
}

proptest! {
    #[test]
    fn no_qualifiers_make_it_panic(
        kind in "(deb/debian|deb/ubuntu|apk/alpine|rpm/redhat|rpm/opensuse|pypi)", distro in "\\PC{0,12}",
        upstream in "[a-z@.,é-]{0,12}(\\.src\\.rpm)?", epoch in "[0-9a]{0,3}", version in "[0-9:.-]{0,8}",
    ) {
        let mut purl = PackageUrl::parse(&format!("pkg:{kind}/a")).expect("a package URL");
        purl.version = version.clone();
        for (name, value) in [("distro", distro), ("upstream", upstream), ("epoch", epoch)] {
            purl.qualifiers.insert(name.into(), value);
        }
        if let ComponentComparison::By(origin) = ComponentComparison::of(&purl.to_string(), &version) {
            prop_assert_eq!(PackageOrigin::from_text(&origin.to_text()), origin.clone());
            let path = format!("{kind}/a");
            let compared = origin.compared(&path, &version);
            prop_assert!((1..=2).contains(&compared.len()), "{:?}", compared);
        }
    }
}
