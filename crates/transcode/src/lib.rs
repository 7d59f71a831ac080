//! A table-driven, streaming transcoder between the protobuf wire format and
//! proto3 JSON.
//!
//! The server keeps and moves messages as wire bytes; only HTTP clients see
//! JSON. Going through message structs for them would cost a decode, an
//! allocation per string and a second schema. This crate goes straight from
//! bytes to bytes instead, guided by [`Tables`] compiled from the descriptors.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use bowline_transcode::{JsonOptions, Tables};
//!
//! // Any pool will do; this one knows the well-known types.
//! let tables = Tables::new(&prost_reflect::DescriptorPool::global());
//! let id = tables.message("google.protobuf.Duration").ok_or("no such message")?;
//!
//! let mut wire = Vec::new();
//! tables.from_json(id, br#""1.5s""#, &mut wire).map_err(|errors| errors[0].clone())?;
//! let mut json = Vec::new();
//! tables.to_json(id, &wire, &JsonOptions::default(), &mut json)?;
//! assert_eq!(json, br#""1.500s""#);
//! # Ok(()) }
//! ```
//!
//! # How it works
//!
//! **Wire to JSON** ([`Tables::to_json`]): *index, then emit*. One shallow scan
//! of a message records per field where it first and last occurs and how often;
//! nested messages are stepped over by their length. Then the fields are
//! written in order of their numbers. That one idea covers absent fields, any
//! wire order, interleaved lists, replaced values, oneofs (an occurrence of one
//! member wipes the others' records) and merging (a singular message that
//! occurs several times is the concatenation of its payloads).
//!
//! **JSON to wire** ([`Tables::from_json`]): one pass that encodes as it parses
//! and shifts a message's content when its length needs more than one byte. The
//! names of the members present come as a by-product ([`Presence`]): an update
//! without a field mask needs them.
//!
//! # What is promised
//!
//! Output is canonical both ways, so equal messages give equal bytes. No input
//! panics. Nesting is limited to 100 levels in both directions, counted as
//! prost counts them, so what is encoded here can be decoded by generated code.
//! Values that the wire replaces (an earlier occurrence of a singular field)
//! are checked for structure, not for content such as UTF-8.

mod enums;
mod errors;
mod from_json;
mod json_reader;
mod parameters;
mod scalar;
mod scan;
mod tables;
mod text;
mod time_text;
mod to_json;
mod well_known;

pub use errors::TranscodeError;
pub use tables::{MessageId, Tables};
pub use text::push_json_string;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JsonOptions {
    /// Name fields as the proto files do instead of by their JSON names, which
    /// are lowerCamelCase unless the schema says otherwise.
    pub proto_names: bool,
    /// Write fields that hold their default: scalars without presence, empty
    /// lists and maps. Unset messages, `optional` fields and oneofs stay away.
    pub emit_defaults: bool,
}

/// The paths a JSON object mentioned, in proto field names: usable as the paths
/// of a field mask.
///
/// A path goes through singular messages (`sync_config.google`) and ends at
/// anything else: a scalar, list, map or well-known type. A message without
/// known members (`{}`) is a path itself, and so is a member that is `null`,
/// since naming it is how clients clear it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Presence(pub(crate) Vec<String>);

impl Presence {
    /// The paths, in the order of the text.
    pub fn paths(&self) -> &[String] {
        &self.0
    }
}
