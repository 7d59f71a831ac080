//! CSAF 2.0, in its profile for statements of this kind (`csaf_vex`).

mod products;
mod read;
mod write;

pub(crate) use read::read;
pub(crate) use write::{file_name, write};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Artifact;

    #[test]
    fn file_names_are_lower_case_and_each_its_own() {
        let name = |name: &str| {
            let artifact = Artifact { kind: "apk".into(), name: name.into(), architecture: String::new() };
            file_name(&artifact, 0)
        };
        assert_eq!(name("curl"), "1970/vex-apk-curl.json");
        assert!(name("gtk+3.0").starts_with("1970/vex-apk-gtk+3_0-"));
        assert_ne!(name("Curl"), name("curl"));
        assert_ne!(name("a/b"), name("a_b"));
        assert!(name("../../etc").starts_with("1970/vex-apk-______etc-"), "{}", name("../../etc"));
    }
}
