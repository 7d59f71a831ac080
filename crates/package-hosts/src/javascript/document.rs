//! What the document says that a client sends of a package, and whether its file says the same.

use std::collections::BTreeMap;

use bowline_core::hex;
use bowline_libraries::Language;
use bowline_packages::Tarball;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::objects::Few;
use super::scanner::ScannedFile;
use crate::answers::Refused;
use crate::attestations::STATEMENTS;
use crate::fetching::line;

/// Maximum characters of the name of a new package, and of a version.
const NAME: usize = 214;
const VERSION: usize = 128;
/// Names that addresses of registries use for something else.
const TAKEN: [&str; 2] = ["favicon.ico", "node_modules"];

/// Members of the objects of a document.
const VERSIONS: usize = 10_000;
const TAGS: usize = 1000;
const ATTACHMENTS: usize = 16;
/// What the names of a package's file and of a statement beside it end with.
const TARBALL: &str = ".tgz";
const STATEMENT: &str = ".sigstore";

/// What a document says, as far as it is read.
#[derive(Deserialize)]
pub(super) struct Document {
    #[serde(default)]
    pub(super) name: String,
    #[serde(rename = "_rev")]
    pub(super) revision: Option<String>,
    versions: Option<Few<Version, VERSIONS>>,
    #[serde(default, rename = "dist-tags")]
    tags: Few<String, TAGS>,
    #[serde(default, rename = "_attachments")]
    attachments: Few<Attachment, ATTACHMENTS>,
}

#[derive(Deserialize)]
#[serde(expecting = "a version as an object")]
struct Version {
    name: Option<String>,
    version: Option<String>,
    deprecated: Option<Box<RawValue>>,
    dist: Option<Dist>,
}

impl Version {
    /// What those who install it are warned of; empty for no warning, for which old clients write `false`.
    fn warning(&self) -> String {
        let text = self.deprecated.as_ref().map(|value| serde_json::from_str(value.get()));
        text.and_then(Result::ok).unwrap_or_default()
    }
}

#[derive(Deserialize)]
#[serde(expecting = "dist as an object")]
struct Dist {
    shasum: Option<String>,
    integrity: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an attachment as an object")]
struct Attachment {
    length: Option<u64>,
    #[serde(default)]
    data: String,
}

/// The version that a document publishes.
pub(super) struct NewVersion {
    pub(super) version: String,
    /// The tag that stands for it from now on.
    pub(super) tag: String,
    dist: Option<Dist>,
    /// The statement beside the file, as a bundle in JSON.
    pub(super) statement: Option<String>,
}

impl Document {
    /// The versions that it has, with what those who install them are warned of; absent if it says nothing of versions.
    pub(super) fn warnings(&self) -> Option<BTreeMap<String, String>> {
        let versions = self.versions.as_ref().filter(|versions| !versions.0.is_empty())?;
        Some(versions.0.iter().map(|(version, described)| (version.clone(), described.warning())).collect())
    }

    /// Statements without a file are refused, not dropped: who sends them expects them to be there.
    pub(super) fn require_no_attachments(&self) -> Result<(), Refused> {
        match self.attachments.0.keys().next() {
            None => Ok(()),
            Some(name) => {
                Err(Refused::bad(format!("{} is no package ({TARBALL}): send the package with it", line(name))))
            }
        }
    }

    /// The statement beside the file, if there is one. Anything else is refused, not dropped: who sends it expects it to be there.
    fn take_statement(&mut self, file: &ScannedFile) -> Result<Option<String>, Refused> {
        let attachments = std::mem::take(&mut self.attachments.0).into_iter();
        let (files, others): (Vec<_>, Vec<_>) = attachments.partition(|(name, _)| name.ends_with(TARBALL));
        // Data that is left was not read as that of a file: its name or place is written with escapes.
        let length = match files.as_slice() {
            [(_, Attachment { length, data })] if data.is_empty() => *length,
            _ => return Err(Refused::bad(format!("_attachments must have one file whose name ends with {TARBALL}"))),
        };
        if length.is_some_and(|length| length != file.size) {
            return Err(Refused::bad(format!("length of the file differs from its {} bytes", file.size)));
        }
        let mut others = others.into_iter();
        let Some((name, statement)) = others.next() else { return Ok(None) };
        if !name.ends_with(STATEMENT) || others.next().is_some() {
            let text =
                format!("{} is neither the package ({TARBALL}) nor one statement about it ({STATEMENT})", line(&name));
            return Err(Refused::bad(text));
        }
        if statement.data.len() > STATEMENTS {
            return Err(Refused::bad(format!("{} has more than {STATEMENTS} bytes", line(&name))));
        }
        Ok(Some(statement.data))
    }

    /// The one version that is published.
    pub(super) fn new_version(mut self, name: &str, file: &ScannedFile) -> Result<NewVersion, Refused> {
        let statement = self.take_statement(file)?;
        let mut versions = self.versions.unwrap_or_default().0.into_iter();
        let (Some((version, described)), None) = (versions.next(), versions.next()) else {
            return Err(Refused::bad("versions must have the one version that is published"));
        };
        if described.name.is_some_and(|other| other != name) || described.version.is_some_and(|other| other != version)
        {
            return Err(Refused::bad(format!(
                "the version says that it is another one than {name}@{}",
                line(&version)
            )));
        }
        require_new_name(name)?;
        if version.len() > VERSION || semver::Version::parse(&version).is_err() {
            return Err(Refused::bad(format!("{} is no version by semver, such as 1.2.3", line(&version))));
        }
        let tag = match self.tags.0.len() {
            0 => "latest".to_owned(),
            1 => {
                self.tags.0.into_iter().filter(|(_, of)| *of == version).map(|(tag, _)| tag).next().unwrap_or_default()
            }
            _ => String::new(),
        };
        if tag.is_empty() {
            return Err(Refused::bad(format!("dist-tags must have one tag, which stands for {version}")));
        }
        Ok(NewVersion { version, tag, dist: described.dist, statement })
    }
}

impl NewVersion {
    /// Documents show what lies in the file, so the description must say the same.
    pub(super) fn require_same(&self, name: &str, file: &Tarball) -> Result<(), Refused> {
        if file.name != name || !Language::JavaScript.is_same_version(&file.version, &self.version) {
            let (of_file, version) = (line(&format!("{}@{}", file.name, file.version)), &self.version);
            return Err(Refused::bad(format!(
                "the package.json in the file is of {of_file}, and the document of {name}@{version}"
            )));
        }
        let Some(dist) = &self.dist else { return Ok(()) };
        let is_wrong = dist.shasum.as_ref().is_some_and(|shasum| *shasum != file.sha1)
            || dist.integrity.as_ref().is_some_and(|integrity| !has_digest(integrity, &file.sha512));
        if is_wrong { Err(Refused::bad("the file has another digest than dist says: send it again")) } else { Ok(()) }
    }
}

/// Whether an integrity, which may list several digests, agrees with a SHA-512 in hex. Other algorithms are not compared.
fn has_digest(integrity: &str, sha512: &str) -> bool {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    integrity.split_ascii_whitespace().filter_map(|digest| digest.strip_prefix("sha512-")).all(|digest| {
        let digest = digest.split('?').next().unwrap_or(digest);
        STANDARD.decode(digest).is_ok_and(|bytes| hex(&bytes) == sha512)
    })
}

/// Refuses a name that no new package has: installers and file systems would take it for another.
fn require_new_name(name: &str) -> Result<(), Refused> {
    let is_plain = |part: &str| {
        part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-._".contains(&byte))
            && !part.starts_with(['.', '_'])
    };
    let is_fine = name.len() <= NAME && name.trim_start_matches('@').split('/').all(is_plain) && !TAKEN.contains(&name);
    if is_fine {
        return Ok(());
    }
    Err(Refused::bad(format!(
        "{name} is no name of a new package: use at most {NAME} lower-case letters, digits, -, . and _, and none of the last \
         two first"
    )))
}
