//! What an import says while it runs and at its end.

use std::fs::File;
use std::io::{BufWriter, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bowline_client::ClientError;
use serde_json::json;

/// What was left out, and how many of everything there were.
pub(super) struct Report {
    file: Option<(PathBuf, BufWriter<File>)>,
    /// The first of what was left out, for people.
    shown: Vec<String>,
    /// Records that are not in the files, and were not removed all the same.
    not_removed: usize,
    pub(super) counts: Counts,
    bar: Bar,
}

/// How many of everything there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) read: usize,
    pub(super) added: usize,
    pub(super) changed: usize,
    pub(super) unchanged: usize,
    pub(super) removed: usize,
    pub(super) repeated: usize,
    pub(super) skipped: usize,
}

/// Reasons that are shown to people.
const SHOWN: usize = 10;

impl Report {
    /// A report that goes to that file as well, if there is one.
    pub(super) fn new(path: Option<&Path>) -> Result<Report, ClientError> {
        let create = |path: &Path| match File::create(path) {
            Ok(file) => Ok((path.to_owned(), BufWriter::new(file))),
            Err(source) => Err(ClientError::File { path: path.into(), source }),
        };
        Ok(Report {
            file: path.map(create).transpose()?,
            shown: Vec::new(),
            not_removed: 0,
            counts: Counts::default(),
            bar: Bar::new(),
        })
    }

    /// Something was left out.
    pub(super) fn skip(&mut self, name: &str, id: &str, reason: &str) -> Result<(), ClientError> {
        self.counts.skipped += 1;
        if self.shown.len() < SHOWN {
            self.shown.push(format!("{name}: {reason}"));
        }
        if let Some((path, file)) = &mut self.file {
            let line = json!({ "file": name, "id": id, "reason": reason });
            writeln!(file, "{line}").map_err(|source| ClientError::File { path: path.clone(), source })?;
        }
        Ok(())
    }

    /// So many records are not in the files as far as these could be read, and stay.
    pub(super) fn keep(&mut self, records: usize) {
        self.not_removed = records;
    }

    /// Shows how far the import is, now and then.
    pub(super) fn progress(&mut self) {
        self.bar.show(&self.counts);
    }

    /// The end of everything: what was left out goes to people as well.
    pub(super) fn finish(mut self) -> Result<Counts, ClientError> {
        self.bar.clear();
        if let Some((path, mut file)) = self.file.take() {
            file.flush().map_err(|source| ClientError::File { path, source })?;
        }
        let mut stderr = std::io::stderr().lock();
        for line in &self.shown {
            let _ = writeln!(stderr, "left out: {}", line.replace(char::is_control, " "));
        }
        if self.counts.skipped > self.shown.len() {
            let _ =
                writeln!(stderr, "left out: {} more; --report FILE lists all", self.counts.skipped - self.shown.len());
        }
        if self.not_removed > 0 {
            let _ = writeln!(
                stderr,
                "not removed: {} records that are not in the files, because what was left out may be one of them; mend it and repeat",
                self.not_removed
            );
        }
        Ok(self.counts)
    }
}

/// One line on a terminal, written over and over.
struct Bar {
    last: Option<Instant>,
    is_terminal: bool,
}

impl Bar {
    fn new() -> Bar {
        Bar { last: None, is_terminal: std::io::stderr().is_terminal() }
    }

    fn show(&mut self, counts: &Counts) {
        let is_soon = self.last.is_some_and(|last| last.elapsed() < Duration::from_millis(200));
        if !self.is_terminal || is_soon {
            return;
        }
        self.last = Some(Instant::now());
        let Counts { read, added, changed, skipped, .. } = counts;
        let _ = write!(std::io::stderr(), "\r\x1b[K{read} read, {added} new, {changed} changed, {skipped} left out");
    }

    fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
