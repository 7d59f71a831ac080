use std::collections::{BTreeSet, HashMap};

use crate::method::{HttpBinding, MethodInfo, Verb};

/// A path that leads to a method.
pub struct Match<'t> {
    /// Position in the method table.
    pub method: usize,
    /// The binding that fits.
    pub binding: &'t HttpBinding,
    /// Request fields that the path fills, decoded.
    pub variables: Vec<(&'t str, String)>,
}

/// Why a path leads nowhere.
#[derive(Debug, PartialEq, Eq)]
pub enum Miss {
    NotFound,
    /// Templates fit, with these verbs only.
    WrongVerb(BTreeSet<&'static str>),
}

struct Route {
    method: usize,
    binding: HttpBinding,
}

/// The HTTP bindings of all methods, found by path.
#[derive(Default)]
pub struct Routes {
    /// By the literal segments (three at most) that templates begin with; most specific first.
    by_prefix: HashMap<String, Vec<Route>>,
}

const PREFIX_SEGMENTS: usize = 3;

impl Routes {
    pub(crate) fn build(methods: &[MethodInfo]) -> Routes {
        let mut routes = Routes::default();
        for method in methods {
            for binding in &method.bindings {
                let literals = binding.template.literal_prefix();
                let key = literals[..literals.len().min(PREFIX_SEGMENTS)].join("/");
                let route = Route { method: method.index, binding: binding.clone() };
                routes.by_prefix.entry(key).or_default().push(route);
            }
        }
        for bucket in routes.by_prefix.values_mut() {
            bucket.sort_by_key(|route| std::cmp::Reverse(route.binding.template.specificity()));
        }
        routes
    }

    /// Finds the method of a verb and a raw (still percent-encoded) path without its query.
    ///
    /// # Errors
    /// Whether the path is unknown or known with other verbs.
    pub fn find(&self, verb: Option<Verb>, path: &str) -> Result<Match<'_>, Miss> {
        let segments: Vec<&str> = path.strip_prefix('/').unwrap_or(path).split('/').collect();
        let custom_verb = segments.last().and_then(|last| last.rsplit_once(':')).map(|(_, verb)| verb);
        let mut other_verbs = BTreeSet::new();
        for route in self.candidates(&segments, custom_verb) {
            if verb == Some(route.binding.verb) || !other_verbs.contains(route.binding.verb.name()) {
                let Some(variables) = route.binding.template.captures(&segments, custom_verb) else {
                    continue;
                };
                if verb == Some(route.binding.verb) {
                    return Ok(Match { method: route.method, binding: &route.binding, variables });
                }
                other_verbs.insert(route.binding.verb.name());
            }
        }
        Err(if other_verbs.is_empty() { Miss::NotFound } else { Miss::WrongVerb(other_verbs) })
    }

    fn candidates<'s>(&'s self, segments: &[&str], custom_verb: Option<&str>) -> impl Iterator<Item = &'s Route> {
        let mut buckets = Vec::new();
        for length in (1..=segments.len().min(PREFIX_SEGMENTS)).rev() {
            let mut key = segments[..length].join("/");
            if let Some(verb) = custom_verb.filter(|_| length == segments.len()) {
                key.truncate(key.len() - verb.len() - 1);
            }
            buckets.extend(self.by_prefix.get(&key));
        }
        buckets.into_iter().flatten()
    }
}
