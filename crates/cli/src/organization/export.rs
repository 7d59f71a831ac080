//! An organization as documents.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bowline_client::ClientError;
use bowline_contract::Contract;
use bowline_terminal::{Form, note};
use prost_reflect::MessageDescriptor;
use serde_json::{Map, Value, json};

use super::addresses;
use super::kinds::{self, KINDS, Kind, README};
use super::names::Names;
use super::ownership::hash;
use super::schema::{self, Members};
use super::server::{Server, Stored};
use crate::error::CliError;
use crate::print;

/// A document to write.
struct Exported<'s> {
    object: &'s Stored,
    label: String,
    path: String,
    spec: Members,
}

/// Prints documents, or writes a file of each kind to a directory.
///
/// # Errors
/// The directory has such files and they may not be overwritten, or cannot be written.
pub(super) fn export(
    contract: &Contract,
    server: &Server,
    path: &str,
    directory: Option<(&Path, bool)>,
) -> Result<(), CliError> {
    let names = Names::new(contract, server);
    let mut documents = exported(contract, server, &names, path)?;
    documents.sort_by_cached_key(|document| (kinds::rank(document.object.kind), document.label.clone()));
    let mut labels: BTreeMap<String, usize> = BTreeMap::new();
    for document in &documents {
        *labels.entry(document.label.clone()).or_default() += 1;
    }
    let mut files: BTreeMap<PathBuf, String> = BTreeMap::new();
    for document in &documents {
        let kind = document.object.kind;
        let mut spec = document.spec.clone();
        if let Some(readme) = readme_file(document).filter(|_| directory.is_some()) {
            let content = spec.insert("content".into(), json!({ "fromFile": readme }));
            files.insert(readme.into(), content.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned());
        }
        let mut members =
            Map::from_iter([("kind".to_owned(), kind.name.into()), ("path".to_owned(), document.path.clone().into())]);
        if !spec.is_empty() {
            members.insert("spec".into(), Value::Object(spec));
        }
        if labels.get(&document.label).is_some_and(|count| *count > 1) {
            let label = addresses::shown_label(kind, &document.label, &document.object.spec);
            note(&format!("{label}: several objects have this name; rename all but one before you apply\n"));
            members.insert("uid".into(), document.object.uid.clone().into());
        }
        let text = Form::Yaml.document(&Value::Object(members))?;
        let file = files.entry(file_of(kind)).or_default();
        if !file.is_empty() {
            file.push_str("---\n");
        }
        file.push_str(&text);
    }
    if let Some((directory, may_overwrite)) = directory {
        return write(directory, may_overwrite, &files);
    }
    let ordered = KINDS.iter().filter_map(|kind| files.get(&file_of(kind)).map(String::as_str));
    print(&ordered.collect::<Vec<_>>().join("---\n"))
}

/// The objects at a path and below it.
fn exported<'s>(
    contract: &Contract,
    server: &'s Server,
    names: &Names,
    within: &str,
) -> Result<Vec<Exported<'s>>, ClientError> {
    let mut documents = Vec::new();
    for object in &server.objects {
        let path = names.path_of(object.kind, &object.uid, &object.parent);
        if path != within && !path.strip_prefix(within).is_some_and(|rest| rest.starts_with('/')) {
            continue;
        }
        let message = schema::message(contract, object.kind)?;
        let label = names.label(object.kind, &message, &path, &object.spec);
        let mut spec = names.named(&message, &object.spec);
        note_hidden(&message, &spec, &addresses::shown_label(object.kind, &label, &object.spec));
        secrets(object, &message, &label, &mut spec);
        documents.push(Exported { object, label, path, spec });
    }
    Ok(documents)
}

/// Names references that have no path: what they refer to is not visible.
fn note_hidden(message: &MessageDescriptor, spec: &Members, label: &str) {
    let visited = schema::each_reference(message, &mut spec.clone(), "", &mut |_, field, text: &mut String| {
        // People have no path; their UIDPs are the same on every server.
        if bowline_core::Uidp::is_valid(text) && text.contains('/') {
            note(&format!("{label}: spec.{field} has no path, because you may not see {text}\n"));
        }
        Ok::<_, std::convert::Infallible>(())
    });
    let Ok(()) = visited;
}

/// Refers to files for secrets that are stored, and names those that may be.
fn secrets(object: &Stored, message: &MessageDescriptor, label: &str, spec: &mut Members) {
    for path in secret_paths(message, spec, "") {
        match object.secrets.get(&path) {
            Some(true) => {
                let file = secret_file(label, &path);
                note(&format!("{label}: write {path} to {file}; the server does not return it\n"));
                schema::put(spec, &path, json!({ "fromFile": file }));
            }
            Some(false) => {}
            None => note(&format!("{label}: {path} is never returned; if there is one, add it with fromFile\n")),
        }
    }
}

/// File of a secret: the label with dots in it, and a hash where two labels could have the same.
fn secret_file(label: &str, path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let object = label.split_once(' ').map_or(label, |(_, object)| object);
    let suffix =
        if object.chars().all(|c| is_plain(c) || c == '/') { String::new() } else { format!("-{}", hash(label)) };
    format!("secrets/{}{suffix}.{path}", label.replace(|c: char| !is_plain(c), "."))
}

/// Paths of secrets in the messages that a spec has.
fn secret_paths(message: &MessageDescriptor, spec: &Members, prefix: &str) -> Vec<String> {
    let mut paths = Vec::new();
    for field in message.fields() {
        let path = format!("{prefix}{}", field.json_name());
        if schema::is_write_only(&field) {
            paths.push(path);
        } else if let (Some(inner), Some(Value::Object(members))) =
            (schema::structure(&field).filter(|_| !field.is_map()), spec.get(field.json_name()))
        {
            paths.extend(secret_paths(&inner, members, &format!("{path}.")));
        }
    }
    paths
}

/// File of a read-me beside the documents; absent if its path has more than plain names.
fn readme_file(document: &Exported<'_>) -> Option<String> {
    let is_plain = |name: &str| {
        !name.starts_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || [' ', '.', '_', '-'].contains(&c))
    };
    let is_readme = document.object.kind.name == README && document.path.split('/').all(is_plain);
    is_readme.then(|| format!("readmes/{}.md", document.path))
}

/// File of the documents of a kind, such as `role-binding.yaml`.
fn file_of(kind: &Kind) -> PathBuf {
    let mut name = String::new();
    for c in kind.name.chars() {
        if c.is_ascii_uppercase() && !name.is_empty() {
            name.push('-');
        }
        name.push(c.to_ascii_lowercase());
    }
    format!("{name}.yaml").into()
}

fn write(directory: &Path, may_overwrite: bool, files: &BTreeMap<PathBuf, String>) -> Result<(), CliError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| CliError::File { path, source }
    };
    let of_kinds = KINDS.iter().map(file_of).collect::<BTreeSet<PathBuf>>();
    let former: BTreeSet<PathBuf> =
        of_kinds.iter().chain(files.keys()).map(|file| directory.join(file)).filter(|path| path.exists()).collect();
    if let Some(path) = former.first().filter(|_| !may_overwrite) {
        let why = format!("{} is there already; name another directory, or pass --overwrite", path.display());
        return Err(CliError::Option(why));
    }
    for (file, text) in files {
        let path = directory.join(file);
        let parent = path.parent().unwrap_or(directory);
        std::fs::create_dir_all(parent).map_err(failed(parent))?;
        // A full disk leaves the former file.
        let draft = path.with_extension("draft");
        std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, &path)).map_err(failed(&path))?;
    }
    for path in of_kinds.iter().filter(|file| !files.contains_key(*file)).map(|file| directory.join(file)) {
        if former.contains(&path) {
            std::fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    let documents = KINDS.iter().filter(|kind| files.contains_key(&file_of(kind))).count();
    note(&format!("wrote {documents} files of documents to {}\n", directory.display()));
    Ok(())
}
