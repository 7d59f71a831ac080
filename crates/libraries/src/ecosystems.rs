//! Ecosystems: how the API numbers them, and what is different in each.

use bowline_contract::bowline::libraries::v1 as own;
use bowline_contract::v1::libraries::Ecosystem;
use bowline_core::{Error, Result};
use bowline_packages::is_go_version;
use bowline_versions::{Scheme, Version, order_key};

/// An ecosystem that has packages here. Its numbers are those of the API and of the database; the wire contract has all but Cargo
/// and generic files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Language {
    Java = 1,
    Python = 2,
    JavaScript = 3,
    Go = 9,
    Cargo = 1000,
    Generic = 1001,
}

/// All of them, in the order of their numbers.
pub(super) const LANGUAGES: [Language; 6] =
    [Language::Java, Language::Python, Language::JavaScript, Language::Go, Language::Cargo, Language::Generic];

/// Those that the wire contract has: its lists leave the others out.
pub(super) const IN_CONTRACT: [Language; 4] = [Language::Java, Language::Python, Language::JavaScript, Language::Go];

/// The lowest number of those that it does not have.
pub(super) const OWN_FROM: i64 = Language::Cargo as i64;

/// What an ecosystem must be, for refusals: in the wire contract, in messages of this product, and in those about upstreams.
pub(super) const MUST_BE: &str = "must be JAVA, PYTHON, JAVASCRIPT or GO";
pub(super) const MUST_BE_OWN: &str = "must be JAVA, PYTHON, JAVASCRIPT, GO, CARGO or GENERIC";
pub(super) const MUST_HAVE_UPSTREAMS: &str =
    "must be JAVA, PYTHON, JAVASCRIPT, GO or CARGO; generic files have no upstreams, their groups alone publish them";

impl Language {
    pub(super) fn number(self) -> i64 {
        self as i64
    }

    pub(super) fn of_number(number: i64) -> Result<Language> {
        let found = LANGUAGES.into_iter().find(|language| language.number() == number);
        found.ok_or_else(|| Error::internal(format!("the database holds the unknown ecosystem {number}")))
    }

    /// The language of an ecosystem, and whether it means the tier of remediated packages alone.
    pub(super) fn of_wire(ecosystem: i32) -> Option<(Language, bool)> {
        Some(match Ecosystem::try_from(ecosystem).ok()? {
            Ecosystem::Java => (Language::Java, false),
            Ecosystem::Python => (Language::Python, false),
            Ecosystem::Javascript => (Language::JavaScript, false),
            Ecosystem::JavaAthena => (Language::Java, true),
            Ecosystem::PythonAthena => (Language::Python, true),
            Ecosystem::JavascriptAthena => (Language::JavaScript, true),
            Ecosystem::Go => (Language::Go, false),
            Ecosystem::GoAthena => (Language::Go, true),
            Ecosystem::Unknown | Ecosystem::Dotnet | Ecosystem::DotnetAthena => return None,
        })
    }

    /// One of them itself, for what has no tiers.
    pub(super) fn required(field: &'static str, ecosystem: i32) -> Result<Language> {
        match Language::of_wire(ecosystem) {
            Some((language, false)) => Ok(language),
            _ => Err(Error::invalid_field(field, MUST_BE)),
        }
    }

    /// What the wire contract calls it; the unknown one if it has none for it.
    pub(super) fn wire(self, remediated: bool) -> Ecosystem {
        match (self, remediated) {
            (Language::Java, false) => Ecosystem::Java,
            (Language::Python, false) => Ecosystem::Python,
            (Language::JavaScript, false) => Ecosystem::Javascript,
            (Language::Java, true) => Ecosystem::JavaAthena,
            (Language::Python, true) => Ecosystem::PythonAthena,
            (Language::JavaScript, true) => Ecosystem::JavascriptAthena,
            (Language::Go, false) => Ecosystem::Go,
            (Language::Go, true) => Ecosystem::GoAthena,
            (Language::Cargo | Language::Generic, _) => Ecosystem::Unknown,
        }
    }

    /// The ecosystem of a message of this product.
    pub(super) fn of_own(ecosystem: i32) -> Option<Language> {
        LANGUAGES.into_iter().find(|language| language.own() as i32 == ecosystem)
    }

    /// The same, for what must name one.
    pub(super) fn required_own(field: &'static str, ecosystem: i32) -> Result<Language> {
        Language::of_own(ecosystem).ok_or_else(|| Error::invalid_field(field, MUST_BE_OWN))
    }

    /// One of those that have upstreams, for what is about them.
    pub(super) fn required_with_upstreams(field: &'static str, ecosystem: i32) -> Result<Language> {
        let language = Language::of_own(ecosystem).filter(|language| *language != Language::Generic);
        language.ok_or_else(|| Error::invalid_field(field, MUST_HAVE_UPSTREAMS))
    }

    /// Whether the wire contract has it.
    pub(super) fn is_in_contract(self) -> bool {
        self.number() < OWN_FROM
    }

    /// How messages of this product call it.
    pub(super) fn own(self) -> own::Ecosystem {
        match self {
            Language::Java => own::Ecosystem::Java,
            Language::Python => own::Ecosystem::Python,
            Language::JavaScript => own::Ecosystem::Javascript,
            Language::Go => own::Ecosystem::Go,
            Language::Cargo => own::Ecosystem::Cargo,
            Language::Generic => own::Ecosystem::Generic,
        }
    }

    /// The word that ids of artifacts begin with.
    pub(super) fn word(self) -> &'static str {
        match self {
            Language::Java => "java",
            Language::Python => "python",
            Language::JavaScript => "javascript",
            Language::Go => "go",
            Language::Cargo => "cargo",
            Language::Generic => "generic",
        }
    }

    /// The word of its roles, such as that of `libraries.go.pull`. Generic files have those of crates.
    pub(super) fn role_word(self) -> &'static str {
        if self == Language::Generic { Language::Cargo.word() } else { self.word() }
    }

    /// The type of its package URLs.
    pub(super) fn purl_type(self) -> &'static str {
        match self {
            Language::Java => "maven",
            Language::Python => "pypi",
            Language::JavaScript => "npm",
            Language::Go => "golang",
            Language::Cargo => "cargo",
            Language::Generic => "generic",
        }
    }

    pub(super) fn of_purl_type(name: &str) -> Option<Language> {
        LANGUAGES.into_iter().find(|language| language.purl_type() == name)
    }

    /// How reports of malware spell it, in lower case: as package URLs do, except for Go and Cargo.
    pub(super) fn in_reports(self) -> &'static str {
        match self {
            Language::Go => "go",
            Language::Cargo => PUBLIC_CARGO,
            Language::Java | Language::Python | Language::JavaScript | Language::Generic => self.purl_type(),
        }
    }

    /// The ecosystem that reports of malware spell so, in any case.
    pub(super) fn of_reports(name: &str) -> Option<Language> {
        LANGUAGES.into_iter().find(|language| name.eq_ignore_ascii_case(language.in_reports()))
    }

    pub(super) fn scheme(self) -> Scheme {
        match self {
            Language::Java => Scheme::Maven,
            Language::Python => Scheme::Pep440,
            Language::JavaScript | Language::Go | Language::Cargo => Scheme::SemVer,
            Language::Generic => Scheme::Text,
        }
    }

    /// A name as the catalogue keeps it: Python calls `Foo.Bar` and `foo-bar` one package, and Cargo's index has each name in lower
    /// case.
    pub fn normalized(self, name: &str) -> String {
        match self {
            Language::Python => {}
            Language::Cargo => return name.to_ascii_lowercase(),
            Language::Java | Language::JavaScript | Language::Go | Language::Generic => return name.to_owned(),
        }
        let mut normalized = String::with_capacity(name.len());
        for c in name.chars() {
            match c {
                '-' | '_' | '.' if normalized.ends_with('-') => {}
                '-' | '_' | '.' => normalized.push('-'),
                c => normalized.extend(c.to_lowercase()),
            }
        }
        normalized
    }

    /// A name as reports of malware are compared by it: hosts of Go's modules serve one under any spelling.
    pub(super) fn reported(self, name: &str) -> String {
        if self == Language::Go { name.to_lowercase() } else { self.normalized(name) }
    }

    /// A name as organizations reserve it: in any case, since a question for a misspelled name tells others what it is. Of Cargo,
    /// names that differ in `-` and `_` are one.
    pub(super) fn owned(self, name: &str) -> String {
        let folded = self.normalized(name).to_lowercase();
        if self == Language::Cargo { folded.replace('_', "-") } else { folded }
    }

    /// How rows of patterns are compared with a name: an expression of their column, and what it gives for the name. Package URLs of
    /// Go are in lower case, and modules are not.
    pub(super) fn in_patterns(self, name: &str) -> (&'static str, String) {
        match self {
            Language::Go => ("lower(package)", name.to_lowercase()),
            Language::Cargo => ("replace(package, '_', '-')", self.owned(name)),
            Language::Java | Language::Python | Language::JavaScript | Language::Generic => {
                ("package", name.to_owned())
            }
        }
    }

    /// A name, and of Go the paths of modules that it may lie in: owning one is owning what is below.
    pub(super) fn with_those_above(self, name: &str) -> Vec<&str> {
        let mut names = vec![name];
        while let Some((above, _)) =
            names.last().and_then(|name| name.rsplit_once('/')).filter(|_| self == Language::Go)
        {
            names.push(above);
        }
        names
    }

    /// A name as it is stored of packages of groups, of which npm's have no upper case: owning one is owning all its spellings.
    pub(super) fn published(self, name: &str) -> String {
        if self == Language::JavaScript { name.to_lowercase() } else { self.normalized(name) }
    }

    /// Whether a text is a version by the rules of the ecosystem.
    pub fn is_version(self, text: &str) -> bool {
        match self {
            Language::Generic => is_generic(text),
            Language::Go if !is_go_version(text) => false,
            _ => Version::parse(self.scheme(), text).is_ok(),
        }
    }

    /// Bytes that order versions as the ecosystem does.
    pub fn order_key(self, version: &str) -> Vec<u8> {
        order_key(self.scheme(), version)
    }

    /// Whether the ecosystem calls two texts the same version.
    pub fn is_same_version(self, one: &str, other: &str) -> bool {
        self.order_key(one) == self.order_key(other)
    }

    /// What is wrong with a name, if anything.
    ///
    /// # Errors
    /// What a name must be.
    pub fn validate_name(self, name: &str) -> std::result::Result<(), &'static str> {
        let plain = |part: &str, others: &[u8]| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || others.contains(&byte))
                && part != "."
                && part != ".."
        };
        let is_fine = match self {
            Language::Java => {
                name.split_once(':').is_some_and(|(group, artifact)| plain(group, b"._-") && plain(artifact, b"._-"))
            }
            Language::Python => {
                plain(name, b"._-")
                    && name.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && !name.ends_with(['.', '_', '-'])
            }
            Language::JavaScript => match name.strip_prefix('@') {
                Some(scoped) => scoped
                    .split_once('/')
                    .is_some_and(|(scope, name)| plain(scope, b"._-~") && plain(name, b"._-~!'()*")),
                None => plain(name, b"._-~!'()*"),
            },
            Language::Go => is_module(name),
            Language::Cargo => {
                name.len() <= CRATE_NAME
                    && name.starts_with(|c: char| c.is_ascii_alphabetic())
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
            }
            Language::Generic => is_generic(name),
        };
        match self {
            _ if is_fine => Ok(()),
            Language::Java => Err("must be group:artifact"),
            Language::Python => Err("must be the name of a Python project"),
            Language::JavaScript => Err("must be name or @scope/name"),
            Language::Go => Err("must be the path of a module, such as example.com/team/module"),
            Language::Cargo => Err("must be the name of a crate: a letter, then letters, digits, - and _, 64 at most"),
            Language::Generic => Err("must be a letter or digit, then letters, digits, ., _, + and -, 128 at most"),
        }
    }

    /// The id of an artifact: one segment of a path, so the slash of npm's scopes becomes a colon, which no name has.
    pub(super) fn artifact_id(self, name: &str) -> String {
        format!("{}:{}", self.word(), name.replace('/', ":"))
    }
}

/// How reports of malware, records of vulnerabilities and addresses of its public registry spell Cargo, in lower case.
pub(super) const PUBLIC_CARGO: &str = concat!("crates", ".io");
/// Characters of the name of a crate, and of a name or version of generic files.
const CRATE_NAME: usize = 64;
const GENERIC: usize = 128;

/// Whether a text is a name or a version of generic files.
fn is_generic(text: &str) -> bool {
    text.len() <= GENERIC
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
}

/// Whether a text is the path of a module: a host's name, and directories.
fn is_module(path: &str) -> bool {
    let plain = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-~".contains(&byte))
            && !part.starts_with('.')
            && !part.ends_with('.')
    };
    let host = path.split('/').next().unwrap_or_default();
    host.contains('.')
        && !host.starts_with('-')
        && host.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-".contains(&byte))
        && path.split('/').all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kept_as_their_ecosystem_compares_them() {
        assert_eq!(Language::Python.normalized("Foo.._Bar-baz"), "foo-bar-baz");
        assert_eq!(Language::JavaScript.normalized("@Scope/Name"), "@Scope/Name");
        assert_eq!(Language::JavaScript.artifact_id("@scope/name"), "javascript:@scope:name");
        assert_eq!(Language::Cargo.normalized("Foo_Bar"), "foo_bar");
        assert_eq!(Language::Cargo.owned("Foo_Bar"), "foo-bar");
        assert_eq!(Language::Java.artifact_id("org.slf4j:slf4j-api"), "java:org.slf4j:slf4j-api");
    }

    #[test]
    fn names_of_other_ecosystems_and_paths_are_no_names() {
        for (language, wrong) in [
            (Language::Java, ["slf4j", "a:b:c", "..:a", "a/b:c"]),
            (Language::Python, ["-x", "a b", "../x", "x."]),
            (Language::JavaScript, ["@scope", "a/b", "@a/b/c", ".."]),
            (Language::Go, ["module", "example.com/../a", "Example.com/a", "example.com//a"]),
            (Language::Cargo, ["1a", "a.b", "", "_a"]),
        ] {
            assert!(wrong.iter().all(|name| language.validate_name(name).is_err()), "{language:?}");
        }
        let longest = "1".repeat(GENERIC);
        for name in ["tool", "Tool_1.0+x-y", "7zip", &longest] {
            assert_eq!(
                (Language::Generic.validate_name(name), Language::Generic.is_version(name)),
                (Ok(()), true),
                "{name}"
            );
        }
        for wrong in [&format!("{longest}1"), "", "..", "-1", "a/b", "1~a", "1\u{e9}", "1.0 "] {
            assert!(Language::Generic.validate_name(wrong).is_err() && !Language::Generic.is_version(wrong), "{wrong}");
        }
        for module in ["example.com", "gopkg.in/yaml.v3", "github.com/Azure/go-autorest/v14"] {
            assert_eq!(Language::Go.validate_name(module), Ok(()), "{module}");
        }
    }

    #[test]
    fn modules_lie_in_those_above() {
        assert_eq!(Language::Go.with_those_above("a.b/c/d"), ["a.b/c/d", "a.b/c", "a.b"]);
        assert_eq!(Language::JavaScript.with_those_above("@a/b"), ["@a/b"]);
    }

    #[test]
    fn ecosystems_without_packages_here_are_none() {
        assert_eq!(Language::of_wire(Ecosystem::Dotnet as i32), None);
        assert_eq!(Language::of_wire(99), None);
        for language in IN_CONTRACT {
            for remediated in [false, true] {
                assert_eq!(Language::of_wire(language.wire(remediated) as i32), Some((language, remediated)));
            }
            assert_eq!(language.own() as i32, language.wire(false) as i32, "one number in both");
        }
        for language in [Language::Cargo, Language::Generic] {
            assert_eq!((language.wire(false), Language::of_wire(language as i32)), (Ecosystem::Unknown, None));
        }
        for language in LANGUAGES {
            assert_eq!(language.own() as i64, language.number());
            assert_eq!(language.is_in_contract(), IN_CONTRACT.contains(&language));
            assert_eq!(Language::of_own(language.own() as i32), Some(language));
        }
        assert_eq!((Language::of_own(0), Language::of_own(5)), (None, None));
        let with_upstreams = |language: Language| Language::required_with_upstreams("ecosystem", language as i32);
        assert!(with_upstreams(Language::Cargo).is_ok() && with_upstreams(Language::Generic).is_err());
    }
}
