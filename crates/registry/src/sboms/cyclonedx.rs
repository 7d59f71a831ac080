//! SBOMs in CycloneDX, as JSON.

use bowline_contract::v1::tenant::component_graph::edge::Type;
use bowline_contract::v1::tenant::component_graph::node::TypedNode;
use bowline_contract::v1::tenant::component_graph::{Edge, Node};
use bowline_contract::v1::tenant::{ComponentGraph, File2, Package2, Sbom2};
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::parse;

/// Maximum bytes of ids that stand in edges again: whatever depends on much stands there as often.
const MAX_EDGE_BYTES: usize = 32 << 20;

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
    tools: Tools,
    authors: Vec<Author>,
    component: Option<Component>,
}

/// The first of the tools: a list up to version 1.4 of the specification, an object since.
#[derive(Default)]
struct Tools(Option<Tool>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tool {
    name: String,
    version: String,
}

impl<'de> Deserialize<'de> for Tools {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Tools, D::Error> {
        deserializer.deserialize_any(ToolsVisitor)
    }
}

struct ToolsVisitor;

impl<'de> Visitor<'de> for ToolsVisitor {
    type Value = Tools;

    fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("a list of tools, or an object with one")
    }

    fn visit_unit<E>(self) -> Result<Tools, E> {
        Ok(Tools::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Tools, A::Error> {
        let first = list.next_element()?;
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Tools(first))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Tools, A::Error> {
        let mut tools = Tools::default();
        while let Some(member) = object.next_key::<String>()? {
            if member == "components" {
                tools = object.next_value()?;
            } else {
                object.next_value::<IgnoredAny>()?;
            }
        }
        Ok(tools)
    }
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
    license: LicenseId,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct LicenseId {
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
    let CycloneDx { metadata, components, dependencies } = parse::bounded(text)?;
    let described = metadata.component.as_ref();
    let (name, description) =
        described.map(|component| (component.name.clone(), component.description.clone())).unwrap_or_default();
    let tool = metadata.tools.0.map(|tool| format!("{} {}", tool.name, tool.version).trim().to_owned());
    let authors: Vec<String> = metadata.authors.into_iter().map(|author| author.name).collect();
    let mut graph = Graph::default();
    for component in metadata.component.into_iter().chain(components) {
        graph.add(component, None)?;
    }
    for Dependency { r#ref, depends_on } in dependencies {
        for on in depends_on {
            graph.connect(&r#ref, on, Type::DependsOn)?;
        }
    }
    Some(Sbom2 {
        tool: tool.unwrap_or_default(),
        format: "CycloneDX".into(),
        generated_at: metadata.timestamp.parse().ok(),
        authors: authors.join(", "),
        name,
        description,
        graph: Some(graph.all),
        ..Sbom2::default()
    })
}

/// The graph while it grows.
#[derive(Default)]
struct Graph {
    all: ComponentGraph,
    edge_bytes: usize,
}

impl Graph {
    /// Adds an edge; absent if the edges become too large.
    fn connect(&mut self, from: &str, to: String, kind: Type) -> Option<()> {
        self.edge_bytes += from.len();
        if self.edge_bytes > MAX_EDGE_BYTES {
            return None;
        }
        self.all.edges.push(Edge { subject_id: from.into(), predicate_id: to, r#type: kind as i32 });
        Some(())
    }

    /// Adds a component and what it is made of, which is no deeper than JSON may be.
    fn add(&mut self, component: Component, within: Option<&str>) -> Option<()> {
        let id = component.id();
        if let Some(within) = within {
            self.connect(within, id.clone(), Type::Contains)?;
        }
        let Component { kind, group, name, version, description, purl, licenses, components, .. } = component;
        let name = if group.is_empty() { name } else { format!("{group}/{name}") };
        let licenses: Vec<String> = licenses.into_iter().map(License::read).filter(|text| !text.is_empty()).collect();
        let node = if kind == "file" {
            TypedNode::File(File2 { id: id.clone(), name, types: Vec::new() })
        } else {
            let license = licenses.join(" AND ");
            TypedNode::Package(Package2 { id: id.clone(), name, version, license, description, purl })
        };
        self.all.nodes.push(Node { typed_node: Some(node) });
        components.into_iter().try_for_each(|inner| self.add(inner, Some(&id)))
    }
}

impl Component {
    fn id(&self) -> String {
        let named = [&self.id, &self.purl].into_iter().find(|id| !id.is_empty());
        named.cloned().unwrap_or_else(|| format!("{}@{}", self.name, self.version))
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

#[cfg(test)]
mod tests {
    use super::sbom;

    fn document(members: &str) -> String {
        format!(r#"{{"bomFormat":"CycloneDX",{members}}}"#)
    }

    #[test]
    fn what_is_said_once_and_meant_often_is_not_unfolded() {
        let long = "x".repeat(1 << 20);
        let depends = |count: usize| {
            let on = vec![r#""y""#; count].join(",");
            document(&format!(r#""dependencies":[{{"ref":"{long}","dependsOn":[{on}]}}]"#))
        };
        assert_eq!(sbom(&depends(3)).and_then(|sbom| sbom.graph).map(|graph| graph.edges.len()), Some(3));
        assert!(sbom(&depends(100)).is_none());
        let made_of = |count: usize| {
            let parts = vec![r#"{"name":"y"}"#; count].join(",");
            document(&format!(r#""components":[{{"bom-ref":"{long}","components":[{parts}]}}]"#))
        };
        assert_eq!(sbom(&made_of(3)).and_then(|sbom| sbom.graph).map(|graph| graph.nodes.len()), Some(4));
        assert!(sbom(&made_of(100)).is_none());
    }

    #[test]
    fn lists_of_nothing_are_not_unfolded() {
        let nothing = "{},".repeat(1_000_000);
        let nested = format!(r#""components":[{}{{}}{}]"#, r#"{"components":["#.repeat(20), "]}".repeat(20));
        assert!(sbom(&document(&nested)).is_some());
        for list in [
            format!(r#""components":[{nothing}{{}}]"#),
            format!(r#""components":[{{"components":[{nothing}{{}}]}}]"#),
            format!(r#""dependencies":[{{"ref":"x","dependsOn":[{}""]}}]"#, r#""","#.repeat(1_000_000)),
        ] {
            assert!(sbom(&document(&list)).is_none());
        }
    }

    #[test]
    fn the_first_tool_is_read_in_either_form() {
        for tools in [
            r#"[{"vendor":"v","name":"t","version":"1"},{"name":"u"}]"#,
            r#"{"services":null,"components":[{"name":"t","version":"1"},{"name":"u"}]}"#,
        ] {
            let document = document(&format!(r#""metadata":{{"tools":{tools}}}"#));
            assert_eq!(sbom(&document).map(|sbom| sbom.tool).as_deref(), Some("t 1"));
        }
    }
}
