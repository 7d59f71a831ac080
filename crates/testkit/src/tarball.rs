//! Archives of files, as many ecosystems pack them.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

/// A gzipped tar archive of files.
pub fn tarball(files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for (path, bytes) in files {
        encoder.write_all(&header(path, bytes.len())).expect("memory takes everything");
        encoder.write_all(bytes).expect("memory takes everything");
        encoder.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()]).expect("memory takes everything");
    }
    encoder.write_all(&[0; 1024]).expect("memory takes everything");
    encoder.finish().expect("memory takes everything")
}

fn header(path: &str, length: usize) -> [u8; 512] {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, path.as_bytes());
    put(100, b"0000644\0");
    put(124, format!("{length:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}
