//! Paths of the document: one for each shape of templates, whatever these call their variables.

use std::collections::{BTreeMap, BTreeSet};

use bowline_contract::{Auth, Body, Contract, HttpBinding, MethodInfo, Verb};
use prost_reflect::{FieldDescriptor, Kind};

/// All routes of one shape of path.
pub(super) struct PathItem<'a> {
    /// The path in the notation of OpenAPI.
    pub(super) path: String,
    /// Names of its parameters, in order.
    pub(super) names: Vec<String>,
    pub(super) routes: Vec<Route<'a>>,
}

pub(super) struct Route<'a> {
    pub(super) method: &'a MethodInfo,
    pub(super) binding: &'a HttpBinding,
    /// The variable of the template that this path leaves out.
    pub(super) omitted: Option<&'a str>,
}

impl Route<'_> {
    /// The request fields that the path fills, in order.
    pub(super) fn variables(&self) -> Vec<&str> {
        self.binding.template.fields().filter(|field| Some(*field) != self.omitted).collect()
    }

    pub(super) fn operation_id(&self) -> String {
        let method = self.method;
        let name = format!("{}_{}", method.domain, method.short_name().replace('.', "_"));
        let is_first = method.bindings.first().is_some_and(|first| first.verb == self.binding.verb);
        match (self.omitted, is_first) {
            (Some(variable), _) => format!("{name}_without_{}", variable.replace('.', "_")),
            (None, true) => name,
            (None, false) => format!("{name}_{}", self.binding.verb.name()),
        }
    }

    /// The template without what its variables are called, and without the omitted one.
    fn shape(&self) -> String {
        let text = self.binding.template.to_string();
        let text = match self.omitted {
            Some(variable) => text.replace(&format!("/{{{variable}=**}}"), ""),
            None => text,
        };
        let mut shape = String::new();
        for (at, part) in text.split('{').enumerate() {
            match part.split_once('}') {
                Some((_, rest)) if at > 0 => shape.extend(["{}", rest]),
                _ => shape.push_str(part),
            }
        }
        shape
    }
}

/// The paths of these methods, sorted.
pub(super) fn items<'a>(contract: &Contract, methods: &[&'a MethodInfo]) -> Vec<PathItem<'a>> {
    let mut shapes: BTreeMap<String, Vec<Route<'a>>> = BTreeMap::new();
    for method in methods.iter().copied() {
        for binding in &method.bindings {
            let route = Route { method, binding, omitted: None };
            shapes.entry(route.shape()).or_default().push(route);
            if let Some(route) = shortened(contract, method, binding) {
                shapes.entry(route.shape()).or_default().push(route);
            }
        }
    }
    let item = |(shape, routes): (String, Vec<Route<'a>>)| {
        let names = names(&routes);
        PathItem { path: named(&shape, &names), names, routes }
    };
    shapes.into_iter().map(item).collect()
}

/// `**` takes no segment as well: a path without the variable, where the request is complete without its field and no
/// other route claims the path.
fn shortened<'a>(contract: &Contract, method: &'a MethodInfo, binding: &'a HttpBinding) -> Option<Route<'a>> {
    let text = binding.template.to_string();
    let variable = binding.template.fields().find(|field| text.contains(&format!("{{{field}=**}}")))?;
    let is_judged_there = matches!(method.auth, Auth::Capabilities { unscoped: false, .. })
        && method.scope_field.as_deref() == Some(variable);
    let facts = contract.field_rules().facts(&field(method, variable)?)?;
    if is_judged_there || facts.required || binding.body == Body::None {
        return None;
    }
    let route = Route { method, binding, omitted: Some(variable) };
    let sample = route.shape().replace("{}", "x");
    let leads_here =
        contract.routes().find(Some(binding.verb), &sample).is_ok_and(|found| found.method == method.index);
    leads_here.then_some(route)
}

/// What the parameters of a path are called: as the route says that reads the resource, or else deletes or changes it.
fn names(routes: &[Route<'_>]) -> Vec<String> {
    let rank = |route: &&Route<'_>| match route.binding.verb {
        Verb::Get => 0,
        Verb::Delete => 1,
        Verb::Put => 2,
        Verb::Patch => 3,
        Verb::Post => 4,
    };
    let variables = routes.iter().min_by_key(rank).map(Route::variables).unwrap_or_default();
    let last = |path: &str| path.rsplit('.').next().unwrap_or(path).to_owned();
    let short: Vec<String> = variables.iter().map(|path| last(path)).collect();
    if short.iter().collect::<BTreeSet<_>>().len() == short.len() {
        return short;
    }
    variables.iter().map(|path| path.replace('.', "_")).collect()
}

fn named(shape: &str, names: &[String]) -> String {
    let mut names = names.iter();
    let mut path = String::new();
    for (at, part) in shape.split("{}").enumerate() {
        if at > 0 {
            let name = names.next().map_or("", String::as_str);
            path.extend(["{", name, "}"]);
        }
        path.push_str(part);
    }
    path
}

/// The request field at a dotted path.
pub(super) fn field(method: &MethodInfo, path: &str) -> Option<FieldDescriptor> {
    let mut message = method.input.clone();
    let mut parts = path.split('.').peekable();
    while let Some(part) = parts.next() {
        let field = message.get_field_by_name(part)?;
        if parts.peek().is_none() {
            return Some(field);
        }
        let Kind::Message(inner) = field.kind() else { return None };
        message = inner;
    }
    None
}
