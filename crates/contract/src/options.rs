//! Reads custom options out of dynamic messages.

use prost_reflect::{DescriptorPool, DynamicMessage, ExtensionDescriptor, ReflectMessage, Value};

/// The extension of this name. The descriptor set is embedded, so a missing one is a defect of the build.
pub(crate) fn extension(pool: &DescriptorPool, name: &str) -> ExtensionDescriptor {
    pool.get_extension_by_name(name).unwrap_or_else(|| panic!("the descriptor set has no extension {name}"))
}

/// The option's value, absent if the element does not carry it.
pub(crate) fn get(options: &DynamicMessage, extension: &ExtensionDescriptor) -> Option<Value> {
    options.has_extension(extension).then(|| options.get_extension(extension).into_owned())
}

/// A field of an option message.
pub(crate) fn field(message: &DynamicMessage, name: &str) -> Option<Value> {
    let field = message.descriptor().get_field_by_name(name)?;
    message.has_field(&field).then(|| message.get_field(&field).into_owned())
}

pub(crate) fn text(message: &DynamicMessage, name: &str) -> String {
    field(message, name).and_then(|value| value.as_str().map(String::from)).unwrap_or_default()
}

pub(crate) fn flag(message: &DynamicMessage, name: &str) -> bool {
    field(message, name).and_then(|value| value.as_bool()).unwrap_or(false)
}

pub(crate) fn number(message: &DynamicMessage, name: &str) -> u32 {
    field(message, name).and_then(|value| value.as_u32()).unwrap_or(0)
}

pub(crate) fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let Some(value) = field(message, name) else {
        return Vec::new();
    };
    value.as_list().unwrap_or(&[]).iter().filter_map(|item| item.as_str().map(String::from)).collect()
}

pub(crate) fn enum_numbers(message: &DynamicMessage, name: &str) -> Vec<i32> {
    let Some(value) = field(message, name) else {
        return Vec::new();
    };
    value.as_list().unwrap_or(&[]).iter().filter_map(Value::as_enum_number).collect()
}
