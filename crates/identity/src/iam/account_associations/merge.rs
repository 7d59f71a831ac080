//! What an update leaves of an association.

use bowline_contract::v2::iam as v2;
use bowline_core::{Error, Result};
use bowline_pipeline::Mask;
use prost::{Message, Name};
use prost_reflect::{DescriptorPool, DynamicMessage, ReflectMessage, Value};

/// The stored association with what the mask names taken from the given one. What the mask names and the given one
/// lacks goes away.
pub(super) fn merged(
    before: &v2::AccountAssociation,
    given: &v2::AccountAssociation,
    mask: &Mask,
    pool: &DescriptorPool,
) -> Result<v2::AccountAssociation> {
    if mask.is_whole() {
        return Ok(given.clone());
    }
    let descriptor = pool
        .get_message_by_name(&v2::AccountAssociation::full_name())
        .ok_or_else(|| Error::internal("the contract has no account association"))?;
    let dynamic = |association: &v2::AccountAssociation| {
        DynamicMessage::decode(descriptor.clone(), association.encode_to_vec().as_slice()).map_err(Error::internal)
    };
    let (mut merged, given) = (dynamic(before)?, dynamic(given)?);
    for path in mask.paths() {
        take(&mut merged, &given, path);
    }
    v2::AccountAssociation::decode(merged.encode_to_vec().as_slice()).map_err(Error::internal)
}

/// Makes the field at the path what it is in `given`.
fn take(merged: &mut DynamicMessage, given: &DynamicMessage, path: &str) {
    let (first, rest) = path.split_once('.').map_or((path, None), |(first, rest)| (first, Some(rest)));
    let Some(field) = merged.descriptor().get_field_by_name(first) else { return };
    let value = given.has_field(&field).then(|| given.get_field(&field).into_owned());
    match (value, rest) {
        (None, None) => merged.clear_field(&field),
        (Some(value), None) => merged.set_field(&field, value),
        // A part of a message that is on neither side stays absent with it.
        (None, Some(_)) if !merged.has_field(&field) => {}
        (value, Some(rest)) => {
            let empty = || field.kind().as_message().cloned().map(DynamicMessage::new);
            let given = value.as_ref().and_then(Value::as_message).cloned().or_else(empty);
            if let (Some(inner), Some(given)) = (merged.get_field_mut(&field).as_message_mut(), given) {
                take(inner, &given, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_contract::Contract;
    use v2::account_association::{Amazon, Google};

    fn google(id: &str, number: &str) -> Google {
        Google { project_id: id.into(), project_number: number.into() }
    }

    #[test]
    fn what_the_mask_names_changes_and_nothing_else() {
        let contract = Contract::load();
        let before = v2::AccountAssociation {
            name: "n".into(),
            google: Some(google("a", "1")),
            amazon: Some(Amazon { account: "2".into() }),
            ..v2::AccountAssociation::default()
        };
        let given = v2::AccountAssociation {
            name: "m".into(),
            google: Some(google("b", "3")),
            ..v2::AccountAssociation::default()
        };
        let merge = |given: &v2::AccountAssociation, paths: &[&str]| {
            let mask = Mask::new(paths.iter().map(ToString::to_string).collect());
            merged(&before, given, &mask, contract.pool()).unwrap()
        };
        assert_eq!(merge(&given, &["*"]), given);
        assert_eq!(merge(&given, &[]), before);
        let named = merge(&given, &["name", "google.project_number"]);
        assert_eq!((named.name.as_str(), named.google), ("m", Some(google("a", "3"))));
        assert_eq!(named.amazon, before.amazon);
        let replaced = merge(&given, &["google", "amazon"]);
        assert_eq!((replaced.name.as_str(), replaced.google, replaced.amazon), ("n", Some(google("b", "3")), None));
        let emptied = merge(&v2::AccountAssociation::default(), &["google.project_id", "azure.tenant_id"]);
        assert_eq!((emptied.google, emptied.azure), (Some(google("", "1")), None));
    }
}
