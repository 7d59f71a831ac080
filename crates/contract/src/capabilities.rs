use std::collections::HashMap;

use bowline_core::CapabilitySet;
use prost_reflect::DescriptorPool;

use crate::options;

/// What the contract says of one capability.
#[derive(Debug, Clone)]
pub struct CapabilityFacts {
    /// Number of the enum value: the form of the second API version.
    pub number: i32,
    /// Name of the enum value.
    pub enum_name: String,
    /// Name in the first API version and in messages.
    pub name: String,
    /// Index in the token's bit set.
    pub bit: u32,
    /// Never enters a custom role.
    pub internal_only: bool,
    /// Not usable any more.
    pub deprecated: bool,
}

/// All capabilities, found by number, name or bit.
#[derive(Debug)]
pub struct Capabilities {
    facts: Vec<CapabilityFacts>,
    by_number: HashMap<i32, usize>,
    by_name: HashMap<String, usize>,
    by_bit: HashMap<u32, usize>,
    internal: CapabilitySet,
}

impl Capabilities {
    pub(crate) fn load(pool: &DescriptorPool) -> Capabilities {
        let name_option = options::extension(pool, "chainguard.capabilities.name");
        let bit_option = options::extension(pool, "chainguard.capabilities.bit");
        let internal_option = options::extension(pool, "chainguard.capabilities.internal_only");
        let descriptor = pool
            .get_enum_by_name("chainguard.capabilities.Capability")
            .expect("the descriptor set has the capabilities");
        let mut facts = Vec::new();
        // Declaration order, which is that of the published table; the descriptor sorts by number.
        for declared in &descriptor.enum_descriptor_proto().value {
            let value = descriptor.get_value(declared.number()).expect("a declared value has a descriptor");
            let value_options = value.options();
            let Some(name) = options::get(&value_options, &name_option) else {
                continue;
            };
            facts.push(CapabilityFacts {
                number: value.number(),
                enum_name: value.name().into(),
                name: name.as_str().unwrap_or_default().into(),
                bit: options::get(&value_options, &bit_option).and_then(|bit| bit.as_u32()).unwrap_or(0),
                internal_only: options::get(&value_options, &internal_option)
                    .and_then(|flag| flag.as_bool())
                    .unwrap_or(false),
                deprecated: declared.options.as_ref().is_some_and(prost_types::EnumValueOptions::deprecated),
            });
        }
        Capabilities {
            by_number: facts.iter().enumerate().map(|(i, f)| (f.number, i)).collect(),
            by_name: facts.iter().enumerate().map(|(i, f)| (f.name.clone(), i)).collect(),
            by_bit: facts.iter().enumerate().map(|(i, f)| (f.bit, i)).collect(),
            internal: facts.iter().filter(|f| f.internal_only || f.name == "internal").map(|f| f.bit).collect(),
            facts,
        }
    }

    /// In the order of the contract.
    pub fn iter(&self) -> impl Iterator<Item = &CapabilityFacts> {
        self.facts.iter()
    }

    pub fn by_number(&self, number: i32) -> Option<&CapabilityFacts> {
        self.by_number.get(&number).map(|i| &self.facts[*i])
    }

    /// By the name of the first API version, such as `groups.list`.
    pub fn by_name(&self, name: &str) -> Option<&CapabilityFacts> {
        self.by_name.get(name).map(|i| &self.facts[*i])
    }

    pub fn by_bit(&self, bit: u32) -> Option<&CapabilityFacts> {
        self.by_bit.get(&bit).map(|i| &self.facts[*i])
    }

    /// The capabilities that no custom role may hold.
    pub fn internal_only(&self) -> CapabilitySet {
        self.internal
    }

    /// The names of a set, in bit order; bits without a capability have none.
    pub fn names(&self, set: &CapabilitySet) -> Vec<&str> {
        set.bits().filter_map(|bit| self.by_bit(bit)).map(|facts| facts.name.as_str()).collect()
    }

    /// The enum numbers of a set, ascending.
    pub fn numbers(&self, set: &CapabilitySet) -> Vec<i32> {
        let mut numbers: Vec<i32> = set.bits().filter_map(|bit| self.by_bit(bit)).map(|facts| facts.number).collect();
        numbers.sort_unstable();
        numbers
    }
}
