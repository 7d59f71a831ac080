//! The comments of the contract's messages, fields and methods as lines of text, sorted by the full names.

use std::collections::BTreeMap;

use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};

// Numbers of fields in the messages that describe a file, of which paths to declarations consist.
const MESSAGES: i32 = 4;
const SERVICES: i32 = 6;
const FIELDS: i32 = 2;
const NESTED: i32 = 3;
const METHODS: i32 = 2;

/// A line for each comment: the full name, a tab, and the comment without line breaks.
pub(crate) fn lines(set: &FileDescriptorSet) -> String {
    let mut docs = BTreeMap::new();
    for file in &set.file {
        File::new(file).collect(&mut docs);
    }
    let lines: Vec<String> = docs.into_iter().map(|(name, text)| format!("{name}\t{text}\n")).collect();
    lines.concat()
}

struct File<'f> {
    file: &'f FileDescriptorProto,
    comments: BTreeMap<&'f [i32], &'f str>,
}

impl<'f> File<'f> {
    fn new(file: &'f FileDescriptorProto) -> File<'f> {
        let locations = file.source_code_info.iter().flat_map(|info| &info.location);
        let comments =
            locations.filter_map(|location| Some((&*location.path, location.leading_comments.as_deref()?))).collect();
        File { file, comments }
    }

    fn collect(&self, docs: &mut BTreeMap<String, String>) {
        let package = self.file.package();
        for (at, message) in self.file.message_type.iter().enumerate() {
            self.message(message, &[MESSAGES, at as i32], package, docs);
        }
        for (at, service) in self.file.service.iter().enumerate() {
            for (number, method) in service.method.iter().enumerate() {
                let name = format!("{package}.{}.{}", service.name(), method.name());
                self.put(&[SERVICES, at as i32, METHODS, number as i32], name, docs);
            }
        }
    }

    fn message(&self, message: &DescriptorProto, path: &[i32], parent: &str, docs: &mut BTreeMap<String, String>) {
        let name = format!("{parent}.{}", message.name());
        for (at, field) in message.field.iter().enumerate() {
            self.put(&[path, &[FIELDS, at as i32]].concat(), format!("{name}.{}", field.name()), docs);
        }
        for (at, nested) in message.nested_type.iter().enumerate() {
            self.message(nested, &[path, &[NESTED, at as i32]].concat(), &name, docs);
        }
        self.put(path, name, docs);
    }

    fn put(&self, path: &[i32], name: String, docs: &mut BTreeMap<String, String>) {
        if let Some(text) = self.comments.get(path) {
            docs.insert(name, text.split_whitespace().collect::<Vec<_>>().join(" "));
        }
    }
}
