//! The scopes of a token request.

use bowline_registry::content::Name;

/// A resource and what is to be done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// A repository, to be read or more.
    Repository(Name),
    /// Something else, such as the catalog.
    Other,
}

/// Reads `scope` parameters: each holds one or several, with spaces between them.
pub(crate) fn read<'a>(parameters: impl Iterator<Item = &'a str>) -> Vec<Scope> {
    parameters.flat_map(|text| text.split(' ')).filter(|text| !text.is_empty()).map(scope).collect()
}

fn scope(text: &str) -> Scope {
    let resource = text.split_once(':').filter(|(kind, _)| *kind == "repository" || kind.starts_with("repository("));
    let name = resource.map(|(_, rest)| rest.rsplit_once(':').map_or(rest, |(name, _)| name));
    name.and_then(Name::parse).map_or(Scope::Other, Scope::Repository)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_come_repeated_and_joined() {
        let repository = |name: &str| Scope::Repository(Name::parse(name).unwrap());
        let read = |texts: &[&str]| read(texts.iter().copied());
        assert_eq!(
            read(&["repository:a/b:pull,push", "repository:c/d/e:pull repository(plugin):f/g:pull"]),
            [repository("a/b"), repository("c/d/e"), repository("f/g")]
        );
        assert_eq!(read(&["registry:catalog:*", "repository:../x:pull", "nonsense", ""]), vec![Scope::Other; 3]);
    }
}
