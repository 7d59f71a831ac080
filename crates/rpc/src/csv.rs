//! Messages of a stream as rows of CSV (RFC 4180): lists and messages of other kinds are left out.

use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};
use serde_json::Value;

/// The fields that are columns, each by its path: those of the message, and those of messages in it.
pub(crate) fn columns(message: &MessageDescriptor) -> Vec<Vec<String>> {
    let mut columns = Vec::new();
    for field in message.fields().filter(|field| !field.is_list() && !field.is_map()) {
        match field.kind() {
            Kind::Message(inner) if !is_scalar(&field) && !is_foreign(&inner) => {
                let own = inner.fields().filter(|own| !own.is_list() && !own.is_map() && is_scalar(own));
                columns.extend(own.map(|own| vec![field.name().to_owned(), own.name().to_owned()]));
            }
            Kind::Message(_) if !is_scalar(&field) => {}
            _ => columns.push(vec![field.name().to_owned()]),
        }
    }
    columns
}

/// Whether the field is one JSON scalar.
fn is_scalar(field: &FieldDescriptor) -> bool {
    match field.kind() {
        Kind::Message(message) => {
            ["google.protobuf.Timestamp", "google.protobuf.Duration"].contains(&message.full_name())
        }
        _ => true,
    }
}

fn is_foreign(message: &MessageDescriptor) -> bool {
    message.full_name().starts_with("google.protobuf.")
}

/// The row of the columns' names.
pub(crate) fn header(columns: &[Vec<String>]) -> Vec<u8> {
    let names: Vec<String> = columns.iter().map(|path| path.join(".")).collect();
    format!("{}\r\n", names.join(",")).into_bytes()
}

/// The row of one message, whose JSON has proto names.
pub(crate) fn row(columns: &[Vec<String>], message: &Value) -> Vec<u8> {
    let cells: Vec<String> = columns.iter().map(|path| cell(path.iter().fold(message, |at, name| &at[name]))).collect();
    format!("{}\r\n", cells.join(",")).into_bytes()
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::Null => return String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // Text from clients must not run as a formula in the reader's spreadsheet.
    let is_formula = matches!(value, Value::String(_)) && text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if is_formula { format!("'{text}") } else { text };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use bowline_contract::Contract;
    use serde_json::json;

    use super::*;

    #[test]
    fn entries_have_their_fields_and_those_of_their_images() {
        let contract = Contract::load();
        let entry = contract.pool().get_message_by_name("bowline.audit.v1.Entry").unwrap();
        let columns = columns(&entry);
        assert_eq!(
            String::from_utf8(header(&columns)).unwrap(),
            "sequence,global_sequence,organization,time,actor,method,request_id,kind,resource,before.type,before.hash,\
             after.type,after.hash,hash,global_hash\r\n"
        );
        let message = json!({ "sequence": "7", "request_id": "=1+1", "after": { "type": "a,\"b\"" } });
        let row = String::from_utf8(row(&columns, &message)).unwrap();
        assert_eq!(row, "7,,,,,,'=1+1,,,,,\"a,\"\"b\"\"\",,,\r\n");
    }
}
