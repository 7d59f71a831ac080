//! The names and numbers of one enum.

use std::collections::HashMap;

use prost_reflect::EnumDescriptor;
use prost_reflect::prost_types::EnumValueDescriptorProto;

use crate::text::push_json_string;

#[derive(Debug)]
pub(crate) struct EnumTable {
    /// `NullValue`, whose only JSON form is `null`.
    pub(crate) null: bool,
    /// Quoted names of the numbers from 0, as far as they are dense.
    dense: Box<[Option<Box<[u8]>>]>,
    sparse: HashMap<i32, Box<[u8]>>,
    by_name: HashMap<Box<str>, i32>,
    /// The names as an error message lists them.
    pub(crate) listing: Box<str>,
}

impl EnumTable {
    pub(crate) fn new(item: &EnumDescriptor) -> EnumTable {
        const DENSE: usize = 256;
        const LISTED: usize = 40;
        let mut dense: Vec<Option<Box<[u8]>>> = Vec::new();
        let mut sparse = HashMap::new();
        let mut by_name = HashMap::new();
        let values = &item.enum_descriptor_proto().value;
        for value in values {
            by_name.insert(value.name().into(), value.number());
            let mut quoted = Vec::new();
            push_json_string(&mut quoted, value.name());
            // Of two names for one number the first is printed.
            match usize::try_from(value.number()) {
                Ok(number) if number < DENSE => {
                    dense.resize_with(dense.len().max(number + 1), || None);
                    if let Some(slot) = dense.get_mut(number) {
                        slot.get_or_insert(quoted.into());
                    }
                }
                _ => {
                    sparse.entry(value.number()).or_insert(quoted.into());
                }
            }
        }
        let mut listing: Vec<&str> = values.iter().take(LISTED).map(EnumValueDescriptorProto::name).collect();
        if values.len() > LISTED {
            listing.push("...");
        }
        EnumTable {
            null: item.full_name() == "google.protobuf.NullValue",
            dense: dense.into(),
            sparse,
            by_name,
            listing: listing.join(", ").into(),
        }
    }

    /// The quoted name of a number.
    #[inline]
    pub(crate) fn name(&self, number: i32) -> Option<&[u8]> {
        let dense = usize::try_from(number).ok().and_then(|at| self.dense.get(at));
        match dense {
            Some(name) => name.as_deref(),
            None => self.sparse.get(&number).map(AsRef::as_ref),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Option<i32> {
        self.by_name.get(name).copied()
    }
}
