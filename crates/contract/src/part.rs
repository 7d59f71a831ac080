//! The files of the embedded descriptor set that one service needs. A descriptor set is a message with a file in each field;
//! only names are read here, and whole files are taken over.

use std::collections::{BTreeMap, BTreeSet};

use crate::fields::{Fields, Payload};

/// Packages whose files every part has: the options, and the rules that use them.
const ALWAYS: [&str; 4] = ["bowline.contract.v1", "chainguard.annotations", "chainguard.capabilities", "google.api"];

// Numbers of fields: files in a set; name, package, imports and services in a file; the name in a service.
const FILE: u32 = 1;
const NAME: u32 = 1;
const PACKAGE: u32 = 2;
const IMPORT: u32 = 3;
const SERVICE: u32 = 6;

/// A file of a descriptor set.
#[derive(Default)]
struct File<'s> {
    bytes: &'s [u8],
    name: &'s str,
    package: &'s str,
    imports: Vec<&'s str>,
    services: Vec<&'s str>,
}

/// What a file imports whose messages may have any message of the contract in them.
const ANY: &str = "google/protobuf/any.proto";

/// The set with the file of this service alone, what it imports, and the rules. Absent if no file has the service, or if its
/// messages may have those of any file in them.
pub(crate) fn set_of(set: &[u8], service: &str) -> Option<Vec<u8>> {
    let files: Vec<File<'_>> =
        fields(set).filter(|(number, _)| *number == FILE).map(|(_, bytes)| file(bytes)).collect();
    let by_name: BTreeMap<&str, &File<'_>> = files.iter().map(|file| (file.name, file)).collect();
    let (package, name) = service.rsplit_once('.')?;
    let own = files.iter().find(|file| file.package == package && file.services.contains(&name))?;
    let always = files.iter().filter(|file| ALWAYS.contains(&file.package));
    let mut open: Vec<&File<'_>> = always.chain([own]).collect();
    let mut needed = BTreeSet::new();
    while let Some(file) = open.pop() {
        if needed.insert(file.name) {
            open.extend(file.imports.iter().filter_map(|name| by_name.get(name)));
        }
    }
    if needed.contains(ANY) {
        return None;
    }
    let mut part = Vec::new();
    for file in files.iter().filter(|file| needed.contains(file.name)) {
        prost::encoding::encode_key(FILE, prost::encoding::WireType::LengthDelimited, &mut part);
        prost::encoding::encode_varint(file.bytes.len() as u64, &mut part);
        part.extend_from_slice(file.bytes);
    }
    Some(part)
}

fn file(bytes: &[u8]) -> File<'_> {
    let mut file = File { bytes, ..File::default() };
    for (number, bytes) in fields(bytes) {
        match number {
            NAME => file.name = text(bytes),
            PACKAGE => file.package = text(bytes),
            IMPORT => file.imports.push(text(bytes)),
            SERVICE => {
                let names = fields(bytes).filter(|(number, _)| *number == NAME);
                file.services.extend(names.map(|(_, name)| text(name)));
            }
            _ => {}
        }
    }
    file
}

/// The fields of a message that are texts or messages.
fn fields(bytes: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    Fields(bytes).flatten().filter_map(|(number, payload)| match payload {
        Payload::Bytes(bytes) => Some((number, bytes)),
        _ => None,
    })
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap_or_default()
}
