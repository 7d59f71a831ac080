use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, MessageDescriptor};

use crate::contract::DESCRIPTOR_SET;

/// Comments of the contract's messages, fields and methods, by full name.
pub struct Docs(BTreeMap<String, String>);

impl Docs {
    /// From the documented descriptor set, which is read for this alone.
    ///
    /// # Panics
    /// The descriptor set does not decode: a defect of the build that no input causes; a test covers it.
    pub fn load() -> Docs {
        let mut docs = BTreeMap::new();
        let pool = DescriptorPool::decode(DESCRIPTOR_SET);
        let pool = pool.expect("the embedded descriptor set decodes, as a test of the contract shows");
        for file in pool.files() {
            let proto = file.file_descriptor_proto();
            let comments: BTreeMap<&[i32], &str> = proto
                .source_code_info
                .iter()
                .flat_map(|info| &info.location)
                .filter_map(|location| Some((location.path.as_slice(), location.leading_comments.as_deref()?)))
                .collect();
            let mut put = |path: &[i32], name: &str| {
                if let Some(text) = comments.get(path) {
                    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
                    docs.insert(name.to_owned(), text);
                }
            };
            for message in file.messages() {
                visit(&message, &mut put);
            }
            for service in file.services() {
                for method in service.methods() {
                    put(method.path(), method.full_name());
                }
            }
        }
        Docs(docs)
    }

    /// The comment in one line; empty where there is none.
    pub fn of(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }
}

fn visit(message: &MessageDescriptor, put: &mut impl FnMut(&[i32], &str)) {
    put(message.path(), message.full_name());
    for field in message.fields() {
        put(field.path(), field.full_name());
    }
    for child in message.child_messages() {
        visit(&child, put);
    }
}
