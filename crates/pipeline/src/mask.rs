use bowline_contract::MethodInfo;
use bowline_core::{Error, Result};
use prost_reflect::{Kind, MessageDescriptor};

/// Which fields of a resource an update changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    /// Paths in proto names.
    paths: Vec<String>,
    /// Whether the whole resource is replaced.
    all: bool,
}

impl Mask {
    /// A mask of these paths; `*` stands for the whole resource.
    pub fn new(paths: Vec<String>) -> Mask {
        let all = paths.iter().any(|path| path == "*");
        Mask { paths, all }
    }

    /// The mask of a replacement: what an update of v1 means.
    pub fn whole() -> Mask {
        Mask::new(vec!["*".into()])
    }

    /// Whether the whole resource is replaced.
    pub fn is_whole(&self) -> bool {
        self.all
    }

    /// Whether the field, or a part of it, changes.
    pub fn covers(&self, field: &str) -> bool {
        self.all || self.names(field)
    }

    /// Whether the mask names the field or a part of it; `*` names nothing.
    pub fn names(&self, field: &str) -> bool {
        self.paths
            .iter()
            .any(|path| path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    }

    pub fn paths(&self) -> &[String] {
        &self.paths
    }
}

/// Maximum number of paths of a mask: every field of a request is compared with each.
const MAX_PATHS: usize = 100;

/// The request field of an update that holds the resource, and its message; absent for other methods.
pub(crate) fn resource_of(info: &MethodInfo) -> Option<(String, MessageDescriptor)> {
    let resource = info.resource_field()?;
    Some((resource.name().into(), resource.kind().as_message()?.clone()))
}

/// Checks a mask that the caller wrote: every path names a field that a caller may change.
pub(crate) fn validate_explicit(resource: &MessageDescriptor, paths: Vec<String>) -> Result<Mask> {
    if paths.len() > MAX_PATHS {
        return Err(Error::invalid_field("updateMask", format!("at most {MAX_PATHS} paths")));
    }
    let mut violations = Vec::new();
    let mut known = Vec::new();
    for path in paths {
        match proto_path(resource, &path) {
            Ok(path) => known.push(path),
            Err(description) => {
                violations.push(bowline_core::FieldViolation { field: "updateMask".into(), description });
            }
        }
    }
    if violations.is_empty() { Ok(Mask::new(known)) } else { Err(Error::invalid(violations)) }
}

/// The path in proto names, whichever spelling it came in.
fn proto_path(resource: &MessageDescriptor, path: &str) -> std::result::Result<String, String> {
    if path == "*" {
        return Ok(path.into());
    }
    let mut names = Vec::new();
    let mut message = Some(resource.clone());
    for part in path.split('.') {
        let field = message.as_ref().and_then(|m| m.get_field_by_name(part).or_else(|| m.get_field_by_json_name(part)));
        let field = field.ok_or_else(|| format!("\"{path}\" is not a field of {}", resource.name()))?;
        if is_output_only(&field) {
            return Err(format!("\"{path}\" is set by the server and cannot be changed"));
        }
        names.push(field.name().to_owned());
        message = match field.kind() {
            Kind::Message(inner) if !field.is_list() && !field.is_map() => Some(inner),
            _ => None,
        };
    }
    Ok(names.join("."))
}

/// A mask made of the fields that the request carries: output-only ones do not count.
pub(crate) fn derive(resource: &MessageDescriptor, present: impl IntoIterator<Item = String>) -> Mask {
    let changeable = |path: &String| {
        let top = path.split('.').next().unwrap_or(path);
        resource.get_field_by_name(top).is_some_and(|field| !is_output_only(&field))
    };
    let mut paths: Vec<String> = Vec::new();
    for path in present.into_iter().filter(changeable) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    Mask::new(paths)
}

fn is_output_only(field: &prost_reflect::FieldDescriptor) -> bool {
    const OUTPUT_ONLY: i32 = 3;
    let options = field.options();
    let pool = field.parent_pool();
    let Some(extension) = pool.get_extension_by_name("google.api.field_behavior") else {
        return false;
    };
    let value = options.get_extension(&extension);
    value.as_list().unwrap_or(&[]).iter().any(|behavior| behavior.as_enum_number() == Some(OUTPUT_ONLY))
}

/// Names of the top-level fields that an encoded message carries with another value than the default.
pub(crate) fn populated(message: &MessageDescriptor, wire: &[u8]) -> Vec<String> {
    let Ok(decoded) = prost_reflect::DynamicMessage::decode(message.clone(), wire) else {
        return Vec::new();
    };
    message.fields().filter(|field| decoded.has_field(field)).map(|field| field.name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_contract::Contract;

    fn repo() -> MessageDescriptor {
        Contract::load().pool().get_message_by_name("chainguard.platform.registry.v2.Repo").unwrap()
    }

    #[test]
    fn explicit_masks_are_validated() {
        let good =
            validate_explicit(&repo(), vec!["description".into(), "sync_config.google".into(), "activeTags".into()])
                .unwrap();
        assert!(good.covers("active_tags"));
        assert!(good.covers("description") && good.covers("sync_config") && !good.covers("name"));
        for bad in ["nothing", "uid", "create_time", "sync_config.unique_tags", "description.x", ""] {
            assert!(validate_explicit(&repo(), vec![bad.into()]).is_err(), "{bad}");
        }
        assert!(validate_explicit(&repo(), vec!["*".into()]).unwrap().is_whole());
    }

    #[test]
    fn derived_masks_skip_what_the_server_sets() {
        let mask = derive(&repo(), ["uid".to_owned(), "description".into(), "unknown".into()]);
        assert_eq!(mask.paths(), ["description"]);
    }
}
