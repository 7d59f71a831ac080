//! Names of request fields in JSON, for messages to callers.

use bowline_contract::MethodInfo;

/// A dotted path in JSON names, relative to the resource.
pub(crate) fn json_path(info: &MethodInfo, path: &str) -> String {
    let mut message = Some(info.input.clone());
    let mut names = Vec::new();
    for part in path.split('.') {
        let field = message.as_ref().and_then(|message| message.get_field_by_name(part));
        names.push(field.as_ref().map_or(part.to_owned(), |field| field.json_name().to_owned()));
        message = field.and_then(|field| field.kind().as_message().cloned());
    }
    if names.len() > 1 {
        names.remove(0);
    }
    names.join(".")
}

/// The last name of a path.
pub(crate) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}
