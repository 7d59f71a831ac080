//! Single files out of a gzipped tar archive, within bounds: who pushes an archive may want it to grow without end.

use std::collections::BTreeMap;

use bowline_formats::archive::{Limits, tar};

/// Maximum bytes of a file.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// What is too much of a chart. Its members are texts, which deflate packs well.
const LIMITS: Limits =
    Limits { members: 20_000, member: MAX_FILE_BYTES, unpacked: 64 << 20, times: 1000, always: 64 << 20 };

/// The files of these names in the first directory of the archive, as far as they are texts and not too large. What
/// comes after something that is no archive is not looked for.
pub(super) fn files(archive: &[u8], names: &[&'static str]) -> BTreeMap<&'static str, String> {
    let mut archive = tar::Reader::gzipped(archive, archive.len() as u64, LIMITS);
    let mut found = BTreeMap::new();
    while found.len() < names.len() {
        let Ok(Some(member)) = archive.next_member() else { break };
        let wanted = names.iter().find(|name| is_file_of_first_directory(&member, name));
        if let Some(name) = wanted.filter(|_| member.size <= MAX_FILE_BYTES) {
            let Some(text) = archive.content().ok().and_then(|bytes| String::from_utf8(bytes).ok()) else { break };
            // The first file of a name is the chart's own.
            found.entry(*name).or_insert(text);
        }
    }
    found
}

/// Whether it is `<directory>/<name>`.
fn is_file_of_first_directory(member: &tar::Member, name: &str) -> bool {
    let path = member.path.strip_prefix("./").unwrap_or(&member.path);
    member.is_file && path.split_once('/').is_some_and(|(_, rest)| rest == name)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut block = vec![0; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = b'0';
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(512), 0);
        block
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).expect("memory takes it");
        encoder.finish().expect("memory takes it")
    }

    const NAMES: [&str; 2] = ["Chart.yaml", "values.yaml"];

    #[test]
    fn the_charts_own_files_are_found() {
        let archive = gzip(
            &[
                member("redis/charts/other/Chart.yaml", b"of a dependency"),
                member("redis/Chart.yaml", b"name: redis\n"),
                member("redis/templates/x.yaml", &[b'x'; 2000]),
                member("redis/values.yaml", b""),
                member("redis/Chart.yaml", b"again"),
                vec![0; 2 * 512],
            ]
            .concat(),
        );
        let found = files(&archive, &NAMES);
        assert_eq!(found, BTreeMap::from([("Chart.yaml", "name: redis\n".into()), ("values.yaml", String::new())]));
    }

    #[test]
    fn what_is_no_archive_or_has_no_end_holds_nothing() {
        let huge = member("redis/Chart.yaml", &vec![b'x'; MAX_FILE_BYTES as usize + 1]);
        let cut = gzip(&member("redis/Chart.yaml", b"name: redis\n")[..512 + 4]);
        let bomb = gzip(&[member("redis/x", &vec![0; 70 << 20]), member("redis/Chart.yaml", b"late")].concat());
        for archive in [Vec::new(), b"no gzip".to_vec(), gzip(b"no tar"), gzip(&huge), gzip(&[255; 2048]), cut, bomb] {
            assert!(files(&archive, &NAMES).is_empty());
        }
    }
}
