//! Package URLs as policies write them: patterns, whose missing parts match anything.

use std::fmt::Write as _;

use bowline_formats::percent::{self, AsciiSet, NOT_UNRESERVED};
use bowline_formats::purl::Split;

use crate::ecosystems::Language;

/// Which packages an entry of a policy is about.
///
/// A version that is left out matches all versions. A name that is left out (`pkg:maven/org.example/`) matches all names of
/// the namespace, and a type alone all packages. Maven's group may be left out as well; to npm a name without scope is a
/// name of its own, so there the scope has to be written or starred. To Go, a namespace without a name means all modules below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    language: Language,
    namespace: Part,
    name: Part,
    version: Part,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Any,
    Is(String),
}

impl Part {
    fn of(text: &str) -> Part {
        if text.is_empty() || text == "*" { Part::Any } else { Part::Is(text.to_owned()) }
    }

    fn matches(&self, language: Language, text: &str) -> bool {
        match self {
            Part::Any => true,
            // Package URLs of Go are in lower case by their specification, and modules are not.
            Part::Is(wanted) if language == Language::Go => wanted.eq_ignore_ascii_case(text),
            // No two crates differ in these alone.
            Part::Is(wanted) if language == Language::Cargo => language.owned(wanted) == language.owned(text),
            Part::Is(wanted) => wanted == text,
        }
    }
}

impl Pattern {
    /// Reads a package URL.
    ///
    /// # Errors
    /// What is wrong with it, for the caller.
    pub fn parse(text: &str) -> Result<Pattern, String> {
        let example = "must be a package URL such as pkg:npm/left-pad@1.3.0";
        let split = Split::of(text.trim()).map_err(|_| example)?;
        if split.qualifiers.is_some() || split.subpath.is_some() {
            return Err("must not have qualifiers or a subpath: policies are about packages and versions".into());
        }
        let language = Language::of_purl_type(&split.kind);
        let kind = &split.kind;
        let language = language.ok_or_else(|| {
            format!("is of the type {kind:?}; policies know pypi, npm, maven, golang, cargo and generic")
        })?;
        let version = decoded(split.version.unwrap_or_default())?;
        let (namespace, name) = match split.path.rsplit_once('/') {
            Some((namespace, name)) => (Some(decoded(namespace)?), decoded(name)?),
            None => (None, decoded(split.path)?),
        };
        let pattern = Pattern::of(language, namespace, &name, &version)?;
        if version.is_empty() && split.version.is_some() {
            return Err("has an empty version: leave the @ out for all versions".into());
        }
        Ok(pattern)
    }

    /// The pattern of all packages of an ecosystem.
    pub(crate) fn everything(language: Language) -> Pattern {
        Pattern { language, namespace: Part::Any, name: Part::Any, version: Part::Any }
    }

    fn of(language: Language, namespace: Option<String>, name: &str, version: &str) -> Result<Pattern, String> {
        if [name, version].iter().any(|part| *part != "*" && part.contains('*')) {
            return Err("a star stands for a whole component, not for a part of one".into());
        }
        let namespace = match (language, namespace) {
            (Language::Python, Some(_)) => return Err("has a namespace, which PyPI does not know".into()),
            (Language::Cargo, Some(_)) => return Err("has a namespace, which Cargo does not know".into()),
            // Nothing but the type means everything; a bare name is a package without scope.
            (Language::JavaScript, None) if name.is_empty() => Part::Any,
            (Language::Generic, Some(_)) => return Err("has a namespace, which generic files do not have here".into()),
            (Language::Python | Language::JavaScript | Language::Cargo | Language::Generic, None) => {
                Part::Is(String::new())
            }
            (Language::JavaScript, Some(scope)) if scope == "*" || scope == "@*" => Part::Any,
            (Language::JavaScript, Some(scope)) if !scope.starts_with('@') || scope.contains('/') => {
                return Err("the namespace of an npm package is its scope, such as @types".into());
            }
            (Language::Java, Some(group)) => Part::of(&group.replace('/', ".")),
            (Language::Java, None) => Part::Any,
            // The module alone that lies at the root of a host.
            (Language::Go, None) if !name.is_empty() => Part::Is(String::new()),
            (Language::Go, namespace) => Part::of(&namespace.unwrap_or_default()),
            (Language::JavaScript, Some(scope)) => Part::Is(scope),
        };
        let name = language.normalized(name);
        let pattern = Pattern { language, namespace, name: Part::of(&name), version: Part::of(version) };
        pattern.validate()?;
        if pattern.name == Part::Any && pattern.version != Part::Any {
            return Err("has a version and no name".into());
        }
        Ok(pattern)
    }

    /// Whether the parts that are there could be those of a package.
    fn validate(&self) -> Result<(), String> {
        let part = |part: &Part, any: &str| match part {
            Part::Any => any.to_owned(),
            Part::Is(text) => text.clone(),
        };
        let (namespace, name) = (part(&self.namespace, "any"), part(&self.name, "any"));
        let whole = match self.language {
            Language::Java => format!("{namespace}:{name}"),
            Language::JavaScript if self.namespace != Part::Any && !namespace.is_empty() => {
                format!("{namespace}/{name}")
            }
            Language::Go if self.namespace == Part::Any => format!("any.host/{name}"),
            Language::Go if namespace.is_empty() => name,
            Language::Go => format!("{namespace}/{name}"),
            Language::JavaScript | Language::Python | Language::Cargo | Language::Generic => name,
        };
        self.language.validate_name(&whole).map_err(|wrong| format!("names {whole:?}, which {wrong}"))?;
        let version = part(&self.version, "1");
        if version.len() > bowline_versions::MAX_LENGTH
            || version.contains(|c: char| c.is_whitespace() || c.is_control() || c == '/')
        {
            return Err("has a version that no package has".into());
        }
        Ok(())
    }

    /// Whether a version of a package is meant.
    pub fn matches(&self, language: Language, name: &str, version: &str) -> bool {
        let (namespace, bare) = split(language, name);
        let version_is_meant = match &self.version {
            Part::Any => true,
            Part::Is(wanted) => same_version(language, wanted, version),
        };
        self.language == language
            && self.has_namespace(namespace)
            && self.name.matches(language, bare)
            && version_is_meant
    }

    /// Whether a namespace is meant. A directory of Go without a name means all modules below it, as those of later major versions are.
    fn has_namespace(&self, namespace: &str) -> bool {
        if let (Language::Go, Part::Is(directory), Part::Any) = (self.language, &self.namespace, &self.name)
            && let Some((above, rest)) = namespace.split_at_checked(directory.len())
        {
            return above.eq_ignore_ascii_case(directory) && (rest.is_empty() || rest.starts_with('/'));
        }
        self.namespace.matches(self.language, namespace)
    }

    /// Whether a version of a package is meant as it is spelled, where other spellings have files of their own.
    pub(crate) fn names(&self, language: Language, name: &str, version: &str) -> bool {
        let is_spelled = self.version == Part::Is(version.to_owned());
        self.matches(language, name, version) && (language != Language::Java || is_spelled)
    }

    /// Whether every version of what the pattern names is meant.
    pub(crate) fn is_of_all_versions(&self) -> bool {
        self.version == Part::Any
    }

    /// Ecosystem, package and version, as the catalogue names them, if the pattern means one version alone.
    pub(crate) fn one_version(&self) -> Option<(Language, String, String)> {
        let (Part::Is(namespace), Part::Is(name), Part::Is(version)) = (&self.namespace, &self.name, &self.version)
        else {
            return None;
        };
        let name = match self.language {
            Language::Java => format!("{namespace}:{name}"),
            Language::JavaScript | Language::Go if !namespace.is_empty() => format!("{namespace}/{name}"),
            Language::JavaScript | Language::Python | Language::Go | Language::Cargo | Language::Generic => {
                name.clone()
            }
        };
        Some((self.language, name, version.clone()))
    }

    /// The one way that this pattern is written.
    pub fn text(&self) -> String {
        let mut text = format!("pkg:{}/", self.language.purl_type());
        match &self.namespace {
            Part::Is(namespace) if !namespace.is_empty() => _ = write!(text, "{}/", encoded_path(namespace)),
            Part::Any if self.name != Part::Any => {
                text.push_str(match self.language {
                    Language::JavaScript => "%40*/",
                    Language::Go => "*/",
                    Language::Java | Language::Python | Language::Cargo | Language::Generic => "",
                });
            }
            _ => {}
        }
        match &self.name {
            Part::Is(name) => text.push_str(&encoded(name)),
            // Without the star it would be everything of npm, whatever its scope.
            Part::Any if self.language == Language::JavaScript && self.namespace == Part::Is(String::new()) => {
                text.push('*');
            }
            Part::Any => {}
        }
        if let Part::Is(version) = &self.version {
            _ = write!(text, "@{}", encoded(version));
        }
        text
    }
}

/// The package URL of a version, as block events carry it.
pub(crate) fn of_version(language: Language, name: &str, version: &str) -> String {
    format!("{}@{}", of_package(language, name), encoded(version))
}

/// The package URL of a package, whatever its version.
pub(crate) fn of_package(language: Language, name: &str) -> String {
    let (namespace, name) = split(language, name);
    let separator = if namespace.is_empty() { "" } else { "/" };
    format!("pkg:{}/{}{separator}{}", language.purl_type(), encoded_path(namespace), encoded(name))
}

/// Namespace and bare name of a package.
fn split(language: Language, name: &str) -> (&str, &str) {
    match language {
        Language::Java => name.split_once(':').unwrap_or(("", name)),
        Language::JavaScript if name.starts_with('@') => name.split_once('/').unwrap_or(("", name)),
        Language::Go => name.rsplit_once('/').unwrap_or(("", name)),
        Language::JavaScript | Language::Python | Language::Cargo | Language::Generic => ("", name),
    }
}

/// Spellings that the ecosystem calls equal are the same version.
fn same_version(language: Language, left: &str, right: &str) -> bool {
    let read = |text| bowline_versions::Version::parse(language.scheme(), text);
    match (read(left), read(right)) {
        // Builds of one semantic version are equal in order, and different all the same.
        (Ok(left), Ok(right)) if language != Language::JavaScript => left == right,
        _ => left == right,
    }
}

/// What is escaped in a pattern: versions of Python have plus signs, which everyone writes as they are.
const ESCAPED: &AsciiSet = &NOT_UNRESERVED.remove(b':').remove(b'+');

fn encoded(text: &str) -> String {
    percent::encode(text, ESCAPED)
}

/// A namespace, whose slashes part it.
fn encoded_path(text: &str) -> String {
    text.split('/').map(encoded).collect::<Vec<_>>().join("/")
}

fn decoded(text: &str) -> Result<String, String> {
    percent::decode(text).map(String::from).ok_or_else(|| "has a damaged percent code".into())
}

#[cfg(test)]
#[path = "purl_tests.rs"]
mod tests;
