use crate::Contract;
use crate::v2::iam::{CreateRoleBindingRequest, Group, UpdateGroupRequest};
use prost::Message;

fn validate(message: &str, wire: &[u8], resource: Option<&str>, mask: Option<&[String]>) -> Vec<String> {
    let violations = Contract::load().field_rules().validate(message, wire, resource, mask);
    violations.list.into_iter().map(|v| format!("{}: {}", v.field, v.description)).collect()
}

fn update(group: Group) -> Vec<u8> {
    UpdateGroupRequest { group: Some(group), update_mask: None }.encode_to_vec()
}

const UPDATE: &str = "chainguard.platform.iam.v2.UpdateGroupRequest";

#[test]
fn a_resource_in_two_pieces_is_one() {
    let body = update(Group { name: "fine name".into(), ..Group::default() });
    let path = update(Group { uid: "0".repeat(40), ..Group::default() });
    for wire in [[body.clone(), path.clone()].concat(), [path, body].concat()] {
        assert_eq!(validate(UPDATE, &wire, Some("group"), None), [""; 0]);
    }
}

#[test]
fn only_fields_of_the_mask_are_validated() {
    let wire = update(Group { name: "BAD".into(), description: "a\tb".into(), ..Group::default() });
    let mask = |path: &str| vec![path.to_owned()];
    let name = "name: name must match \"^[a-z0-9 ._-]{1,}$\"";
    assert_eq!(validate(UPDATE, &wire, Some("group"), Some(&mask("verified"))), [""; 0]);
    assert_eq!(validate(UPDATE, &wire, Some("group"), Some(&mask("name"))), [name]);
    assert_eq!(validate(UPDATE, &wire, Some("group"), None).len(), 2);
}

#[test]
fn nothing_hides_behind_an_unknown_group() {
    let mut group = Group { name: "good name".into(), ..Group::default() }.encode_to_vec();
    group.extend([0xc3, 0x3e, 0xc4, 0x3e]); // an empty group of field 1000
    group.extend(Group { name: "BAD/../name".into(), ..Group::default() }.encode_to_vec());
    let mut wire = vec![0x0a];
    prost::encoding::encode_varint(group.len() as u64, &mut wire);
    wire.extend(group);
    assert_eq!(validate(UPDATE, &wire, Some("group"), None).len(), 1);
    assert!(!validate(UPDATE, &[0x0a, 0xff], Some("group"), None).is_empty(), "damage is a violation");
}

#[test]
fn an_empty_resource_is_there_and_lacks_its_fields() {
    let request = CreateRoleBindingRequest { parent: "0".repeat(40), role_binding: Some(Default::default()) };
    let name = "chainguard.platform.iam.v2.CreateRoleBindingRequest";
    let violations = validate(name, &request.encode_to_vec(), Some("role_binding"), None);
    assert!(violations.iter().all(|violation| !violation.contains("roleBinding is required")), "{violations:?}");
}

proptest::proptest! {
    #[test]
    fn noise_does_not_panic(wire: Vec<u8>) {
        validate(UPDATE, &wire, Some("group"), None);
    }
}

#[test]
fn elements_are_counted_of_whatever_type_they_are() {
    use crate::bowline::libraries::v1::{ImportVersionsRequest, PackageVersion};
    use crate::v1::libraries::{ArtifactFilter, Ecosystem};

    let validated = |versions| {
        let versions = vec![PackageVersion::default(); versions];
        let wire = ImportVersionsRequest { versions, dry_run: false }.encode_to_vec();
        validate("bowline.libraries.v1.ImportVersionsRequest", &wire, None, None)
    };
    let refusal = "versions: at most 500 elements".to_owned();
    assert!(!validated(500).contains(&refusal) && validated(501).contains(&refusal));
    let ecosystems = |count| {
        let ecosystems = vec![Ecosystem::Java as i32; count];
        let wire = ArtifactFilter { ecosystems, ..ArtifactFilter::default() }.encode_to_vec();
        validate("chainguard.platform.libraries.ArtifactFilter", &wire, None, None)
    };
    assert_eq!(ecosystems(50), Vec::<String>::new());
    assert_eq!(ecosystems(51), ["ecosystems: at most 50 elements"]);
}
