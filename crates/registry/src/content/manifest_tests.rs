use serde_json::{Value, json};

use super::*;

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn descriptor(media_type: &str) -> Value {
    json!({ "mediaType": media_type, "digest": DIGEST, "size": 3 })
}

fn image() -> Value {
    json!({ "schemaVersion": 2, "mediaType": OCI_IMAGE, "config": descriptor("application/vnd.x"), "layers": [descriptor("l")] })
}

fn read(manifest: &Value, content_type: Option<&str>) -> Result<Manifest, String> {
    Manifest::read(manifest.to_string().as_bytes(), content_type).map_err(|error| match error {
        RegistryError::Refused(refusal) => {
            assert_eq!(refusal.code, RefusalCode::ManifestInvalid);
            refusal.message
        }
        RegistryError::Failed(error) => panic!("{error}"),
    })
}

#[test]
fn an_image_names_its_config_and_layers() {
    let manifest = read(&image(), Some(OCI_IMAGE)).unwrap();
    assert_eq!(manifest.config(), Some(DIGEST));
    assert_eq!(manifest.artifact_type, "application/vnd.x");
    assert_eq!(manifest.named.iter().map(|named| named.kind).collect::<Vec<_>>(), [Kind::Config, Kind::Layer]);
    assert_eq!(manifest.total_size, image().to_string().len() as i64 + 6);
}

#[test]
fn the_media_type_follows_from_the_bytes() {
    let mut plain = image();
    plain.as_object_mut().unwrap().remove("mediaType");
    assert_eq!(read(&plain, None).unwrap().media_type, OCI_IMAGE);
    assert_eq!(
        read(&plain, Some("application/vnd.oci.image.manifest.v1+json; charset=utf-8")).unwrap().media_type,
        OCI_IMAGE
    );
    assert!(read(&plain, Some(DOCKER_IMAGE)).unwrap_err().contains("Content-Type"));
    assert!(read(&image(), Some(OCI_INDEX)).unwrap_err().contains("Content-Type"));
    let index = json!({ "schemaVersion": 2, "manifests": [] });
    assert_eq!(read(&index, None).unwrap().media_type, OCI_INDEX);
    let mut strange = image();
    strange["mediaType"] = json!("text/html");
    assert!(read(&strange, Some("text/html")).is_err());
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let mut both = image();
    both["manifests"] = json!([]);
    assert!(read(&both, Some(OCI_IMAGE)).unwrap_err().contains("manifests"));
    let twice = format!("{{\"layers\":[],{}", &image().to_string()[1..]);
    assert!(Manifest::read(twice.as_bytes(), None).is_err());
    for (member, value) in [("schemaVersion", json!(1)), ("config", Value::Null), ("layers", Value::Null)] {
        let mut wrong = image();
        wrong[member] = value;
        assert!(read(&wrong, None).is_err(), "{member}");
    }
}

#[test]
fn descriptors_are_validated() {
    for (member, value) in [
        ("digest", json!("sha256:abc")),
        ("digest", json!("md5:d41d8cd98f00b204e9800998ecf8427e")),
        ("digest", json!("../../etc/passwd")),
        ("size", json!(-1)),
        ("size", json!((1_i64 << 40) + 1)),
        ("size", json!("3")),
        ("mediaType", json!("a\nb")),
    ] {
        let mut wrong = image();
        wrong["layers"][0][member] = value.clone();
        assert!(read(&wrong, None).is_err(), "{member} {value}");
    }
    let mut foreign = image();
    foreign["layers"][0] = descriptor("application/vnd.oci.image.layer.nondistributable.v1.tar+gzip");
    assert!(!read(&foreign, None).unwrap().named[1].lies_elsewhere, "without urls its bytes are wanted");
    foreign["layers"][0]["urls"] = json!(["https://elsewhere.example/layer"]);
    assert!(read(&foreign, None).unwrap().named[1].lies_elsewhere);
}

#[test]
fn depth_and_number_are_bounded() {
    let deep = format!("{{\"schemaVersion\":2,\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(Manifest::read(deep.as_bytes(), None).is_err());
    let many: Vec<Value> = (0..=MAX_REFERENCES).map(|_| descriptor("x")).collect();
    assert!(read(&json!({ "schemaVersion": 2, "manifests": many }), None).unwrap_err().contains("names"));
}

#[test]
fn tags_and_digests() {
    for tag in ["latest", "1.2.3", "_x", "sha256-abc.sig", &"a".repeat(128)] {
        assert!(is_tag(tag), "{tag}");
    }
    for tag in ["", ".x", "-x", "a/b", "a:b", "a b", "é", &"a".repeat(129)] {
        assert!(!is_tag(tag), "{tag}");
    }
    assert!(is_digest(DIGEST) && !is_digest(&DIGEST.to_uppercase()) && !is_digest(&DIGEST[..70]));
}
