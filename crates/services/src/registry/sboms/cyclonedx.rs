//! CycloneDX, JSON.

use bowline_contract::v1::tenant::component_graph::edge::Type;
use bowline_contract::v1::tenant::component_graph::node::TypedNode;
use bowline_contract::v1::tenant::component_graph::{Edge, Node};
use bowline_contract::v1::tenant::{ComponentGraph, File2, Package2, Sbom2};
use serde::Deserialize;

#[derive(Deserialize, Default)]
#[serde(default)]
struct CycloneDx {
    metadata: Metadata,
    components: Vec<Component>,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    timestamp: String,
    tools: Option<Tools>,
    authors: Vec<Author>,
    component: Option<Component>,
}

/// A list up to version 1.4 of the specification, an object since.
#[derive(Deserialize)]
#[serde(untagged)]
enum Tools {
    List(Vec<Component>),
    Object {
        #[serde(default)]
        components: Vec<Component>,
    },
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Author {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Component {
    #[serde(rename = "bom-ref")]
    id: String,
    #[serde(rename = "type")]
    kind: String,
    group: String,
    name: String,
    version: String,
    description: String,
    purl: String,
    licenses: Vec<License>,
    components: Vec<Component>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct License {
    expression: String,
    license: NamedLicense,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NamedLicense {
    id: String,
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Dependency {
    r#ref: String,
    depends_on: Vec<String>,
}

/// The document in the words of the contract; absent if it cannot be read.
pub(super) fn sbom(text: &str) -> Option<Sbom2> {
    let CycloneDx { metadata, components, dependencies } = serde_json::from_str(text).ok()?;
    let described = metadata.component.as_ref();
    let (name, description) =
        described.map(|component| (component.name.clone(), component.description.clone())).unwrap_or_default();
    let tools = match metadata.tools {
        None => Vec::new(),
        Some(Tools::List(tools) | Tools::Object { components: tools }) => tools,
    };
    let tool = tools.first().map(|tool| format!("{} {}", tool.name, tool.version).trim().to_owned());
    let authors: Vec<String> = metadata.authors.into_iter().map(|author| author.name).collect();
    let mut graph = ComponentGraph::default();
    for component in metadata.component.into_iter().chain(components) {
        component.add_to(&mut graph, None);
    }
    for Dependency { r#ref, depends_on } in dependencies {
        let edge = |on| Edge { subject_id: r#ref.clone(), predicate_id: on, r#type: Type::DependsOn as i32 };
        graph.edges.extend(depends_on.into_iter().map(edge));
    }
    Some(Sbom2 {
        tool: tool.unwrap_or_default(),
        format: "CycloneDX".into(),
        generated_at: metadata.timestamp.parse().ok(),
        authors: authors.join(", "),
        name,
        description,
        graph: Some(graph),
        ..Sbom2::default()
    })
}

impl Component {
    /// Adds it and what it is made of, which is no deeper than JSON may be.
    fn add_to(self, graph: &mut ComponentGraph, within: Option<&str>) {
        let id = [self.id, self.purl.clone(), format!("{}@{}", self.name, self.version)];
        let id = id.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        if let Some(within) = within {
            let edge = Edge { subject_id: within.into(), predicate_id: id.clone(), r#type: Type::Contains as i32 };
            graph.edges.push(edge);
        }
        let name = if self.group.is_empty() { self.name } else { format!("{}/{}", self.group, self.name) };
        let licenses: Vec<String> =
            self.licenses.into_iter().map(License::read).filter(|text| !text.is_empty()).collect();
        let node = if self.kind == "file" {
            TypedNode::File(File2 { id: id.clone(), name, types: Vec::new() })
        } else {
            TypedNode::Package(Package2 {
                id: id.clone(),
                name,
                version: self.version,
                license: licenses.join(" AND "),
                description: self.description,
                purl: self.purl,
            })
        };
        graph.nodes.push(Node { typed_node: Some(node) });
        for component in self.components {
            component.add_to(graph, Some(&id));
        }
    }
}

impl License {
    fn read(self) -> String {
        [self.expression, self.license.id, self.license.name]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }
}
