//! Reads records out of files, in the order of their names and in bounded memory, and has several threads check them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use bowline_client::ClientError;
use bowline_formats::archive::zip::{Archive, Member};
use bowline_formats::archive::{ArchiveError, Limits};
use bowline_osv::{MAX_BYTES, Parsed};

/// A file, an entry or a line, with what it holds or why it is left out.
pub(super) struct Item {
    pub(super) name: String,
    pub(super) content: Result<Parsed, Unread>,
}

/// Why something is left out.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// Which record it is, where it says so all the same.
    pub(super) id: Option<String>,
    pub(super) reason: String,
}

/// The same before it is checked.
struct Raw {
    name: String,
    content: Result<Vec<u8>, String>,
}

/// What is too much of an archive of records. Texts hardly ever pack to less than a fiftieth.
const ARCHIVES: Limits =
    Limits { members: 5_000_000, member: MAX_BYTES as u64, unpacked: u64::MAX, times: 200, always: 64 << 20 };

/// What goes to a thread at once.
const ITEMS_AT_ONCE: usize = 128;
const BYTES_AT_ONCE: usize = 2 << 20;
/// Parts that are on their way.
const PARTS: usize = 8;

/// Items in the order of the files, checked by as many threads as the machine has processors.
pub(super) struct Items {
    validated: Receiver<(usize, Vec<Item>)>,
    early: BTreeMap<usize, Vec<Item>>,
    next: usize,
    read: Option<std::thread::JoinHandle<Result<(), ClientError>>>,
}

impl Items {
    /// Begins to read a directory, a zip archive, or a file of one record or of one on each line.
    pub(super) fn read(path: &Path) -> Items {
        let (raw_out, raw_in) = sync_channel::<(usize, Vec<Raw>)>(PARTS);
        let (judged_out, validated) = sync_channel(PARTS);
        let raw_in = Arc::new(Mutex::new(raw_in));
        let threads = std::thread::available_parallelism().map_or(2, usize::from).min(8);
        for _ in 0..threads {
            let (raw_in, judged_out) = (raw_in.clone(), judged_out.clone());
            std::thread::spawn(move || validate(&raw_in, &judged_out));
        }
        let path = path.to_owned();
        let read = std::thread::spawn(move || {
            let mut parts = Parts { out: raw_out, number: 0, items: Vec::new(), bytes: 0 };
            match everything(&path, &mut parts) {
                Err(Stop::Failed(error)) => Err(error),
                Ok(()) | Err(Stop::ReceiverClosed) => {
                    let _ = parts.send();
                    Ok(())
                }
            }
        });
        Items { validated, early: BTreeMap::new(), next: 0, read: Some(read) }
    }

    /// The next items; none at the end.
    ///
    /// # Errors
    /// The files cannot be read.
    pub(super) fn next(&mut self) -> Result<Option<Vec<Item>>, ClientError> {
        loop {
            if let Some(items) = self.early.remove(&self.next) {
                self.next += 1;
                return Ok(Some(items));
            }
            match self.validated.recv() {
                Ok((number, items)) => drop(self.early.insert(number, items)),
                Err(_) => return self.end().map(|()| None),
            }
        }
    }

    fn end(&mut self) -> Result<(), ClientError> {
        let panicked = |_| Err(ClientError::Usage("reading the files ended unexpectedly".into()));
        self.read.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked))
    }
}

fn validate(raw: &Mutex<Receiver<(usize, Vec<Raw>)>>, out: &SyncSender<(usize, Vec<Item>)>) {
    loop {
        let part = raw.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((number, items)) = part else { return };
        let validated = items.into_iter().map(|raw| Item { name: raw.name, content: parse(raw.content) });
        if out.send((number, validated.collect())).is_err() {
            return;
        }
    }
}

fn parse(content: Result<Vec<u8>, String>) -> Result<Parsed, Unread> {
    let bytes = content.map_err(|reason| Unread { id: None, reason })?;
    bowline_osv::parse(&bytes).map_err(|reason| Unread { id: id_of(&bytes), reason })
}

/// The id of a record that is broken elsewhere.
fn id_of(bytes: &[u8]) -> Option<String> {
    let value: serde_json::Value = serde_json::from_slice(bytes).ok()?;
    value.get("id")?.as_str().filter(|id| bowline_osv::is_id(id)).map(String::from)
}

enum Stop {
    Failed(ClientError),
    /// Anyone who reads has given up; the reason is theirs.
    ReceiverClosed,
}

/// Collects items into parts.
struct Parts {
    out: SyncSender<(usize, Vec<Raw>)>,
    number: usize,
    items: Vec<Raw>,
    bytes: usize,
}

impl Parts {
    fn push(&mut self, name: String, content: Result<Vec<u8>, String>) -> Result<(), Stop> {
        self.bytes += content.as_ref().map_or(0, Vec::len);
        self.items.push(Raw { name, content });
        if self.items.len() < ITEMS_AT_ONCE && self.bytes < BYTES_AT_ONCE {
            return Ok(());
        }
        self.send()
    }

    fn send(&mut self) -> Result<(), Stop> {
        let items = std::mem::take(&mut self.items);
        self.bytes = 0;
        let number = self.number;
        self.number += 1;
        self.out.send((number, items)).map_err(|_| Stop::ReceiverClosed)
    }
}

fn failed(path: &Path, source: std::io::Error) -> Stop {
    Stop::Failed(ClientError::File { path: path.into(), source })
}

fn has_ending(name: &str, ending: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

fn everything(path: &Path, out: &mut Parts) -> Result<(), Stop> {
    let about = std::fs::metadata(path).map_err(|error| failed(path, error))?;
    if about.is_dir() {
        return directory(path, path, out);
    }
    let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    if has_ending(&name, "zip") {
        archive(path, out)
    } else if has_ending(&name, "jsonl") {
        read_json_lines(path, &name, out)
    } else {
        file(path, name, out)
    }
}

/// A directory with everything below it, by name. Links are not followed: they may lead anywhere.
fn directory(root: &Path, path: &Path, out: &mut Parts) -> Result<(), Stop> {
    let listed = std::fs::read_dir(path).map_err(|error| failed(path, error))?;
    let mut entries: Vec<(PathBuf, std::fs::FileType)> = Vec::new();
    for entry in listed {
        let entry = entry.map_err(|error| failed(path, error))?;
        entries.push((entry.path(), entry.file_type().map_err(|error| failed(path, error))?));
    }
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    for (path, kind) in entries {
        let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().into_owned();
        if kind.is_dir() && !path.ends_with(".git") {
            directory(root, &path, out)?;
        } else if kind.is_symlink() && has_ending(&name, "json") {
            out.push(name, Err("it is a link, and links are not followed".into()))?;
        } else if kind.is_file() && has_ending(&name, "jsonl") {
            read_json_lines(&path, &name, out)?;
        } else if kind.is_file() && has_ending(&name, "json") {
            file(&path, name, out)?;
        }
    }
    Ok(())
}

fn file(path: &Path, name: String, out: &mut Parts) -> Result<(), Stop> {
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed(path, error))?;
    let content = if bytes.len() > MAX_BYTES { Err(too_large("it")) } else { Ok(bytes) };
    out.push(name, content)
}

fn too_large(what: &str) -> String {
    format!("{what} has more than the {MAX_BYTES} bytes that are read")
}

/// One record on each line. A line that is too long is passed over without being held.
fn read_json_lines(path: &Path, name: &str, out: &mut Parts) -> Result<(), Stop> {
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let mut reader = BufReader::with_capacity(1 << 16, file);
    for number in 1_u64.. {
        let mut line = Vec::new();
        let most = MAX_BYTES as u64 + 1;
        let read = reader.by_ref().take(most).read_until(b'\n', &mut line).map_err(|error| failed(path, error))?;
        if read == 0 {
            return Ok(());
        }
        let name = format!("{name}:{number}");
        if line.len() > MAX_BYTES && !line.ends_with(b"\n") {
            reader.skip_until(b'\n').map_err(|error| failed(path, error))?;
            out.push(name, Err(too_large("the line")))?;
        } else if !line.trim_ascii().is_empty() {
            out.push(name, Ok(line))?;
        }
    }
    Ok(())
}

fn archive(path: &Path, out: &mut Parts) -> Result<(), Stop> {
    let file = File::open(path).map_err(|error| failed(path, error))?;
    let broken = |error: ArchiveError| match error {
        ArchiveError::Unreadable(error) => failed(path, error),
        other => failed(path, io::Error::new(io::ErrorKind::InvalidData, other.to_string())),
    };
    let mut archive = Archive::open(file, ARCHIVES).map_err(broken)?;
    let records: Vec<Member> =
        archive.members().iter().filter(|member| has_ending(&member.path, "json")).cloned().collect();
    for member in records {
        let content = match archive.content(&member) {
            Err(error @ ArchiveError::Unreadable(_)) => return Err(broken(error)),
            content => content.map_err(|error| format!("the member {error}")),
        };
        out.push(member.path, content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn record(id: &str) -> String {
        format!(r#"{{"id":"{id}","modified":"2026-01-01T00:00:00Z"}}"#)
    }

    fn told(content: Result<Parsed, Unread>) -> Result<String, String> {
        content.map(|parsed| parsed.record.id).map_err(|unread| unread.reason)
    }

    #[test]
    fn a_broken_record_says_its_id_where_it_can() {
        let unread = |text: &str| parse(Ok(text.as_bytes().to_vec())).unwrap_err();
        assert_eq!(unread(r#"{"id":"A-1"}"#).id.as_deref(), Some("A-1"));
        assert_eq!(unread(r#"{"id":"A-1","#).id, None);
        assert_eq!(unread(r#"{"id":7}"#).id, None);
    }

    fn all(path: &Path) -> Vec<(String, Result<String, String>)> {
        let mut items = Items::read(path);
        let mut all = Vec::new();
        while let Some(part) = items.next().unwrap() {
            all.extend(part.into_iter().map(|item| (item.name, told(item.content))));
        }
        all
    }

    #[test]
    fn a_directory_is_read_by_name_whatever_thread_judges_it() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("advisories/2026/01");
        std::fs::create_dir_all(&deep).unwrap();
        std::fs::create_dir_all(root.path().join(".git")).unwrap();
        std::fs::write(root.path().join(".git/x.json"), "?").unwrap();
        std::fs::write(root.path().join("README.md"), "?").unwrap();
        std::fs::write(root.path().join("z.json"), "{").unwrap();
        for i in 0..500 {
            std::fs::write(deep.join(format!("A-{i:03}.json")), record(&format!("A-{i:03}"))).unwrap();
        }
        let found = all(root.path());
        assert_eq!(found.len(), 501);
        for (i, (name, id)) in found.iter().take(500).enumerate() {
            assert_eq!(
                (name.as_str(), id),
                (format!("advisories/2026/01/A-{i:03}.json").as_str(), &Ok(format!("A-{i:03}")))
            );
        }
        assert!(found[500].1.as_ref().unwrap_err().starts_with("is not JSON"));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("all.jsonl");
        let mut file = File::create(&path).unwrap();
        writeln!(file, "{}", record("A-1")).unwrap();
        file.write_all(&vec![b' '; 3 * MAX_BYTES]).unwrap();
        writeln!(file, "\n\n{}", record("A-2")).unwrap();
        let found = all(&path);
        assert_eq!((&found[0].1, &found[2].1), (&Ok("A-1".into()), &Ok("A-2".into())));
        assert_eq!(found[1], ("all.jsonl:2".into(), Err(too_large("the line"))));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn what_cannot_be_read_is_an_error() {
        let mut items = Items::read(Path::new("nowhere/at/all"));
        assert!(items.next().is_err());
    }
}
