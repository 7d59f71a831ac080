//! Lists of versions and plugins in a Maven repository, `maven-metadata.xml`.

use quick_xml::Reader;
use quick_xml::events::Event;

use crate::Refusal;
use crate::maven::predefined;

/// Versions and plugins that are read; more are passed over.
const MOST: usize = 20_000;
/// Bytes of a text.
const TEXT: usize = 256;

/// What a list says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MavenMetadata {
    /// Versions of the artifact, as they are written.
    pub versions: Vec<String>,
    /// When it changed last, such as `20260102030405` in UTC; empty if it does not say.
    pub last_updated: String,
    /// Plugins of the group.
    pub plugins: Vec<MavenPlugin>,
}

/// A plugin by the short name that command lines have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MavenPlugin {
    pub prefix: String,
    pub artifact: String,
    pub name: String,
}

impl MavenMetadata {
    /// Reads the bytes of a list.
    ///
    /// # Errors
    /// It is no such list, or hostile.
    pub fn read(bytes: &[u8]) -> Result<MavenMetadata, Refusal> {
        let damaged = |text: String| Refusal::damaged(format!("is no maven-metadata.xml: {text}"));
        let mut reader = Reader::from_reader(bytes);
        let (mut path, mut metadata): (Vec<String>, MavenMetadata) = Default::default();
        let (mut plugin, mut text, mut is_metadata) = (MavenPlugin::default(), String::new(), false);
        loop {
            match reader.read_event().map_err(|error| damaged(error.to_string()))? {
                Event::Start(start) => {
                    path.push(String::from_utf8_lossy(start.local_name().as_ref()).into_owned());
                    text.clear();
                    is_metadata |= path == ["metadata"];
                    if path.len() > 16 {
                        return Err(Refusal::hostile("is nested deeper than any maven-metadata.xml"));
                    }
                }
                Event::Text(part) => text.push_str(&part.decode().map_err(|error| damaged(error.to_string()))?),
                Event::GeneralRef(entity) => text.push_str(predefined(&entity)),
                Event::End(_) => {
                    let names: Vec<&str> = path.iter().map(String::as_str).collect();
                    metadata.take(&mut plugin, &names, text.trim());
                    text.clear();
                    path.pop();
                }
                Event::Eof => break,
                // A document type could define entities, which no list needs.
                Event::DocType(_) => return Err(Refusal::hostile("has a document type")),
                _ => {}
            }
        }
        if is_metadata { Ok(metadata) } else { Err(damaged("it has no metadata".into())) }
    }

    fn take(&mut self, plugin: &mut MavenPlugin, path: &[&str], text: &str) {
        let text = if text.len() <= TEXT { text } else { "" };
        match path {
            ["metadata", "versioning", "versions", "version"] if self.versions.len() < MOST && !text.is_empty() => {
                self.versions.push(text.to_owned());
            }
            ["metadata", "versioning", "lastUpdated"] => text.clone_into(&mut self.last_updated),
            ["metadata", "plugins", "plugin", "prefix"] => text.clone_into(&mut plugin.prefix),
            ["metadata", "plugins", "plugin", "artifactId"] => text.clone_into(&mut plugin.artifact),
            ["metadata", "plugins", "plugin", "name"] => text.clone_into(&mut plugin.name),
            ["metadata", "plugins", "plugin"] => {
                let read = std::mem::take(plugin);
                if self.plugins.len() < MOST && !read.prefix.is_empty() && !read.artifact.is_empty() {
                    self.plugins.push(read);
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_versions_and_plugins() {
        let text =
            "<metadata><groupId>g</groupId><versioning><latest>2</latest><lastUpdated>20260102030405</lastUpdated>
            <versions><version> 1 </version><version>2&amp;</version><version></version></versions></versioning>
            <plugins><plugin><name>N</name><prefix>p</prefix><artifactId>p-maven-plugin</artifactId></plugin>
            <plugin><prefix>lost</prefix></plugin></plugins></metadata>";
        let read = MavenMetadata::read(text.as_bytes()).expect("a list");
        assert_eq!((read.versions, read.last_updated.as_str()), (vec!["1".into(), "2&".into()], "20260102030405"));
        let plugin = MavenPlugin { prefix: "p".into(), artifact: "p-maven-plugin".into(), name: "N".into() };
        assert_eq!(read.plugins, [plugin]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let bomb = "<!DOCTYPE m [<!ENTITY a 'aaaa'>]><metadata>&a;</metadata>";
        assert!(matches!(MavenMetadata::read(bomb.as_bytes()), Err(Refusal::Hostile(_))));
        for wrong in ["", "<html><body>no</body></html>", "<metadata><versioning></metadata>", &"<a>".repeat(100)] {
            assert!(MavenMetadata::read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
