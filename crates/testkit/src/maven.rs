//! POMs of Java packages.

/// A POM of these coordinates, with more members.
pub fn pom(group: &str, artifact: &str, version: &str, more: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?><project><modelVersion>4.0.0</modelVersion><groupId>{group}</groupId>\
         <artifactId>{artifact}</artifactId><version>{version}</version>{more}</project>"
    )
}

/// A license as POMs declare it.
pub fn license(name: &str) -> String {
    format!("<licenses><license><name>{name}</name></license></licenses>")
}

/// The POM that another one inherits from, by its coordinates.
pub fn parent(group: &str, artifact: &str, version: &str) -> String {
    format!(
        "<parent><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></parent>"
    )
}
