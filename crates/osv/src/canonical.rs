//! JSON whose bytes depend on the value alone, for digests: members sorted by the bytes of their names, no white space, the
//! shortest escapes. Numbers are not normalized as RFC 8785 wants.

use serde_json::Value;

/// Writes a value. The order does not depend on how the value's map orders its members.
pub(crate) fn write(value: &Value, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push(b'{');
            for (i, (name, member)) in members.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                serde_json::to_writer(&mut *out, name)?;
                out.push(b':');
                write(member, out)?;
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write(item, out)?;
            }
            out.push(b']');
        }
        scalar => serde_json::to_writer(out, scalar)?,
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_written_in_the_order_of_their_names() {
        let value = serde_json::from_str(r#" { "b" : [1, 2.50, null] , "a" : { "é": "\u0041\n" , "Z": true } } "#);
        let mut out = Vec::new();
        write(&value.unwrap(), &mut out).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"a":{"Z":true,"é":"A\n"},"b":[1,2.5,null]}"#);
    }
}
