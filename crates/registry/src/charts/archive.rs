//! Single files out of a gzipped tar archive, within bounds: who pushes an archive may want it to grow without end.

use std::collections::BTreeMap;
use std::io::Read;

use flate2::read::GzDecoder;

/// Most bytes that are unpacked.
const MOST_BYTES: u64 = 64 << 20;
/// Most bytes of a file.
const MOST_FILE_BYTES: u64 = 1 << 20;
const BLOCK: usize = 512;

/// The files of these names in the first directory of the archive, as far as they are texts and not too large. What
/// comes after something that is no archive is not looked for.
pub(super) fn files(archive: &[u8], names: &[&'static str]) -> BTreeMap<&'static str, String> {
    let mut reader = GzDecoder::new(archive).take(MOST_BYTES);
    let mut found = BTreeMap::new();
    while found.len() < names.len() {
        let Some(header) = Header::read(&mut reader) else { break };
        let wanted = names.iter().find(|name| header.is_file_of_first_directory(name));
        match wanted.filter(|_| header.size <= MOST_FILE_BYTES) {
            Some(name) => {
                let mut content = Vec::new();
                let read = reader.by_ref().take(header.size).read_to_end(&mut content);
                let is_whole = read.is_ok() && content.len() as u64 == header.size;
                let Some(text) = String::from_utf8(content).ok().filter(|_| is_whole) else { break };
                // The first file of a name is the chart's own.
                found.entry(*name).or_insert(text);
                if skip(&mut reader, padding(header.size)).is_none() {
                    break;
                }
            }
            None => {
                if skip(&mut reader, header.size.saturating_add(padding(header.size))).is_none() {
                    break;
                }
            }
        }
    }
    found
}

fn padding(size: u64) -> u64 {
    size.next_multiple_of(BLOCK as u64) - size
}

/// Reads over these bytes; absent if there are not so many.
fn skip(reader: &mut impl Read, bytes: u64) -> Option<()> {
    let skipped = std::io::copy(&mut reader.take(bytes), &mut std::io::sink()).ok()?;
    (skipped == bytes).then_some(())
}

/// What an archive says before each of its members.
struct Header {
    name: String,
    size: u64,
    is_file: bool,
}

impl Header {
    /// The next header; absent at the end, and where there is none.
    fn read(reader: &mut impl Read) -> Option<Header> {
        let mut block = [0; BLOCK];
        reader.read_exact(&mut block).ok()?;
        let text = |from: usize, length: usize| {
            let bytes = block.get(from..from + length)?.split(|byte| *byte == 0).next()?;
            std::str::from_utf8(bytes).ok()
        };
        let (name, size) = (text(0, 100)?, text(124, 12)?.trim());
        if name.is_empty() {
            return None;
        }
        let prefix = if text(257, 5)? == "ustar" { text(345, 155)? } else { "" };
        let name = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
        let size = u64::from_str_radix(size, 8).ok().filter(|size| *size <= MOST_BYTES)?;
        Some(Header { name, size, is_file: matches!(block[156], b'0' | 0) })
    }

    /// Whether it is `<directory>/<name>`.
    fn is_file_of_first_directory(&self, name: &str) -> bool {
        let path = self.name.strip_prefix("./").unwrap_or(&self.name);
        self.is_file && path.split_once('/').is_some_and(|(_, rest)| rest == name)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn member(name: &str, content: &[u8]) -> Vec<u8> {
        let mut block = vec![0; BLOCK];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
        block[156] = b'0';
        block.extend_from_slice(content);
        block.resize(block.len().next_multiple_of(BLOCK), 0);
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
                vec![0; 2 * BLOCK],
            ]
            .concat(),
        );
        let found = files(&archive, &NAMES);
        assert_eq!(found, BTreeMap::from([("Chart.yaml", "name: redis\n".into()), ("values.yaml", String::new())]));
    }

    #[test]
    fn what_is_no_archive_or_has_no_end_holds_nothing() {
        let huge = member("redis/Chart.yaml", &vec![b'x'; MOST_FILE_BYTES as usize + 1]);
        let cut = gzip(&member("redis/Chart.yaml", b"name: redis\n")[..BLOCK + 4]);
        let bomb = gzip(&[member("redis/x", &vec![0; 70 << 20]), member("redis/Chart.yaml", b"late")].concat());
        for archive in [Vec::new(), b"no gzip".to_vec(), gzip(b"no tar"), gzip(&huge), gzip(&[255; 2048]), cut, bomb] {
            assert!(files(&archive, &NAMES).is_empty());
        }
    }
}
