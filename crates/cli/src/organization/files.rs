//! Files of documents: one object each, with a kind, a path and a `spec`.

use std::path::{Path, PathBuf};

use bowline_contract::Contract;
use bowline_core::Uidp;
use bowline_terminal::suggestion;

use super::kinds::{self, KINDS, Kind};
use super::schema;
use super::spec::{self, Spec};
use super::yaml::{self, Content, Node};
use crate::error::CliError;
use crate::input;

/// Largest file, in bytes.
const FILE_BYTES: u64 = 16 << 20;

/// Most problems that an error names.
const SHOWN_PROBLEMS: usize = 20;

/// Members of a document.
const MEMBERS: [&str; 4] = ["kind", "path", "uid", "spec"];

/// An object in a file.
pub(super) struct Document {
    pub(super) file: String,
    pub(super) line: usize,
    pub(super) kind: &'static Kind,
    pub(super) path: String,
    pub(super) uid: Option<String>,
    pub(super) spec: Spec,
}

impl Document {
    /// Path of the container or subject, and the name if the path has one.
    pub(super) fn split(&self) -> (&str, &str) {
        if !self.kind.is_named() {
            return (&self.path, "");
        }
        // Names of an organization's own objects may have slashes.
        let split = if self.kind.is_of_organization { self.path.split_once('/') } else { self.path.rsplit_once('/') };
        split.unwrap_or(("", &self.path))
    }

    /// Name of the organization.
    pub(super) fn organization(&self) -> &str {
        self.path.split('/').next().unwrap_or_default()
    }

    /// `FILE:LINE: FIELD: ` before a message about a field of the spec, by its path.
    pub(super) fn at(&self, field: &str) -> String {
        let mut known = field;
        loop {
            if let Some(line) = self.spec.lines.get(known) {
                return format!("{}:{line}: spec.{field}", self.file);
            }
            match known.rfind(['.', '[']) {
                Some(end) => known = &known[..end],
                None => return format!("{}:{}: {field}", self.file, self.line),
            }
        }
    }
}

/// What is wrong with files: all of it is named at once.
#[derive(Default)]
pub(super) struct Faults(Vec<String>);

impl Faults {
    pub(super) fn push(&mut self, fault: String) {
        self.0.push(fault);
    }

    /// Nothing, if nothing is wrong.
    ///
    /// # Errors
    /// The faults, one per line.
    pub(super) fn require_none(self) -> Result<(), CliError> {
        if self.0.is_empty() {
            return Ok(());
        }
        let more = self.0.len().saturating_sub(SHOWN_PROBLEMS);
        let mut text = self.0.into_iter().take(SHOWN_PROBLEMS).collect::<Vec<_>>().join("\n");
        if more > 0 {
            text.push_str(&format!("\nand {more} more"));
        }
        Err(CliError::Document(format!("nothing was changed, because files are wrong:\n{text}")))
    }
}

/// What is wrong with one file.
pub(super) struct Problems<'f> {
    file: &'f str,
    faults: &'f mut Faults,
}

impl Problems<'_> {
    pub(super) fn push(&mut self, line: usize, field: &str, why: &str) {
        self.faults.push(format!("{}:{line}: {field}: {why}", self.file));
    }
}

/// Where `fromFile` of a document reads: paths begin at its directory, and end below one of those that are allowed.
pub(super) struct ValueFiles<'f> {
    directory: &'f Path,
    allowed: &'f [PathBuf],
}

impl ValueFiles<'_> {
    /// The file of this path, without symbolic links. Documents may be a proposal of someone who must not read other files.
    ///
    /// # Errors
    /// There is no such file, or it lies elsewhere; in words.
    pub(super) fn path(&self, file: &str) -> Result<PathBuf, String> {
        let path = self.directory.join(file).canonicalize().map_err(|error| format!("{file}: {error}"))?;
        if self.allowed.iter().any(|directory| path.starts_with(directory)) {
            return Ok(path);
        }
        Err(format!("{file}: not below the directory of the documents; allow its directory with --from-directory"))
    }
}

/// Reads the documents of files and directories; `-` is standard input. `further` are directories in which values may be
/// besides the documents'.
///
/// # Errors
/// A file cannot be read, or is wrong: all faults are named.
pub(super) fn read(contract: &Contract, paths: &[PathBuf], further: &[PathBuf]) -> Result<Vec<Document>, CliError> {
    let mut faults = Faults::default();
    let mut documents = Vec::new();
    let canonical = |path: &Path| path.canonicalize().map_err(|source| CliError::File { path: path.into(), source });
    for path in paths {
        let root = if path.as_os_str() != "-" && path.is_dir() { path } else { parent(path) };
        let mut allowed = vec![canonical(root)?];
        for directory in further {
            allowed.push(canonical(directory)?);
        }
        for file in files_of(path)? {
            read_file(contract, &file, &allowed, &mut documents, &mut faults)?;
        }
    }
    faults.require_none()?;
    if documents.is_empty() {
        return Err(CliError::Document("the files have no documents: nothing to do".into()));
    }
    Ok(documents)
}

/// The directory of a file; never empty, so that `-` is no file beside it.
fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The files with documents at a path, in the order of their names. Links to directories are left out: they may be cycles.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, CliError> {
    if path.as_os_str() == "-" || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let failed = |source| CliError::File { path: path.to_owned(), source };
    let mut entries: Vec<(PathBuf, bool)> = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        entries.push((entry.path(), entry.file_type().map_err(failed)?.is_dir()));
    }
    entries.sort();
    let mut files = Vec::new();
    for (entry, is_directory) in entries {
        let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_document = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
        if name.starts_with('.') {
            continue;
        }
        if is_directory {
            files.extend(files_of(&entry)?);
        } else if is_document && !entry.is_dir() {
            files.push(entry);
        }
    }
    Ok(files)
}

fn read_file(
    contract: &Contract,
    path: &Path,
    allowed: &[PathBuf],
    documents: &mut Vec<Document>,
    faults: &mut Faults,
) -> Result<(), CliError> {
    let file = path.display().to_string();
    let bytes = input::read(path, FILE_BYTES)?;
    let mut problems = Problems { file: &file, faults };
    let nodes = match std::str::from_utf8(&bytes).map(yaml::documents) {
        Ok(Ok(nodes)) => nodes,
        Ok(Err(wrong)) => {
            problems.push(wrong.line, "not readable as YAML", &wrong.reason);
            return Ok(());
        }
        Err(_) => {
            problems.push(1, "encoding", "must be UTF-8");
            return Ok(());
        }
    };
    let values = ValueFiles { directory: parent(path), allowed };
    for node in nodes {
        // A list of documents is as good as several.
        let members = if let Content::List(items) = node.value { items } else { vec![node] };
        for node in &members {
            documents.extend(document(contract, &file, node, &values, &mut problems)?);
        }
    }
    Ok(())
}

fn document(
    contract: &Contract,
    file: &str,
    node: &Node,
    values: &ValueFiles<'_>,
    problems: &mut Problems<'_>,
) -> Result<Option<Document>, CliError> {
    let Content::Map(members) = &node.value else {
        problems.push(node.line, "document", "must have members: kind, path and spec");
        return Ok(None);
    };
    for (name, line, _) in members.iter().filter(|(name, ..)| !MEMBERS.contains(&name.as_str())) {
        problems.push(*line, name, &format!("unknown member{}; fields are below spec", suggestion(name, MEMBERS)));
    }
    let Some(kind) = kind_of(node, problems) else { return Ok(None) };
    let Some((path, line)) = text(node, "path", problems) else { return Ok(None) };
    if let Err(why) = validate_path(kind, &path) {
        problems.push(line, "path", &why);
        return Ok(None);
    }
    let uid = member(node, "uid").and_then(|_| text(node, "uid", problems));
    if let Some((uid, line)) = uid.as_ref().filter(|(uid, _)| !Uidp::is_valid(uid)) {
        problems.push(*line, "uid", &format!("{uid:?} is not a UIDP"));
        return Ok(None);
    }
    let message = schema::message(contract, kind)?;
    let nothing = Node { line: node.line, value: Content::Null };
    let spec = spec::read(kind, &message, member(node, "spec").unwrap_or(&nothing), values, problems);
    let uid = uid.map(|(uid, _)| uid);
    Ok(Some(Document { file: file.to_owned(), line: node.line, kind, path, uid, spec }))
}

fn kind_of(node: &Node, problems: &mut Problems<'_>) -> Option<&'static Kind> {
    let (name, line) = text(node, "kind", problems)?;
    let kind = kinds::kind(&name);
    if kind.is_none() {
        let names: Vec<&str> = KINDS.iter().map(|kind| kind.name).collect();
        let near = suggestion(&name, names.iter().copied());
        let near = if near.is_empty() { format!("; there are {}", names.join(", ")) } else { near };
        problems.push(line, "kind", &format!("there is no kind {name:?}{near}"));
    }
    kind
}

/// Requires names between slashes, as many as the kind takes.
fn validate_path(kind: &Kind, path: &str) -> Result<(), String> {
    if path.split('/').any(str::is_empty) {
        return Err(format!("{path:?} must be names with slashes between them, as acme/team"));
    }
    if path.split('/').any(Uidp::is_valid) {
        return Err("must be names, which are the same on other servers; a UIDP goes into `uid`".into());
    }
    let names = path.split('/').count();
    if kind.is_of_organization && !kind.is_named() && names > 1 {
        return Err(format!("{path:?} must be an organization: only these have a {}", kind.name));
    }
    if names == 1 && (kind.within != kinds::GROUP || (kind.is_named() && kind.name != kinds::GROUP)) {
        return Err(format!("{path:?} must begin with the path of a group, as acme/{path}"));
    }
    Ok(())
}

fn member<'n>(node: &'n Node, name: &str) -> Option<&'n Node> {
    let Content::Map(members) = &node.value else { return None };
    members.iter().find(|(known, ..)| known == name).map(|(.., value)| value)
}

/// A member that must be a text, and its line.
fn text(node: &Node, name: &str, problems: &mut Problems<'_>) -> Option<(String, usize)> {
    match member(node, name).map(|node| (&node.value, node.line)) {
        Some((Content::Text(text), line)) => Some((text.clone(), line)),
        Some((_, line)) => {
            problems.push(line, name, "must be a text");
            None
        }
        None => {
            problems.push(node.line, name, "is required");
            None
        }
    }
}
