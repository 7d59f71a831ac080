use bowline_core::CapabilitySet;
use prost_reflect::{DescriptorPool, Value};

use crate::capabilities::Capabilities;
use crate::options;

/// A role that every deployment has, as `proto/bowline/contract/v1/roles.proto` states it.
#[derive(Debug, Clone)]
pub struct BuiltInRole {
    /// UIDP, the same everywhere.
    pub uid: String,
    /// Name; no custom role takes it.
    pub name: String,
    /// What the role is for.
    pub description: String,
    /// What the role allows.
    pub capabilities: CapabilitySet,
}

/// The roles that an enum of the contract declares.
pub(crate) fn load(pool: &DescriptorPool, capabilities: &Capabilities, name: &str) -> Vec<BuiltInRole> {
    let option = options::extension(pool, "bowline.contract.v1.role");
    let descriptor = pool.get_enum_by_name(name).expect("the descriptor set has the roles");
    let mut roles = Vec::new();
    for value in descriptor.values() {
        let Some(Value::Message(facts)) = options::get(&value.options(), &option) else {
            continue;
        };
        roles.push(BuiltInRole {
            uid: options::text(&facts, "uid"),
            name: options::text(&facts, "name"),
            description: options::text(&facts, "description"),
            capabilities: options::enum_numbers(&facts, "capabilities")
                .into_iter()
                .filter_map(|number| capabilities.by_number(number))
                .map(|facts| facts.bit)
                .collect(),
        });
    }
    roles
}
