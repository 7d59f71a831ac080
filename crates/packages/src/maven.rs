//! Versions in a Maven repository: a POM and the files beside it.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::limits::MAX_METADATA;
use crate::{FileFacts, Package, Refusal, digest, line};

/// Maximum number of files beside a POM; no version has more.
const MAX_FILES: usize = 500;

/// Reads the version that a POM describes; `Foreign` for every other file. `relative` is the path within the
/// repository.
pub(crate) fn read(path: &Path, relative: &Path) -> Result<Package, Refusal> {
    if path.extension().is_none_or(|extension| extension != "pom") {
        return Err(Refusal::Foreign);
    }
    let coordinates = Coordinates::of(relative)?;
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_METADATA + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_METADATA {
        return Err(Refusal::hostile(format!("has more than {MAX_METADATA} bytes")));
    }
    let pom = Pom::read(&bytes)?;
    pom.require_match(&coordinates.group, &coordinates.artifact, &coordinates.version)?;
    Ok(Package {
        name: format!("{}:{}", coordinates.group, coordinates.artifact),
        version: coordinates.version.clone(),
        description: line(if pom.description.is_empty() { &pom.name } else { &pom.description }, 512),
        license: pom.license(),
        files: files(path, &coordinates)?,
        manifest: String::new(),
        file_count: 0,
    })
}

/// Coordinates from the path in the repository.
struct Coordinates {
    group: String,
    artifact: String,
    version: String,
}

impl Coordinates {
    fn of(relative: &Path) -> Result<Coordinates, Refusal> {
        let parts: Option<Vec<&str>> = relative.iter().map(|part| part.to_str()).collect();
        let parts = parts.ok_or_else(|| Refusal::damaged("lies in a directory whose name is not UTF-8"))?;
        let [group @ .., artifact, version, file] = parts.as_slice() else {
            return Err(Refusal::damaged("does not lie at group/artifact/version of the repository"));
        };
        if group.is_empty() || *file != format!("{artifact}-{version}.pom") && !version.ends_with("-SNAPSHOT") {
            return Err(Refusal::damaged("does not lie at group/artifact/version of the repository"));
        }
        Ok(Coordinates { group: group.join("."), artifact: (*artifact).into(), version: (*version).into() })
    }
}

/// The files beside a POM that share the prefix of its name, without checksums and signatures.
fn files(pom: &Path, coordinates: &Coordinates) -> Result<Vec<FileFacts>, Refusal> {
    const IGNORED_EXTENSIONS: &[&str] = &["md5", "sha1", "sha256", "sha512", "asc", "lastUpdated", "part"];
    let directory = pom.parent().ok_or_else(|| Refusal::damaged("lies nowhere"))?;
    let start = format!("{}-", coordinates.artifact);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let (name, path) = (entry.file_name(), entry.path());
        let is_ignored =
            path.extension().and_then(|extension| extension.to_str()).is_none_or(|e| IGNORED_EXTENSIONS.contains(&e));
        let is_wanted = name.to_str().is_some_and(|name| name.starts_with(&start)) && !is_ignored;
        if is_wanted && entry.file_type()?.is_file() {
            paths.push(path);
        }
        if paths.len() > MAX_FILES {
            return Err(Refusal::hostile(format!("has more than {MAX_FILES} files beside it")));
        }
    }
    paths.sort();
    paths.iter().map(|path| digest::of(path)).collect()
}

/// The project that a POM describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pom {
    /// Its coordinates; group and version may be those of its parent.
    pub group: String,
    pub artifact: String,
    pub version: String,
    /// What kind of thing it is, such as `jar` or `maven-plugin`.
    pub packaging: String,
    pub name: String,
    pub description: String,
    /// Names of the licenses that it declares itself.
    pub licenses: Vec<String>,
    /// `group:artifact:version` of the POM that it inherits from; empty without.
    pub parent: String,
}

impl Pom {
    /// The licenses that it declares itself, as one line; empty without.
    pub fn license(&self) -> String {
        line(&self.licenses.join(" OR "), 256)
    }

    /// Reads the bytes of a POM.
    ///
    /// # Errors
    /// It is too long, no POM, or hostile.
    pub fn read(bytes: &[u8]) -> Result<Pom, Refusal> {
        let damaged = |text: String| Refusal::damaged(format!("is no POM: {text}"));
        if bytes.len() as u64 > MAX_METADATA {
            return Err(Refusal::hostile(format!("has more than {MAX_METADATA} bytes")));
        }
        let mut reader = Reader::from_reader(bytes);
        let (mut path, mut pom): (Vec<String>, Pom) = (Vec::new(), Pom::default());
        let mut text = String::new();
        let mut parent = Pom::default();
        loop {
            match reader.read_event().map_err(|error| damaged(error.to_string()))? {
                Event::Start(start) => {
                    path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                    text.clear();
                    if path.len() > 64 {
                        return Err(Refusal::hostile("is nested deeper than any POM"));
                    }
                }
                Event::Text(part) => text.push_str(&part.decode().map_err(|error| damaged(error.to_string()))?),
                Event::CData(part) => text.push_str(&part.decode().map_err(|error| damaged(error.to_string()))?),
                Event::GeneralRef(entity) => text.push_str(predefined(&entity)),
                Event::End(_) => {
                    let names: Vec<&str> = path.iter().map(String::as_str).collect();
                    pom.take(&mut parent, &names, text.trim());
                    text.clear();
                    path.pop();
                }
                Event::Eof => break,
                // A document type could define entities, which no POM needs.
                Event::DocType(_) => return Err(Refusal::hostile("has a document type")),
                _ => {}
            }
        }
        if pom.artifact.is_empty() {
            return Err(damaged("it has no artifactId".into()));
        }
        if pom.packaging.is_empty() {
            "jar".clone_into(&mut pom.packaging);
        }
        if !parent.artifact.is_empty() {
            pom.parent = format!("{}:{}:{}", parent.group, parent.artifact, parent.version);
        }
        for (own, inherited) in [(&mut pom.group, parent.group), (&mut pom.version, parent.version)] {
            if own.is_empty() {
                *own = inherited;
            }
        }
        Ok(pom)
    }

    /// Refuses a POM that lies at the coordinates of another one. A property that a build fills in (`${...}`) is not compared.
    ///
    /// # Errors
    /// It says that it is another one.
    pub fn require_match(&self, group: &str, artifact: &str, version: &str) -> Result<(), Refusal> {
        for (declared, expected) in [(&self.group, group), (&self.artifact, artifact), (&self.version, version)] {
            if !declared.is_empty() && !declared.contains("${") && declared != expected {
                return Err(Refusal::hostile(format!("lies where {expected:?} should be, and says {declared:?}")));
            }
        }
        Ok(())
    }

    fn take(&mut self, parent: &mut Pom, path: &[&str], text: &str) {
        let coordinates = match path {
            ["project", "groupId"] => &mut self.group,
            ["project", "artifactId"] => &mut self.artifact,
            ["project", "version"] => &mut self.version,
            ["project", "packaging"] => &mut self.packaging,
            ["project", "name"] => &mut self.name,
            ["project", "description"] => &mut self.description,
            ["project", "parent", "groupId"] => &mut parent.group,
            ["project", "parent", "artifactId"] => &mut parent.artifact,
            ["project", "parent", "version"] => &mut parent.version,
            ["project", "licenses", "license", "name"] => {
                self.licenses.push(text.to_owned());
                return;
            }
            _ => return,
        };
        text.clone_into(coordinates);
    }
}

/// The character of an entity that XML itself defines; empty for others.
pub(crate) fn predefined(name: &[u8]) -> &'static str {
    match name {
        b"amp" => "&",
        b"lt" => "<",
        b"gt" => ">",
        b"quot" => "\"",
        b"apos" => "'",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pom_inherits_from_its_parent_and_not_from_its_dependencies() {
        let text = "<?xml version='1.0'?><project><parent><groupId>g</groupId><artifactId>p</artifactId><version>1</version></parent>
            <artifactId>a</artifactId><description>x &amp; <![CDATA[y]]></description>
            <dependencies><dependency><groupId>other</groupId><artifactId>b</artifactId></dependency></dependencies>
            <licenses><license><name>MIT</name></license></licenses></project>";
        let pom = Pom::read(text.as_bytes()).expect("a POM");
        assert_eq!((pom.group.as_str(), pom.artifact.as_str(), pom.version.as_str()), ("g", "a", "1"));
        assert_eq!((pom.description.as_str(), &pom.licenses), ("x & y", &vec!["MIT".to_owned()]));
        assert_eq!((pom.packaging.as_str(), pom.parent.as_str()), ("jar", "g:p:1"));
    }

    #[test]
    fn what_is_no_pom_is_refused() {
        let bomb = "<!DOCTYPE p [<!ENTITY a 'aaaa'>]><project><artifactId>&a;</artifactId></project>";
        assert!(matches!(Pom::read(bomb.as_bytes()), Err(Refusal::Hostile(_))));
        for wrong in ["", "no xml", "<project></project>", "<project><artifactId>a</project>", &"<a>".repeat(100)] {
            assert!(Pom::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
