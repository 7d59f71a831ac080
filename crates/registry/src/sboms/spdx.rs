//! SBOMs in SPDX 2, as JSON.

use bowline_contract::v1::tenant::component_graph::edge::Type;
use bowline_contract::v1::tenant::component_graph::node::TypedNode;
use bowline_contract::v1::tenant::component_graph::{Edge, Node};
use bowline_contract::v1::tenant::{ComponentGraph, File2, Package2, Sbom2};
use serde::Deserialize;

use super::parse;

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Spdx {
    name: String,
    comment: String,
    creation_info: CreationInfo,
    packages: Vec<Package>,
    files: Vec<File>,
    relationships: Vec<Relationship>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct CreationInfo {
    created: String,
    creators: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Package {
    #[serde(rename = "SPDXID")]
    id: String,
    name: String,
    version_info: String,
    license_concluded: String,
    license_declared: String,
    description: String,
    external_refs: Vec<ExternalRef>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ExternalRef {
    reference_type: String,
    reference_locator: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct File {
    #[serde(rename = "SPDXID")]
    id: String,
    file_name: String,
    file_types: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Relationship {
    spdx_element_id: String,
    related_spdx_element: String,
    relationship_type: String,
}

/// The document in the words of the contract; absent if it cannot be read.
pub(super) fn sbom(text: &str) -> Option<Sbom2> {
    let spdx: Spdx = parse::bounded(text)?;
    let tool = spdx.creation_info.creators.iter().find_map(|creator| creator.strip_prefix("Tool:"));
    let authors = spdx.creation_info.creators.iter().filter(|creator| !creator.starts_with("Tool:"));
    let authors: Vec<&str> = authors.map(String::as_str).collect();
    let packages = spdx.packages.into_iter().map(|package| TypedNode::Package(package.read()));
    let files = spdx
        .files
        .into_iter()
        .map(|file| TypedNode::File(File2 { id: file.id, name: file.file_name, types: file.file_types }));
    Some(Sbom2 {
        tool: tool.unwrap_or_default().trim().into(),
        format: "SPDX".into(),
        generated_at: spdx.creation_info.created.parse().ok(),
        authors: authors.join(", "),
        name: spdx.name,
        description: spdx.comment,
        graph: Some(ComponentGraph {
            nodes: packages.chain(files).map(|node| Node { typed_node: Some(node) }).collect(),
            edges: spdx.relationships.into_iter().map(Relationship::read).collect(),
        }),
        ..Sbom2::default()
    })
}

impl Package {
    fn read(self) -> Package2 {
        let is_said = |text: &String| !text.is_empty() && text != "NOASSERTION" && text != "NONE";
        let license = [self.license_concluded, self.license_declared].into_iter().find(is_said);
        let purl = self.external_refs.into_iter().find(|reference| reference.reference_type == "purl");
        Package2 {
            id: self.id,
            name: self.name,
            version: self.version_info,
            license: license.unwrap_or_default(),
            description: self.description,
            purl: purl.map(|reference| reference.reference_locator).unwrap_or_default(),
        }
    }
}

impl Relationship {
    /// Some kinds are written from the other end.
    fn read(self) -> Edge {
        let (kind, is_turned) = match self.relationship_type.as_str() {
            "DESCRIBES" => (Type::Describes, false),
            "DESCRIBED_BY" => (Type::Describes, true),
            "CONTAINS" => (Type::Contains, false),
            "CONTAINED_BY" => (Type::Contains, true),
            "DEPENDS_ON" => (Type::DependsOn, false),
            "DEPENDENCY_OF" => (Type::DependsOn, true),
            "GENERATED_FROM" => (Type::GeneratedFrom, false),
            "GENERATES" => (Type::GeneratedFrom, true),
            _ => (Type::Unknown, false),
        };
        let (mut subject_id, mut predicate_id) = (self.spdx_element_id, self.related_spdx_element);
        if is_turned {
            std::mem::swap(&mut subject_id, &mut predicate_id);
        }
        Edge { subject_id, predicate_id, r#type: kind as i32 }
    }
}

#[cfg(test)]
mod tests {
    use super::sbom;

    #[test]
    fn lists_of_nothing_are_not_unfolded() {
        let packages =
            |count: usize| format!(r#"{{"spdxVersion":"SPDX-2.3","packages":[{}{{}}]}}"#, "{},".repeat(count));
        assert!(sbom(&packages(1000)).is_some());
        assert!(sbom(&packages(1_000_000)).is_none());
    }
}
