//! The tree of products that a document's statements refer to.

use std::collections::BTreeMap;

use crate::subject::Subject;
use crate::tree::Node;

/// Products of a document that is being written, by id.
pub(super) struct Products<'a> {
    distribution: &'a str,
    /// Whole products, and parts, by id: the package URL. The id of a part says where it lies, too.
    plain: BTreeMap<String, String>,
    /// Parts of products: id, the part and the product.
    parts: BTreeMap<String, (String, String)>,
}

impl Products<'_> {
    pub(super) fn new(distribution: &str) -> Products<'_> {
        Products { distribution, plain: BTreeMap::new(), parts: BTreeMap::new() }
    }

    /// The id of a product at a version, or of its part.
    pub(super) fn id(&mut self, subject: &Subject, version: &str) -> String {
        // Statements are only about what can be named; see `Statement::of`.
        let product = subject.artifact_purl(version, self.distribution).map(|purl| purl.to_string());
        let product = product.unwrap_or_default();
        self.plain.insert(product.clone(), product.clone());
        let purls = [subject.located_purl(self.distribution), subject.component_purl(self.distribution)];
        let [Some(part), Some(purl)] = purls.map(|purl| purl.ok().flatten().map(|purl| purl.to_string())) else {
            return product;
        };
        self.plain.insert(part.clone(), purl);
        let id = format!("{part} in {product}");
        self.parts.insert(id.clone(), (part, product));
        id
    }

    pub(super) fn tree(&self) -> Node {
        let plain = self.plain.iter().map(|(id, purl)| {
            let helper = Node::map([("purl", Some(Node::text(purl)))]);
            named(id, Some(helper))
        });
        let parts = self.parts.iter().map(|(id, (part, product))| {
            Node::map([
                ("category", Some(Node::text("default_component_of"))),
                ("full_product_name", Some(named(id, None))),
                ("product_reference", Some(Node::text(part))),
                ("relates_to_product_reference", Some(Node::text(product))),
            ])
        });
        let relationships = (!self.parts.is_empty()).then(|| Node::List(parts.collect()));
        Node::map([("full_product_names", Some(Node::List(plain.collect()))), ("relationships", relationships)])
    }
}

fn named(id: &str, helper: Option<Node>) -> Node {
    Node::map([
        ("name", Some(Node::text(id))),
        ("product_id", Some(Node::text(id))),
        ("product_identification_helper", helper),
    ])
}
